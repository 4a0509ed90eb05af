"""Text from outside as text that can be stored: Python's strings may hold halves of surrogate pairs."""

from __future__ import annotations

from typing import Any


def well_formed(value: Any) -> Any:
    r"""Return JSON data with halves of surrogate pairs joined, and replaced where the other half is missing.

    They come from file names that are not UTF-8, and from JSON.

    Examples
    --------
    >>> from gpu_pregel.workflows.well_formed_text import well_formed
    >>> ascii(well_formed({"name": "caf\udce9", "smile": ["\ud83d\ude00"]}))
    "{'name': 'caf\\ufffd', 'smile': ['\\U0001f600']}"
    """
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError:
            return value.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return value
    if type(value) is list:
        return [well_formed(one) for one in value]
    if type(value) is dict:
        return {well_formed(name): well_formed(one) for name, one in value.items()}
    return value
