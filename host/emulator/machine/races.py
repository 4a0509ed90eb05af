"""Race detection: unordered accesses by two threads, of which one writes and at least one is not atomic.

Barriers and warp operations order accesses, and so do fences together with atomics; see clocks.py.
"""

from __future__ import annotations

from gpu_pregel.host.emulator.machine import layout as at
from gpu_pregel.host.emulator.machine.clocks import knows
from gpu_pregel.host.emulator.machine.hooks import helper, hook
from gpu_pregel.host.emulator.machine.scheduler import fail_thread
from gpu_pregel.host.emulator.machine.words import set_word, word

_LANE_BITS, _BLOCK_BITS, _SITE_BITS = at.LANE_BITS, 20, 16
_LANE_MASK, _BLOCK_MASK = (1 << _LANE_BITS) - 1, (1 << _BLOCK_BITS) - 1
_SITE_SHIFT = _LANE_BITS + _BLOCK_BITS + 1
_ATOMIC_BIT = 1 << (_LANE_BITS + _BLOCK_BITS)
_READ, _WRITE, _ATOMIC, _IN_BLOCK = 0, 1, 2, 4
_SIGN = -(1 << 63)
"""The bit of atomics with block scope."""


@helper
def _is_known(state: int, me: int, other: int, epochs: int) -> bool:
    """Whether fences and atomics order an access before this thread."""
    if word(state, at.PLACE_COUNT) == 0:
        return False
    return knows(state, me, other, (epochs >> _LANE_BITS) & _BLOCK_MASK, epochs & _LANE_MASK) != 0


@helper
def _is_ordered(state: int, me: int, other: int, epochs: int, shared: int) -> bool:
    """Whether an earlier access by thread ``other`` of the same launch is ordered before this thread."""
    threads = word(state, at.THREADS)
    block = word(me, at.OWN_BLOCK)
    index = other - word(block, at.LINEAR) * threads
    if index < 0 or index >= threads:
        # An earlier block used this shared memory before this block started.
        return shared != 0 or _is_known(state, me, other, epochs)
    if (epochs >> _LANE_BITS) & _BLOCK_MASK != word(block, at.EPOCH) & _BLOCK_MASK:
        return True
    if index >> 5 != word(me, at.INDEX) >> 5:
        return _is_known(state, me, other, epochs)
    warp = word(me, at.OWN_WARP)
    known = word(warp, at.CLOCK + word(me, at.LANE) * 32 + (index & 31))
    latest = max(known, word(warp, at.FULL_TIME))
    return latest & _LANE_MASK > epochs & _LANE_MASK or _is_known(state, me, other, epochs)


@helper
def _in_scope(state: int, me: int, access: int, thread_key: int, access_key: int) -> bool:
    """Whether two atomics are atomic towards each other: their scopes include both threads."""
    if access & _IN_BLOCK == 0 and access_key >= 0:
        return True
    return (thread_key & 0xFFFFFFFF) // word(state, at.THREADS) == word(word(me, at.OWN_BLOCK), at.LINEAR)


@helper
def _check_against(
    state: int, me: int, past: int, kind: int, access: int, site: int, address: int, size: int, shared: int
) -> None:
    """Report a race if the access recorded at ``past`` conflicts with the current one."""
    thread_key = word(past, 0)
    if thread_key >> 32 != word(state, at.STAMP) or thread_key & 0xFFFFFFFF == word(me, at.IDENTITY):
        return
    access_key = word(past, 1)
    if access & _ATOMIC and access_key & _ATOMIC_BIT and _in_scope(state, me, access, thread_key, access_key):
        return
    if not _is_ordered(state, me, thread_key & 0xFFFFFFFF, access_key, shared):
        thread = word(me, at.IDENTITY)
        other_site = (access_key >> _SITE_SHIFT) & ((1 << _SITE_BITS) - 1)
        both = access & 3 | (kind | _ATOMIC if access_key & _ATOMIC_BIT else kind) << at.OTHER_ACCESS
        fail_thread(state, at.RACE, site, thread, address, size, both, thread_key & 0xFFFFFFFF, other_site)


@hook("emu_race")
def check_race(state: int, region: int, address: int, size: int, access: int, site: int) -> int:
    """Check an access against the last accesses of each granule that it touches, and record it."""
    me = word(state, at.CURRENT)
    warp = word(me, at.OWN_WARP)
    shared = word(region, at.FLAGS) & at.SHARED
    thread_key = (word(state, at.STAMP) << 32) | word(me, at.IDENTITY)
    access_key = (site << _SITE_SHIFT) | ((word(word(me, at.OWN_BLOCK), at.EPOCH) & _BLOCK_MASK) << _LANE_BITS)
    access_key |= word(warp, at.LANE_EPOCH + word(me, at.LANE)) & _LANE_MASK
    if access & _ATOMIC:
        access_key |= _ATOMIC_BIT
    if access & _IN_BLOCK:
        access_key |= _SIGN
    shift = word(region, at.SHIFT)
    first = address - word(region, at.SHADOW_BASE)
    for granule in range(first >> shift, ((first + size - 1) >> shift) + 1):
        past = word(region, at.RACES) + granule * at.RACE_WORDS * at.WORD
        _check_against(state, me, past + at.LAST_WRITE * at.WORD, _WRITE, access, site, address, size, shared)
        if access & _WRITE:
            _check_against(state, me, past + at.LAST_READ * at.WORD, _READ, access, site, address, size, shared)
            _check_against(state, me, past + at.EARLIER_READ * at.WORD, _READ, access, site, address, size, shared)
            set_word(past, at.LAST_WRITE, thread_key)
            set_word(past, at.LAST_WRITE + 1, access_key)
        else:
            if word(past, at.LAST_READ) != thread_key:
                set_word(past, at.EARLIER_READ, word(past, at.LAST_READ))
                set_word(past, at.EARLIER_READ + 1, word(past, at.LAST_READ + 1))
            set_word(past, at.LAST_READ, thread_key)
            set_word(past, at.LAST_READ + 1, access_key)
    return 0
