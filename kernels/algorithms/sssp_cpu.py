"""Kernels of delta-stepping on the CPU.

Distances are kept as words that atomics can compare: integers as themselves, floats by their bits, whose order is the
same from 0 up. Vertices wait in bins by distance, ``delta`` wide. Each of several slots, one per thread, has bins of its
own, and fills them with the vertices whose distance it has improved; only the first bin is shared among the slots in
each round, after which a slot continues with its own bins up to a limit, without waiting for the others. What was
improved too early is improved again, so that the distances do not depend on who was first.

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
_FRESH_BLOCKS = 16
_EDGES_AHEAD = 16
_ROWS_AHEAD, _VERTICES_AHEAD = 4, 8


@intrinsic
def add_weight(typingctx: Any, word: Any, weight: Any) -> Any:
    """Return the word of a distance plus a weight; integers as int64."""
    result = word if isinstance(weight, types.Float) else types.int64

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
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

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        if isinstance(weight, types.Float):
            number = builder.bitcast(arguments[0], context.get_value_type(weight))
            return context.cast(builder, number, weight, types.float64)
        return context.cast(builder, arguments[0], word, types.float64)

    return types.float64(word, weight), codegen


@inline
def _new_block(slot: Any, pool: Any, bins: Any, common: Any) -> Any:
    """Return the number of a free block, or 0 if the pool is full."""
    block = bins[slot + FREE]
    if block != 0:
        bins[slot + FREE] = np.int64(pool[block << BLOCK_BITS])
        return block
    block = bins[slot + FRESH]
    if block == bins[slot + FRESH_END]:
        block = fetch_and_add(common, NEXT_BLOCK, _FRESH_BLOCKS)
        if (block + _FRESH_BLOCKS) << BLOCK_BITS > len(pool):
            common[FULL] = 1
            return np.int64(0)
        bins[slot + FRESH_END] = block + _FRESH_BLOCKS
    bins[slot + FRESH] = block + 1
    return block


@inline
def _free_block(slot: Any, block: Any, pool: Any, bins: Any) -> None:
    pool[block << BLOCK_BITS] = bins[slot + FREE]
    bins[slot + FREE] = block


@inline
def _insert(slot: Any, v: Any, position: Any, pool: Any, bins: Any, common: Any) -> None:
    """Add v to the bin of a position relative to the first bin, or to the last one if it is beyond."""
    place = slot + (np.int64(position) if position < BINS else BINS)
    tail = bins[place]
    if tail & (BLOCK - 1) == 0:
        block = _new_block(slot, pool, bins, common)
        if block == 0:
            return
        pool[block << BLOCK_BITS] = np.uint32((tail >> BLOCK_BITS) - 1 if tail > 0 else 0)
        tail = (block << BLOCK_BITS) + 1
    pool[tail] = v
    bins[place] = tail + 1


@inline
def _relax_entries(
    begin: Any, end: Any, current: Any, slot: Any, indptr: Any, indices: Any, weights: Any, inverse: Any, base: Any,
    both_ways: Any, distances: Any, pool: Any, bins: Any, common: Any,
) -> Any:
    """Relax the out-edges of the entries of one block that belong to bin ``current``; return their number."""
    edges = 0
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
        last = indptr[u + 1]
        if e == last:
            continue
        distance = load(distances, u)
        # An entry is out of date if the distance has fallen into an earlier bin.
        if np.int64(as_float(distance, weights[e]) * inverse - base) != current:
            continue
        # A leaf can improve no distance: it has only the edge by which it was reached.
        if both_ways and last - e == 1 and distance != 0:
            continue
        edges += last - e
        while e < last:
            if e + _EDGES_AHEAD < last:
                prefetch(distances, indices[e + _EDGES_AHEAD])
            v = indices[e]
            longer = add_weight(distance, weights[e])
            known = load(distances, v)
            while longer < known:
                if compare_and_swap(distances, v, known, longer):
                    _insert(slot, v, as_float(longer, weights[e]) * inverse - base, pool, bins, common)
                    break
                known = load(distances, v)
            e += 1
    return edges


@jit
def relax(
    work: Any, indptr: Any, indices: Any, weights: Any, inverse: Any, base: Any, limit: Any, both_ways: Any,
    distances: Any, pool: Any, shared: Any, bins: Any, common: Any,
) -> None:
    """Relax the edges of the shared blocks, then those of each slot's own bins below ``limit``; the items are slots."""
    first, last = claim(work)
    while first < last:
        for number in range(first, last):
            slot = number * SLOT_LENGTH
            current = common[CURRENT]
            edges = 0
            parts = common[PARTS]
            length = -(-(BLOCK - 1) // parts)
            item = fetch_and_add(common, CURSOR, 1)
            while item < common[SHARED] * parts:
                end = shared[item // parts]
                begin = ((end - 1) >> BLOCK_BITS << BLOCK_BITS) + 1 + item % parts * length
                edges += _relax_entries(
                    begin, min(end, begin + length), current, slot, indptr, indices, weights, inverse, base,
                    both_ways, distances, pool, bins, common,
                )
                item = fetch_and_add(common, CURSOR, 1)
            while current < limit:
                tail = bins[slot + current]
                if tail == 0:
                    current += 1
                    continue
                bins[slot + current] = 0
                while tail > 0:
                    block = (tail - 1) >> BLOCK_BITS
                    edges += _relax_entries(
                        (block << BLOCK_BITS) + 1, tail, current, slot, indptr, indices, weights, inverse, base,
                        both_ways, distances, pool, bins, common,
                    )
                    before = np.int64(pool[block << BLOCK_BITS])
                    _free_block(slot, block, pool, bins)
                    tail = (before + 1) << BLOCK_BITS if before > 0 else 0
            while current < BINS and bins[slot + current] == 0:
                current += 1
            bins[slot + FIRST] = current
            bins[slot + EDGES] += edges
        first, last = claim(work)


@jit
def share(work: Any, pool: Any, shared: Any, bins: Any, common: Any) -> None:
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
                    before = np.int64(pool[(tail - 1) >> BLOCK_BITS << BLOCK_BITS])
                    tail = (before + 1) << BLOCK_BITS if before > 0 else 0
                if tail > 0:
                    bins[place] = tail
        common[CURSOR] = 0
        common[CURRENT] = current
        common[SHARED] = count
        # Few blocks are shared entry by entry.
        common[PARTS] = 1 if count >= 64 * slots else BLOCK - 1
        first, last = claim(work)
