"""Small graphs with known components, and a Hypothesis strategy for edge lists."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st


class Known(NamedTuple):
    """The edges of a graph, and the smallest vertex of the (weak) component of each vertex."""

    name: str
    n: int
    edges: list[tuple[int, int]]
    labels: list[int]


KNOWN = [
    Known("empty", 0, [], []),
    Known("one vertex", 1, [], [0]),
    Known("one self-loop", 1, [(0, 0)], [0]),
    Known("two isolated vertices", 2, [], [0, 1]),
    Known("one edge", 2, [(1, 0)], [0, 0]),
    Known("repeated edge", 3, [(1, 2), (2, 1), (1, 2)], [0, 1, 1]),
    Known("descending path", 5, [(4, 3), (3, 2), (2, 1), (1, 0)], [0] * 5),
    Known("two triangles", 6, [(0, 2), (2, 4), (4, 0), (1, 3), (3, 5), (5, 1)], [0, 1, 0, 1, 0, 1]),
    Known("star around the last vertex", 5, [(4, 0), (4, 1), (4, 2), (4, 3)], [0] * 5),
    Known("last vertex isolated", 4, [(0, 1), (1, 2)], [0, 0, 0, 3]),
    Known("joined by the last edge", 6, [(0, 1), (1, 2), (3, 4), (4, 5), (5, 2)], [0] * 6),
    Known("two edges into one vertex", 5, [(0, 2), (1, 2), (3, 4)], [0, 0, 0, 3, 3]),
]


def arrays(edges: list[tuple[int, int]], dtype: Any = np.int64) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return the source and destination arrays of a list of edges."""
    pairs = np.array(edges, dtype).reshape(-1, 2)
    return pairs[:, 0].copy(), pairs[:, 1].copy()


@st.composite
def edge_lists(draw: Any, max_vertices: int = 40, max_edges: int = 80) -> tuple[int, list[tuple[int, int]]]:
    """Draw ``(n, edges)``, including self-loops, repeated edges and isolated vertices."""
    n = draw(st.integers(1, max_vertices))
    vertex = st.integers(0, n - 1)
    return n, draw(st.lists(st.tuples(vertex, vertex), max_size=max_edges))
