"""A maximal independent set: vertices of which no two are neighbours, and to which no vertex can be added.

It is what a greedy algorithm finds that takes the vertices in a random order: Guy Blelloch, Jeremy Fineman, Julian
Shun: Greedy sequential maximal independent set and matching are parallel on average, SPAA 2012. A vertex is decided as
soon as all neighbours before it are. States and priorities share a byte as in Martin Burtscher, Sindhu Devale, Sahar
Azimi, Jayadharini Jaiganesh, Evan Powers: A high-quality and fast maximal independent set implementation for GPUs,
ACM Transactions on Parallel Computing 5(2), 2018.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_pregel.algorithms._driver import AlgorithmRun, documented
from gpu_pregel.algorithms._random_order import check_seed, keys_on_device, seed_offset
from gpu_pregel.host.devices import DeviceName
from gpu_pregel.host.graphs.graph import GraphLike
from gpu_pregel.host.graphs.results import VertexResult
from gpu_pregel.host.superstep.advance import Advance
from gpu_pregel.host.traverse.operators import reduce_rows
from gpu_pregel.kernels.library import atomics

Array = np.ndarray[Any, Any]

_OUT, _UNDECIDED, _IN = 0, 1, 255
"""The larger decides: of a vertex with a neighbour in the set no other is read, as 255 is the largest uint8."""


@dataclass(frozen=True, eq=False, repr=False)
class IndependentSet(VertexResult):
    """A maximal independent set of a graph.

    Attributes
    ----------
    members : bool[n]
        Whether each vertex is in the set, in host memory.
    seed : int
        The seed of the random order.
    """

    members: Array
    seed: int

    value_name = "member"

    @property
    def _values(self) -> Array:
        return self.members

    @property
    def count(self) -> int:
        """Number of vertices in the set."""
        return int(np.count_nonzero(self.members))

    @property
    def vertices(self) -> Array:
        """The ids of the vertices in the set, in the order of their numbers."""
        return self.graph.to_ids(np.flatnonzero(self.members))

    def summary(self) -> dict[str, Any]:
        """Return the number of vertices in the set."""
        return {"vertices": self.count}

    def describe(self) -> str:
        """Return a one-line summary."""
        n = len(self.members)
        share = f" ({self.count / n:.1%})" if n else ""
        return f"an independent set of {self.count:,} of {n:,} vertices{share}"

    def __repr__(self) -> str:
        return f"<IndependentSet: {self.count:,} of {len(self.members):,} vertices>"


@documented
def maximal_independent_set(
    graph: GraphLike,
    *,
    seed: int = 0,
    device: DeviceName = "auto",
    threads: int | None = None,
    progress: bool = False,
) -> IndependentSet:
    """Find a maximal independent set of an undirected graph; self-loops are ignored.

    Parameters
    ----------
    {graph}
    seed : int, default 0
        The seed of the random order in which the greedy algorithm would take the vertices.
    {options}

    Returns
    -------
    IndependentSet
        With ``members``, ``vertices`` and ``count``. Every run, device and number of threads gives the same set for the
        same seed.

    Raises
    ------
    ArgumentError
        ``seed`` is negative or has more than 64 bits.
    GraphError
        The graph is directed.
    {errors}

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> found = gp.maximal_independent_set(gp.Graph.from_edgelist(["hub"] * 3, ["a", "b", "c"]), seed=1)
    >>> found.vertices.tolist(), found["hub"]
    (['a', 'b', 'c'], False)
    """
    run = AlgorithmRun("maximal_independent_set", graph, device, threads, progress)
    seed = check_seed(seed)
    members = run.execute(seed)
    return IndependentSet(run.graph, run.stats(), run.trace(), members=members, seed=seed)


def decide(run: AlgorithmRun, seed: int) -> Array:
    """On the CPU, return the members, found by kernels."""
    graph, target, phases = run.graph, run.device, run.phases
    kernels = target.kernels("independent_set")
    n, offset = graph.num_vertices, seed_offset(seed)
    states = target.empty(n, np.uint8)
    entries, undecided = target.empty(n, np.uint64), target.empty(n, np.uint64)
    count = target.zeros(1, np.int64)
    rows = graph.indptr, graph.indices, offset, states
    phases.run("initialise", kernels.initialise, n, offset, states)
    phases.run("decide all", kernels.decide_all, n, *rows, undecided, count)
    while left := int(count[0]):
        entries, undecided = undecided, entries
        count[0] = 0
        phases.run("decide rest", kernels.decide_rest, left, *rows, entries, undecided, count)
    members: Array = states.view(bool)
    return members


def decide_by_operators(run: AlgorithmRun, seed: int) -> Array:
    """On the other devices, return the members."""
    active = run.frontier()
    keys = keys_on_device(active, seed)
    states = active.full(_UNDECIDED, np.int32)
    # The vertex with the smallest key among the undecided ones is decided in each round.
    advance = Advance("deciding vertices", active.device, len(active))
    while active:
        active = reduce_rows(_state_before, "max", active, (keys, states), finish=_decide)
        advance.shrink(len(active))
    members: Array = active.download(states) == _IN
    return members


def _state_before(v: Any, u: Any, weight: Any, keys: Any, states: Any) -> Any:
    """Return the state of a neighbour before v; others do not matter."""
    return np.uint8(atomics.load(states, u) if keys[u] < keys[v] else _OUT)


def _decide(v: Any, found: Any, keys: Any, states: Any) -> bool:
    """Decide v, unless a neighbour before it is undecided and none is in the set; return whether it is undecided."""
    if found == _UNDECIDED:
        return True
    atomics.store(states, v, _OUT if found == _IN else _IN)
    return False
