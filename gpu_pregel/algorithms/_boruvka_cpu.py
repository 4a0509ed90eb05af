"""The phases of the minimum spanning forest on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.algorithms._driver import AlgorithmRun
from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.superstep.phases import Phases

Array = np.ndarray[Any, Any]

_SAMPLES = 1 << 13
"""Edges sampled to find the weight up to which edges are light."""
_SMALL = 1 << 15
_DEGREE = 3
"""Light edges are taken first if there are more than this number per vertex."""
_CHUNK = 1 << 10


def find_forest(run: AlgorithmRun, maximum: bool) -> tuple[Any, ...]:
    """Return the edges, their weights and the labels of the components."""
    graph, target, phases = run.graph, run.device, run.phases
    kernels = target.kernels("spanning_forest")
    n, m = graph.num_vertices, graph.num_stored_edges
    words, rule = _words(graph), _rule(graph, maximum)
    with phases.measure("prepare"):
        forest = _Forest(graph, target, phases, kernels, wide=words.dtype == np.uint64 or m >= 1 << 32)
    chunk = _CHUNK if m > _SMALL else None
    rows = graph.indptr, graph.indices, words, rule
    largest = n
    # With about n light edges, few of the others remain.
    if m // 2 > max(_DEGREE * n, _SMALL):
        splitter = _splitter(graph, words, rule, 2 * n / m)
        phases.run("collect light", kernels.collect_light, n, *rows, splitter, *forest.lists, chunk=chunk)
        forest.grow()
        largest = _estimate_largest(forest.parents)
    trees = forest.parents, forest.parents == largest
    phases.run("collect between", kernels.collect_between, n, *rows, *trees, *forest.lists, chunk=chunk)
    forest.grow()
    with phases.measure("sort"):
        positions = forest.positions()
    edges = target.empty(2 * len(positions), np.uint32).reshape(-1, 2)
    ends = edges[:, 0], edges[:, 1]
    phases.run("locate", kernels.locate, len(positions), graph.indptr, graph.indices, positions, *ends)
    weights = None if graph.weights is None else graph.weights[positions]
    return edges, weights, forest.parents


class _Forest:
    """The trees found so far, and the lists of edges from which they grow.

    If ``wide``, a weight and a position do not fit into a key of 64 bits: keys are numbers of edges then.
    """

    def __init__(self, graph: Graph, target: Device, phases: Phases, kernels: Any, *, wide: bool) -> None:
        n, most = graph.num_vertices, graph.num_stored_edges // 2 + 1
        self._phases, self._kernels, self._n = phases, kernels, n
        self.parents = np.arange(n, dtype=np.uint32)
        self._lists, self._next_lists = (
            [target.empty(most, dtype) for dtype in (np.uint32, np.uint32, np.uint64)] for _ in range(2)
        )
        # Weights in order and positions by the number of the edge.
        self._wide = target.empty(most if wide else 0, np.uint64), target.empty(most if wide else 0, np.int64)
        self._count = target.zeros(1, np.int64)
        self._best, self._next_best = (target.full(n, kernels.NONE, np.uint64) for _ in range(2))
        self._chosen, self._chosen_count = target.empty(n, np.uint64), target.zeros(1, np.int64)
        self._found: list[Array] = []

    @property
    def lists(self) -> tuple[Array, ...]:
        """The arguments of the kernels that collect edges."""
        return (self._best, *self._lists, *self._wide, self._count)

    def grow(self) -> None:
        """Join trees along the smallest edges in the lists until no edge leaves a tree, and empty the lists."""
        kernels, left = self._kernels, int(self._count[0])
        positions = self._wide[1]
        proposed = len(positions) == 0
        while left:
            if not proposed:
                self._count[0] = 0
                edges = (part[:left] for part in self._lists)
                trees = (*self._wide, self.parents, self._best)
                found = (*self._next_lists, self._count)
                self._phases.run("propose", kernels.propose, left, *edges, *trees, *found)
                self._lists, self._next_lists = self._next_lists, self._lists
                left = int(self._count[0])
            edges = (part[:left] for part in self._lists)
            found = (self._chosen, self._chosen_count)
            best = (self._best, self._next_best)
            self._phases.run("join", kernels.join, left, *edges, *best, self.parents, *found)
            self._best, self._next_best = self._next_best, self._best
            proposed = False
        self._phases.run("flatten", kernels.flatten, self._n, self.parents, self._best, self._next_best)
        keys = self._chosen[: int(self._chosen_count[0])]
        self._found.append(positions[keys] if len(positions) else (keys & np.uint64(0xFFFFFFFF)).astype(np.int64))
        self._chosen_count[0] = self._count[0] = 0

    def positions(self) -> Array:
        """Return the positions of the edges of the forest in the CSR, in ascending order."""
        return np.sort(np.concatenate(self._found))


def _estimate_largest(parents: Array) -> int:
    """Return the root of the tree to which most of a sample of vertices belong."""
    sample = np.random.default_rng(0).integers(0, len(parents), _SAMPLES // 8)
    roots, counts = np.unique(parents[sample], return_counts=True)
    return int(roots[counts.argmax()])


def _words(graph: Graph) -> Array:
    """Return the bits of the weights as unsigned integers; zeros if there are none."""
    if graph.weights is not None:
        return graph.weights.view(f"u{graph.weights.dtype.itemsize}")
    words = np.zeros(graph.num_stored_edges, np.uint32)
    words.flags.writeable = False
    return words


def _rule(graph: Graph, maximum: bool) -> Array:
    """Return the rule by which kernels bring the bits of weights into order; see ``spanning_forest_cpu._ordered``."""
    kind, bits = ("u", 32) if graph.weights is None else (graph.weights.dtype.kind, graph.weights.itemsize * 8)
    sign, every = 1 << (bits - 1), (1 << bits) - 1
    negative, other = {"u": (0, 0), "i": (sign, sign), "f": (every, sign)}[kind]
    flip = every if maximum else 0
    return np.array([sign, negative ^ flip, other ^ flip, sign if kind == "f" else 0, 0], np.uint64)


def _splitter(graph: Graph, words: Array, rule: Array, share: float) -> Array:
    """Return the weight in order and the position up to which about this share of the edges lies, from a sample."""
    sample = np.random.default_rng(0).integers(0, graph.num_stored_edges, _SAMPLES)
    sources = np.searchsorted(graph.indptr, sample, "right") - 1
    sample = sample[sources < graph.indices[sample]]
    found = words[sample].astype(np.uint64)
    found[found == rule[3]] = rule[4]
    found ^= np.where(found & rule[0], rule[1], rule[2])
    order = np.lexsort((sample, found))
    middle = order[min(int(share * len(order)), len(order) - 1)] if len(order) else None
    return np.array([0, 0] if middle is None else [found[middle], sample[middle]], np.uint64)
