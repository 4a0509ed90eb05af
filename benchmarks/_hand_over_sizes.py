"""Writes the sizes by which calls are handed over to NetworkX, from reports of the times of both.

Of the shapes of a kind, and of the machines, the one that speaks most for NetworkX counts.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from gpu_pregel.networkx import sizes
from gpu_pregel.networkx.sizes import DENSE, NEVER, SPARSE, Entry, Limits

_CLEARLY, _NOISE = 0.85, 1.1
"""Up to this share of NetworkX's time the backend is faster at other shapes of graphs, too; where it never is by so
much, a time that is longer by less than the second number is not slower."""
_MARGIN = 1.5
"""A graph that is not converted must be larger than the smallest for which that pays by this factor, as it may have
another shape: NetworkX is slower by less than that with those between."""
SURE = 3
"""A shape with fewer sizes, as NetworkX refuses larger ones, tells nothing of its kind."""
_SIDES = ("networkx", "cached", "first")

Row = dict[str, float]
"""The ``size`` of a graph, its stored ``edges`` a node, and seconds of each side; ``refused`` if larger ones are."""


def described(shapes: dict[str, dict[str, list[Row]]]) -> dict[str, Any]:
    """Return what is reported of the times of each function: a line a shape."""
    return {
        "columns": "stored edges a node of the largest graph; by nodes and stored edges: microseconds of NetworkX, of "
        "the backend from the cache, and with the conversion; and whether larger graphs are refused",
        "figures": {name: {shape: _line(rows) for shape, rows in found.items()} for name, found in shapes.items()},
    }


def _line(rows: list[Row]) -> str:
    """Return the times by size; those of calls that are left to NetworkX are a dash."""
    if not rows:
        return ""
    times = ([f"{row[side] * 1e6:.0f}" if side in row else "-" for side in _SIDES] for row in rows)
    sizes = [f"{row['size']:.0f}: {' '.join(figures)}" for row, figures in zip(rows, times, strict=True)]
    return "; ".join([f"{rows[-1]['edges']:.2f} edges a node", *sizes, *["refused"] * ("refused" in rows[-1])])


def _rows(line: str) -> list[Row]:
    """Return the times that a line tells."""
    edges, *sizes = line.split("; ")
    is_refused = bool(sizes) and sizes[-1] == "refused"
    rows: list[Row] = []
    for one in sizes[: len(sizes) - is_refused]:
        size, figures = one.split(": ")
        seconds = {side: float(n) / 1e6 for side, n in zip(_SIDES, figures.split(), strict=True) if n != "-"}
        rows.append({"size": float(size), "edges": float(edges.split()[0])} | seconds)
    if is_refused:
        rows[-1]["refused"] = 1.0
    return rows


def write_sizes(reports: list[Path]) -> int:
    """Rewrite sizes.json from the reports of some machines."""
    found: dict[str, list[Entry]] = {}
    for path in reports:
        for name, shapes in json.loads(path.read_text())["figures"].items():
            found.setdefault(name, []).append(sizes_of({shape: _rows(line) for shape, line in shapes.items()}))
    lines = [f"  {json.dumps(name)}: {_line_of(_largest(entries))}" for name, entries in sorted(found.items())]
    sizes.FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    return 0


def sizes_of(shapes: dict[str, list[Row]]) -> Entry:
    """Return the entry of a function for sizes.json: rows by shape."""
    measured = [rows for rows in shapes.values() if rows]
    limits: list[Limits] = []
    for least, most in ((0, SPARSE), (SPARSE, DENSE), (DENSE, math.inf)):
        of_kind = [rows for rows in measured if least <= rows[-1]["edges"] < most and len(rows) >= SURE]
        cached, first = (_of_all(of_kind or measured, side) for side in ("cached", "first"))
        # A conversion takes time.
        limits.append((min(cached, first), first if first == NEVER else int(_MARGIN * first)))
    # Time grows with the size at least.
    second = min(rows[-1]["size"] / rows[-1]["networkx"] for rows in measured)
    return (limits[0], limits[1], limits[2], round(second))


def _largest(entries: list[Entry]) -> Entry:
    """Return the entry by which NetworkX is handed what it is faster at on any machine."""
    sparse, others, dense, seconds = zip(*entries, strict=True)
    return (_largest_pair(sparse), _largest_pair(others), _largest_pair(dense), max(seconds))


def _largest_pair(pairs: Sequence[Limits]) -> Limits:
    cached, first = zip(*pairs, strict=True)
    return (max(cached), max(first))


def _of_all(shapes: list[list[Row]], side: str) -> int:
    """Return the size from which on the backend is faster with graphs of all these shapes."""
    return max((_smallest(rows, side) for rows in shapes if any(side in row for row in rows)), default=NEVER)


def _smallest(rows: list[Row], side: str) -> int:
    """Return the size from which on the backend is always clearly faster, or, if there is none, never slower."""
    found = _smallest_within(rows, side, _CLEARLY)
    return found if found != NEVER else _smallest_within(rows, side, _NOISE)


def _smallest_within(rows: list[Row], side: str, share: float) -> int:
    """Return the size from which on the backend always takes at most this share of NetworkX's time."""
    found = int(rows[-1]["size"]) + 1 if "refused" in rows[-1] else NEVER
    ours = math.inf
    for row in reversed(rows):
        # If a larger graph took less time, this one was disturbed.
        ours = min(ours, row.get(side, ours))
        if side in row and ours > share * row["networkx"]:
            break
        found = int(row["size"])
    return found


def _line_of(entry: Entry) -> str:
    """Return an entry as the file has it."""
    *kinds, second = entry
    return json.dumps([*([None if size == NEVER else size for size in pair] for pair in kinds), second])
