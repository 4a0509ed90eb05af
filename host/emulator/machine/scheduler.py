"""The scheduler: threads are fibers, and a thread that waits switches directly to another one, chosen at random.

The conditions that threads wait for are in barriers.py and warps.py.
"""

from __future__ import annotations

from gpu_pregel.host.emulator.machine import layout as at
from gpu_pregel.host.emulator.machine.hooks import external, helper, hook
from gpu_pregel.host.emulator.machine.words import fill, set_word, word

_switch = external("emu_switch", 2)

_PAUSE = (1 << 18) - 1
"""Control returns to Python whenever these bits of the step count are zero, so that Ctrl-C is handled."""


@helper
def draw(state: int) -> int:
    """Return a random 31-bit number (xorshift)."""
    x = word(state, at.RANDOM)
    x ^= x << 13
    x ^= (x >> 7) & 0x01FFFFFFFFFFFFFF
    x ^= x << 17
    set_word(state, at.RANDOM, x)
    return (x >> 24) & 0x7FFFFFFF


@helper
def make_ready(state: int, fiber: int) -> None:
    """Add a thread to the ready list."""
    count = word(state, at.READY_COUNT)
    set_word(word(state, at.READY), count, fiber)
    set_word(state, at.READY_COUNT, count + 1)
    set_word(fiber, at.STATUS, at.RUNNABLE)


@helper
def _take(state: int) -> int:
    """Remove a random thread from the ready list, which must not be empty."""
    ready = word(state, at.READY)
    count = word(state, at.READY_COUNT)
    place = (draw(state) * count) >> 31
    fiber = word(ready, place)
    set_word(ready, place, word(ready, count - 1))
    set_word(state, at.READY_COUNT, count - 1)
    return fiber


@helper
def _unpark(state: int) -> None:
    make_ready(state, word(state, at.PARKED))
    set_word(state, at.PARKED, 0)
    set_word(state, at.PARK_UNTIL, at.NEVER)


@hook("emu_next")
def wait(state: int) -> int:
    """Switch to another thread; return once this thread is ready again and scheduled."""
    me = word(state, at.CURRENT)
    steps = word(state, at.STEPS) + 1
    set_word(state, at.STEPS, steps)
    if steps > word(state, at.PARK_UNTIL):
        _unpark(state)
    if word(state, at.READY_COUNT) == 0 or steps & _PAUSE == 0:
        if steps & _PAUSE == 0:
            set_word(state, at.PAUSED, 1)
        return _switch(me + at.WORD * at.STACK_POINTER, word(state, at.LAUNCHER))
    other = _take(state)
    if other != me:
        set_word(state, at.CURRENT, other)
        _switch(me + at.WORD * at.STACK_POINTER, word(other, at.STACK_POINTER))
    return 0


@helper
def yield_to_others(state: int) -> None:
    """Give other ready threads the chance to run."""
    make_ready(state, word(state, at.CURRENT))
    wait(state)


@hook("emu_park")
def park(state: int) -> int:
    """Occasionally suspend the current thread for as long as other blocks may take to run."""
    if word(state, at.PARKED) == 0 and draw(state) & 3 == 0:
        set_word(state, at.PARKS_LEFT, word(state, at.PARKS_LEFT) - 1)
        set_word(state, at.PARKED, word(state, at.CURRENT))
        steps = word(state, at.THREADS) * word(state, at.RESIDENT) << (draw(state) & 7)
        set_word(state, at.PARK_UNTIL, word(state, at.STEPS) + steps)
        wait(state)
    return 0


@hook("emu_fail")
def fail_thread(
    state: int, code: int, site: int, thread: int, address: int, size: int, value: int, other: int, other_site: int
) -> int:
    """Record a fault of ``thread`` and abort the launch."""
    set_word(state, at.FAULT, code)
    set_word(state, at.FAULT_SITE, site)
    set_word(state, at.FAULT_THREAD, thread)
    set_word(state, at.FAULT_ADDRESS, address)
    set_word(state, at.FAULT_SIZE, size)
    set_word(state, at.FAULT_VALUE, value)
    set_word(state, at.FAULT_OTHER_THREAD, other)
    set_word(state, at.FAULT_OTHER_SITE, other_site)
    me = word(state, at.CURRENT)
    return _switch(me + at.WORD * at.STACK_POINTER, word(state, at.LAUNCHER))


@helper
def fail(state: int, code: int, site: int, value: int) -> int:
    """Record a fault of the current thread that involves no other thread and no address."""
    thread = word(word(state, at.CURRENT), at.IDENTITY)
    return fail_thread(state, code, site, thread, 0, 0, value, -1, -1)


@helper
def fail_with(state: int, code: int, site: int, value: int, other: int, other_site: int) -> int:
    """Record a fault of the current thread that involves another thread."""
    thread = word(word(state, at.CURRENT), at.IDENTITY)
    return fail_thread(state, code, site, thread, 0, 0, value, other, other_site)


@helper
def _prepare_thread(state: int, block: int, index: int) -> None:
    """Initialise the fields of a thread record that are the same for all blocks in its slot."""
    threads = word(state, at.THREADS)
    place = (block - word(state, at.BLOCK_RECORDS)) // (at.BLOCK_WORDS * at.WORD)
    number = place * threads + index
    fiber = word(block, at.FIRST_FIBER) + index * at.FIBER_WORDS * at.WORD
    nx, ny, nz = word(state, at.BLOCK_X), word(state, at.BLOCK_Y), word(state, at.BLOCK_Z)
    lane = index & 31
    for axis, size, own in ((0, nx, index % nx), (1, ny, index // nx % ny), (2, nz, index // (nx * ny))):
        set_word(fiber, at.TID + axis, own)
        set_word(fiber, at.NTID + axis, size)
        set_word(fiber, at.NCTAID + axis, word(state, at.GRID_X + axis))
    set_word(fiber, at.LANE, lane)
    set_word(fiber, at.WARP_SIZE, 32)
    # No other thread is guaranteed to be converged with this one.
    set_word(fiber, at.ACTIVE_MASK, 1 << lane)
    set_word(fiber, at.MASK_EQ, 1 << lane)
    set_word(fiber, at.MASK_LE, (2 << lane) - 1)
    set_word(fiber, at.MASK_LT, (1 << lane) - 1)
    set_word(fiber, at.MASK_GE, (1 << 32) - (1 << lane))
    set_word(fiber, at.MASK_GT, (1 << 32) - (2 << lane))
    set_word(fiber, at.OWN_BLOCK, block)
    set_word(fiber, at.OWN_WARP, word(block, at.FIRST_WARP) + (index >> 5) * at.WARP_WORDS * at.WORD)
    set_word(fiber, at.INDEX, index)
    low = word(state, at.STACKS) + number * at.STACK_BYTES
    set_word(fiber, at.STACK_LOW, low)
    # Stagger the stacks to avoid conflicts in the processor's caches.
    set_word(fiber, at.STACK_HIGH, low + at.STACK_BYTES - (number * 832 & 0x3FC0))
    set_word(low, 0, at.CANARY)
    set_word(fiber, at.SHARED_REGION, word(block, at.BLOCK_REGION))
    set_word(fiber, at.OWN_OCCURRENCES, word(state, at.OCCURRENCES) + number * (word(state, at.SITES) + 1) * 4)


@hook("emu_prepare")
def _prepare(state: int) -> int:
    """Initialise the records of a launch, which are all zeros."""
    threads, warps = word(state, at.THREADS), word(state, at.WARPS)
    for place in range(word(state, at.RESIDENT)):
        block = word(state, at.BLOCK_RECORDS) + place * at.BLOCK_WORDS * at.WORD
        set_word(block, at.FIRST_FIBER, word(state, at.FIBER_RECORDS) + place * threads * at.FIBER_WORDS * at.WORD)
        set_word(block, at.FIRST_WARP, word(state, at.WARP_RECORDS) + place * warps * at.WARP_WORDS * at.WORD)
        set_word(block, at.BLOCK_REGION, word(state, at.SHARED_REGIONS) + place * at.REGION_WORDS * at.WORD)
        for index in range(threads):
            _prepare_thread(state, block, index)
        for number in range(warps):
            warp = word(block, at.FIRST_WARP) + number * at.WARP_WORDS * at.WORD
            lanes = min(32, threads - number * 32)
            set_word(warp, at.LANES, (1 << lanes) - 1)
            set_word(warp, at.WARP_FIBERS, word(block, at.FIRST_FIBER) + number * 32 * at.FIBER_WORDS * at.WORD)
    return 0


@helper
def _start_warps(state: int, block: int) -> None:
    for number in range(word(state, at.WARPS)):
        warp = word(block, at.FIRST_WARP) + number * at.WARP_WORDS * at.WORD
        time = word(warp, at.TIME) + 1
        set_word(warp, at.WAITING, 0)
        set_word(warp, at.EXITED, 0)
        set_word(warp, at.TIME, time)
        set_word(warp, at.FULL_TIME, time)
        for lane in range(32):
            set_word(warp, at.LANE_EPOCH + lane, time)


@helper
def _start_shared(state: int, block: int) -> None:
    size = word(state, at.SHARED_BYTES)
    if size:
        region = word(block, at.BLOCK_REGION)
        fill(word(region, at.BASE), size, at.POISON)
        fill(word(region, at.WRITTEN), size, 0)


@helper
def _start_block(state: int, block: int, linear: int) -> None:
    """Start block number ``linear`` in the slot of a block that has ended."""
    threads = word(state, at.THREADS)
    nx, ny = word(state, at.GRID_X), word(state, at.GRID_Y)
    x, y, z = linear % nx, linear // nx % ny, linear // (nx * ny)
    words = word(state, at.FRAME_WORDS)
    set_word(block, at.LINEAR, linear)
    set_word(block, at.BLOCK_LIVE, threads)
    set_word(block, at.BLOCK_WAITING, 0)
    set_word(block, at.BLOCK_EXITED, 0)
    set_word(block, at.EPOCH, 0)
    _start_warps(state, block)
    _start_shared(state, block)
    if word(state, at.COUNTING):
        fill(word(word(block, at.FIRST_FIBER), at.OWN_OCCURRENCES), threads * (word(state, at.SITES) + 1) * 4, 0)
    for index in range(threads):
        fiber = word(block, at.FIRST_FIBER) + index * at.FIBER_WORDS * at.WORD
        set_word(fiber, at.CTAID, x)
        set_word(fiber, at.CTAID + 1, y)
        set_word(fiber, at.CTAID + 2, z)
        set_word(fiber, at.IDENTITY, linear * threads + index)
        set_word(fiber, at.BUFFERED, 0)
        set_word(fiber, at.MULTIPROCESSOR, word(state, at.NEXT_BLOCK) % at.MULTIPROCESSORS)
        set_word(fiber, at.DEVICE_SCOPE + at.RELEASE_TIME, 0)
        set_word(fiber, at.BLOCK_SCOPE + at.RELEASE_TIME, 0)
        set_word(fiber, at.WAIT_SITE, -1)
        frame = word(fiber, at.STACK_HIGH) - 64 - words * at.WORD
        frame -= frame + words * at.WORD & 15
        set_word(frame, word(state, at.FRAME_STATE), state)
        set_word(frame, word(state, at.FRAME_ENTRY), word(state, at.ENTRY))
        set_word(frame, word(state, at.FRAME_EXIT), word(state, at.EXIT))
        set_word(frame, word(state, at.FRAME_START), word(state, at.START))
        set_word(fiber, at.STACK_POINTER, frame)
        make_ready(state, fiber)


@helper
def _start_blocks(state: int) -> None:
    """Start a new block in each free slot."""
    set_word(state, at.BLOCK_ENDED, 0)
    for place in range(word(state, at.RESIDENT)):
        block = word(state, at.BLOCK_RECORDS) + place * at.BLOCK_WORDS * at.WORD
        started = word(state, at.NEXT_BLOCK)
        if word(block, at.BLOCK_LIVE) == 0 and started < word(state, at.BLOCKS):
            _start_block(state, block, word(word(state, at.ORDER), started))
            set_word(state, at.NEXT_BLOCK, started + 1)
            set_word(state, at.LIVE, word(state, at.LIVE) + word(state, at.THREADS))


@hook("emu_run")
def _run(state: int) -> int:
    """Run threads until all have exited, one has a fault, or control must return to Python."""
    while True:
        if word(state, at.FAULT):
            return at.FAILED
        if word(state, at.BLOCK_ENDED):
            _start_blocks(state)
        if word(state, at.READY_COUNT) == 0:
            if word(state, at.LIVE) == 0:
                return at.DONE
            if word(state, at.PARKED):
                _unpark(state)
            else:
                set_word(state, at.FAULT, at.DEADLOCK)
        elif word(state, at.STEPS) > word(state, at.STEP_LIMIT):
            set_word(state, at.FAULT, at.ENDLESS)
        elif word(state, at.PAUSED):
            set_word(state, at.PAUSED, 0)
            return at.INTERRUPTED
        else:
            fiber = _take(state)
            set_word(state, at.CURRENT, fiber)
            _switch(state + at.WORD * at.LAUNCHER, word(fiber, at.STACK_POINTER))
