"""Samples of neighbourhoods, hop by hop, for the mini-batches of graph learning.

William Hamilton, Rex Ying, Jure Leskovec: Inductive Representation Learning on Large Graphs (GraphSAGE), NeurIPS 2017.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_pregel.algorithms._arguments import vertex_numbers
from gpu_pregel.algorithms._driver import AlgorithmRun, documented, host_device
from gpu_pregel.errors import ArgumentError, ArgumentTypeError
from gpu_pregel.host.arguments import check_flag, check_integer
from gpu_pregel.host.devices import DeviceName
from gpu_pregel.host.graphs.graph import GraphLike
from gpu_pregel.host.graphs.results import Result
from gpu_pregel.host.traverse.arrays import ranks, unique
from gpu_pregel.host.traverse.items import isolated
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


@documented
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
    {graph}
    seeds : collection of ids
        Repeated ids count once.
    fanouts : sequence of int
        The largest number of edges sampled of each vertex, per hop; -1: all.
    replace : bool, default False
        Whether an edge may be drawn several times; a vertex with out-edges then always has ``fanout`` of them.
    seed : int, default 0
    {options}

    Returns
    -------
    NeighborSample
        Random numbers depend on ``seed`` and the vertex only, so that every run, device and number of threads gives
        the same sample.

    Raises
    ------
    ArgumentError
        A seed is not in the graph, there is no hop, or a fan-out is 0 or below -1.
    {errors}

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> star = gp.Graph.from_edgelist([0, 0, 0, 1], [1, 2, 3, 4])
    >>> sample = gp.sample_neighbors(star, [0], [2, -1])
    >>> sample.vertices[0].item(), sample.hop_edges[:2].tolist(), len(sample.sources) == len(sample.edges)
    (0, [0, 2], True)
    """
    run = AlgorithmRun("sample_neighbors", graph, device, threads, progress)
    numbers = vertex_numbers(run.graph, "seeds", seeds)
    hops = _check_fanouts(fanouts)
    replace = check_flag("replace", replace)
    seed = check_integer("seed", seed, 0)
    _, first = np.unique(numbers, return_index=True)
    sample: Sample = run.execute(numbers[np.sort(first)])
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


class Sample:
    """On the other devices, the vertices and edges sampled so far, in device memory."""

    def __init__(self, run: AlgorithmRun, seeds: Array) -> None:
        self._run, self._graph = run, run.graph
        self._everyone = run.frontier()
        self._vertices = self._everyone.upload(seeds)
        self._hop_vertices = [0, len(seeds)]
        self._hops: list[tuple[Any, Any, Any]] = []

    def add_hop(self, fanout: int, replace: bool, seed: int) -> None:
        """Sample edges of the vertices that appeared last."""
        begin, end = self._hop_vertices[-2:]
        last = self._vertices[begin:end]
        found = sample_rows(self._everyone, fanout, vertices=last, replace=replace and fanout > 0, seed=seed)
        size = found.edges.size
        host_device(1).require(_BYTES_PER_EDGE * size, f"sampling {size:,} edges in a hop")
        self._hops.append((found.edges, self._sources(begin, size, found.offsets), self._number(found.neighbors)))
        self._hop_vertices.append(self._vertices.size)

    def _sources(self, begin: int, size: int, offsets: Any) -> Any:
        """Return the position of the source of each edge; those of vertex ``begin + i`` are from ``offsets[i]`` on."""
        each, sources = self._run.frontier(graph=isolated(size)), self._everyone.full(0, np.int64, size)
        process_vertices(_find_source, each, [offsets, begin, sources], returns=None)
        return sources

    def _number(self, appearing: Any) -> Any:
        """Return the positions of vertices in the sample, to which new ones are added."""
        known = self._vertices.size
        both = self._everyone.full(0, np.int64, known + appearing.size)
        each = self._run.frontier(graph=isolated(both.size))
        process_vertices(_join, each, [self._vertices, appearing, both], returns=None)
        found = unique(both)
        numbers, vertices = ranks(found.firsts), self._everyone.full(0, np.int64, found.values.size)
        each = self._run.frontier(graph=isolated(vertices.size))
        process_vertices(_place, each, [numbers, found.values, vertices], returns=None)
        targets = self._everyone.full(0, np.int64, appearing.size)
        each = self._run.frontier(graph=isolated(targets.size))
        process_vertices(_look_up, each, [found.numbers, known, numbers, targets], returns=None)
        self._vertices = vertices
        return targets

    def result(self, fanouts: tuple[int, ...], replace: bool, seed: int) -> NeighborSample:
        """Return what has been sampled."""
        hops = [[self._everyone.download(part) for part in hop] for hop in self._hops]
        edges, sources, targets = map(np.concatenate, zip(*hops, strict=True))
        return NeighborSample(
            *(self._graph, self._run.stats(), self._run.trace()),
            edges=edges,
            sources=sources,
            targets=targets,
            vertices=self._everyone.download(self._vertices),
            hop_edges=np.cumsum([0, *(len(hop[0]) for hop in hops)]),
            hop_vertices=np.array(self._hop_vertices),
            fanouts=fanouts,
            replace=replace,
            seed=seed,
        )


class HostSample(Sample):
    """On the CPU, the same; vertices are numbered by one thread with a hash table, which takes less time."""

    def __init__(self, run: AlgorithmRun, seeds: Array) -> None:
        super().__init__(run, seeds)
        self._kernels: Any = run.device.kernels("samples")

    def _sources(self, begin: int, size: int, offsets: Any) -> Any:
        return np.repeat(np.arange(begin, begin + len(offsets) - 1), np.diff(offsets))

    def _number(self, appearing: Any) -> Any:
        known = np.array([len(self._vertices)])
        vertices = np.concatenate([self._vertices, np.empty(len(appearing), np.int64)])
        numbers = np.empty(len(appearing), np.int64)
        table = np.full(2 << len(vertices).bit_length(), -1)
        self._run.phases.run("number", self._kernels.number, 1, vertices, known, appearing, numbers, table)
        self._vertices = vertices[: known[0]]
        return numbers


def _find_source(s: Any, offsets: Any, begin: Any, sources: Any) -> None:
    sources[s] = begin + row_of(offsets, s)


def _join(i: Any, vertices: Any, appearing: Any, both: Any) -> None:
    both[i] = vertices[i] if i < len(vertices) else appearing[i - len(vertices)]


def _place(i: Any, numbers: Any, values: Any, vertices: Any) -> None:
    vertices[numbers[i]] = values[i]


def _look_up(s: Any, different: Any, known: Any, numbers: Any, targets: Any) -> None:
    """Find the number of the vertex that appears after the ``known`` ones in place s."""
    targets[s] = numbers[different[known + s]]
