"""Asynchronous fluid communities, in the order in which NetworkX goes through vertices, on one thread."""

from __future__ import annotations

from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.networkx.random_cpu import next_below

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
