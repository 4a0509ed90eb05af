"""Kernels of delta-stepping on the CPU.

Distances are kept as words that atomics can compare: integers as themselves, floats by their bits, whose order is the
same from 0 up. Vertices wait in bins by distance, ``delta`` wide. Each of several slots, one per thread, has its own
bins, and fills them with the vertices whose distance it has improved. Each round shares the first bin among the slots;
then a slot continues with its own bins up to a limit, without waiting for the others. What was improved too early is
improved again, so that the distances do not depend on who was first.

A bin is a chain of blocks of ``pool``: its tail is the position after the last entry, 0 if it is empty. The first
word of a block is the number of the block before it; there is no block 0.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic

from gpu_pregel.kernels.library.atomics_cpu import compare_and_swap, fetch_and_add, load, prefetch
from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.library.work_cpu import claim

_INT64_MAX = np.iinfo(np.int64).max
BINS = 1024
"""Bins of a slot; one more takes the vertices beyond them."""
FREE, FRESH, FRESH_END, FIRST, EDGES = range(BINS + 1, BINS + 6)
"""State of a slot after the tails of its bins: its free blocks, its first bin, and the edges that it has relaxed."""
SLOT_LENGTH = BINS + 16
CURSOR, NEXT_BLOCK, FULL, SHARED, PARTS, CURRENT = 0, 16, 17, 18, 19, 20
"""State of all slots; the first element is on a cache line of its own."""
COMMON_LENGTH = 32
BLOCK_BITS = 6
BLOCK = 1 << BLOCK_BITS
FRESH_BLOCKS = 16
_EDGES_AHEAD = 16
_ROWS_AHEAD, _VERTICES_AHEAD = 4, 8


@intrinsic
def add_weight(typingctx: Any, word: Any, weight: Any) -> Any:
    """Return the word of a distance plus a weight; integers as int64."""
    result = word if isinstance(weight, types.Float) else types.int64

    def codegen(context, builder, signature, arguments):
        value, addend = arguments
        if isinstance(weight, types.Float):
            number = builder.bitcast(value, context.get_value_type(weight))
            return builder.bitcast(builder.fadd(number, addend), context.get_value_type(word))
        number = context.cast(builder, value, word, types.int64)
        return builder.add(number, context.cast(builder, addend, weight, types.int64))

    return result(word, weight), codegen


@intrinsic
def as_float(typingctx: Any, word: Any, weight: Any) -> Any:
    """Return the distance of a word as float64; ``weight`` only tells the kind of weights."""

    def codegen(context, builder, signature, arguments):
        if isinstance(weight, types.Float):
            number = builder.bitcast(arguments[0], context.get_value_type(weight))
            return context.cast(builder, number, weight, types.float64)
        return context.cast(builder, arguments[0], word, types.float64)

    return types.float64(word, weight), codegen


@inline
def _start_block(slot, tail, pool, bins, common):
    """Return the first position of a new block that follows the full block before ``tail``; 0 if the pool is full."""
    block = bins[slot + FREE]
    if block != 0:
        bins[slot + FREE] = np.int64(pool[block << BLOCK_BITS])
    else:
        block = bins[slot + FRESH]
        if block == bins[slot + FRESH_END]:
            block = fetch_and_add(common, NEXT_BLOCK, FRESH_BLOCKS)
            if (block + FRESH_BLOCKS) << BLOCK_BITS > len(pool):
                common[FULL] = 1
                return np.int64(0)
            bins[slot + FRESH_END] = block + FRESH_BLOCKS
        bins[slot + FRESH] = block + 1
    pool[block << BLOCK_BITS] = (tail >> BLOCK_BITS) - 1 if tail > 0 else 0
    return (block << BLOCK_BITS) + 1


@inline
def _free_block(slot, block, pool, bins):
    pool[block << BLOCK_BITS] = bins[slot + FREE]
    bins[slot + FREE] = block


@inline
def _tail_before(block, pool):
    """Return the tail of the block before a block of a chain, which is full; 0 if there is none."""
    before = np.int64(pool[block << BLOCK_BITS])
    return (before + 1) << BLOCK_BITS if before > 0 else np.int64(0)


@jit
def relax(
    work, indptr, indices, weights, inverse, base, limit, most_edges, both_ways, distances, pool, shared, bins, common
):
    """Relax the edges of the shared blocks, then those of each slot's own bins below ``limit``; the items are slots.

    A slot begins no further bin when it has relaxed ``most_edges``: what it went on with alone would be too early.
    """
    first, last = claim(work)
    while first < last:
        for number in range(first, last):
            slot = number * SLOT_LENGTH
            current = common[CURRENT]
            parts = common[PARTS]
            length = -(-(BLOCK - 1) // parts)
            edges = 0
            tail = np.int64(0)
            # If a round ends with this bin, slots take whatever is left of it. Otherwise each takes its part, even if a
            # thread is late, because it will keep the vertices that it finds.
            slots = len(bins) // SLOT_LENGTH
            takes_any = limit == current + 1
            items = common[SHARED] * parts
            item = items * number // slots
            last_item = items * (number + 1) // slots
            sharing = True
            while True:
                # The next entries: part of a shared block, a block of the chain begun, or the next bin.
                if sharing:
                    if takes_any:
                        item = fetch_and_add(common, CURSOR, 1)
                        last_item = items
                    if item >= last_item:
                        sharing = False
                        continue
                    end = shared[item // parts]
                    begin = ((end - 1) >> BLOCK_BITS << BLOCK_BITS) + 1 + item % parts * length
                    end = min(end, begin + length)
                    item += 1
                elif tail > 0:
                    begin = ((tail - 1) >> BLOCK_BITS << BLOCK_BITS) + 1
                    end = tail
                else:
                    while current < limit and bins[slot + current] == 0:
                        current += 1
                    if current >= limit or edges > most_edges:
                        break
                    tail = bins[slot + current]
                    bins[slot + current] = 0
                    continue
                for i in range(begin, end):
                    if i + _VERTICES_AHEAD < end:
                        prefetch(indptr, pool[i + _VERTICES_AHEAD])
                        prefetch(distances, pool[i + _VERTICES_AHEAD])
                    if i + _ROWS_AHEAD < end:
                        e = indptr[pool[i + _ROWS_AHEAD]]
                        prefetch(indices, e)
                        prefetch(weights, e)
                    u = pool[i]
                    e = indptr[u]
                    e_end = indptr[u + 1]
                    if e == e_end:
                        continue
                    distance = load(distances, u)
                    # An entry is out of date if the distance has fallen into an earlier bin. A leaf can improve no
                    # distance, because its only edge is that by which it was reached.
                    is_current = np.int64(as_float(distance, weights[e]) * inverse - base) == current
                    if not is_current or (both_ways and e_end - e == 1 and distance != 0):
                        continue
                    edges += e_end - e
                    while e < e_end:
                        if e + _EDGES_AHEAD < e_end:
                            prefetch(distances, indices[e + _EDGES_AHEAD])
                        v = indices[e]
                        weight = weights[e]
                        e += 1
                        longer = add_weight(distance, weight)
                        known = load(distances, v)
                        while longer < known:
                            if compare_and_swap(distances, v, known, longer):
                                position = as_float(longer, weight) * inverse - base
                                place = slot + (np.int64(position) if position < BINS else BINS)
                                free = bins[place]
                                if free & (BLOCK - 1) == 0:
                                    free = _start_block(slot, free, pool, bins, common)
                                if free > 0:
                                    pool[free] = v
                                    bins[place] = free + 1
                                break
                            known = load(distances, v)
                if tail > 0:
                    block = (tail - 1) >> BLOCK_BITS
                    tail = _tail_before(block, pool)
                    _free_block(slot, block, pool, bins)
            while current < BINS and bins[slot + current] == 0:
                current += 1
            bins[slot + FIRST] = current
            bins[slot + EDGES] += edges
        first, last = claim(work)


@jit
def share(work, pool, shared, bins, common):
    """Free the blocks shared before, and share those of the first bin that is not empty; has one work item."""
    first, last = claim(work)
    while first < last:
        slots = len(bins) // SLOT_LENGTH
        for i in range(common[SHARED]):
            _free_block(i % slots * SLOT_LENGTH, (shared[i] - 1) >> BLOCK_BITS, pool, bins)
        current = np.int64(BINS)
        for number in range(slots):
            current = min(current, bins[number * SLOT_LENGTH + FIRST])
        count = 0
        if current < BINS:
            for number in range(slots):
                place = number * SLOT_LENGTH + current
                tail = bins[place]
                bins[place] = 0
                while tail > 0 and count < len(shared):
                    shared[count] = tail
                    count += 1
                    tail = _tail_before((tail - 1) >> BLOCK_BITS, pool)
                if tail > 0:
                    bins[place] = tail
        common[CURSOR] = 0
        common[CURRENT] = current
        common[SHARED] = count
        # Few blocks are shared in parts, very few entry by entry: some entries may have long rows.
        common[PARTS] = 1 if slots == 1 or count >= 16 * slots else 8 if count >= 2 * slots else BLOCK - 1
        first, last = claim(work)


@jit
def find_least(work, weights, inverse, end, distances, pool, bins, least):
    """Find the least position, from ``end`` up, of the vertices beyond the bins of each slot; the items are slots."""
    first, last = claim(work)
    while first < last:
        for number in range(first, last):
            smallest = np.inf
            tail = bins[number * SLOT_LENGTH + BINS]
            while tail > 0:
                block = (tail - 1) >> BLOCK_BITS
                for i in range((block << BLOCK_BITS) + 1, tail):
                    position = as_float(distances[pool[i]], weights[0]) * inverse
                    if end <= position < smallest:
                        smallest = position
                tail = _tail_before(block, pool)
            least[number] = smallest
        first, last = claim(work)


@jit
def move_bins(work, weights, inverse, end, base, distances, pool, bins, common):
    """Insert the vertices beyond the bins, which ended at ``end``, into bins from ``base``; the items are slots."""
    first, last = claim(work)
    while first < last:
        for number in range(first, last):
            slot = number * SLOT_LENGTH
            tail = bins[slot + BINS]
            bins[slot + BINS] = 0
            while tail > 0:
                block = (tail - 1) >> BLOCK_BITS
                for i in range((block << BLOCK_BITS) + 1, tail):
                    position = as_float(distances[pool[i]], weights[0]) * inverse
                    if position < end:
                        continue
                    place = slot + (np.int64(position - base) if position - base < BINS else BINS)
                    free = bins[place]
                    if free & (BLOCK - 1) == 0:
                        free = _start_block(slot, free, pool, bins, common)
                    if free > 0:
                        pool[free] = pool[i]
                        bins[place] = free + 1
                tail = _tail_before(block, pool)
                _free_block(slot, block, pool, bins)
            current = np.int64(0)
            while current < BINS and bins[slot + current] == 0:
                current += 1
            bins[slot + FIRST] = current
        first, last = claim(work)


@jit
def refill(work, weights, inverse, base, unreached, distances, pool, bins, common):
    """Insert every vertex at the position ``base`` or later; the items are slots, with a range of vertices each."""
    first, last = claim(work)
    while first < last:
        slots = len(bins) // SLOT_LENGTH
        for number in range(first, last):
            slot = number * SLOT_LENGTH
            for v in range(len(distances) * number // slots, len(distances) * (number + 1) // slots):
                position = as_float(distances[v], weights[0]) * inverse - base
                if distances[v] == unreached or position < 0:
                    continue
                place = slot + (np.int64(position) if position < BINS else BINS)
                free = bins[place]
                if free & (BLOCK - 1) == 0:
                    free = _start_block(slot, free, pool, bins, common)
                pool[free] = v
                bins[place] = free + 1
            current = np.int64(0)
            while current < BINS and bins[slot + current] == 0:
                current += 1
            bins[slot + FIRST] = current
        first, last = claim(work)


@jit
def fill(work, value, words):
    """Set all elements."""
    first, last = claim(work)
    while first < last:
        words[first:last] = value
        first, last = claim(work)


@jit
def widen(work, words, unreached, distances):
    """Write uint32 distances as int64, with the largest integer for vertices that were not reached."""
    first, last = claim(work)
    while first < last:
        for v in range(first, last):
            distances[v] = _INT64_MAX if words[v] == unreached else np.int64(words[v])
        first, last = claim(work)
