"""Vector clocks: the accesses that fences and atomics order before a thread, as in PTX's memory consistency model.

A fence followed by an atomic write releases the accesses before the fence; an atomic read of that value, or of one that
atomics made of it, followed by a fence acquires them. Barriers and warp operations pass on what their threads know.
Daniel Lustig, Sameer Sahasrabuddhe, Olivier Giroux: A Formal Analysis of the NVIDIA PTX Memory Consistency Model,
ASPLOS 2019.
"""

from __future__ import annotations

from gpu_pregel.host.emulator.machine import layout as at
from gpu_pregel.host.emulator.machine.hooks import helper, hook
from gpu_pregel.host.emulator.machine.words import fill, set_word, word

_TIME = (1 << at.LANE_BITS) - 1
_BLOCK_KEY = 48
"""Bit position of the block in the key of an atomic whose scope is the block."""


@helper
def _stride(state: int) -> int:
    """Return the number of words per block of a clock."""
    return 1 + at.WARP_KNOWN * word(state, at.WARPS)


@helper
def _clock_words(state: int) -> int:
    return at.CLOCK_DATA + word(state, at.BLOCKS) * _stride(state)


@helper
def _clock(state: int, number: int) -> int:
    """Return the address of a clock."""
    return word(state, at.CLOCKS) + number * _clock_words(state) * at.WORD


@helper
def _share(state: int, number: int) -> int:
    """Add a reference to a clock, which may be 0."""
    if number:
        clock = _clock(state, number)
        set_word(clock, at.REFERENCES, word(clock, at.REFERENCES) + 1)
    return number


@helper
def _drop(state: int, number: int) -> None:
    """Remove a reference to a clock, which may be 0."""
    if number:
        clock = _clock(state, number)
        left = word(clock, at.REFERENCES) - 1
        set_word(clock, at.REFERENCES, left)
        if left == 0:
            set_word(clock, at.CLOCK_DATA, word(state, at.FREE_CLOCK))
            set_word(state, at.FREE_CLOCK, number)


@hook("emu_own_clock")
def _own(state: int, number: int) -> int:
    """Exchange a reference for one to a clock that has no other: the same, a copy or, for 0, an empty clock."""
    if number and word(_clock(state, number), at.REFERENCES) == 1:
        return number
    fresh = word(state, at.FREE_CLOCK)
    if fresh:
        set_word(state, at.FREE_CLOCK, word(_clock(state, fresh), at.CLOCK_DATA))
    else:
        fresh = word(state, at.CLOCKS_USED) + 1
        if fresh >= word(state, at.CLOCK_COUNT):
            set_word(state, at.CLOCKS_LOST, 1)
            _drop(state, number)
            return 0
        set_word(state, at.CLOCKS_USED, fresh)
    clock = _clock(state, fresh)
    if number:
        source = _clock(state, number)
        for place in range(_clock_words(state)):
            set_word(clock, place, word(source, place))
        _drop(state, number)
    else:
        fill(clock, _clock_words(state) * at.WORD, 0)
    set_word(clock, at.REFERENCES, 1)
    return fresh


@helper
def _merge_lanes(clock: int, place: int, other: int) -> None:
    """Add the lanes and the time ``other`` to a word of a clock; of different lanes, the later time counts for all."""
    own = word(clock, place)
    if other != own and other:
        lanes = (own | other) >> at.LANE_BITS
        set_word(clock, place, lanes << at.LANE_BITS | max(own & _TIME, other & _TIME))


@hook("emu_join_clocks")
def join_clocks(state: int, number: int, other: int) -> int:
    """Exchange a reference to a clock for one to a clock that also has all that ``other`` has."""
    if other == 0 or other == number:
        return number
    if number == 0:
        return _share(state, other)
    number = _own(state, number)
    if number == 0:
        return 0
    clock, source, stride = _clock(state, number), _clock(state, other), _stride(state)
    place = at.CLOCK_DATA
    for _ in range(word(state, at.BLOCKS)):
        set_word(clock, place, max(word(clock, place), word(source, place)))
        for k in range(1, stride):
            _merge_lanes(clock, place + k, word(source, place + k))
        place += stride
    return number


@hook("emu_place")
def _place(state: int, key: int, adds: int) -> int:
    """Return the entry of an atomic's address, or 0 if there is none and it cannot be or is not to be added."""
    table, mask = word(state, at.PLACES), at.PLACE_ENTRIES - 1
    count = word(state, at.PLACE_COUNT)
    if count == 0:
        if adds == 0:
            return 0
        fill(table, at.PLACE_ENTRIES * at.PLACE_WORDS * at.WORD, 0)
    slot = (key >> 2 ^ key >> 13 ^ key >> _BLOCK_KEY) & mask
    while True:
        entry = table + slot * at.PLACE_WORDS * at.WORD
        found = word(entry, at.PLACE_KEY)
        if found == key:
            return entry
        if found == 0:
            break
        slot = (slot + 1) & mask
    if adds == 0:
        return 0
    if count * 2 > mask:
        set_word(state, at.CLOCKS_LOST, 1)
        return 0
    set_word(entry, at.PLACE_KEY, key)
    set_word(state, at.PLACE_COUNT, count + 1)
    return entry


@helper
def _release(state: int, me: int, scope: int, key: int, reads: int) -> None:
    """Add what the thread's last fence releases to the entry of an atomic write.

    A write that does not read the previous value ends what was released before.
    """
    released = me + scope * at.WORD
    time = word(released, at.RELEASE_TIME)
    if time == 0 and (reads or word(state, at.PLACE_COUNT) == 0):
        return
    entry = _place(state, key, 1 if time else 0)
    if entry == 0:
        return
    number = word(entry, at.PLACE_CLOCK)
    if reads == 0:
        _drop(state, number)
        number = 0
    if time:
        number = _own(state, join_clocks(state, number, word(released, at.RELEASE_KNOWN)))
        if number:
            block, warp = word(word(me, at.OWN_BLOCK), at.LINEAR), word(me, at.INDEX) >> 5
            clock, place = _clock(state, number), at.CLOCK_DATA + block * _stride(state)
            set_word(clock, place, max(word(clock, place), word(released, at.RELEASE_EPOCH)))
            place += 1 + warp * at.WARP_KNOWN
            _merge_lanes(clock, place, 1 << (at.LANE_BITS + word(me, at.LANE)) | time)
            _merge_lanes(clock, place + 1, word(released, at.RELEASE_GROUP))
    set_word(entry, at.PLACE_CLOCK, number)


@helper
def _acquire(state: int, me: int, scope: int, key: int) -> None:
    """Note what the thread's next fence acquires by an atomic read."""
    entry = _place(state, key, 0)
    if entry and word(entry, at.PLACE_CLOCK):
        pending = me + scope * at.WORD
        number = join_clocks(state, word(pending, at.PENDING), word(entry, at.PLACE_CLOCK))
        set_word(pending, at.PENDING, number)


@hook("emu_order_atomic")
def order_atomic(state: int, address: int, reads: int, writes: int, in_block: int) -> int:
    """Note the order that an atomic establishes together with fences."""
    me = word(state, at.CURRENT)
    if in_block == 0:
        if reads and word(state, at.PLACE_COUNT):
            _acquire(state, me, at.DEVICE_SCOPE, address)
        if writes:
            _release(state, me, at.DEVICE_SCOPE, address, reads)
    if in_block or word(state, at.BLOCK_FENCES):
        scope = at.BLOCK_SCOPE if word(state, at.BLOCK_FENCES) else at.DEVICE_SCOPE
        key = address | (word(word(me, at.OWN_BLOCK), at.LINEAR) + 1) << _BLOCK_KEY
        if reads and word(state, at.PLACE_COUNT):
            _acquire(state, me, scope, key)
        if writes:
            _release(state, me, scope, key, reads)
    return 0


@helper
def _group(warp: int, lane: int) -> int:
    """Return the lanes of the warp, and the warp operation that orders their earlier accesses before this lane."""
    latest, lanes = word(warp, at.FULL_TIME), word(warp, at.LANES)
    for other in range(32):
        time = word(warp, at.CLOCK + lane * 32 + other)
        if time > latest:
            latest, lanes = time, 0
        if time == latest:
            lanes |= 1 << other
    return lanes << at.LANE_BITS | latest & _TIME


@helper
def _fence_scope(state: int, me: int, scope: int, time: int, group: int) -> None:
    """Acquire what is pending in a scope, and release what the thread has done and knows."""
    own = me + scope * at.WORD
    pending = word(own, at.PENDING)
    if pending:
        set_word(me, at.KNOWN, join_clocks(state, word(me, at.KNOWN), pending))
        _drop(state, pending)
        set_word(own, at.PENDING, 0)
    set_word(own, at.RELEASE_TIME, time)
    set_word(own, at.RELEASE_EPOCH, word(word(me, at.OWN_BLOCK), at.EPOCH))
    set_word(own, at.RELEASE_GROUP, group)


@helper
def _release_known(state: int, me: int, scope: int) -> None:
    own = me + scope * at.WORD
    known = _share(state, word(me, at.KNOWN))
    _drop(state, word(own, at.RELEASE_KNOWN))
    set_word(own, at.RELEASE_KNOWN, known)


@hook("emu_order_fence")
def order_fence(state: int, level: int) -> int:
    """Note the order that a fence establishes together with atomics; level 0 is a fence of the block."""
    me = word(state, at.CURRENT)
    warp, lane = word(me, at.OWN_WARP), word(me, at.LANE)
    group = _group(warp, lane)
    # Later accesses of this lane are later than the fence.
    time = word(warp, at.TIME) + 1
    set_word(warp, at.TIME, time)
    set_word(warp, at.LANE_EPOCH + lane, time)
    if word(state, at.BLOCK_FENCES):
        _fence_scope(state, me, at.BLOCK_SCOPE, time, group)
    if level:
        _fence_scope(state, me, at.DEVICE_SCOPE, time, group)
        _release_known(state, me, at.DEVICE_SCOPE)
    if word(state, at.BLOCK_FENCES):
        _release_known(state, me, at.BLOCK_SCOPE)
    return 0


@hook("emu_pass_on")
def pass_on_clocks(state: int, first: int, mask: int, count: int) -> int:
    """Let those of ``count`` threads from ``first`` on that are in the mask know what any of them knows."""
    number = 0
    for index in range(count):
        if (mask >> index) & 1:
            known = word(first + index * at.FIBER_WORDS * at.WORD, at.KNOWN)
            number = join_clocks(state, number, known)
    if number:
        for index in range(count):
            fiber = first + index * at.FIBER_WORDS * at.WORD
            if (mask >> index) & 1 and word(fiber, at.KNOWN) != number:
                _drop(state, word(fiber, at.KNOWN))
                set_word(fiber, at.KNOWN, _share(state, number))
        _drop(state, number)
    return 0


@hook("emu_pass_on_in_block")
def pass_on_in_block(state: int, block: int) -> int:
    """Let all threads of a block know what the block's clock has, and clear that."""
    number = word(block, at.BLOCK_CLOCK)
    for index in range(word(state, at.THREADS)):
        fiber = word(block, at.FIRST_FIBER) + index * at.FIBER_WORDS * at.WORD
        if word(fiber, at.KNOWN) != number:
            _drop(state, word(fiber, at.KNOWN))
            set_word(fiber, at.KNOWN, _share(state, number))
    _drop(state, number)
    set_word(block, at.BLOCK_CLOCK, 0)
    return 0


@hook("emu_forget_clocks")
def forget_clocks(state: int, me: int) -> int:
    """Drop the clocks of a thread that exits."""
    for place in (
        at.KNOWN,
        at.DEVICE_SCOPE + at.PENDING,
        at.DEVICE_SCOPE + at.RELEASE_KNOWN,
        at.BLOCK_SCOPE + at.PENDING,
        at.BLOCK_SCOPE + at.RELEASE_KNOWN,
    ):
        _drop(state, word(me, place))
        set_word(me, place, 0)
    return 0


@hook("emu_knows")
def knows(state: int, me: int, other: int, epoch: int, time: int) -> int:
    """Return whether an access by thread ``other`` is ordered before ``me`` by fences and atomics."""
    known = word(me, at.KNOWN)
    if known:
        threads = word(state, at.THREADS)
        index = other % threads
        clock = _clock(state, known) + (at.CLOCK_DATA + other // threads * _stride(state)) * at.WORD
        if word(clock, 0) > epoch:
            return 1
        for k in range(at.WARP_KNOWN):
            lanes = word(clock, 1 + (index >> 5) * at.WARP_KNOWN + k)
            if lanes >> (at.LANE_BITS + (index & 31)) & 1 and lanes & _TIME > time:
                return 1
    # Once clocks have been lost, an unknown order is no fault.
    return word(state, at.CLOCKS_LOST)
