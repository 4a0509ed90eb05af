"""Core numbers: the largest k for which a vertex belongs to the k-core, where each vertex has k neighbours.

Stephen Seidman: Network structure and minimum degree, Social Networks 5(3), 1983. Vertices are peeled off level by
level as by Humayun Kabir, Kamesh Madduri: Parallel k-core decomposition on multicore platforms (PKC), IPDPSW 2017: a
thread that removes a vertex also removes the neighbours that thereby reach the level.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpu_pregel.algorithms._arguments import check_undirected
from gpu_pregel.algorithms._driver import AlgorithmRun, documented
from gpu_pregel.algorithms._triangles import without_repetitions
from gpu_pregel.host.arguments import check_integer
from gpu_pregel.host.devices import DeviceName
from gpu_pregel.host.graphs.graph import Graph, GraphLike, as_graph
from gpu_pregel.host.graphs.results import VertexResult
from gpu_pregel.host.superstep.advance import Advance
from gpu_pregel.host.traverse.operators import process_edges, process_vertices
from gpu_pregel.kernels.library import atomics

Array = np.ndarray[Any, Any]

_MIN_CHUNK, _MAX_CHUNK = 64, 1024
_CHUNKS = 16
_NO_DEGREE = np.iinfo(np.int64).max


@dataclass(frozen=True, eq=False, repr=False)
class CoreNumbers(VertexResult):
    """The core number of each vertex.

    Attributes
    ----------
    cores : int32[n]
        The largest k for which the vertex is in the k-core, in device memory; ``to_numpy()`` copies it to the host.
    """

    cores: Any

    value_name = "core"

    @property
    def _device_values(self) -> Any:
        return self.cores

    @cached_property
    def degeneracy(self) -> int:
        """The largest core number; 0 if there are no vertices."""
        return int(self._values.max(initial=0))

    def k_core(self, k: int | None = None) -> Graph:
        """Return the subgraph of the vertices with core number ``k`` or more; default: the largest core number.

        Raises
        ------
        ArgumentError
            ``k`` is below 0 or above the largest core number.

        Examples
        --------
        >>> import gpu_pregel as gp
        >>> graph = gp.Graph.from_edgelist([1, 1, 2, 3], [2, 3, 3, 9])
        >>> gp.core_number(graph).k_core(2).ids.tolist()
        [1, 2, 3]
        """
        least = self.degeneracy if k is None else check_integer("k", k, 0, self.degeneracy)
        return self.graph._induced(self._values >= least)

    def summary(self) -> dict[str, Any]:
        """Return the largest core number, and the number of vertices that have it."""
        return {"degeneracy": self.degeneracy, "vertices": int(np.count_nonzero(self._values == self.degeneracy))}

    def describe(self) -> str:
        """Return a one-line summary."""
        return f"core numbers up to {self.degeneracy:,}, which {self.summary()['vertices']:,} vertices have"

    def __repr__(self) -> str:
        return f"<CoreNumbers: up to {self.degeneracy:,}, {len(self):,} vertices>"


@documented
def core_number(
    graph: GraphLike, *, device: DeviceName = "auto", threads: int | None = None, progress: bool = False
) -> CoreNumbers:
    """Find the core number of each vertex of an undirected graph.

    The k-core is the largest subgraph in which each vertex has at least k neighbours. Self-loops and repeated edges are
    ignored.

    Parameters
    ----------
    {graph}
        Undirected.
    {options}

    Returns
    -------
    CoreNumbers
        With ``cores``, ``degeneracy`` and ``k_core(k)``. Every run, device and number of threads gives the same
        numbers.

    Raises
    ------
    GraphError
        The graph is directed.
    {errors}

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> gp.core_number(gp.Graph.from_edgelist([0, 0, 1, 2], [1, 2, 2, 3])).cores.tolist()
    [2, 2, 2, 1]
    """
    run = AlgorithmRun("core_number", graph, device, threads, progress)
    cores = run.execute()
    return CoreNumbers(run.graph, run.stats(), run.trace(), cores=cores)


@documented
def k_core(graph: GraphLike, k: int | None = None, *, device: DeviceName = "auto", threads: int | None = None) -> Graph:
    """Return the k-core of an undirected graph: its largest subgraph in which each vertex has k neighbours or more.

    Parameters
    ----------
    {graph}
        Undirected.
    k : int, optional
        Default: the largest k for which the k-core is not empty.
    device, threads
        As in :func:`core_number`.

    Returns
    -------
    Graph
        With the ids and weights of ``graph``.

    Raises
    ------
    ArgumentError
        ``k`` is below 0, or so large that the k-core is empty; the message names the largest possible k.
    GraphError
        The graph is directed.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> gp.k_core(gp.Graph.from_edgelist(["a", "a", "b", "c"], ["b", "c", "c", "d"])).ids.tolist()
    ['a', 'b', 'c']
    """
    graph = as_graph(graph)
    check_undirected(graph, "k_core")
    if k is not None:
        check_integer("k", k, 0, max(graph.num_vertices - 1, 0))
    return core_number(graph, device=device, threads=threads).k_core(k)


def peel(run: AlgorithmRun) -> Array:
    """On the CPU, remove vertices level by level, with kernels."""
    graph, target, phases = run.graph, run.device, run.phases
    n = graph.num_vertices
    kernels = target.kernels("cores")
    degrees, cores = target.empty(n, np.uint32), target.empty(n, np.int32)
    left, kept = target.empty(n, np.uint32), target.empty(n, np.uint32)
    following, state = target.empty(n, np.int64), target.zeros(8, np.int64)
    rows = (graph.indptr, graph.indices)
    phases.run("count degrees", kernels.count_degrees, n, *rows, degrees, cores, state, left)
    size, state[kernels.LEVEL] = int(state[kernels.LEFT]), 1
    while size > kernels.SERIAL:
        state[kernels.LEFT], state[kernels.LEAST], state[kernels.TAKEN] = 0, _NO_DEGREE, 0
        chunk = max(_MIN_CHUNK, min(_MAX_CHUNK, size // _CHUNKS))
        arrays = (*rows, state, left, kept, degrees, cores, following)
        phases.run(f"level {state[kernels.LEVEL]}", kernels.peel_level, size, *arrays, chunk=chunk)
        size, left, kept = int(state[kernels.LEFT]), kept, left
        # The degrees seen by a level that removed vertices may have fallen since.
        state[kernels.LEVEL] = state[kernels.LEVEL] + 1 if state[kernels.TAKEN] else state[kernels.LEAST]
    state[kernels.LEFT] = size
    rest = (*rows, state, left, degrees, cores, following)
    phases.run("rest", kernels.peel_rest, min(size, 1), *rest)
    return np.asarray(cores)


def _set_degree(v: Any, indptr: Any, degrees: Any) -> None:
    degrees[v] = np.int64(indptr[v + 1]) - np.int64(indptr[v])


def peel_by_operators(run: AlgorithmRun) -> Any:
    """On the other devices, remove vertices level by level."""
    left = run.frontier(graph=without_repetitions(run.graph))
    degrees, cores = left.full(0, np.int64), left.full(-1, np.int32)
    process_vertices(_set_degree, left, [left.graph._csr_on(left.device, 0)[0], degrees], returns=None)
    k = 0
    # Each round removes vertices, or finds the level at which the next one does.
    advance = Advance("removing vertices", left.device, 2 * len(left))
    while left:
        least = left.full(_NO_DEGREE, np.int64, 1)
        removed = process_vertices(_reach, left, [k, degrees, cores, least], returns="frontier")
        # The smallest degree is the next level, if no vertex has reached this one.
        k = k + 1 if removed else int(left.download(least)[0])
        advance.take(0 if removed else 1)
        while removed:
            advance.take(len(removed))
            removed = process_edges(_lower, removed, [k - 1, degrees, cores], receives=_is_left)
        left = process_vertices(_is_left, left, [0, degrees, cores], returns="frontier")
    return cores


def _reach(v: int, k: int, degrees: Array, cores: Array, least: Array) -> bool:
    """Whether a vertex has at most k neighbours left."""
    if degrees[v] > k:
        atomics.min(least, 0, degrees[v])
        return False
    cores[v] = k
    return True


def _lower(_u: int, v: int, _weight: float, k: int, degrees: Array, cores: Array) -> bool:
    """Whether v has k neighbours left without u, and one more with u."""
    if atomics.add(degrees, v, -1) != k + 1:
        return False
    atomics.store(cores, v, k)
    return True


def _is_left(v: int, _k: int, _degrees: Array, cores: Array) -> bool:
    return bool(atomics.load(cores, v) < 0)
