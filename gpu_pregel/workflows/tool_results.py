"""What tools return, as text for a model."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import json
from typing import Any


def text_of_result(result: Any) -> str:
    """Return a string as it is, and other data as JSON.

    Examples
    --------
    >>> from gpu_pregel.workflows.tool_results import text_of_result
    >>> text_of_result({"found": {3}, "rest": None})
    '{"found": [3], "rest": null}'
    """
    if isinstance(result, str) and not isinstance(result, enum.Enum):
        return str(result)
    try:
        return json.dumps(result, ensure_ascii=False, default=_as_json)
    except (TypeError, ValueError, RecursionError):  # keys that JSON does not have, circles
        return str(result)


def _as_json(value: Any) -> Any:
    if hasattr(value, "model_dump"):  # of pydantic
        return value.model_dump(mode="json")
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (set, frozenset)):
        return sorted(value, key=repr)
    if isinstance(value, (datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if hasattr(value, "tolist"):  # of NumPy
        return value.tolist()
    return str(value)
