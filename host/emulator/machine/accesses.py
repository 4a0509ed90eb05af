"""Hooks for loads, stores, atomics, fences, shared memory and special registers."""

from __future__ import annotations

from gpu_pregel.host.emulator.machine import layout as at
from gpu_pregel.host.emulator.machine.access_counts import count_access
from gpu_pregel.host.emulator.machine.clocks import order_atomic, order_fence
from gpu_pregel.host.emulator.machine.hooks import helper, hook
from gpu_pregel.host.emulator.machine.late_writes import add_late_atomic, fence_multiprocessor, is_late, late_entry
from gpu_pregel.host.emulator.machine.races import check_race
from gpu_pregel.host.emulator.machine.scheduler import draw, fail_thread, park, yield_to_others
from gpu_pregel.host.emulator.machine.store_buffers import (
    all_written,
    drain,
    drain_one,
    drain_overlapping,
    drain_random,
    read_bits,
    write_bits,
)
from gpu_pregel.host.emulator.machine.words import add_float32, add_float64, fill, less_unsigned, set_word, word

_READ, _WRITE, _ATOMIC_READ, _ATOMIC, _IN_BLOCK = 0, 1, 2, 3, 4
_YIELD_MASK, _LOAD_YIELD_MASK = 7, 63
"""One store or atomic in 8, and one load in 64, yields to another thread first."""


@helper
def _fail_at(state: int, code: int, site: int, address: int, size: int, value: int) -> int:
    thread = word(word(state, at.CURRENT), at.IDENTITY)
    return fail_thread(state, code, site, thread, address, size, value, -1, -1)


@helper
def _holds(region: int, address: int, size: int) -> bool:
    offset = address - word(region, at.BASE)
    return offset >= 0 and offset + size <= word(region, at.NBYTES)


@hook("emu_find")
def _find(state: int, address: int, size: int, site: int, access: int) -> int:
    """Return the region of an access, or 0 for the thread's own stack; any other address is a fault."""
    me = word(state, at.CURRENT)
    shared = word(me, at.SHARED_REGION)
    if _holds(shared, address, size):
        return shared
    if word(me, at.STACK_LOW) <= address and address + size <= word(me, at.STACK_HIGH):
        set_word(state, at.LOCAL_COUNT, word(state, at.LOCAL_COUNT) + 1)
        return 0
    for number in range(word(state, at.REGION_COUNT)):
        region = word(state, at.REGIONS) + number * at.REGION_WORDS * at.WORD
        if _holds(region, address, size):
            set_word(word(state, at.SITE_REGIONS), site, region)
            return region
    return _fail_at(state, at.OUTSIDE, site, address, size, access)


@helper
def _check_access(state: int, address: int, size: int, site: int, access: int) -> int:
    """Check and count an access; return its region, or 0 for the stack."""
    region = word(word(state, at.SITE_REGIONS), site)
    if not _holds(region, address, size):
        region = _find(state, address, size, site, access)
        if region == 0:
            return 0
    if address & (size - 1):
        _fail_at(state, at.MISALIGNED, site, address, size, access)
    flags = word(region, at.FLAGS)
    if flags & at.CONSTANT and access & _WRITE:
        _fail_at(state, at.CONSTANT_WRITTEN, site, address, size, access)
    if word(state, at.COUNTING) and flags & at.CONSTANT == 0:
        count_access(state, flags, address, size, site)
    if flags & (at.RACY | at.CONSTANT) == 0:
        if flags & at.RELAXED and access == _READ:
            access = _ATOMIC_READ
        check_race(state, region, address, size, access, site)
    return region


@helper
def _maybe_yield(state: int, mask: int, site: int) -> None:
    """Occasionally yield to another thread and drain one buffered store."""
    if draw(state) & mask == 0:
        set_word(word(state, at.CURRENT), at.WAIT_SITE, site)
        drain_random(state)
        yield_to_others(state)


@hook("emu_load")
def _load(state: int, address: int, size: int, site: int) -> int:
    """Load from the thread's own store buffer, or from memory as its multiprocessor sees it."""
    _maybe_yield(state, _LOAD_YIELD_MASK, site)
    region = _check_access(state, address, size, site, _READ)
    if region == 0:
        return read_bits(address, size)
    me = word(state, at.CURRENT)
    for place in range(word(me, at.BUFFERED)):
        entry = me + (at.BUFFER + place * at.ENTRY_WORDS) * at.WORD
        start = word(entry, at.ENTRY_ADDRESS)
        if start == address and word(entry, at.ENTRY_SIZE) == size:
            return word(entry, at.ENTRY_BITS)
        if start < address + size and address < start + word(entry, at.ENTRY_SIZE):
            drain_overlapping(state, me, address, size)
            break
    shadow = word(region, at.WRITTEN)
    if shadow and all_written(shadow + address - word(region, at.BASE), size) == 0:
        _fail_at(state, at.UNWRITTEN, site, address, size, _READ)
    if word(state, at.LATE):
        entry = late_entry(state, address)
        if word(entry, at.LATE_ADDRESS) == address:
            late = is_late(state, entry, size)
            if late:
                if late == 2:
                    _fail_at(state, at.UNWRITTEN, site, address, size, _READ)
                return word(entry, at.LATE_BITS)
    return read_bits(address, size)


@hook("emu_store")
def _store(state: int, address: int, size: int, bits: int, site: int) -> int:
    """Append a store to the thread's store buffer."""
    _maybe_yield(state, _YIELD_MASK, site)
    region = _check_access(state, address, size, site, _WRITE)
    if region == 0:
        write_bits(address, size, bits)
        return 0
    me = word(state, at.CURRENT)
    drain_overlapping(state, me, address, size)
    count = word(me, at.BUFFERED)
    if count == at.BUFFER_ENTRIES:
        drain_one(state, me, draw(state) & (at.BUFFER_ENTRIES - 1))
        count -= 1
    entry = me + (at.BUFFER + count * at.ENTRY_WORDS) * at.WORD
    set_word(entry, at.ENTRY_ADDRESS, address)
    set_word(entry, at.ENTRY_SIZE, size)
    set_word(entry, at.ENTRY_BITS, bits)
    set_word(entry, at.ENTRY_WRITTEN, word(region, at.WRITTEN) + address - word(region, at.BASE))
    set_word(entry, at.ENTRY_SHARED, word(region, at.FLAGS) & at.SHARED)
    set_word(me, at.BUFFERED, count + 1)
    return 0


@helper
def _check_atomic(state: int, address: int, size: int, site: int, access: int, writes_only: int) -> int:
    """Check an atomic and drain the stores that overlap it; return its region, or 0 for the stack."""
    _maybe_yield(state, _YIELD_MASK, site)
    if size != 4 and size != 8:
        _fail_at(state, at.UNKNOWN_ATOMIC, site, address, size, size)
    if word(state, at.PARKS_LEFT) and word(word(state, at.CURRENT), at.DEVICE_SCOPE + at.RELEASE_TIME):
        park(state)
    region = _check_access(state, address, size, site, access)
    if region == 0 or word(region, at.FLAGS) & at.CONSTANT:
        return 0
    drain_overlapping(state, word(state, at.CURRENT), address, size)
    shadow = word(region, at.WRITTEN) + address - word(region, at.BASE)
    if writes_only:
        fill(shadow, size, 1)
    elif all_written(shadow, size) == 0:
        _fail_at(state, at.UNWRITTEN, site, address, size, access & _ATOMIC)
    return region


@helper
def _update(state: int, region: int, address: int, size: int, old: int, bits: int) -> None:
    """Write the result of an atomic."""
    if region and bits != old and word(state, at.LATE) and word(region, at.FLAGS) & at.SHARED == 0:
        add_late_atomic(state, word(state, at.CURRENT), address, size, old)
    write_bits(address, size, bits)


@helper
def _order(state: int, address: int, reads: int, writes: int, in_block: int) -> None:
    """Order accesses by an atomic, if there has been a fence."""
    me = word(state, at.CURRENT)
    fenced = word(me, at.DEVICE_SCOPE + at.RELEASE_TIME) + word(me, at.BLOCK_SCOPE + at.RELEASE_TIME)
    if fenced or word(state, at.PLACE_COUNT):
        order_atomic(state, address, reads, writes, in_block)


@helper
def _smaller_or_greater(op: int, old: int, bits: int, size: int) -> int:
    """Return the result of max, min, umax or umin."""
    a, b = old, bits
    if size == 4:
        if op == at.MAX or op == at.MIN:
            a, b = (a << 32) >> 32, (b << 32) >> 32
        below = a < b
    elif op == at.MAX or op == at.MIN:
        below = a < b
    else:
        below = less_unsigned(a, b) == 1
    if op == at.MIN or op == at.UMIN:
        return old if below else bits
    return bits if below else old


@helper
def _combine(op: int, old: int, bits: int, size: int) -> int:
    """Return the value that an atomic operation stores; only the low ``size`` bytes are significant."""
    if op == at.XCHG:
        return bits
    if op == at.ADD:
        return old + bits
    if op == at.SUB:
        return old - bits
    if op == at.AND:
        return old & bits
    if op == at.OR:
        return old | bits
    if op == at.XOR:
        return old ^ bits
    if op == at.FADD:
        return add_float32(old, bits) if size == 4 else add_float64(old, bits)
    return _smaller_or_greater(op, old, bits, size)


@hook("emu_rmw")
def _rmw(state: int, address: int, size: int, op: int, bits: int, site: int) -> int:
    """Perform an atomic operation and return the old value."""
    in_block, op = op & at.IN_BLOCK, op & ~at.IN_BLOCK
    if op < at.XCHG or op > at.ATOMIC_STORE:
        _fail_at(state, at.UNKNOWN_ATOMIC, site, address, size, op)
    reads, writes = 0 if op == at.ATOMIC_STORE else 1, 0 if op == at.ATOMIC_LOAD else 1
    access = (_ATOMIC if writes else _ATOMIC_READ) | (_IN_BLOCK if in_block else 0)
    region = _check_atomic(state, address, size, site, access, 1 - reads)
    old = read_bits(address, size)
    _order(state, address, reads, writes, in_block)
    if writes:
        _update(state, region, address, size, old, bits if reads == 0 else _combine(op, old, bits, size))
    # Earlier stores of this thread may become visible after this one.
    _maybe_yield(state, _YIELD_MASK, site)
    return old


@hook("emu_cas")
def _cas(state: int, address: int, size: int, expected: int, desired: int, site: int) -> int:
    """Compare and swap; return the old value."""
    in_block, size = size & at.IN_BLOCK, size & ~at.IN_BLOCK
    region = _check_atomic(state, address, size, site, _ATOMIC | (_IN_BLOCK if in_block else 0), 0)
    old = read_bits(address, size)
    _order(state, address, 1, 1 if old == expected else 0, in_block)
    if old == expected:
        _update(state, region, address, size, old, desired)
    _maybe_yield(state, _YIELD_MASK, site)
    return old


@hook("emu_fence")
def _fence(state: int, level: int, _site: int) -> int:
    """Make the thread's stores visible to its block and, unless the level is 0, to all multiprocessors.

    A fence above level 0 also publishes what the block's threads have written, and empties the multiprocessor's cache.
    """
    if word(state, at.PARKS_LEFT):
        park(state)
    me = word(state, at.CURRENT)
    drain(state, me)
    if level and word(state, at.LATE):
        fence_multiprocessor(state, word(me, at.MULTIPROCESSOR))
    order_fence(state, level)
    return 0


@hook("emu_shared")
def _shared(state: int, offset: int) -> int:
    """Return the address of an offset in the current block's shared memory."""
    return word(word(word(state, at.CURRENT), at.SHARED_REGION), at.BASE) + offset


@hook("emu_sreg")
def _special_register(state: int, code: int) -> int:
    """Return the current thread's value of a special register."""
    return word(word(state, at.CURRENT), code)
