"""The page of a run as one HTML document: the templates of this folder around the run's data.

The document loads nothing: its policy allows its own style and its own script, by their digests, and no request. The
data are JSON in which no character can end the element around them, and the script only ever makes text nodes of them.
"""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from functools import cache
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

_OPENING = re.compile("<(?=[/!sS])")
"""What could end the element or, as a comment or another script, keep it from ending."""
_SCRIPTS = ("base.js", "charts.js", "page.js")


def make_document(data: dict[str, Any]) -> str:
    """Return the document that shows the data of ``run_data``."""
    style, script = _read("page.css"), "".join(map(_read, _SCRIPTS))
    return Template(_read("page.html")).substitute(
        TITLE=escape(f"{data['run']['id']} · {data['run']['status']}"),
        STYLE=style,
        STYLE_HASH=_hash(style),
        SCRIPT=script,
        SCRIPT_HASH=_hash(script),
        DATA=to_json(data),
    )


@cache
def _read(name: str) -> str:
    return files("gpu_pregel.workflows.page").joinpath(name).read_text("utf-8")


@cache
def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def to_json(data: Any) -> str:
    r"""Return data as JSON that is safe inside a script element.

    Examples
    --------
    >>> print(to_json(["</script>", float("nan")]))
    ["\u003c/script>",null]
    """
    try:
        text = json.dumps(data, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except ValueError:  # JSON has no infinity
        text = json.dumps(_finite(data), ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return _OPENING.sub(r"\\u003c", text)


def _finite(data: Any) -> Any:
    """Return data with None for numbers that are not finite."""
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    return [_finite(value) for value in data] if isinstance(data, (list, tuple)) else data
