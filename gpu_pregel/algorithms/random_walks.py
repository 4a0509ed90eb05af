"""Random walks: uniform, weighted, and biased as in node2vec.

Aditya Grover, Jure Leskovec: node2vec: Scalable Feature Learning for Networks, KDD 2016. Biased steps are drawn by
rejection, as by Ke Yang et al.: KnightKing: A Fast Distributed Graph Random Walk Engine, SOSP 2019.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from gpu_pregel.algorithms._arguments import (
    check_positive,
    vertex_numbers,
)
from gpu_pregel.algorithms._driver import AlgorithmRun, documented
from gpu_pregel.algorithms._iterations import weights_in_use
from gpu_pregel.host.arguments import check_integer
from gpu_pregel.host.devices import DeviceName
from gpu_pregel.host.graphs.graph import GraphLike
from gpu_pregel.host.graphs.results import Result
from gpu_pregel.host.traverse.frontier import Frontier
from gpu_pregel.host.traverse.items import isolated
from gpu_pregel.host.traverse.operators import process_vertices
from gpu_pregel.host.traverse.samples import draw, weight_sums
from gpu_pregel.kernels.library.philox import key_of, uniform

Array = np.ndarray[Any, Any]

_TRIALS = 32
"""Rejected draws of a biased step, after which it is drawn from the exact probabilities of the row."""
_DRAWS = 2 * _TRIALS + 1
"""Random numbers of a step."""
_CHUNK = 256
"""Walks that a CPU thread claims at a time."""
_STEPS = 64
"""Steps that a walk makes in one call."""
_LONGEST = (1 << 32) // _DRAWS - 1
_SCALE = 2.0**500
"""Factor of weights, which sum to at most 1e150, so that shares of the smallest ones do not underflow."""


@dataclass(frozen=True, eq=False, repr=False)
class Walks(Result):
    """Random walks.

    Attributes
    ----------
    walks : int64[k, length + 1]
        The vertex numbers of each walk, from its start; -1 after a vertex without out-edges.
    starts : int64[k]
        The vertex numbers of the starts.
    weighted : bool
        Whether edges were chosen in proportion to their weights.
    p, q : float
        The parameters of node2vec.
    seed : int
    """

    walks: Array
    starts: Array
    weighted: bool
    p: float
    q: float
    seed: int

    @property
    def _values(self) -> Array:
        return self.walks

    def __len__(self) -> int:
        """Return the number of walks."""
        return len(self.walks)

    def _columns(self) -> dict[str, Array]:
        """One row per step that was made, by the user's ids."""
        walk, step = np.nonzero(self.walks >= 0)
        return {"walk": walk, "step": step, "vertex": self.graph.to_ids(self.walks[walk, step])}

    def paths(self) -> list[list[Any]]:
        """Return the walks as lists of the user's ids, without padding."""
        lengths = (self.walks >= 0).sum(axis=1)
        return [self.graph.to_ids(row[:length]).tolist() for row, length in zip(self.walks, lengths, strict=True)]

    def summary(self) -> dict[str, Any]:
        """Return the number of walks, of their steps, and of the walks that ended early."""
        steps = int((self.walks[:, 1:] >= 0).sum())
        return {"walks": len(self.walks), "steps": steps, "ended": int((self.walks[:, -1] < 0).sum())}

    def describe(self) -> str:
        """Return a one-line summary."""
        found = self.summary()
        return f"{found['walks']:,} walks, {found['steps']:,} steps, {found['ended']:,} walks ended early"


@documented
def random_walks(
    graph: GraphLike,
    starts: Any,
    length: int,
    *,
    weighted: bool = True,
    p: float = 1.0,
    q: float = 1.0,
    seed: int = 0,
    device: DeviceName = "auto",
    threads: int | None = None,
    progress: bool = False,
) -> Walks:
    """Walk along random out-edges, chosen in proportion to their weights, if any.

    Weights are used if the graph has them, unless ``weighted=False``.

    Parameters
    ----------
    {graph}
    starts : collection of ids
        The first vertex of each walk; a vertex may be given several times. A set is taken by vertex number.
    length : int
        Number of steps.
    weighted : bool, default True
        Choose edges in proportion to their weights, if the graph has any, instead of uniformly.
    p, q : float, default 1.0
        node2vec's return and in-out parameters: from t to v, the edge back to t has its weight divided by p, and an
        edge to a vertex to which none leads from t has it divided by q.
    seed : int, default 0
    {options}

    Returns
    -------
    Walks
        With ``walks``, int64[k, length + 1]. Random numbers depend on the seed, the position of a walk and the step
        only, so that every run, device and number of threads gives the same walks.

    Raises
    ------
    ArgumentError
        A start is not in the graph, ``length`` is below 1, or ``p`` or ``q`` is not above 0.
    GraphError
        ``weighted``, and a weight is negative, or they sum to more than 1e150.
    {errors}

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> ring = gp.Graph.from_edgelist(["a", "b", "c"], ["b", "c", "a"], directed=True)
    >>> gp.random_walks(ring, ["a", "c"], 4).paths()
    [['a', 'b', 'c', 'a', 'b'], ['c', 'a', 'b', 'c', 'a']]
    """
    run = AlgorithmRun("random_walks", graph, device, threads, progress)
    graph = run.graph
    first = vertex_numbers(graph, "starts", starts)
    width = check_integer("length", length, 1, _LONGEST) + 1
    p, q = check_positive("p", p), check_positive("q", q)
    key = key_of(check_integer("seed", seed, 0))
    weighted = weights_in_use(graph, weighted, "random_walks")
    walks = run.execute(first, width, (key, weighted, p, q))
    return Walks(graph, run.stats(), run.trace(), walks, starts=first, weighted=weighted, p=p, q=q, seed=seed)


def walk_by_kernel(run: AlgorithmRun, first: Array, width: int, options: tuple[int, bool, float, float]) -> Array:
    """On the CPU, return uniform walks, each of them by one thread; others by operators."""
    key, weighted, p, q = options
    if weighted or p != 1.0 or q != 1.0:
        return walk_by_operators(run, first, width, options)
    graph = run.graph
    walks = np.full((len(first), width), -1)
    walks[:, 0] = first
    walk = run.device.kernels("walks").walk
    run.phases.run("walk", walk, len(first), graph.indptr, graph.indices, key, _DRAWS, walks, chunk=_CHUNK)
    return walks


def walk_by_operators(run: AlgorithmRun, first: Array, width: int, options: tuple[int, bool, float, float]) -> Array:
    """On the other devices, and for other than uniform walks, make all walks, several steps at a time."""
    graph, walkers = run.graph, run.frontier(graph=isolated(len(first)))
    key, weighted, p, q = options
    device = walkers.device
    walks = walkers.full(-1, np.int64, len(first) * width)
    process_vertices(_begin, walkers, [walks, width, walkers.upload(first)], returns=None)
    everyone = Frontier(graph, device=device.name, threads=device.threads)
    sums = weight_sums(everyone) if weighted else device.empty(0, np.int64)
    biased = p != 1.0 or q != 1.0
    weights = everyone.csr().weights if weighted and biased else device.empty(0, np.float64)
    arrays = [walks, width, key, *graph._csr_on(device, 0), sums]
    # The first step has no bias, as there is none before it.
    ends = [1, *range(2, width, _STEPS), width] if biased else [*range(1, width, _STEPS), width]
    for begin, end in pairwise(ends):
        if biased and begin > 1:
            process_vertices(_biased_steps, walkers, [*arrays, begin, end, weights, 1.0 / p, 1.0 / q], returns=None)
        else:
            process_vertices(_steps, walkers, [*arrays, begin, end], returns=None)
    return walkers.download(walks).reshape(len(first), width)


def _begin(i: int, walks: Any, width: int, first: Any) -> int:
    walks[i * width] = first[i]
    return 0


def _steps(
    i: int, walks: Any, width: int, key: int, indptr: Any, indices: Any, sums: Any, first: int, last: int
) -> None:
    """Make steps that do not depend on the ones before."""
    for step in range(first, last):
        place = i * width + step
        v = walks[place - 1]
        if v >= 0:
            e = draw(np.int64(indptr[v]), np.int64(indptr[v + 1]), sums, uniform(key, i, step * _DRAWS))
            if e >= 0:
                walks[place] = indices[e]


def _has_edge(indptr: Any, indices: Any, u: Any, v: Any) -> Any:
    """Return whether there is an edge from u to v, by binary search."""
    begin, end = np.int64(indptr[u]), np.int64(indptr[u + 1])
    while begin < end:
        middle = (begin + end) // 2
        if np.int64(indices[middle]) < v:
            begin = middle + 1
        else:
            end = middle
    return begin < np.int64(indptr[u + 1]) and np.int64(indices[begin]) == v


def _bias(indptr: Any, indices: Any, t: Any, x: Any, back: Any, away: Any) -> Any:
    """Return the factor of an edge to x on a walk that came from t."""
    if x == t:
        return back
    return 1.0 if _has_edge(indptr, indices, t, x) else away


def _share(weights: Any, e: Any, factor: Any) -> Any:
    """Return the weight of an edge times a factor; in sums up to each edge, small weights may be lost."""
    return factor if len(weights) == 0 else float(weights[e]) * _SCALE * factor


def _biased_steps(
    i: int,
    walks: Any,
    width: int,
    key: int,
    indptr: Any,
    indices: Any,
    sums: Any,
    first: int,
    last: int,
    weights: Any,
    back: float,
    away: float,
) -> None:
    """Make steps whose probabilities depend on the ones before."""
    for step in range(first, last):
        place = i * width + step
        v, t = walks[place - 1], walks[place - 2]
        if v >= 0:
            walks[place] = _biased_step(i, v, t, step * _DRAWS, key, indptr, indices, sums, weights, back, away)


def _biased_step(
    i: Any,
    v: Any,
    t: Any,
    counter: Any,
    key: Any,
    indptr: Any,
    indices: Any,
    sums: Any,
    weights: Any,
    back: Any,
    away: Any,
) -> Any:
    """Return the next vertex after v on a walk that came from t, or -1."""
    begin, end = np.int64(indptr[v]), np.int64(indptr[v + 1])
    largest = max(back, 1.0, away)
    for trial in range(_TRIALS):
        e = draw(begin, end, sums, uniform(key, i, counter + 2 * trial))
        if e < 0:
            return np.int64(-1)
        x = np.int64(indices[e])
        height = uniform(key, i, counter + 2 * trial + 1) * largest
        # Most draws are decided without looking for an edge from t to x.
        accepted = height < back if x == t else height < min(1.0, away)
        if not accepted and x != t and height < max(1.0, away):
            accepted = height < _bias(indptr, indices, t, x, back, away)
        if accepted:
            return x
    # Few edges are likely: weigh all of them.
    total = 0.0
    for e in range(begin, end):
        total += _share(weights, e, _bias(indptr, indices, t, np.int64(indices[e]), back, away) / largest)
    rest = uniform(key, i, counter + 2 * _TRIALS) * total
    chosen = np.int64(-1)
    for e in range(begin, end):
        share = _share(weights, e, _bias(indptr, indices, t, np.int64(indices[e]), back, away) / largest)
        if share > 0.0 and rest >= 0.0:
            chosen = np.int64(indices[e])
            rest -= share
    return chosen
