"""The levels of Louvain and Leiden: move vertices between communities, make each community a vertex, and repeat.

What runs on a device is in ``_levels_cpu`` and ``_levels_operators``. All sums are of whole numbers, so that results do
not depend on the order in which threads add.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from gpu_pregel.host.graphs.graph import Graph

Array = np.ndarray[Any, Any]

SERIAL_EDGES = 1 << 15
"""In a graph of at most this many edges, vertices move one by one: batches would take longer."""
_GAIN_BITS = 60
"""Gains are below 2^60 in absolute value."""
_MAX_EXPONENT = 1023
"""The largest exponent of a float."""
_EDGES_PER_BATCH = 1 << 15
_MIN_BATCHES, _MAX_BATCHES = 8, 64
_MIN_BLOCK, _MAX_BLOCK = 8, 64
_BLOCKS = 1 << 12
"""Smaller graphs, which stay in caches, are divided into this many blocks."""
_ROUNDS = 20
"""Rounds of a level after which the next level begins, as in GVE-Louvain."""


@dataclass(frozen=True)
class Level:
    """A graph whose vertices are the communities of the level before; its arrays are in device memory.

    Attributes
    ----------
    number : int
        0 for the graph itself.
    indptr, indices : int64[n + 1], uint32[m]
        A pair of vertices may have several edges. Beyond the first level, there are no self-loops.
    weights : int64[m] or None
        None: every edge has weight 1.
    degrees : int64[n]
        The sum of the weights of each vertex, with twice that of the edges within it.
    """

    number: int
    indptr: Any
    indices: Any
    weights: Any
    degrees: Any

    @property
    def n(self) -> int:
        return len(self.degrees)

    @property
    def m(self) -> int:
        return len(self.indices)


def is_serial(level: Level) -> bool:
    """Whether the vertices of a level move one by one."""
    return level.m <= SERIAL_EDGES


@dataclass(frozen=True)
class Objective:
    """Modularity in whole numbers: u gains ``unit * weight(u, c) - rate * degree(u) * total(c)`` in community c."""

    total: int
    resolution: float

    @property
    def unit(self) -> int:
        return 1 << max(0, _GAIN_BITS - _headroom(self.total, self.resolution))

    @property
    def rate(self) -> float:
        return self.resolution * self.unit / max(1, self.total)

    def gain(self, modularity: float) -> int:
        """Return the sum of gains that raises modularity by this much."""
        return min(1 << 62, int(modularity * self.total * self.unit / 2))


def _headroom(total: float, resolution: float) -> int:
    """Return the number of bits of the largest gain in units of weight."""
    return int(np.ceil(np.log2(max(1.0, total) * max(1.0, resolution)))) + 1


def weight_factor(graph: Graph, resolution: float) -> float | None:
    """Return the factor that makes weights whole numbers, a power of two; None if there are no weights.

    Weights that are whole numbers already keep their value unless their sum is too large. Others lose what is below
    2^-59 of the sum, divided by the resolution.
    """
    weights = graph.weights
    if weights is None:
        return None
    total = 2 * float(weights.sum(dtype=np.float64))
    spare = _GAIN_BITS - _headroom(total, resolution)
    if weights.dtype.kind in "iu" and spare >= 0:
        return 1.0
    exponent = _GAIN_BITS - 2 - int(np.ceil(np.log2(total * max(1.0, resolution)))) if total > 0 else 0
    return 2.0 ** min(exponent, _MAX_EXPONENT)


@dataclass(frozen=True)
class Search:
    """How communities are searched.

    Attributes
    ----------
    tolerance : float
        A level ends when a round raises modularity by at most this much; a tenth of it at each further level.
    max_levels : int or None
    seed : int
        Selects the order in which vertices move.
    deterministic : bool
        Whether vertices move in batches; otherwise each moves at once, in the order of threads.
    refine : bool
        Whether communities are refined, as in Leiden's method.
    iterations, iteration : int
        How often all levels are searched, from the communities found so far, and which time it is.
    """

    resolution: float
    tolerance: float
    max_levels: int | None
    seed: int
    deterministic: bool = True
    refine: bool = False
    iterations: int = 1
    iteration: int = 0

    rounds = _ROUNDS

    def batches(self, level: Level) -> tuple[int, int]:
        """Return into how many batches the vertices are divided, and how many consecutive ones stay together.

        Block b of vertices belongs to batch ``b % batches``. The batches move one after the other. Long blocks are read
        faster, but neighbours with close numbers do not see each other's moves.
        """
        if is_serial(level):
            return level.n, 1
        block = min(1 << (2 * level.m // level.n).bit_length(), level.n // _BLOCKS)
        batches = min(_MAX_BATCHES, max(_MIN_BATCHES, level.m // _EDGES_PER_BATCH))
        return batches, min(_MAX_BLOCK, max(_MIN_BLOCK, block))

    def order(self, size: int) -> tuple[int, int]:
        """Return ``step, start`` of an order of ``range(size)``: item i is ``(i * step + start) % size``."""
        if self.seed == 0 and self.iteration == 0:
            return 1, 0
        random = np.random.default_rng([self.seed, self.iteration])
        step = int(random.integers(1, max(2, size)))
        while np.gcd(step, size) != 1:
            step += 1
        return step, int(random.integers(0, max(1, size)))


class LevelPhases(Protocol):
    """The phases of a level on one kind of device; labels are vertices of the level, in device memory."""

    def first_level(self, graph: Graph, factor: float | None) -> tuple[Level, int]:
        """Return the graph as the first level, and the sum of all degrees."""

    def upload(self, labels: Any) -> Any:
        """Return labels in device memory, wherever they are."""

    def move(self, level: Level, starts: Any, search: Search, objective: Objective) -> Any:
        """Move vertices from the communities ``starts``, or from their own, while modularity rises."""

    def refine(self, level: Level, communities: Any, count: int, objective: Objective) -> Any:
        """Return well-connected communities, each of which is part of one of the communities."""

    def number(self, labels: Any) -> tuple[Any, int]:
        """Replace labels by numbers, in the order of the smallest member, and count them."""

    def aggregate(self, level: Level, labels: Any, count: int) -> Level:
        """Return the graph whose vertices are the communities."""

    def look_up(self, table: Any, labels: Any) -> Any:
        """Return ``table[labels]``."""

    def hand_over(self, level: Level, labels: list[Any]) -> tuple[LevelPhases, Level, list[Any]]:
        """Return what runs this and the following levels, with the level and labels in its memory."""

    def common_starts(self, communities: Any, refined: Any, count: int) -> Any:
        """Return for each refined community the smallest one that is in the same community."""


def search_communities(phases: LevelPhases, graph: Graph, search: Search) -> list[Any]:
    """Return the communities after each level of the last iteration."""
    if not graph.num_vertices:
        return [np.empty(0, np.uint32)]
    level, total = phases.first_level(graph, weight_factor(graph, search.resolution))
    objective = Objective(total, search.resolution)
    found: list[Any] = []
    starts = None
    for iteration in range(search.iterations):
        if found:
            starts = phases.common_starts(found[-1], phases.upload(np.arange(level.n, dtype=np.uint32)), level.n)
        # The first of several iterations is Louvain's: refinement pays when communities are nearly right.
        refine = search.refine and (iteration > 0 or search.iterations == 1)
        turn = replace(search, iteration=iteration, refine=refine)
        # The last levels may have been searched on the host.
        found = [phases.upload(labels) for labels in _search_levels(phases, level, turn, objective, starts)]
    return found


def _search_levels(phases: LevelPhases, level: Level, search: Search, objective: Objective, starts: Any) -> list[Any]:
    """Return the communities after each level, from the communities ``starts`` or from single vertices."""
    found: list[Any] = []
    phases, level, (starts, membership) = phases.hand_over(level, [starts, None])
    limit = search.max_levels or 1 << 30
    while True:
        communities, count = phases.number(phases.move(level, starts, search, objective))
        refined, refined_count = communities, count
        if search.refine and count < level.n:
            refined, refined_count = phases.number(phases.refine(level, communities, count, objective))
        last = count == level.n or refined_count == level.n or level.number + 1 == limit
        result = refined if last else communities
        found.append(result if membership is None else phases.look_up(result, membership))
        if last:
            break
        membership = refined if membership is None else phases.look_up(refined, membership)
        if search.refine:
            starts = phases.common_starts(communities, refined, refined_count)
        level = phases.aggregate(level, refined, refined_count)
        phases, level, (starts, membership) = phases.hand_over(level, [starts, membership])
    if len(found) > 1 and count == level.n and not search.refine:
        found.pop()  # the last level joined nothing
    return found
