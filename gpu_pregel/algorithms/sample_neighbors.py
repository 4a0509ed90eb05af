"""Samples of neighbourhoods, hop by hop, for the mini-batches of graph learning.

William Hamilton, Rex Ying, Jure Leskovec: Inductive Representation Learning on Large Graphs (GraphSAGE), NeurIPS 2017.
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
from gpu_pregel.host.traverse.arrays import ranks, unique
from gpu_pregel.host.traverse.frontier import Frontier
from gpu_pregel.host.traverse.items import items
from gpu_pregel.host.traverse.operators import process_vertices
from gpu_pregel.host.traverse.samples import row_of, sample_rows

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
    seed = check_integer("seed", seed, 0)
    target = get_device(device, threads=threads)
    _, first = np.unique(numbers, return_index=True)
    sample = _Sample(graph, target, numbers[np.sort(first)], progress)
    for fanout in hops:
        sample.add_hop(fanout, replace, seed)
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
    """The vertices and edges sampled so far, in the memory of the device."""

    def __init__(self, graph: Graph, target: Device, seeds: Array, progress: bool) -> None:
        self._graph = graph
        self._everyone = Frontier(graph, device=target.name, threads=target.threads, progress=progress)
        self._phases = Phases(CpuDevice(1), shown=False)
        self._vertices = self._everyone.upload(seeds)
        self._hop_vertices = [0, len(seeds)]
        self._hops: list[tuple[Any, Any, Any]] = []

    def add_hop(self, fanout: int, replace: bool, seed: int) -> None:
        """Sample edges of the vertices that appeared last."""
        begin, end = self._hop_vertices[-2:]
        last, device = self._vertices[begin:end], self._everyone.device
        found = sample_rows(self._everyone, fanout, vertices=last, replace=replace and fanout > 0, seed=seed)
        size = found.edges.size
        CpuDevice(1).require(_BYTES_PER_EDGE * size, f"sampling {size:,} edges in a hop")
        sources = device.empty(size, np.int64)
        if device.is_host:
            sources[:] = np.repeat(np.arange(begin, end), np.diff(found.offsets))
            targets = self._number_on_host(found.neighbors)
        else:
            process_vertices(_find_source, items(size, device), [found.offsets, begin, sources], returns=None)
            targets = self._number(found.neighbors)
        self._hops.append((found.edges, sources, targets))
        self._hop_vertices.append(self._vertices.size)

    def _number(self, appearing: Any) -> Any:
        """Return the positions of vertices in the sample, to which new ones are added."""
        device, known = self._everyone.device, self._vertices.size
        both = device.empty(known + appearing.size, np.int64)
        process_vertices(_join, items(both.size, device), [self._vertices, appearing, both], returns=None)
        found = unique(both)
        numbers, vertices = ranks(found.firsts), device.empty(found.values.size, np.int64)
        process_vertices(_place, items(vertices.size, device), [numbers, found.values, vertices], returns=None)
        targets = device.empty(appearing.size, np.int64)
        given = [found.numbers, known, numbers, targets]
        process_vertices(_look_up, items(targets.size, device), given, returns=None)
        self._vertices = vertices
        return targets

    def _number_on_host(self, appearing: Array) -> Array:
        """Do the same with a hash table, which takes less time on the CPU."""
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
        everyone = self._everyone
        trace = (*everyone.trace(), *self._phases.trace())
        totals = {key: sum(row[key] for row in trace) for key in ("seconds", "compile_seconds")}
        hops = [[everyone.download(part) for part in hop] for hop in self._hops]
        edges, sources, targets = map(np.concatenate, zip(*hops, strict=True))
        return NeighborSample(
            graph=self._graph,
            stats={"device": everyone.device.name, "threads": everyone.device.threads, **totals},
            trace=trace,
            edges=edges,
            sources=sources,
            targets=targets,
            vertices=everyone.download(self._vertices),
            hop_edges=np.cumsum([0, *(len(hop[0]) for hop in hops)]),
            hop_vertices=np.array(self._hop_vertices),
            fanouts=fanouts,
            replace=replace,
            seed=seed,
        )


def _find_source(s: Any, offsets: Any, begin: Any, sources: Any) -> None:
    sources[s] = begin + row_of(offsets, s)


def _join(i: Any, vertices: Any, appearing: Any, both: Any) -> None:
    both[i] = vertices[i] if i < len(vertices) else appearing[i - len(vertices)]


def _place(i: Any, numbers: Any, values: Any, vertices: Any) -> None:
    vertices[numbers[i]] = values[i]


def _look_up(s: Any, different: Any, known: Any, numbers: Any, targets: Any) -> None:
    """Find the number of the vertex that appears after the ``known`` ones in place s."""
    targets[s] = numbers[different[known + s]]
