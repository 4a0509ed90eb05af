"""Block barriers, grid barriers, thread exit, and the hook that dispatches all synchronisation."""

from __future__ import annotations

from gpu_pregel.host.emulator.machine import layout as at
from gpu_pregel.host.emulator.machine.access_counts import count_lane
from gpu_pregel.host.emulator.machine.clocks import forget_clocks, join_clocks, pass_on_in_block
from gpu_pregel.host.emulator.machine.hooks import external, helper, hook
from gpu_pregel.host.emulator.machine.late_writes import fence_all
from gpu_pregel.host.emulator.machine.scheduler import (
    draw,
    fail,
    fail_thread,
    fail_with,
    make_ready,
    wait,
    yield_to_others,
)
from gpu_pregel.host.emulator.machine.store_buffers import drain
from gpu_pregel.host.emulator.machine.warps import synchronise_warp
from gpu_pregel.host.emulator.machine.words import set_word, trailing_zeros, word

_switch = external("emu_switch", 2)


@helper
def _some_thread(first: int, threads: int, status: int) -> int:
    """Return the first thread of a range that has this status, or 0."""
    for index in range(threads):
        fiber = first + index * at.FIBER_WORDS * at.WORD
        if word(fiber, at.STATUS) == status:
            return fiber
    return 0


@helper
def _fail_because_of(state: int, code: int, site: int, first: int, threads: int, status: int) -> None:
    """Report a fault of the current thread that also involves a thread with this status."""
    other = _some_thread(first, threads, status)
    fail_with(state, code, site, 0, word(other, at.IDENTITY), word(other, at.WAIT_SITE))


@helper
def _check_not_awaited(state: int, me: int, site: int) -> None:
    """Fail if a lane in a warp operation waits for this thread: it would deadlock with a thread at a barrier."""
    warp = word(me, at.OWN_WARP)
    waiting = word(warp, at.WAITING)
    while waiting:
        lane = trailing_zeros(waiting)
        waiting &= waiting - 1
        if (word(warp, at.LANE_MASK + lane) >> word(me, at.LANE)) & 1:
            other = word(me, at.IDENTITY) - word(me, at.LANE) + lane
            fail_with(state, at.BARRIER_WARP, site, 0, other, word(warp, at.LANE_SITE + lane))


@helper
def _release(state: int, first: int, threads: int, me: int) -> None:
    """Resume the threads at a barrier; ``me`` was the last to arrive."""
    for index in range(threads):
        fiber = first + index * at.FIBER_WORDS * at.WORD
        if fiber != me:
            make_ready(state, fiber)
    set_word(me, at.STATUS, at.RUNNABLE)


@hook("emu_block_barrier")
def _block_barrier(state: int, kind: int, predicate: int, site: int) -> int:
    """Wait for all threads of the block at one site, and count the threads whose ``predicate`` is not zero."""
    me = word(state, at.CURRENT)
    block, threads = word(me, at.OWN_BLOCK), word(state, at.THREADS)
    first, waiting = word(block, at.FIRST_FIBER), word(block, at.BLOCK_WAITING)
    drain(state, me)
    _check_not_awaited(state, me, site)
    if word(block, at.BLOCK_EXITED):
        _fail_because_of(state, at.BARRIER_EXITED, site, first, threads, at.ENDED)
    if waiting == 0:
        set_word(block, at.BARRIER_SITE, site)
        set_word(block, at.BARRIER_COUNT, 0)
    elif word(block, at.BARRIER_SITE) != site:
        _fail_because_of(state, at.BARRIER_SPLIT, site, first, threads, at.AT_BLOCK)
    if word(me, at.KNOWN):
        set_word(block, at.BLOCK_CLOCK, join_clocks(state, word(block, at.BLOCK_CLOCK), word(me, at.KNOWN)))
    count = word(block, at.BARRIER_COUNT) + (1 if predicate else 0)
    set_word(block, at.BARRIER_COUNT, count)
    if waiting + 1 < threads:
        set_word(block, at.BLOCK_WAITING, waiting + 1)
        set_word(me, at.STATUS, at.AT_BLOCK)
        set_word(me, at.WAIT_SITE, site)
        wait(state)
        return word(block, at.BARRIER_RESULT)
    set_word(block, at.BLOCK_WAITING, 0)
    set_word(block, at.EPOCH, word(block, at.EPOCH) + 1)
    if word(block, at.BLOCK_CLOCK):
        pass_on_in_block(state, block)
    result = count
    if kind == at.BARRIER_AND:
        result = 1 if count == threads else 0
    elif kind == at.BARRIER_OR:
        result = 1 if count else 0
    set_word(block, at.BARRIER_RESULT, result)
    _release(state, first, threads, me)
    return result


@hook("emu_grid_barrier")
def _grid_barrier(state: int, site: int) -> int:
    """Wait for all threads of a cooperative launch."""
    me = word(state, at.CURRENT)
    first, threads = word(state, at.FIBER_RECORDS), word(state, at.RESIDENT) * word(state, at.THREADS)
    waiting = word(state, at.GRID_WAITING)
    drain(state, me)
    if word(state, at.COOPERATIVE) == 0:
        fail(state, at.GRID_NOT_COOPERATIVE, site, 0)
    _check_not_awaited(state, me, site)
    if word(state, at.LIVE) != threads:
        _fail_because_of(state, at.GRID_EXITED, site, first, threads, at.ENDED)
    if waiting == 0:
        set_word(state, at.GRID_SITE, site)
    elif word(state, at.GRID_SITE) != site:
        _fail_because_of(state, at.GRID_SPLIT, site, first, threads, at.AT_GRID)
    if waiting + 1 < threads:
        set_word(state, at.GRID_WAITING, waiting + 1)
        set_word(me, at.STATUS, at.AT_GRID)
        set_word(me, at.WAIT_SITE, site)
        wait(state)
        return 0
    set_word(state, at.GRID_WAITING, 0)
    set_word(state, at.STAMP, word(state, at.STAMP) + 1)
    if word(state, at.LATE):
        fence_all(state)
    _release(state, first, threads, me)
    return 0


@hook("emu_sync")
def _synchronise(state: int, kind: int, mask: int, a: int, b: int, c: int, site: int) -> int:
    """Perform a barrier or a warp operation."""
    if word(word(word(state, at.CURRENT), at.STACK_LOW), 0) != at.CANARY:
        fail(state, at.STACK_OVERFLOW, site, 0)
    if kind >= at.WARP_SYNC and kind <= at.SHUFFLE_XOR:
        return synchronise_warp(state, kind, mask & 0xFFFFFFFF, a, b, c, site)
    if kind >= at.BARRIER and kind <= at.BARRIER_OR:
        return _block_barrier(state, kind, a, site)
    if kind == at.GRID_BARRIER:
        return _grid_barrier(state, site)
    return fail(state, at.UNKNOWN_SYNC, site, kind)


@helper
def _check_nobody_waits(state: int, me: int) -> None:
    """Fail if another thread waits for this thread, which is about to exit."""
    block, threads = word(me, at.OWN_BLOCK), word(state, at.THREADS)
    if word(block, at.BLOCK_WAITING):
        other = _some_thread(word(block, at.FIRST_FIBER), threads, at.AT_BLOCK)
        who = word(other, at.IDENTITY)
        fail_thread(state, at.BARRIER_EXITED, word(block, at.BARRIER_SITE), who, 0, 0, 0, word(me, at.IDENTITY), -1)
    if word(state, at.GRID_WAITING):
        other = _some_thread(word(state, at.FIBER_RECORDS), word(state, at.RESIDENT) * threads, at.AT_GRID)
        who = word(other, at.IDENTITY)
        fail_thread(state, at.GRID_EXITED, word(state, at.GRID_SITE), who, 0, 0, 0, word(me, at.IDENTITY), -1)
    warp, lane = word(me, at.OWN_WARP), word(me, at.LANE)
    waiting = word(warp, at.WAITING)
    while waiting:
        other = trailing_zeros(waiting)
        waiting &= waiting - 1
        mask = word(warp, at.LANE_MASK + other)
        if (mask >> lane) & 1:
            who = word(me, at.IDENTITY) - lane + other
            site = word(warp, at.LANE_SITE + other)
            fail_thread(state, at.MASK_EXITED, site, who, 0, 0, mask, word(me, at.IDENTITY), -1)


@hook("emu_exit")
def _exit(state: int) -> int:
    """End the current thread; does not return."""
    me = word(state, at.CURRENT)
    block, warp = word(me, at.OWN_BLOCK), word(me, at.OWN_WARP)
    if word(me, at.BUFFERED) and draw(state) & 3 == 0:
        yield_to_others(state)
    drain(state, me)
    if word(word(me, at.STACK_LOW), 0) != at.CANARY:
        fail(state, at.STACK_OVERFLOW, -1, 0)
    _check_nobody_waits(state, me)
    if word(state, at.PLACE_COUNT):
        forget_clocks(state, me)
    if word(state, at.COUNTING):
        count_lane(state, me)
    live = word(block, at.BLOCK_LIVE) - 1
    set_word(me, at.STATUS, at.ENDED)
    set_word(me, at.WAIT_SITE, -1)
    set_word(warp, at.EXITED, word(warp, at.EXITED) | (1 << word(me, at.LANE)))
    set_word(block, at.BLOCK_EXITED, word(block, at.BLOCK_EXITED) + 1)
    set_word(block, at.BLOCK_LIVE, live)
    set_word(state, at.LIVE, word(state, at.LIVE) - 1)
    if live:
        return wait(state)
    # A new block reuses this stack, so it is started on the launcher's stack.
    set_word(state, at.BLOCK_ENDED, 1)
    return _switch(me + at.WORD * at.STACK_POINTER, word(state, at.LAUNCHER))
