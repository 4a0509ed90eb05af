"""Random graphs, which are those of NetworkX for the same seed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import networkx as nx
import numpy as np

from gpu_pregel.kernels.networkx.random_graphs_cpu import draw_edges, draw_pairs, skip_pairs
from gpu_pregel.networkx.random_states import check_generator, drawing
from gpu_pregel.networkx.results import graph_of_edges

Array = np.ndarray[Any, Any]

_EDGES_PER_CALL = 1 << 16
_PAIRS_PER_CALL = 1 << 26


def gnp_random_graph(n: int, p: float, seed: Any = None, directed: bool = False, *, create_using: Any = None) -> Any:
    """Return a graph with each edge with probability p, drawn one by one."""
    check_generator(seed)
    if p <= 0 or p >= 1:
        return _extreme(n, p >= 1, directed)
    parts = []
    sources, targets = np.empty(max(n, _EDGES_PER_CALL), np.int64), np.empty(max(n, _EDGES_PER_CALL), np.int64)
    rows = max(1, _PAIRS_PER_CALL // max(n, 1))
    begin = 0
    with drawing(seed) as state:
        while begin < n:
            last = min(begin + rows, n)
            begin, count = draw_pairs(n, float(p), bool(directed), last, state, sources, targets, begin)
            parts.append((sources[:count].copy(), targets[:count].copy()))
    return graph_of_edges(n, *_joined(parts), directed=bool(directed))


def fast_gnp_random_graph(
    n: int, p: float, seed: Any = None, directed: bool = False, *, create_using: Any = None
) -> Any:
    """Return a graph with each edge with probability p; only edges are drawn."""
    check_generator(seed)
    if p <= 0 or p >= 1:
        return _extreme(n, p >= 1, directed)
    scale = math.log(1.0 - p)
    if n > 1:
        int(1 / scale)  # Its error for nan, and for probabilities too small to tell from 0, is NetworkX's.
    # Of a directed graph NetworkX draws the edges to larger numbers first.
    parts = [(targets, sources) for sources, targets in _skipped(n, scale, seed)] if directed else []
    parts += _skipped(n, scale, seed)
    return graph_of_edges(n, *_joined(parts), directed=bool(directed))


def gnm_random_graph(n: int, m: int, seed: Any = None, directed: bool = False, *, create_using: Any = None) -> Any:
    """Return a graph with m edges."""
    check_generator(seed)
    pairs = n * (n - 1) if directed else n * (n - 1) / 2.0
    if n == 1 or m >= pairs:
        return _extreme(n, n != 1, directed)
    sources, targets = np.empty(max(m, 0), np.int64), np.empty(max(m, 0), np.int64)
    table = np.full(1 << (2 * len(sources) + 1).bit_length(), -1)
    with drawing(seed) as state:
        draw_edges(n, bool(directed), state, table, sources, targets)
    return graph_of_edges(n, sources, targets, directed=bool(directed))


def _extreme(n: int, complete: bool, directed: bool) -> Any:
    """Return the graph without edges or with all."""
    kind = nx.DiGraph if directed else nx.Graph
    return nx.complete_graph(n, create_using=kind) if complete else nx.empty_graph(n, create_using=kind)


def _skipped(n: int, scale: float, seed: Any) -> Iterator[tuple[Array, Array]]:
    cursor = np.array([1, -1])
    sources, targets = np.empty(_EDGES_PER_CALL, np.int64), np.empty(_EDGES_PER_CALL, np.int64)
    with drawing(seed) as state:
        while cursor[0] < n:
            count = skip_pairs(n, scale, cursor, state, sources, targets)
            yield sources[:count].copy(), targets[:count].copy()


def _joined(parts: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    empty = np.empty(0, np.int64)
    first, second = zip((empty, empty), *parts, strict=True)
    return np.concatenate(first), np.concatenate(second)
