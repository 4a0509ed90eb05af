"""Warp operations: all lanes of a mask reach one site with the same mask; the last lane computes all results."""

from __future__ import annotations

from gpu_pregel.host.emulator.machine import layout as at
from gpu_pregel.host.emulator.machine.clocks import pass_on_clocks
from gpu_pregel.host.emulator.machine.hooks import helper, hook
from gpu_pregel.host.emulator.machine.scheduler import fail_thread, fail_with, make_ready, wait
from gpu_pregel.host.emulator.machine.store_buffers import drain
from gpu_pregel.host.emulator.machine.words import set_word, trailing_zeros, word

_PREDICATE = 1 << 32
"""The bit of a result that contains its predicate."""


@helper
def _fiber(warp: int, lane: int) -> int:
    return word(warp, at.WARP_FIBERS) + lane * at.FIBER_WORDS * at.WORD


@helper
def _fail_lane(state: int, code: int, site: int, mask: int, lane: int, other_site: int) -> int:
    """Report a fault of the current thread that involves another lane, which may not exist."""
    other = word(word(state, at.CURRENT), at.IDENTITY) - word(word(state, at.CURRENT), at.LANE) + lane
    return fail_with(state, code, site, mask, other, other_site)


@helper
def _check_mask(state: int, me: int, warp: int, mask: int, site: int) -> None:
    """Check that the mask includes the caller and that each of its lanes exists and has not exited."""
    lane = word(me, at.LANE)
    if (mask >> lane) & 1 == 0:
        _fail_lane(state, at.NOT_IN_MASK, site, mask, lane, -1)
    absent = mask & ~word(warp, at.LANES)
    if absent:
        _fail_lane(state, at.MASK_ABSENT, site, mask, trailing_zeros(absent), -1)
    gone = mask & word(warp, at.EXITED)
    if gone:
        _fail_lane(state, at.MASK_EXITED, site, mask, trailing_zeros(gone), -1)


@helper
def _arrived_lanes(state: int, me: int, warp: int, mask: int, site: int) -> int:
    """Return the lanes that have arrived; a lane that waits for this one elsewhere is a fault."""
    own = 1 << word(me, at.LANE)
    waiting = mask & word(warp, at.WAITING)
    here = own
    while waiting:
        lane = trailing_zeros(waiting)
        waiting &= waiting - 1
        other_mask, other_site = word(warp, at.LANE_MASK + lane), word(warp, at.LANE_SITE + lane)
        if other_mask == mask and other_site == site:
            here |= 1 << lane
        elif other_mask & own:
            _fail_lane(state, at.WARP_ELSEWHERE, site, mask, lane, other_site)
    return here


@helper
def _check_not_at_barrier(state: int, warp: int, missing: int, mask: int, site: int) -> None:
    """Fail if a missing lane is at a barrier and waits for this one: neither could continue."""
    while missing:
        lane = trailing_zeros(missing)
        missing &= missing - 1
        status = word(_fiber(warp, lane), at.STATUS)
        if status == at.AT_BLOCK or status == at.AT_GRID:
            other_site = word(_fiber(warp, lane), at.WAIT_SITE)
            _fail_lane(state, at.WARP_AT_BARRIER, site, mask, lane, other_site)


@helper
def _vote(kind: int, mask: int, ballot: int) -> int:
    """Return the result of a vote in which the lanes of ``ballot`` voted true."""
    if kind == at.BALLOT:
        return ballot
    if kind == at.VOTE_ALL:
        return 1 if ballot == mask else 0
    if kind == at.VOTE_ANY:
        return 1 if ballot else 0
    return 1 if ballot == mask or ballot == 0 else 0


@helper
def _vote_of_lanes(warp: int, kind: int, mask: int) -> None:
    ballot, left = 0, mask
    while left:
        lane = trailing_zeros(left)
        left &= left - 1
        ballot |= (1 if word(warp, at.LANE_A + lane) else 0) << lane
    result = _vote(kind, mask, ballot)
    # Lanes outside the mask may not have read the result of their last operation yet.
    for lane in range(32):
        if (mask >> lane) & 1:
            set_word(warp, at.LANE_RESULT + lane, result)


@helper
def _match(warp: int, kind: int, mask: int) -> None:
    """Give each lane the lanes that have the same value, or for match.all whether all have."""
    left = mask
    while left:
        value = word(warp, at.LANE_A + trailing_zeros(left))
        alike = 0
        for lane in range(32):
            if (left >> lane) & 1 and word(warp, at.LANE_A + lane) == value:
                alike |= 1 << lane
        result = alike
        if kind == at.MATCH_ALL:
            result = mask | _PREDICATE if alike == mask else 0
            alike = left
        left &= ~alike
        for lane in range(32):
            if (alike >> lane) & 1:
                set_word(warp, at.LANE_RESULT + lane, result)


@helper
def _source(kind: int, lane: int, b: int, c: int) -> int:
    """Return the lane that a shuffle reads from, or -1 for the lane itself (PTX, shfl.sync)."""
    segment, clamp, b = (c >> 8) & 31, c & 31, b & 31
    greatest = (lane & segment) | (clamp & ~segment & 31)
    if kind == at.SHUFFLE_UP:
        source = lane - b
        return source if source >= greatest else -1
    if kind == at.SHUFFLE_DOWN:
        source = lane + b
    elif kind == at.SHUFFLE_XOR:
        source = lane ^ b
    else:
        source = (lane & segment) | (b & ~segment & 31)
    return source if source <= greatest else -1


@helper
def _shuffle(state: int, warp: int, kind: int, mask: int, site: int) -> None:
    left = mask
    while left:
        lane = trailing_zeros(left)
        left &= left - 1
        source = _source(kind, lane, word(warp, at.LANE_B + lane), word(warp, at.LANE_C + lane))
        predicate = _PREDICATE
        if source < 0:
            source, predicate = lane, 0
        if (mask >> source) & 1 == 0:
            first = word(_fiber(warp, 0), at.IDENTITY)
            fail_thread(state, at.SHUFFLE_OUTSIDE, site, first + lane, 0, 0, mask, first + source, -1)
        value = word(warp, at.LANE_A + source) & 0xFFFFFFFF
        set_word(warp, at.LANE_RESULT + lane, value | predicate)


@helper
def _order(warp: int, mask: int) -> None:
    """Order all earlier accesses by the lanes of ``mask`` before all later ones."""
    time = word(warp, at.TIME) + 1
    set_word(warp, at.TIME, time)
    for lane in range(32):
        if (mask >> lane) & 1:
            set_word(warp, at.LANE_EPOCH + lane, time)
    if mask == word(warp, at.LANES):
        set_word(warp, at.FULL_TIME, time)
        return
    for other in range(32):
        latest = time
        if (mask >> other) & 1 == 0:
            latest = 0
            for lane in range(32):
                if (mask >> lane) & 1:
                    latest = max(latest, word(warp, at.CLOCK + lane * 32 + other))
        for lane in range(32):
            if (mask >> lane) & 1:
                set_word(warp, at.CLOCK + lane * 32 + other, latest)


@helper
def _complete(state: int, warp: int, kind: int, mask: int, me: int, site: int) -> None:
    """Compute the result of each lane and resume the other lanes."""
    if kind >= at.SHUFFLE_INDEX:
        _shuffle(state, warp, kind, mask, site)
    elif kind >= at.MATCH_ANY:
        _match(warp, kind, mask)
    elif kind != at.WARP_SYNC:
        _vote_of_lanes(warp, kind, mask)
    _order(warp, mask)
    set_word(state, at.WARP_OPERATIONS, word(state, at.WARP_OPERATIONS) + 1)
    if word(state, at.PLACE_COUNT):
        pass_on_clocks(state, _fiber(warp, 0), mask, 32)
    set_word(warp, at.WAITING, word(warp, at.WAITING) & ~mask)
    others = mask & ~(1 << word(me, at.LANE))
    while others:
        make_ready(state, _fiber(warp, trailing_zeros(others)))
        others &= others - 1


@hook("emu_warp")
def synchronise_warp(state: int, kind: int, mask: int, a: int, b: int, c: int, site: int) -> int:
    """Perform a warp operation of the current thread with the other lanes of ``mask``."""
    me = word(state, at.CURRENT)
    warp, lane = word(me, at.OWN_WARP), word(me, at.LANE)
    # Votes, matches and shuffles do not order memory: stores may stay buffered.
    if kind == at.WARP_SYNC:
        drain(state, me)
    _check_mask(state, me, warp, mask, site)
    here = _arrived_lanes(state, me, warp, mask, site)
    set_word(warp, at.LANE_A + lane, a)
    set_word(warp, at.LANE_B + lane, b)
    set_word(warp, at.LANE_C + lane, c)
    if here == mask:
        _complete(state, warp, kind, mask, me, site)
        return word(warp, at.LANE_RESULT + lane)
    if word(word(me, at.OWN_BLOCK), at.BLOCK_WAITING) + word(state, at.GRID_WAITING):
        _check_not_at_barrier(state, warp, mask & ~here, mask, site)
    set_word(warp, at.LANE_MASK + lane, mask)
    set_word(warp, at.LANE_SITE + lane, site)
    set_word(warp, at.WAITING, word(warp, at.WAITING) | (1 << lane))
    set_word(me, at.STATUS, at.AT_WARP)
    set_word(me, at.WAIT_SITE, site)
    wait(state)
    return word(warp, at.LANE_RESULT + lane)
