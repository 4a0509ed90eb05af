"""Kernels that number the integer ids of an edge list on the CPU.

Ids that reach little beyond the number of edges serve as vertex numbers until the CSR is built; numbers without an edge
are then removed. Other ids are numbered by a hash table that the threads share.
"""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.library.atomics_cpu import compare_and_swap, fetch_and_add, load, prefetch
from gpu_pregel.kernels.library.hash_cpu import mix
from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.library.work_cpu import claim

EMPTY = np.uint64((1 << 64) - 1)
"""The word of a free slot; no key has this value."""
_AHEAD = 16
"""Number of ids between the prefetch of a slot and its use."""


@jit
def find_range(work, ids, limits):
    """Write the smallest and the largest id of each chunk to a row of ``limits``."""
    chunk = work[2]
    first, last = claim(work)
    while first < last:
        smallest = ids[first]
        largest = ids[first]
        for e in range(first, last):
            smallest = min(smallest, ids[e])
            largest = max(largest, ids[e])
        limits[first // chunk, 0] = smallest
        limits[first // chunk, 1] = largest
        first, last = claim(work)


@jit
def mark_used(work, ids, used):
    """Set ``used[v]`` for each id; threads that write the same byte write the same value."""
    first, last = claim(work)
    while first < last:
        for e in range(first, last):
            if not used[ids[e]]:
                used[ids[e]] = True
        first, last = claim(work)


@jit
def renumber(work, ranks, indices):
    """Replace each vertex by its rank."""
    first, last = claim(work)
    while first < last:
        for e in range(first, last):
            indices[e] = ranks[indices[e]]
        first, last = claim(work)


@inline
def _slot(key, table):
    """The first slot to try for a key; the length of ``table`` is a power of two."""
    return np.int64(mix(key) & np.uint64(len(table) - 1))


@jit
def insert_ids(work, ids, smallest, table, count):
    """Insert the keys ``ids - smallest`` into ``table`` by linear probing; ``count[0]`` counts distinct keys.

    Threads stop once more than half of the slots are used. The other half has room for the chunks in progress.
    """
    first, last = claim(work)
    while first < last and load(count, 0) <= len(table) // 2:
        added = 0
        for e in range(first, last):
            if e + _AHEAD < last:
                prefetch(table, _slot(ids[e + _AHEAD] - smallest, table))
            key = ids[e] - smallest
            slot = _slot(key, table)
            found = load(table, slot)
            while found != key:
                if found == EMPTY:
                    if compare_and_swap(table, slot, EMPTY, key):
                        added += 1
                        break
                else:
                    slot = (slot + 1) & (len(table) - 1)
                found = load(table, slot)
        fetch_and_add(count, 0, added)
        first, last = claim(work)


@jit
def look_up_ids(work, ids, smallest, table, ranks, numbers):
    """Write the rank of each id, all of which are in ``table``, to ``numbers``."""
    first, last = claim(work)
    while first < last:
        for e in range(first, last):
            if e + _AHEAD < last:
                prefetch(table, _slot(ids[e + _AHEAD] - smallest, table))
            key = ids[e] - smallest
            slot = _slot(key, table)
            while table[slot] != key:
                slot = (slot + 1) & (len(table) - 1)
            numbers[e] = ranks[slot]
        first, last = claim(work)
