"""The page's data of a run of numeric vertices: the rows of its trace, and figures of its arrays."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpu_pregel.host.stores.rows import RunRow
    from gpu_pregel.host.stores.saved_run import SavedRun
    from gpu_pregel.host.stores.store import Store

_MOST_BYTES = 1 << 28
"""Of longer arrays no figures are computed."""


def numeric_rows(trace: bytes | bytearray) -> list[dict[str, Any]]:
    """Return the rows of a stored trace; one that cannot be read has none, as nothing else depends on it."""
    try:
        rows = [json.loads(line) for line in bytes(trace).splitlines()]
    except ValueError:
        return []
    return [row for row in rows if isinstance(row, dict) and isinstance(row.get("superstep"), int)]


def describe_numeric(store: Store, row: RunRow, most: int) -> dict[str, Any]:
    """Return the supersteps and arrays of a run, from its newest checkpoint."""
    saved = store.load(row.id)
    rows = numeric_rows(saved.blob("trace")) if "trace" in saved.blobs else []
    notes = [f"Only the last {most:,} of {len(rows):,} supersteps are shown."] if len(rows) > most else []
    if not rows:
        notes.append("There is no checkpoint yet.")
    header = _header(saved)
    identity = header.get("identity") or [0, 0, False]
    return {
        "steps": [{"superstep": one["superstep"], "status": "committed", "row": one} for one in rows[-most:]],
        "numericGraph": {"vertices": identity[0], "edges": identity[1], "directed": identity[2]},
        "arrays": [_read_array(saved, name, code) for name, code in header.get("arrays", {}).items()],
        "notes": notes,
    }


def _header(saved: SavedRun) -> dict[str, Any]:
    try:
        header = json.loads(saved.base())
    except ValueError:
        return {}
    return header if isinstance(header, dict) else {}


def _read_array(saved: SavedRun, name: str, code: str) -> list[Any]:
    import numpy as np

    try:
        return describe_array(name, np.frombuffer(saved.blob(name), np.dtype(code)))
    except (KeyError, TypeError, ValueError):
        return [name, str(code), 0, "", "", ""]


def describe_array(name: str, array: Any) -> list[Any]:
    """Return the name, dtype, length, least, greatest and mean value of an array."""
    import numpy as np

    about = [name, str(array.dtype), len(array)]
    if array.nbytes > _MOST_BYTES or array.dtype.kind not in "biuf":
        return [*about, "", "", ""]
    finite = array[np.isfinite(array)] if array.dtype.kind == "f" else array
    if not len(finite):
        return [*about, "", "", ""]
    return [*about, f"{finite.min()}", f"{finite.max()}", f"{finite.mean(dtype=np.float64):.6g}"]
