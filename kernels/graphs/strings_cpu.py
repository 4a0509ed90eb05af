"""A hash table of strings that the threads of the CPU share, and the kernel that looks up columns of Arrow in it.

The arena holds a record for each string, in words of eight bytes: the position of its first occurrence, its length, and
its bytes, padded with zeros. A used slot of the table holds the upper half of the hash and the place of the record, and
is written when the record is complete; equal hashes are confirmed by the bytes. A string's code is the place of its
record.
"""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.library.hash_cpu import mix
from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.library.memory_cpu import (
    add_to_word,
    address_of,
    byte_at,
    prefetch_at,
    set_word,
    shared_word_at,
    swap_word,
    word_at,
)
from gpu_pregel.kernels.library.work_cpu import claim

EMPTY = np.uint64(0)
"""The word of a free slot; no record has the place 0."""
BATCH = 64
"""Number of strings whose slots and records are prefetched before they are compared."""
SHARE = 1 << 11
"""Number of words of the arena that a thread reserves at a time."""
USED, COUNT, DONE, THREADS = 0, 8, 16, 24
"""Places in ``counters``: words of the arena in use, distinct strings, chunks done, threads started."""
COUNTERS = 32
FREE, LIMIT, ADDED, STATE = 0, 1, 2, 8
"""Places in a row of ``scratch``: a thread's free words of the arena, the number of strings that it added, the rest."""
HEADER = 2
"""Number of words in a record before the bytes."""
_PLACE = np.uint64((1 << 32) - 1)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)


@inline
def _word(first, last, end):
    """The bytes from ``first``, at most eight, and zeros from ``last``; the memory ends at ``end``."""
    size = last - first
    if size >= 8:
        return word_at(first)
    if first + 8 <= end:
        return word_at(first) & ((np.uint64(1) << np.uint64(8 * size)) - np.uint64(1))
    word = np.uint64(0)
    for place in range(size):
        word |= np.uint64(byte_at(first + place)) << np.uint64(8 * place)
    return word


@inline
def hash_bytes(first, last, end):
    """Hash the bytes between two addresses to 64 bits."""
    state = np.uint64(last - first)
    while first < last:
        state = (state ^ _word(first, last, end)) * _MULTIPLIER
        state ^= state >> np.uint64(32)
        first += 8
    return mix(state)


@inline
def _slot(word, slots):
    """The first slot to try, by the upper bits of the hash; the number of slots is a power of two up to 2^32."""
    return np.int64((word >> np.uint64(32)) * np.uint64(slots) >> np.uint64(32))


@inline
def prefetch_slot(key, table, slots):
    """Prefetch the slot of a hash."""
    prefetch_at(table + 8 * _slot(key, slots))


@inline
def prefetch_record(key, table, slots, arena):
    """Prefetch the record that is probably the one of a hash."""
    prefetch_at(arena + 8 * np.int64(shared_word_at(table + 8 * _slot(key, slots)) & _PLACE))


@inline
def _is_record(record, first, last, end):
    """Whether a record holds the bytes between two addresses."""
    if np.int64(word_at(record + 8)) != last - first:
        return False
    record += 8 * HEADER
    while first < last:
        if word_at(record) != _word(first, last, end):
            return False
        record += 8
        first += 8
    return True


@inline
def _write_record(first, last, end, position, arena, counters, state):
    """Write a record to the thread's free words of the arena, and return its place."""
    size = HEADER + ((last - first + 7) >> 3)
    free = np.int64(word_at(state))
    if free + size > np.int64(word_at(state + 8 * LIMIT)):
        share = max(size, SHARE)
        free = add_to_word(counters, share)
        set_word(state, np.uint64(free))
        set_word(state + 8 * LIMIT, np.uint64(free + share))
    record = arena + 8 * free
    set_word(record, np.uint64(position))
    set_word(record + 8, np.uint64(last - first))
    record += 8 * HEADER
    while first < last:
        set_word(record, _word(first, last, end))
        record += 8
        first += 8
    return free


@inline
def insert(first, last, end, key, position, table, slots, arena, counters, state):
    """Return the code of the bytes between two addresses, whose hash is ``key``; add a record unless there is one."""
    place = np.int64(0)
    slot = _slot(key, slots)
    while True:
        found = shared_word_at(table + 8 * slot)
        if found == EMPTY:
            if place == 0:
                place = _write_record(first, last, end, position, arena, counters, state)
            if swap_word(table + 8 * slot, EMPTY, (key & ~_PLACE) | np.uint64(place)):
                set_word(state, np.uint64(place + HEADER + ((last - first + 7) >> 3)))
                set_word(state + 8 * ADDED, word_at(state + 8 * ADDED) + np.uint64(1))
                return place
        elif (found ^ key) >> np.uint64(32) == np.uint64(0) and _is_record(
            arena + 8 * np.int64(found & _PLACE), first, last, end
        ):
            place = np.int64(found & _PLACE)
            known = shared_word_at(arena + 8 * place)
            while np.uint64(position) < known and not swap_word(arena + 8 * place, known, np.uint64(position)):
                known = shared_word_at(arena + 8 * place)
            return place
        else:
            slot = (slot + 1) & (slots - 1)


@inline
def finish_chunk(counters, state):
    """Count a chunk as done, and the strings that it added."""
    add_to_word(counters + 8 * COUNT, np.int64(word_at(state + 8 * ADDED)))
    set_word(state + 8 * ADDED, np.uint64(0))
    add_to_word(counters + 8 * DONE, 1)


@inline
def has_room(counters, slots):
    """Whether at most half of the slots are used; the other half has room for the chunks in progress."""
    return shared_word_at(counters + 8 * COUNT) <= np.uint64(slots // 2)


@jit
def insert_strings(work, data, offsets, position, stride, table, arena, counters, scratch, codes):
    """Write the codes of the strings ``data[offsets[k]:offsets[k + 1]]``, until there is no room in the table.

    The position of string k is ``position + stride * k``. ``counters`` tells how many chunks are done, in their order.
    """
    bytes_address, end = address_of(data), address_of(data) + len(data)
    slots, arena_address, counters_address = len(table), address_of(arena), address_of(counters)
    table_address = address_of(table)
    me = add_to_word(counters_address + 8 * THREADS, 1)
    state = address_of(scratch) + 8 * me * scratch.shape[1]
    while has_room(counters_address, slots):
        first, last = claim(work)
        if first == last:
            break
        for start in range(first, last, BATCH):
            stop = min(start + BATCH, last)
            for k in range(start, stop):
                key = hash_bytes(bytes_address + offsets[k], bytes_address + offsets[k + 1], end)
                scratch[me, STATE + k - start] = np.int64(key)
                prefetch_slot(key, table_address, slots)
            for k in range(start, stop):
                prefetch_record(np.uint64(scratch[me, STATE + k - start]), table_address, slots, arena_address)
            for k in range(start, stop):
                codes[k] = insert(
                    bytes_address + offsets[k],
                    bytes_address + offsets[k + 1],
                    end,
                    np.uint64(scratch[me, STATE + k - start]),
                    position + stride * k,
                    table_address,
                    slots,
                    arena_address,
                    counters_address,
                    state,
                )
        finish_chunk(counters_address, state)


@jit
def move_slots(words, table):
    """Insert the words of a smaller table."""
    for word in words:
        if word != EMPTY:
            slot = _slot(word, len(table))
            while table[slot] != EMPTY:
                slot = (slot + 1) & (len(table) - 1)
            table[slot] = word


@jit
def copy_strings(work, arena, places, offsets, data):
    """Copy the strings of the records at ``places`` to ``data[offsets[k]:offsets[k + 1]]``."""
    first, last = claim(work)
    while first < last:
        for k in range(first, last):
            source = address_of(arena) + 8 * (places[k] + HEADER) - offsets[k]
            for byte in range(offsets[k], offsets[k + 1]):
                data[byte] = byte_at(source + byte)
        first, last = claim(work)
