"""Store buffers: stores that other threads cannot see yet. Entries never overlap and drain in any order.

A store that has drained is visible to its block, and late for other multiprocessors.
"""

from __future__ import annotations

from gpu_pregel.host.emulator.machine import layout as at
from gpu_pregel.host.emulator.machine.hooks import helper, hook
from gpu_pregel.host.emulator.machine.late_writes import add_late_store
from gpu_pregel.host.emulator.machine.scheduler import draw
from gpu_pregel.host.emulator.machine.words import (
    fill,
    read8,
    read16,
    read32,
    read64,
    set_word,
    word,
    write8,
    write16,
    write32,
    write64,
)


@helper
def read_bits(address: int, size: int) -> int:
    """Return ``size`` bytes of memory, zero-extended."""
    if size == 4:
        return read32(address)
    if size == 8:
        return read64(address)
    return read8(address) if size == 1 else read16(address)


@helper
def write_bits(address: int, size: int, bits: int) -> None:
    """Write the low ``size`` bytes of ``bits``."""
    if size == 4:
        write32(address, bits)
    elif size == 8:
        write64(address, bits)
    elif size == 1:
        write8(address, bits)
    else:
        write16(address, bits)


@helper
def all_written(shadow: int, size: int) -> int:
    """Return 1 if all ``size`` bytes are marked as written."""
    if size == 4:
        return 1 if read32(shadow) == 0x01010101 else 0
    if size == 8:
        return 1 if read64(shadow) == 0x0101010101010101 else 0
    return read8(shadow) if size == 1 else (1 if read16(shadow) == 0x0101 else 0)


@hook("emu_drain_one")
def drain_one(state: int, fiber: int, place: int) -> int:
    """Write one buffered store to memory."""
    count = word(fiber, at.BUFFERED) - 1
    buffer = fiber + at.BUFFER * at.WORD
    entry = buffer + place * at.ENTRY_WORDS * at.WORD
    last = buffer + count * at.ENTRY_WORDS * at.WORD
    address, size = word(entry, at.ENTRY_ADDRESS), word(entry, at.ENTRY_SIZE)
    if word(state, at.LATE) and word(entry, at.ENTRY_SHARED) == 0:
        unwritten = 1 - all_written(word(entry, at.ENTRY_WRITTEN), size)
        add_late_store(state, fiber, address, size, read_bits(address, size), unwritten)
    write_bits(address, size, word(entry, at.ENTRY_BITS))
    fill(word(entry, at.ENTRY_WRITTEN), size, 1)
    for field in range(at.ENTRY_WORDS):
        set_word(entry, field, word(last, field))
    set_word(fiber, at.BUFFERED, count)
    return 0


@helper
def drain(state: int, fiber: int) -> None:
    """Write all of a thread's buffered stores to memory."""
    while word(fiber, at.BUFFERED):
        drain_one(state, fiber, word(fiber, at.BUFFERED) - 1)


@helper
def drain_overlapping(state: int, fiber: int, address: int, size: int) -> None:
    """Write the buffered stores that overlap ``size`` bytes at ``address`` to memory."""
    place = word(fiber, at.BUFFERED) - 1
    while place >= 0:
        entry = fiber + (at.BUFFER + place * at.ENTRY_WORDS) * at.WORD
        start = word(entry, at.ENTRY_ADDRESS)
        if start < address + size and address < start + word(entry, at.ENTRY_SIZE):
            drain_one(state, fiber, place)
        place -= 1


@hook("emu_drain_random")
def drain_random(state: int) -> int:
    """Write one store of a random thread to memory, so that no store stays buffered forever."""
    threads = word(state, at.RESIDENT) * word(state, at.THREADS)
    number = (draw(state) * threads) >> 31
    fiber = word(state, at.FIBER_RECORDS) + number * at.FIBER_WORDS * at.WORD
    count = word(fiber, at.BUFFERED)
    if count:
        drain_one(state, fiber, (draw(state) * count) >> 31)
    return 0
