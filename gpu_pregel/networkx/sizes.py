"""From which size of a graph on the backend is faster than NetworkX, as measured on two machines.

``python -m benchmarks networkx --sizes`` writes ``sizes.json``: the larger size counts, and that of a graph that has
not been converted has a margin.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

FILE = Path(__file__).with_suffix(".json")
NEVER = 1 << 62
"""NetworkX was faster with every graph that was tried; null in the file."""
SPARSE, DENSE = 3, 48
"""A graph with fewer stored edges a node is sparse, one with more is dense."""

Limits = tuple[int, int]
Entry = tuple[Limits, Limits, Limits, int]


@cache
def sizes() -> dict[str, Entry]:
    """Return three pairs for each function, of sparse graphs, of others, and of dense ones, and the size for a second.

    A pair is the number of nodes and stored edges of a graph that has been converted, and of one that has not. The last
    number is the size of a graph for which NetworkX takes a second on the faster machine.
    """
    found: dict[str, Any] = json.loads(FILE.read_bytes())
    return {name: (*map(_limits, kinds), second) for name, (*kinds, second) in found.items()}


def _limits(pair: list[int | None]) -> Limits:
    converted, unconverted = (NEVER if size is None else size for size in pair)
    return converted, unconverted
