"""The phases of Louvain and Leiden by operators, for devices without kernels of their own; ``_levels`` calls them.

They give the communities of ``_levels_cpu``. Where a kernel on the CPU has a table for each thread, a vertex sums
weights in its own slice of a hash table, which has the places of its edges.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from gpu_pregel.algorithms._levels import Level, LevelPhases, Objective, Search, is_serial
from gpu_pregel.host.graphs.csr import read_only
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.traverse.arrays import arange, argsort, copy, histogram, prefix_sums, ranks, unique
from gpu_pregel.host.traverse.frontier import Frontier
from gpu_pregel.host.traverse.operators import process_vertices
from gpu_pregel.kernels.library import atomics

Array = np.ndarray[Any, Any]

_EMPTY = 0xFFFFFFFF
_NO_PAIR = -1


def _slot(key: Any, begin: Any, size: Any, keys: Any) -> Any:
    """Return the place of a key, or a free place, in the hash table from ``begin``."""
    i = key % size
    while keys[begin + i] != _EMPTY and keys[begin + i] != key:
        i = i + 1 if i + 1 < size else 0
    return begin + i


def _sum_row(
    u: Any,
    indptr: Any,
    indices: Any,
    weights: Any,
    step: Any,
    groups: Any,
    group: Any,
    labels: Any,
    keys: Any,
    sums: Any,
) -> None:
    """Sum the weights from u by the label of the other end, of those in ``group`` only unless it is -1."""
    begin, end = indptr[u], indptr[u + 1]
    for e in range(begin, end):
        keys[e] = _EMPTY
        sums[e] = 0
    for e in range(begin, end):
        v = np.int64(indices[e])
        weight = weights[e * step]
        if v != u and weight != 0 and (group < 0 or groups[v] == group):
            label = np.int64(labels[v])
            slot = _slot(label, begin, end - begin, keys)
            keys[slot] = label
            sums[slot] += weight


def _propose(
    u: Any,
    block: Any,
    batches: Any,
    indptr: Any,
    indices: Any,
    weights: Any,
    step: Any,
    degrees: Any,
    labels: Any,
    totals: Any,
    active: Any,
    targets: Any,
    keys: Any,
    sums: Any,
    rate: Any,
    unit: Any,
) -> Any:
    """Write the best community of u to ``targets`` if it is active; return the gain."""
    if active[u] == 0:
        return 0
    active[u] = 0
    _sum_row(u, indptr, indices, weights, step, labels, -1, labels, keys, sums)
    here = np.int64(labels[u])
    pull = rate * np.float64(degrees[u])
    others = totals[here] - degrees[u]
    stay = -np.int64(pull * np.float64(others))
    best = np.int64(-(1 << 62))
    to = here
    for e in range(indptr[u], indptr[u + 1]):
        if keys[e] == _EMPTY:
            continue
        c = np.int64(keys[e])
        if c == here:
            stay += sums[e] * unit
            continue
        gain = sums[e] * unit - np.int64(pull * np.float64(totals[c]))
        if gain > best or (gain == best and c < to):
            best = gain
            to = c
    if max(best, stay) < 0 and totals[u] == 0:
        best = np.int64(0)
        to = u
    if best <= stay:
        return 0
    if to > u and here == u and labels[to] == to and others == 0 and totals[to] == degrees[to]:
        # Of two that are alone and in the same batch, only the larger one moves: see the kernel ``propose``.
        in_one_batch = (to // block) % batches == (u // block) % batches
        if in_one_batch:
            return 0
    targets[u] = to
    return best - stay


def _move(
    u: Any, indptr: Any, indices: Any, degrees: Any, labels: Any, totals: Any, active: Any, targets: Any, mark: Any
) -> Any:
    """Move u to its target, and activate its neighbours in other communities."""
    to, here = np.int64(targets[u]), np.int64(labels[u])
    if to == here:
        return 0
    labels[u] = to
    atomics.add(totals, here, -degrees[u])
    atomics.add(totals, to, degrees[u])
    if mark:
        for e in range(indptr[u], indptr[u + 1]):
            v = np.int64(indices[e])
            if targets[v] != to:
                atomics.store(active, v, 1)
    return 1


def _sum_degree(
    u: Any, indptr: Any, indices: Any, given: Any, step: Any, factor: Any, weights: Any, degrees: Any
) -> Any:
    """Round the weights of u's edges times ``factor`` to whole numbers; return their sum."""
    degree = np.int64(0)
    for e in range(indptr[u], indptr[u + 1]):
        weight = np.int64(math.floor(np.float64(given[e * step]) * factor + 0.5))
        if step:
            weights[e] = weight
        degree += 2 * weight if indices[e] == u else weight
    degrees[u] = degree
    return degree


def _add_total(v: Any, labels: Any, degrees: Any, totals: Any) -> Any:
    atomics.add(totals, np.int64(labels[v]), degrees[v])
    return 0


def _look_up(v: Any, table: Any, labels: Any, found: Any) -> Any:
    found[v] = table[labels[v]]
    return 0


def _find_first_part(v: Any, communities: Any, refined: Any, first: Any) -> None:
    """Find the smallest part of each community."""
    atomics.min(first, communities[v], refined[v])


def _start_part(v: Any, communities: Any, refined: Any, first: Any, starts: Any) -> None:
    """Let a part start in the smallest part of its community."""
    atomics.store(starts, refined[v], first[communities[v]])


def _pair_edges(
    u: Any, indptr: Any, indices: Any, weights: Any, step: Any, labels: Any, pairs: Any, sums: Any, counts: Any
) -> Any:
    """Add the weights from u to the pairs of communities in a hash table, and count the pairs of each community."""
    size = len(pairs)
    here = np.int64(labels[u])
    for e in range(indptr[u], indptr[u + 1]):
        other = np.int64(labels[indices[e]])
        weight = weights[e * step]
        if other == here or weight == 0:
            continue
        pair = (here << 32) | other
        slot: Any = (here * 1000003 + other * 7919) % size
        while True:
            seen = atomics.load(pairs, slot)
            if seen == pair:
                break
            if seen == _NO_PAIR:
                if atomics.compare_and_swap(pairs, slot, _NO_PAIR, pair):
                    atomics.add(counts, here, 1)
                    break
            else:
                slot = slot + 1 if slot + 1 < size else 0
        atomics.add(sums, slot, weight)
    return 0


def _place_pairs(v: Any, n: Any, pairs: Any, sums: Any, nexts: Any, indices: Any, weights: Any) -> Any:
    """Write the pairs at v, v + n, v + 2 n… of the hash table to the rows that begin at ``nexts``."""
    for slot in range(v, len(pairs), n):
        pair = pairs[slot]
        if pair != _NO_PAIR:
            place = atomics.add(nexts, pair >> 32, 1)
            atomics.store(indices, place, pair & 0xFFFFFFFF)
            atomics.store(weights, place, sums[slot])
    return 0


def _is_connected(outer: Any, total: Any, whole: Any, rate: Any, unit: Any) -> Any:
    """Whether a part is well connected to the rest of its community, of which ``whole`` is the total degree."""
    return outer * unit >= np.int64(rate * np.float64(total) * np.float64(whole - total))


def _refine(
    c: Any,
    starts: Any,
    members: Any,
    indptr: Any,
    indices: Any,
    weights: Any,
    step: Any,
    degrees: Any,
    communities: Any,
    refined: Any,
    totals: Any,
    outer: Any,
    keys: Any,
    sums: Any,
    rate: Any,
    unit: Any,
) -> Any:
    """Divide the community c into well-connected parts; see ``refinement_cpu.refine``."""
    whole = np.int64(0)
    for i in range(starts[c], starts[c + 1]):
        u = np.int64(members[i])
        whole += degrees[u]
        total = np.int64(0)
        for e in range(indptr[u], indptr[u + 1]):
            v = np.int64(indices[e])
            if v != u and communities[v] == c:
                total += weights[e * step]
        outer[u] = total
    for i in range(starts[c], starts[c + 1]):
        u = np.int64(members[i])
        alone = refined[u] == u and totals[u] == degrees[u]
        if not alone or outer[u] == 0 or not _is_connected(outer[u], degrees[u], whole, rate, unit):
            continue
        _sum_row(u, indptr, indices, weights, step, communities, c, refined, keys, sums)
        best = np.int64(-1)
        to = u
        inner = np.int64(0)
        pull = rate * np.float64(degrees[u])
        for e in range(indptr[u], indptr[u + 1]):
            if keys[e] == _EMPTY:
                continue
            part = np.int64(keys[e])
            gain = sums[e] * unit - np.int64(pull * np.float64(totals[part]))
            is_better = gain >= 0 and (gain > best or (gain == best and part < to))
            if is_better and _is_connected(outer[part], totals[part], whole, rate, unit):
                best = gain
                to = part
                inner = sums[e]
        if best >= 0:
            refined[u] = to
            totals[to] += degrees[u]
            outer[to] += outer[u] - 2 * inner
    return 0


class OperatorLevels:
    """Moves, refines and aggregates with the operators of a frontier; small levels on the CPU if ``host`` is given."""

    def __init__(self, frontier: Frontier, host: LevelPhases | None) -> None:
        self._frontier = frontier
        self._host = host

    def _first(self, count: int) -> Frontier:
        """Return the frontier of the first vertices."""
        return self._frontier.chosen(np.arange(count))

    def _array(self, size: int, dtype: Any, value: Any = 0) -> Any:
        return self._frontier.full(value, dtype, size)

    def _weights(self, level: Level) -> tuple[Any, int]:
        """Return an array of weights and the step between those of two edges."""
        if level.weights is None:
            return self._array(1, np.int64, 1), 0
        return level.weights, 1

    def first_level(self, graph: Graph, factor: float | None) -> tuple[Level, int]:
        frontier, n = self._frontier, graph.num_vertices
        indptr, indices, given = frontier.csr()
        degrees = self._array(n, np.int64)
        weights = self._array(1 if factor is None else graph.num_stored_edges, np.int64)
        if factor is None:
            arrays = (indptr, indices, self._array(1, np.int64, 1), 0, 1.0, weights, degrees)
        else:
            arrays = (indptr, indices, given, 1, factor, weights, degrees)
        total = int(process_vertices(_sum_degree, frontier, arrays))
        return Level(0, indptr, indices, None if factor is None else weights, degrees), total

    def upload(self, labels: Any) -> Any:
        return self._frontier.upload(labels) if isinstance(labels, np.ndarray) else labels

    def move(self, level: Level, starts: Any, search: Search, objective: Objective) -> Any:
        n, frontier = level.n, self._frontier
        labels = arange(frontier, n, dtype=np.uint32) if starts is None else starts
        totals = self._sum_totals(level, labels)
        active, targets = self._array(n, np.int32, 1), copy(labels)
        scratch = (self._array(level.m, np.uint32), self._array(level.m, np.int64))
        batches, block = search.batches(level)
        step, start = search.order(batches)
        parts = [np.flatnonzero(np.arange(n) // block % batches == i) for i in range(batches)]
        frontiers = [frontier.chosen(parts[(i * step + start) % batches]) for i in range(batches)]
        graph = (level.indptr, level.indices, *self._weights(level), level.degrees)
        limit = objective.gain(search.tolerance / 10**level.number)
        for turn in range(search.rounds):
            gained = 0
            for part in frontiers:
                state = (labels, totals, active, targets)
                scale = (objective.rate, objective.unit)
                gained += int(process_vertices(_propose, part, (block, batches, *graph, *state, *scratch, *scale)))
                process_vertices(_move, part, (*graph[:2], level.degrees, *state, int(turn > 0)))
            if turn == 0:
                active = self._array(n, np.int32, 1)
            if gained <= limit:
                break
        return labels

    def hand_over(self, level: Level, labels: list[Any]) -> tuple[LevelPhases, Level, list[Any]]:
        if self._host is None or not is_serial(level):
            return self, level, labels
        download = self._frontier.download
        arrays = (level.indptr, level.indices, level.weights)
        copies = [None if array is None else read_only(download(array)) for array in arrays]
        indptr, indices, weights = copies
        level = Level(level.number, indptr, indices, weights, download(level.degrees))
        return self._host, level, [None if array is None else download(array) for array in labels]

    def _sum_totals(self, level: Level, labels: Any) -> Any:
        totals = self._array(level.n, np.int64)
        process_vertices(_add_total, self._first(level.n), (labels, level.degrees, totals))
        return totals

    def number(self, labels: Any) -> tuple[Any, int]:
        found = unique(labels)
        # The position of each label among the labels by their first vertices.
        positions = ranks(found.firsts)
        return self.look_up(positions, found.numbers), found.firsts.size

    def look_up(self, table: Any, labels: Any) -> Any:
        found = self._array(len(labels), np.uint32)
        process_vertices(_look_up, self._first(len(labels)), (table, labels, found))
        return found

    def common_starts(self, communities: Any, refined: Any, count: int) -> Any:
        vertices, size = self._first(len(communities)), len(communities)
        first, starts = self._array(size, np.uint32, size), self._array(count, np.uint32)
        process_vertices(_find_first_part, vertices, (communities, refined, first), returns=None)
        process_vertices(_start_part, vertices, (communities, refined, first, starts), returns=None)
        return starts

    def aggregate(self, level: Level, labels: Any, count: int) -> Level:
        frontier, vertices = self._frontier, self._first(level.n)
        size = 2 * level.m + 1
        pairs, sums = self._array(size, np.int64, _NO_PAIR), self._array(size, np.int64)
        counts = self._array(count, np.int64)
        graph = (level.indptr, level.indices, *self._weights(level))
        process_vertices(_pair_edges, vertices, (*graph, labels, pairs, sums, counts))
        indptr = prefix_sums(counts)
        total = int(frontier.download(indptr[count:])[0])
        indices, weights = self._array(total, np.uint32), self._array(total, np.int64)
        nexts = copy(indptr[:count])
        process_vertices(_place_pairs, vertices, (level.n, pairs, sums, nexts, indices, weights))
        degrees = self._array(count, np.int64)
        process_vertices(_add_total, vertices, (labels, level.degrees, degrees))
        return Level(level.number + 1, indptr, indices, weights, degrees)

    def refine(self, level: Level, communities: Any, count: int, objective: Objective) -> Any:
        n = level.n
        members, starts = argsort(communities), prefix_sums(histogram(communities, count))
        refined = arange(self._frontier, n, dtype=np.uint32)
        state = (communities, refined, copy(level.degrees), self._array(n, np.int64))
        graph = (level.indptr, level.indices, *self._weights(level), level.degrees)
        scratch = (self._array(level.m, np.uint32), self._array(level.m, np.int64))
        scale = (objective.rate, objective.unit)
        process_vertices(_refine, self._first(count), (starts, members, *graph, *state, *scratch, *scale))
        return refined
