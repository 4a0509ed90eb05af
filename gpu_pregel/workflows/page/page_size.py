"""The limit of a page's size: what is left out of the data first, if there are too many."""

from __future__ import annotations

import json
from typing import Any

MOST_BYTES = 5_000_000
_KEPT = ("superstep", "status", "row", "began", "ended")
"""What is kept of a superstep whose details are left out."""


def limit_size(data: dict[str, Any], most: int = MOST_BYTES) -> dict[str, Any]:
    """Return data of a page that take at most about ``most`` bytes as JSON.

    The older half of what attempts emitted is left out, then the details of the older half of supersteps, and so on;
    rows of the trace are always kept.
    """
    sizes = {name: _size(value) for name, value in data.items()}
    is_cut = False
    while sum(sizes.values()) > most:
        name = "emissions" if sizes.get("emissions", 0) > sizes["steps"] // 2 else "steps"
        if name == "emissions":
            data["emissions"] = data["emissions"][(len(data["emissions"]) + 1) // 2 :]
        elif not _drop_details(data["steps"]):
            break
        sizes[name], is_cut = _size(data[name]), True
    if is_cut:
        data["notes"].append("The details of older supersteps are not shown, as the page would be too large.")
    return data


def _drop_details(steps: list[dict[str, Any]]) -> bool:
    """Drop the details of the older half of the supersteps that have any; return whether there are some."""
    detailed = [number for number, step in enumerate(steps) if "active" in step]
    for number in detailed[: (len(detailed) + 1) // 2]:
        steps[number] = {name: value for name, value in steps[number].items() if name in _KEPT}
    return bool(detailed)


def _size(value: Any) -> int:
    return len(json.dumps(value, ensure_ascii=False).encode("utf-8", "backslashreplace"))
