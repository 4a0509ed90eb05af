"""The smallest graphs that the backend computes faster than NetworkX: ``python -m benchmarks networkx`` writes it.

For each function the number of nodes and stored edges from which it is faster, on a graph that has been converted
before, and with its conversion.
"""

from __future__ import annotations

SIZES: dict[str, tuple[int, int]] = {}
