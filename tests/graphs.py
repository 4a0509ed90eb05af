"""Small graphs with known components, and Hypothesis strategies for edge lists."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st


class Known(NamedTuple):
    """A graph by its edges, and the smallest vertex of each vertex's (weak) component."""

    name: str
    n: int
    edges: list[tuple[int, int]]
    labels: list[int]


KNOWN = [
    Known("empty", 0, [], []),
    Known("one vertex", 1, [], [0]),
    Known("one self-loop", 1, [(0, 0)], [0]),
    Known("two apart", 2, [], [0, 1]),
    Known("one edge", 2, [(1, 0)], [0, 0]),
    Known("repeated edge", 3, [(1, 2), (2, 1), (1, 2)], [0, 1, 1]),
    Known("path against the order", 5, [(4, 3), (3, 2), (2, 1), (1, 0)], [0] * 5),
    Known("two triangles", 6, [(0, 2), (2, 4), (4, 0), (1, 3), (3, 5), (5, 1)], [0, 1, 0, 1, 0, 1]),
    Known("star at the end", 5, [(4, 0), (4, 1), (4, 2), (4, 3)], [0] * 5),
    Known("last vertex isolated", 4, [(0, 1), (1, 2)], [0, 0, 0, 3]),
    Known("joined only by the last edge", 6, [(0, 1), (1, 2), (3, 4), (4, 5), (5, 2)], [0] * 6),
    Known("both meet in the middle", 5, [(0, 2), (1, 2), (3, 4)], [0, 0, 0, 3, 3]),
]


def arrays(edges: list[tuple[int, int]], dtype: Any = np.int64) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Source and destination arrays of a list of pairs."""
    pairs = np.array(edges, dtype).reshape(-1, 2)
    return pairs[:, 0].copy(), pairs[:, 1].copy()


@st.composite
def edge_lists(draw: Any, max_vertices: int = 40, max_edges: int = 80) -> tuple[int, list[tuple[int, int]]]:
    """``(n, edges)`` with self-loops, repeated edges and isolated vertices among them."""
    n = draw(st.integers(1, max_vertices))
    vertex = st.integers(0, n - 1)
    return n, draw(st.lists(st.tuples(vertex, vertex), max_size=max_edges))
