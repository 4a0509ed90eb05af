"""Samples of neighbourhoods, hop by hop, for the mini-batches of graph learning.

William Hamilton, Rex Ying, Jure Leskovec: Inductive Representation Learning on Large Graphs (GraphSAGE), NeurIPS 2017.
Samples without replacement are drawn by algorithm F2 of Jon Bentley, Bob Floyd: A sample of brilliance, Communications
of the ACM 30(9), 1987.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_pregel.algorithms._arguments import vertex_numbers
from gpu_pregel.algorithms._devices import chooses_device
from gpu_pregel.errors import ArgumentError, ArgumentTypeError
from gpu_pregel.host.arguments import check_flag, check_integer
from gpu_pregel.host.devices import DeviceName, get_device
from gpu_pregel.host.devices.cpu import CpuDevice
from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.graphs.graph import Graph, GraphLike, as_graph
from gpu_pregel.host.graphs.results import Result
from gpu_pregel.host.superstep.phases import Phases
from gpu_pregel.host.traverse.items import items
from gpu_pregel.host.traverse.operators import process_vertices
from gpu_pregel.kernels.library.philox import key_of, uniform

Array = np.ndarray[Any, Any]

_MOST = (1 << 31) - 1

_BYTES_PER_EDGE = 96
"""Memory of the host that a sampled edge takes, with the table of the vertices."""


@dataclass(frozen=True, eq=False, repr=False)
class NeighborSample(Result):
    """Edges sampled around seeds, in numbers of their own.

    Attributes
    ----------
    edges : int64[e]
        The position of each sampled edge in ``graph.indices`` and ``graph.weights``, by hop.
    sources, targets : int64[e]
        The ends of each sampled edge, as positions in ``vertices``.
    vertices : int64[s]
        The vertex numbers of the sample: the seeds, then the others by first appearance.
    hop_edges : int64[h + 1]
        The edges of hop i, from 0, are those from ``hop_edges[i]`` to ``hop_edges[i + 1] - 1``.
    hop_vertices : int64[h + 2]
        The seeds are the first ``hop_vertices[1]`` vertices, and the vertices that appear first in hop i are those from
        ``hop_vertices[i + 1]`` to ``hop_vertices[i + 2] - 1``.
    fanouts : tuple of int
    replace : bool
    seed : int
    """

    edges: Array
    sources: Array
    targets: Array
    vertices: Array
    hop_edges: Array
    hop_vertices: Array
    fanouts: tuple[int, ...]
    replace: bool
    seed: int

    @property
    def _values(self) -> Array:
        return self.edges

    def _columns(self) -> dict[str, Array]:
        """One row per sampled edge, by the user's ids."""
        columns = {
            "hop": np.repeat(np.arange(len(self.fanouts)), np.diff(self.hop_edges)),
            "source": self.graph.to_ids(self.vertices[self.sources]),
            "target": self.graph.to_ids(self.vertices[self.targets]),
        }
        weights = self.graph.weights
        return columns if weights is None else {**columns, "weight": weights[self.edges]}

    def ids(self) -> Array:
        """Return the user's ids of ``vertices``, [s]."""
        return self.graph.to_ids(self.vertices)

    def summary(self) -> dict[str, Any]:
        """Return the numbers of sampled vertices and edges."""
        return {"vertices": len(self.vertices), "edges": len(self.edges)}

    def describe(self) -> str:
        """Return a one-line summary."""
        return f"{len(self.vertices):,} vertices and {len(self.edges):,} edges in {len(self.fanouts)} hops"


@chooses_device
def sample_neighbors(
    graph: GraphLike,
    seeds: Any,
    fanouts: Sequence[int],
    *,
    replace: bool = False,
    seed: int = 0,
    device: DeviceName = "auto",
    threads: int | None = None,
    progress: bool = False,
) -> NeighborSample:
    """Sample out-edges of seeds, then of the vertices found, and so on, as graph learning needs them.

    As in PyTorch Geometric, each hop samples edges of the vertices that appeared first in the hop before. For
    in-neighbours, pass ``graph.transpose()``.

    Parameters
    ----------
    graph : Graph, NetworkX graph or SciPy sparse matrix
    seeds : collection of ids
        Repeated ids count once.
    fanouts : sequence of int
        The largest number of edges sampled of each vertex, per hop; -1: all.
    replace : bool, default False
        Whether an edge may be drawn several times; a vertex with out-edges then always has ``fanout`` of them.
    seed : int, default 0
    device : {"auto", "cpu", "cuda", "cuda:N", "emulated", "emulated:SEED", "python"}
    threads : int, optional
        Number of CPU threads. Default: the processors available to this process.
    progress : bool, default False
        Show the number of hops on stderr.

    Returns
    -------
    NeighborSample
        Random numbers depend on ``seed`` and the vertex only, so that every run, device and number of threads gives
        the same sample.

    Raises
    ------
    ArgumentError
        A seed is not in the graph, there is no hop, or a fan-out is 0 or below -1.
    ArgumentTypeError
        ``graph`` is not a graph, or an argument has the wrong type.
    DeviceError
        The device is unknown or cannot be used.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> star = gp.Graph.from_edgelist([0, 0, 0, 1], [1, 2, 3, 4])
    >>> sample = gp.sample_neighbors(star, [0], [2, -1])
    >>> sample.vertices[0].item(), sample.hop_edges[:2].tolist(), len(sample.sources) == len(sample.edges)
    (0, [0, 2], True)
    """
    graph = as_graph(graph)
    numbers = vertex_numbers(graph, "seeds", seeds)
    hops = _check_fanouts(fanouts)
    replace = check_flag("replace", replace)
    key = key_of(check_integer("seed", seed, 0))
    target = get_device(device, threads=threads)
    _, first = np.unique(numbers, return_index=True)
    sample = _Sample(graph, target, numbers[np.sort(first)], progress)
    for fanout in hops:
        sample.add_hop(fanout, replace, key)
    return sample.result(hops, replace, seed)


def _check_fanouts(fanouts: object) -> tuple[int, ...]:
    if isinstance(fanouts, (str, bytes)) or not hasattr(fanouts, "__iter__") or getattr(fanouts, "ndim", 1) != 1:
        raise ArgumentTypeError(f"fanouts must be a sequence of whole numbers, one per hop, not {fanouts!r:.80}")
    checked = tuple(check_integer(f"fanouts[{i}]", fanout, -1, _MOST) for i, fanout in enumerate(fanouts))
    if not checked:
        raise ArgumentError("fanouts is empty: give one number per hop, such as [15, 10]")
    if 0 in checked:
        raise ArgumentError(f"fanouts[{checked.index(0)}] is 0: use a positive number, or -1 for all edges")
    return checked


class _Sample:
    """The vertices and edges sampled so far."""

    def __init__(self, graph: Graph, target: Device, seeds: Array, progress: bool) -> None:
        self._graph = graph
        self._shown = progress
        self._target = target
        self._phases = Phases(CpuDevice(1), shown=False)
        self._indptr, _ = graph._csr_on(target, 0)
        self._rows: list[dict[str, Any]] = []
        self._vertices = seeds
        self._hop_vertices = [0, len(seeds)]
        self._hops: list[tuple[Array, Array, Array]] = []

    def add_hop(self, fanout: int, replace: bool, key: int) -> None:
        """Sample edges of the vertices that appeared last."""
        graph = self._graph
        begin, end = self._hop_vertices[-2:]
        last = self._vertices[begin:end]
        degrees = graph.indptr[last + 1] - graph.indptr[last]
        counts = degrees if fanout < 0 else np.where(degrees > 0, fanout, 0) if replace else np.minimum(degrees, fanout)
        firsts = np.concatenate([[0], np.cumsum(counts)])
        CpuDevice(1).require(_BYTES_PER_EDGE * int(firsts[-1]), f"sampling {firsts[-1]:,} edges in a hop")
        edges = self._choose(last, firsts, replace and fanout > 0, key)
        sources = np.repeat(np.arange(begin, end), counts)
        targets = self._number(graph.indices[edges])
        self._hops.append((edges, sources, targets))
        self._hop_vertices.append(len(self._vertices))

    def _choose(self, vertices: Array, firsts: Array, replace: bool, key: int) -> Array:
        """Return the sampled edges of the vertices, those of vertex i from ``firsts[i]`` on."""
        rows = items(len(vertices), self._target, progress=self._shown)
        edges = rows.full(-1, np.int64, int(firsts[-1]))
        given = [rows.upload(vertices), rows.upload(firsts), self._indptr, replace, key, edges]
        process_vertices(_choose_edges, rows, given)
        self._rows += rows.trace()
        return rows.download(edges)

    def _number(self, appearing: Array) -> Array:
        """Return the positions of vertices in the sample, to which new ones are added; on the CPU."""
        known = np.array([len(self._vertices)])
        vertices = np.concatenate([self._vertices, np.empty(len(appearing), np.int64)])
        numbers = np.empty(len(appearing), np.int64)
        table = np.full(2 << len(vertices).bit_length(), -1)
        kernels = CpuDevice(1).kernels("samples")
        self._phases.run("number", kernels.number, 1, vertices, known, appearing, numbers, table)
        self._vertices = vertices[: known[0]]
        return numbers

    def result(self, fanouts: tuple[int, ...], replace: bool, seed: int) -> NeighborSample:
        """Return what has been sampled."""
        trace = (*self._rows, *self._phases.trace())
        totals = {key: sum(row[key] for row in trace) for key in ("seconds", "compile_seconds")}
        edges, sources, targets = map(np.concatenate, zip(*self._hops, strict=True))
        return NeighborSample(
            graph=self._graph,
            stats={"device": self._target.name, "threads": self._target.threads, **totals},
            trace=trace,
            edges=edges,
            sources=sources,
            targets=targets,
            vertices=self._vertices,
            hop_edges=np.cumsum([0, *(len(hop[0]) for hop in self._hops)]),
            hop_vertices=np.array(self._hop_vertices),
            fanouts=fanouts,
            replace=replace,
            seed=seed,
        )


def _choose_edges(i: int, vertices: Any, firsts: Any, indptr: Any, replace: bool, key: int, edges: Any) -> int:
    """Sample edges of vertex i of the last hop."""
    v = vertices[i]
    begin = np.int64(indptr[v])
    degree = np.int64(indptr[v + 1]) - begin
    first = firsts[i]
    count = firsts[i + 1] - first
    for k in range(count):
        if replace:
            edges[first + k] = begin + int(uniform(key, v, k) * degree)
            continue
        # Choose among the edges up to the last one allowed; what has been chosen already stands for the last one.
        last = begin + degree - count + k
        chosen = last
        if count < degree:
            chosen = begin + int(uniform(key, v, k) * (last - begin + 1))
            for other in range(first, first + k):
                if edges[other] == chosen:
                    chosen = last
        edges[first + k] = chosen
    return 0
