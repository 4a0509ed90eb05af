"""Late writes: what multiprocessors do not see yet of what was written to global memory.

A write reaches memory late, at a fence of its writer's multiprocessor, and each other multiprocessor may keep the
previous content in its cache until a fence of its own. A block barrier has neither effect.
"""

from __future__ import annotations

from gpu_pregel.host.emulator.machine import layout as at
from gpu_pregel.host.emulator.machine.hooks import helper, hook
from gpu_pregel.host.emulator.machine.scheduler import draw
from gpu_pregel.host.emulator.machine.words import set_word, word

_ALL = (1 << at.MULTIPROCESSORS) - 1
_SIZE, _WRITER, _UNWRITTEN = 32, 40, 48
"""Bit positions in LATE_META, above one bit per multiprocessor: size, writer, and whether nothing was there before."""


@helper
def late_entry(state: int, address: int) -> int:
    """Return the entry in which a late write to ``address`` would be."""
    place = (address >> 2) & (at.LATE_ENTRIES - 1)
    return word(state, at.LATE) + place * at.LATE_WORDS * at.WORD


@helper
def add_late(state: int, fiber: int, address: int, size: int, old: int, unwritten: int, since: int) -> None:
    """Keep the content ``old`` for the other multiprocessors; any write that the entry held before becomes visible."""
    own = word(fiber, at.MULTIPROCESSOR)
    entry = late_entry(state, address)
    meta = _ALL & ~(1 << own) | size << _SIZE | own << _WRITER | unwritten << _UNWRITTEN
    set_word(entry, at.LATE_ADDRESS, address)
    set_word(entry, at.LATE_BITS, old)
    set_word(entry, at.LATE_META, meta)
    set_word(entry, at.LATE_SINCE, since)


@helper
def add_late_store(state: int, fiber: int, address: int, size: int, old: int, unwritten: int) -> None:
    """Add a store, which reaches memory at the next fence of the multiprocessor."""
    fences = word(state, at.FENCES + word(fiber, at.MULTIPROCESSOR))
    add_late(state, fiber, address, size, old, unwritten, fences)


@helper
def add_late_atomic(state: int, fiber: int, address: int, size: int, old: int) -> None:
    """Add an atomic, which is performed in memory."""
    add_late(state, fiber, address, size, old, 0, -word(state, at.NOW))


@helper
def _arrival(state: int, meta: int, since: int) -> int:
    """Return the time at which a write reached memory; a time in the future if it has not."""
    if since < 0:
        return -since
    writer = meta >> _WRITER & (at.MULTIPROCESSORS - 1)
    fences = word(state, at.FENCES + writer)
    if fences <= since:
        return word(state, at.NOW) + 1
    if fences - since > at.LOG_ENTRIES:
        return 0
    return word(word(state, at.FENCE_LOG), writer * at.LOG_ENTRIES + (since & (at.LOG_ENTRIES - 1)))


@hook("emu_is_late")
def is_late(state: int, entry: int, size: int) -> int:
    """Return 0 if the current thread sees the write of an entry, 1 if not, and 2 if nothing was there before."""
    own = word(word(state, at.CURRENT), at.MULTIPROCESSOR)
    meta = word(entry, at.LATE_META)
    if (meta >> _SIZE & 15) != size or (meta >> own) & 1 == 0:
        return 0
    arrival = _arrival(state, meta, word(entry, at.LATE_SINCE))
    # No write remains late for ever.
    if word(state, at.LAST_FENCE + own) > arrival or draw(state) & 3 == 0:
        set_word(entry, at.LATE_META, meta & ~(1 << own))
        return 0
    return 1 + (meta >> _UNWRITTEN & 1)


@helper
def fence_multiprocessor(state: int, number: int) -> None:
    """Let all writes of a multiprocessor reach memory, and empty its cache."""
    now = word(state, at.NOW) + 1
    fences = word(state, at.FENCES + number)
    set_word(state, at.NOW, now)
    set_word(word(state, at.FENCE_LOG), number * at.LOG_ENTRIES + (fences & (at.LOG_ENTRIES - 1)), now)
    set_word(state, at.FENCES + number, fences + 1)
    set_word(state, at.LAST_FENCE + number, now)


@hook("emu_fence_all")
def fence_all(state: int) -> int:
    """Make all writes visible to all multiprocessors."""
    for number in range(at.MULTIPROCESSORS):
        fence_multiprocessor(state, number)
    now = word(state, at.NOW) + 1
    set_word(state, at.NOW, now)
    for number in range(at.MULTIPROCESSORS):
        set_word(state, at.LAST_FENCE + number, now)
    return 0
