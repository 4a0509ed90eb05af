"""From which size of a graph on the backend is faster than NetworkX, as ``python -m benchmarks networkx`` measured it.

For each function the number of nodes and stored edges of a graph that has been converted, and of one that has not.
"""

from __future__ import annotations

NEVER = 1 << 62
"""NetworkX was faster with every graph that was tried."""

SIZES: dict[str, tuple[int, int]] = {}
