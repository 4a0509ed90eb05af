"""Generators of random graphs: Kronecker, uniform, and a grid with holes.

The same arguments give the same graph for any number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.errors import ArgumentError
from gpu_pregel.host.arguments import check_integer
from gpu_pregel.host.devices.memory import require_memory
from gpu_pregel.host.devices.threads import parallel, thread_count
from gpu_pregel.host.graphs import csr as host_csr
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.superstep.progress import ProgressBar
from gpu_pregel.kernels.graphs import generate_cpu

_CHUNK = 1 << 16
_MAX_SCALE = 31
_MAX_EDGES = 1 << 40
DEFAULT_SEED = 27491095
"""An arbitrary number, so that every user gets the same graph by default."""


def kronecker(
    scale: int,
    edge_factor: int = 16,
    seed: int = DEFAULT_SEED,
    *,
    threads: int | None = None,
    progress: bool = False,
) -> Graph:
    """Generate a Kronecker (R-MAT) graph with the parameters of Graph500: a few hubs and many isolated vertices.

    Parameters
    ----------
    scale : int
        The graph has ``2**scale`` vertices; from 0 to 31.
    edge_factor : int, default 16
        Number of edges drawn per vertex; self-loops and duplicates are dropped.
    seed : int
        Seed of the random numbers.
    threads : int, optional
        Number of threads. Default: the processors available to this process.
    progress : bool, default False
        Show a progress bar on stderr.

    Returns
    -------
    Graph
        Undirected, without weights.

    Notes
    -----
    Each bit of the two endpoints is drawn with probabilities 0.57, 0.19, 0.19, 0.05 (Graph500 specification, 2010; see
    Leskovec et al., Kronecker graphs, JMLR 2010). Vertex numbers are then permuted.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> gp.kronecker(10).num_vertices
    1024
    """
    return _random_graph("kronecker", generate_cpu.kronecker_edges, scale, edge_factor, seed, threads, progress)


def uniform(
    scale: int,
    edge_factor: int = 16,
    seed: int = DEFAULT_SEED,
    *,
    threads: int | None = None,
    progress: bool = False,
) -> Graph:
    """Generate a graph whose edges join uniformly drawn vertices (Erdős-Rényi model).

    Parameters and result are as for :func:`kronecker`.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> gp.uniform(10, edge_factor=4).is_directed
    False
    """
    return _random_graph("uniform", generate_cpu.uniform_edges, scale, edge_factor, seed, threads, progress)


def check_random_graph(scale: int, edge_factor: int, seed: int) -> tuple[int, int, np.uint64]:
    """Return the number of vertices and edges to draw and the seed, or raise if they are invalid or too many."""
    n = 1 << check_integer("scale", scale, 0, _MAX_SCALE)
    edges = n * check_integer("edge_factor", edge_factor, 0, _MAX_EDGES // n)
    bits = np.uint64(check_integer("seed", seed, 0, (1 << 64) - 1))
    needed = 2 * edges * host_csr.INDEX_DTYPE.itemsize + host_csr.building_memory(n, 2 * edges)
    require_memory(needed, f"generating {edges:,} edges between {n:,} vertices and building the graph")
    return n, edges, bits


def _random_graph(
    name: str, kernel: Any, scale: int, edge_factor: int, seed: int, threads: int | None, progress: bool
) -> Graph:
    n, edges, bits = check_random_graph(scale, edge_factor, seed)
    workers = thread_count(threads)
    src = np.empty(edges, host_csr.INDEX_DTYPE)
    dst = np.empty(edges, host_csr.INDEX_DTYPE)
    with ProgressBar(f"generating {name}", shown=progress) as bar:
        parallel(kernel, edges, _CHUNK, scale, bits, src, dst, threads=workers, tick=bar.tick)
    return Graph.from_edgelist(
        *(src, dst),
        num_vertices=n,
        combine="first",
        self_loops="drop",
        threads=workers,
        progress=progress,
    )


def grid(
    rows: int,
    columns: int | None = None,
    *,
    holes: float = 0.1,
    seed: int = DEFAULT_SEED,
    threads: int | None = None,
    progress: bool = False,
) -> Graph:
    """Generate a road-like grid with holes: each crossing is joined to its four neighbours.

    Parameters
    ----------
    rows : int
    columns : int, optional
        Default: ``rows``. The crossing at (row, column) is the vertex ``row * columns + column``.
    holes : float, default 0.1
        Probability, from 0 to 1, that a crossing is a hole: an isolated vertex.
    seed : int
        Seed of the random numbers.
    threads : int, optional
        Number of threads. Default: the processors available to this process.
    progress : bool, default False
        Show a progress bar on stderr.

    Returns
    -------
    Graph
        Undirected, without weights; its diameter is close to ``rows + columns``.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> gp.grid(2, 3, holes=0).num_edges
    7
    """
    rows, columns, bits = check_grid(rows, rows if columns is None else columns, holes, seed)
    workers = thread_count(threads)
    n = rows * columns
    indptr = np.zeros(n + 1, host_csr.INDPTR_DTYPE)
    shape = (rows, columns, np.uint64(int(holes * 2**32)), bits)
    with ProgressBar("generating grid", shown=progress) as bar:
        parallel(generate_cpu.grid_degrees, n, _CHUNK, *shape, indptr[1:], threads=workers, tick=bar.tick)
        np.cumsum(indptr, out=indptr)
        indices = np.empty(int(indptr[-1]), host_csr.INDEX_DTYPE)
        parallel(generate_cpu.grid_neighbors, n, _CHUNK, *shape, indptr, indices, threads=workers, tick=bar.tick)
    return Graph(host_csr.CSR(indptr, indices, None), directed=False)


def check_grid(rows: int, columns: int, holes: float, seed: int) -> tuple[int, int, np.uint64]:
    """Return the number of rows and columns and the seed, or raise if they are invalid or too many."""
    rows = check_integer("rows", rows, 0, host_csr.MAX_VERTICES)
    columns = check_integer("columns", columns, 0, host_csr.MAX_VERTICES // max(1, rows))
    if isinstance(holes, bool) or not isinstance(holes, (int, float)) or not 0 <= holes <= 1:
        raise ArgumentError(f"holes must be a probability from 0 to 1, not {holes!r}")
    bits = np.uint64(check_integer("seed", seed, 0, (1 << 64) - 1))
    n = rows * columns
    require_memory(host_csr.building_memory(n, 4 * n), f"generating a grid of {n:,} crossings")
    return rows, columns, bits
