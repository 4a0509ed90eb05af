"""Counters of accesses, of those of each lane, of bytes, and of the sectors that the instructions of a warp touch."""

from __future__ import annotations

from gpu_pregel.host.emulator.machine import layout as at
from gpu_pregel.host.emulator.machine.hooks import helper, hook
from gpu_pregel.host.emulator.machine.words import fill, read32, set_word, word, write32

_SECTOR_SHIFT = 5


@helper
def _mix(a: int, b: int) -> int:
    """Return a hash of two words."""
    x = (a ^ (b * -7046029254386353131)) * -4658895280553007687
    x ^= (x >> 32) & 0xFFFFFFFF
    x *= -7723592293110705685
    return x ^ ((x >> 29) & 0x7FFFFFFFF)


@helper
def _place_of(table: int, mask: int, key: int) -> int:
    """Return the position of ``key`` in a hash table, or the free position where it would be inserted."""
    place = (key >> 20) & mask
    while word(table, place) != key and word(table, place) != 0:
        place = (place + 1) & mask
    return place


@hook("emu_is_new")
def _is_new(state: int, key: int) -> int:
    """Add ``key`` to the set; return 1 if it is new.

    The set consists of two tables. When the newer one is half full, the older one is cleared and the two are swapped,
    so that recent keys remain in the set.
    """
    mask = word(state, at.SECTORS_MASK)
    young = word(state, at.SECTORS)
    key |= 1
    place = _place_of(young, mask, key)
    if word(young, place) == key:
        return 0
    old = word(state, at.OLD_SECTORS)
    new = 1 if word(old, _place_of(old, mask, key)) == 0 else 0
    set_word(young, place, key)
    used = word(state, at.SECTORS_USED) + 1
    if used * 2 > mask:
        fill(old, (mask + 1) * at.WORD, 0)
        set_word(state, at.SECTORS, old)
        set_word(state, at.OLD_SECTORS, young)
        used = 0
    set_word(state, at.SECTORS_USED, used)
    return new


@hook("emu_count")
def count_access(state: int, flags: int, address: int, size: int, site: int) -> int:
    """Count an access to global or shared memory."""
    if flags & at.SHARED:
        set_word(state, at.SHARED_COUNT, word(state, at.SHARED_COUNT) + 1)
        return 0
    me = word(state, at.CURRENT)
    counter = word(me, at.OWN_OCCURRENCES) + 4 * site
    occurrence = read32(counter)
    write32(counter, occurrence + 1)
    if word(word(state, at.POLLING), site) == 0:
        total = word(me, at.OWN_OCCURRENCES) + 4 * word(state, at.SITES)
        write32(total, read32(total) + 1)
    warp = word(me, at.IDENTITY) - word(me, at.LANE)
    group = _mix((word(state, at.LAUNCH) << 32) ^ warp, (site << 40) ^ occurrence)
    # An access aligned to its size never crosses a sector boundary.
    touched = _is_new(state, _mix(group, address >> _SECTOR_SHIFT))
    mine = word(state, at.SITE_COUNTS) + site * at.COUNT_WORDS * at.WORD
    set_word(mine, at.EXECUTIONS, word(mine, at.EXECUTIONS) + 1)
    set_word(mine, at.BYTES, word(mine, at.BYTES) + size)
    set_word(mine, at.TOUCHED, word(mine, at.TOUCHED) + touched)
    return 0


@hook("emu_count_lane")
def count_lane(state: int, thread: int) -> int:
    """Count the accesses of a thread that ends; a thread without any is no lane in use."""
    accesses = read32(word(thread, at.OWN_OCCURRENCES) + 4 * word(state, at.SITES))
    if accesses == 0:
        return 0
    set_word(state, at.USED_LANES, word(state, at.USED_LANES) + 1)
    set_word(state, at.LANE_ACCESSES, word(state, at.LANE_ACCESSES) + accesses)
    set_word(state, at.LONGEST_LANE, max(word(state, at.LONGEST_LANE), accesses))
    return 0
