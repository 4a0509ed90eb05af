"""Searches for communities that move vertices in the order in which NetworkX does, on one thread."""

from __future__ import annotations

from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.networkx.random_cpu import next_below


@inline
def _tally(u, indptr, neighbors, weights, labels, totals, found, count):
    """Add the weights of a row to the totals of its labels; list new labels in ``found``, and return their number.

    Totals are -1 where a label is not listed: ``found`` comes with a place for each vertex, and the sum with it.
    """
    for e in range(indptr[u], indptr[u + 1]):
        label = labels[neighbors[e]]
        place = found[1, label]
        if place < 0:
            place = count
            found[1, label] = count
            found[0, count] = label
            totals[count] = 0.0
            count += 1
        totals[place] += weights[e]
    return count


@inline
def _forget(found, count):
    for i in range(count):
        found[1, found[0, i]] = -1


@jit
def move_vertices(
    indptr,
    neighbors,
    weights,
    order,
    labels,
    directed,
    degrees,
    community_degrees,
    size,
    square,
    resolution,
    totals,
    found,
):
    """Move each vertex to the community of its neighbours in which modularity gains most; return how many moved.

    ``degrees`` and ``community_degrees`` have a row for out-edges and one for in-edges, of which an undirected graph
    uses the first. Rows have no self-loops.
    """
    moves = 0
    for u in order:
        own = labels[u]
        best = own
        best_gain = 0.0
        out_degree = degrees[0, u]
        in_degree = degrees[1, u]
        count = _tally(u, indptr, neighbors, weights, labels, totals, found, 0)
        if found[1, own] < 0:
            found[0, count] = own
            found[1, own] = count
            totals[count] = 0.0
            count += 1
        community_degrees[0, own] -= out_degree
        community_degrees[1, own] -= in_degree
        # The terms are added in NetworkX's order, as ties are decided by the last bit.
        if directed:
            expected = out_degree * community_degrees[1, own] + in_degree * community_degrees[0, own]
        else:
            expected = community_degrees[0, own] * out_degree
        cost = -totals[found[1, own]] / size + resolution * expected / square
        for i in range(count):
            label = found[0, i]
            if directed:
                expected = out_degree * community_degrees[1, label] + in_degree * community_degrees[0, label]
            else:
                expected = community_degrees[0, label] * out_degree
            gain = cost + totals[i] / size - resolution * expected / square
            if gain > best_gain:
                best_gain = gain
                best = label
        _forget(found, count)
        community_degrees[0, best] += out_degree
        community_degrees[1, best] += in_degree
        if best != own:
            labels[u] = best
            moves += 1
    return moves


@inline
def _draw_best(count, totals, found, state):
    """Draw one of the labels with the largest total."""
    best = totals[0]
    ties = 0
    for i in range(count):
        if totals[i] > best:
            best = totals[i]
            ties = 0
        ties += totals[i] == best
    chosen = next_below(state, ties)
    for i in range(count):
        if totals[i] == best:
            if chosen == 0:
                return found[0, i]
            chosen -= 1
    return found[0, 0]


@inline
def _has_best(label, count, totals, found):
    """Return whether a label is among those with the largest total."""
    place = found[1, label]
    if place < 0:
        return False
    for i in range(count):
        if totals[i] > totals[place]:
            return False
    return True


@jit
def adopt_labels(indptr, neighbors, weights, order, labels, state, totals, found):
    """Give each vertex a most frequent label of its neighbours; return whether a label changed."""
    changed = False
    for u in order:
        if indptr[u] == indptr[u + 1]:
            continue
        count = _tally(u, indptr, neighbors, weights, labels, totals, found, 0)
        if not _has_best(labels[u], count, totals, found):
            label = _draw_best(count, totals, found, state)
            changed = True
        else:
            label = labels[u]
        _forget(found, count)
        labels[u] = label
    return changed


@inline
def _enqueue(v, label, labels, queue, queued, progress):
    """Queue a vertex that has another label."""
    if labels[v] != label and not queued[v]:
        queue[(progress[0] + progress[1]) % len(queue)] = v
        progress[1] += 1
        queued[v] = True


@jit
def settle_labels(
    rows, more_rows, indptr, neighbors, more_indptr, more_neighbors, queue,
    queued, progress, limit, labels, state, totals, found,
):  # fmt: skip
    """Give the vertices of a queue a most frequent label, and queue their neighbours; return whether any are left.

    Rows are pairs of in- and out-edges of a directed graph, one of them empty in an undirected one: those by which
    labels are counted, with weights, and then those that are queued. ``queue`` is a ring; ``progress`` has
    its first place and the number of vertices in it. At most ``limit`` vertices are taken from it.
    """
    n = len(queue)
    for _ in range(limit):
        if progress[1] == 0:
            return False
        u = queue[progress[0]]
        progress[0] = (progress[0] + 1) % n
        progress[1] -= 1
        queued[u] = False
        count = _tally(u, rows[0], rows[1], rows[2], labels, totals, found, 0)
        count = _tally(u, more_rows[0], more_rows[1], more_rows[2], labels, totals, found, count)
        if count == 0:
            continue
        label = _draw_best(count, totals, found, state)
        _forget(found, count)
        if label == labels[u]:
            continue
        labels[u] = label
        for e in range(indptr[u], indptr[u + 1]):
            _enqueue(neighbors[e], label, labels, queue, queued, progress)
        for e in range(more_indptr[u], more_indptr[u + 1]):
            _enqueue(more_neighbors[e], label, labels, queue, queued, progress)
    return True


@jit
def raise_labels(indptr, neighbors, weights, order, labels, totals, found):
    """Give each vertex whose label is not among its most frequent ones the largest of them.

    Return whether each vertex then has a most frequent label of its neighbours. A vertex with only one gets it anyway.
    """
    for u in order:
        count = _tally(u, indptr, neighbors, weights, labels, totals, found, 0)
        if count > 0 and not _has_best(labels[u], count, totals, found):
            best = totals[:count].max()
            largest = 0
            for i in range(count):
                if totals[i] == best:
                    largest = max(largest, found[0, i])
            labels[u] = largest
        _forget(found, count)
    return _is_settled(indptr, neighbors, weights, labels, totals, found)


@inline
def _is_settled(indptr, neighbors, weights, labels, totals, found):
    for u in range(len(labels)):
        count = _tally(u, indptr, neighbors, weights, labels, totals, found, 0)
        settled = count == 0 or _has_best(labels[u], count, totals, found)
        _forget(found, count)
        if not settled:
            return False
    return True


_TOLERANCE = 0.0001
"""Sums of densities that differ by less are equal."""


@inline
def _pour(label, densities, totals, found, count):
    """Add the density of a community to its total; return how many communities have one."""
    place = found[1, label]
    if place < 0:
        place = count
        found[0, count] = label
        found[1, label] = count
        totals[count] = 0.0
        count += 1
    totals[place] += densities[label]
    return count


@jit
def spread_fluids(
    indptr, neighbors, order, labels, sizes, densities, joined, count,
    state, totals, found,
):  # fmt: skip
    """Move each vertex to a densest community around it; return whether one moved, and how many have a community.

    Labels are -1 where there is none yet. ``joined`` lists the vertices as they first get one.
    """
    moved = False
    for u in order:
        own = labels[u]
        listed = 0
        if own >= 0:
            listed = _pour(own, densities, totals, found, listed)
        for e in range(indptr[u], indptr[u + 1]):
            label = labels[neighbors[e]]
            if label >= 0:
                listed = _pour(label, densities, totals, found, listed)
        if listed == 0:
            continue
        most = totals[:listed].max()
        ties = 0
        stays = False
        for i in range(listed):
            if most - totals[i] < _TOLERANCE:
                ties += 1
                stays = stays or found[0, i] == own
        if not stays:
            moved = True
            chosen = next_below(state, ties)
            for i in range(listed):
                if most - totals[i] < _TOLERANCE:
                    if chosen == 0:
                        labels[u] = found[0, i]
                        break
                    chosen -= 1
            if own >= 0:
                sizes[own] -= 1
                densities[own] = 1.0 / sizes[own]
            else:
                joined[count] = u
                count += 1
            sizes[labels[u]] += 1
            densities[labels[u]] = 1.0 / sizes[labels[u]]
        for i in range(listed):
            found[1, found[0, i]] = -1
    return moved, count
