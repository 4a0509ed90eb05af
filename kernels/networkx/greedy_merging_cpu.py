"""Communities merged by the largest gain of modularity, on one thread.

Aaron Clauset, M. E. J. Newman, Cristopher Moore: Finding community structure in very large networks, 2004. Each pair of
adjacent communities is a record with two ends; the records of a community are a doubly linked list of ends, of which
those of record ``p`` are ``2 * p`` and ``2 * p + 1``.
"""

from __future__ import annotations

from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.networkx.heaps_cpu import pop, push


@inline
def _unlink(end, owners, first, following, previous):
    """Take an end out of its owner's list."""
    if previous[end] >= 0:
        following[previous[end]] = following[end]
    else:
        first[owners[end]] = following[end]
    if following[end] >= 0:
        previous[following[end]] = previous[end]


@inline
def _link(end, owner, owners, first, following, previous):
    """Put an end into the list of an owner."""
    owners[end] = owner
    previous[end] = -1
    following[end] = first[owner]
    if first[owner] >= 0:
        previous[first[owner]] = end
    first[owner] = end


@inline
def _ticket(record, owners, ranks):
    """Return what decides between records of equal gains: the ranks of both ends, the smaller one first."""
    low = ranks[owners[2 * record]]
    high = ranks[owners[2 * record + 1]]
    return min(low, high) * len(ranks) + max(low, high)


@jit
def fill_heap(gains, owners, ranks, keys, tickets, items):
    """Push all records; return the size of the heap. Records that are gone have NaN as gain."""
    size = 0
    for record in range(len(gains)):
        if gains[record] == gains[record]:
            size = push(keys, tickets, items, size, -gains[record], _ticket(record, owners, ranks), record)
    return size


@inline
def _merge(
    u, v, resolution, out_shares, in_shares, owners, gains, first,
    following, previous, slots,
):  # fmt: skip
    """Merge community u into v, whose common record is gone, and change the gains of all records around them."""
    end = first[v]
    while end >= 0:
        slots[owners[end ^ 1]] = end >> 1
        end = following[end]
    # Pairs with both become one, pairs with u become pairs with v.
    end = first[u]
    while end >= 0:
        after = following[end]
        w = owners[end ^ 1]
        record = end >> 1
        if slots[w] >= 0:
            gains[slots[w]] = gains[slots[w]] + gains[record]
            gains[record] = float("nan")
            _unlink(end ^ 1, owners, first, following, previous)
            slots[w] = -2
        else:
            expected = out_shares[v] * in_shares[w] + out_shares[w] * in_shares[v]
            gains[record] = gains[record] - resolution * expected
            _link(end, v, owners, first, following, previous)
            slots[w] = -2
        end = after
    first[u] = -1
    end = first[v]
    while end >= 0:
        w = owners[end ^ 1]
        if slots[w] != -2:
            expected = out_shares[u] * in_shares[w] + out_shares[w] * in_shares[u]
            gains[end >> 1] = gains[end >> 1] - resolution * expected
        slots[w] = -1
        end = following[end]


@jit
def merge_best(
    resolution, directed, ranks, out_shares, in_shares, owners, gains, first,
    following, previous, slots, sizes, keys, tickets, items, most, merges,
):  # fmt: skip
    """Merge pairs until there are no more places in ``merges``, no pair gains and there are at most ``most``.

    ``sizes`` has the size of the heap and the number of communities. ``merges`` gets the community that is gone and the
    one that it is part of. Return how many there are, and whether the search goes on: when the heap is full, or there
    are no more places.
    """
    count = 0
    while count < len(merges):
        size = sizes[0]
        record = -1
        while size > 0:
            size = pop(keys, tickets, items, size)
            candidate = items[size]
            # Entries of earlier gains and ends are left in the heap.
            if gains[candidate] == -keys[size] and _ticket(candidate, owners, ranks) == tickets[size]:
                record = candidate
                break
        sizes[0] = size
        if record < 0 or (gains[record] < 0 and sizes[1] <= most):
            return count, False
        u = owners[2 * record]
        v = owners[2 * record + 1]
        if ranks[u] > ranks[v]:
            u, v = v, u
        gains[record] = float("nan")
        _unlink(2 * record, owners, first, following, previous)
        _unlink(2 * record + 1, owners, first, following, previous)
        _merge(
            u, v, resolution, out_shares, in_shares, owners, gains, first, following, previous, slots
        )  # fmt: skip
        out_shares[v] += out_shares[u]
        out_shares[u] = 0.0
        if directed:
            in_shares[v] += in_shares[u]
            in_shares[u] = 0.0
        merges[count, 0] = u
        merges[count, 1] = v
        count += 1
        sizes[1] -= 1
        end = first[v]
        degree = 0
        while end >= 0:
            degree += 1
            end = following[end]
        if size + degree > len(keys):
            sizes[0] = fill_heap(gains, owners, ranks, keys, tickets, items)
            continue
        end = first[v]
        while end >= 0:
            record = end >> 1
            size = push(keys, tickets, items, size, -gains[record], _ticket(record, owners, ranks), record)
            end = following[end]
        sizes[0] = size
    return count, True
