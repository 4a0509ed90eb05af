"""Layout of the memory that compiled kernels, hooks and Python share, in int64 words.

A launch has one state block, which points to records: one per resident thread (fiber), warp, block and region.
"""

from __future__ import annotations

WORD = 8

# --- The state block.
ARGUMENTS = 0
"""Address of the kernel's arguments; the only slot that compiled kernels read directly."""
CURRENT = 1
"""Record of the running thread."""
RANDOM = 2
LAUNCHER = 3
"""Stack pointer of the launcher while a thread runs."""
READY, READY_COUNT = 4, 5
LIVE = 6
"""Number of threads that have started and not exited."""
STEPS, STEP_LIMIT = 7, 8
PAUSED, BLOCK_ENDED = 9, 10
ORDER, NEXT_BLOCK, BLOCKS = 11, 12, 13
"""Address of the start order of blocks; number of blocks started; number of blocks."""
RESIDENT, THREADS, WARPS = 14, 15, 16
"""Number of resident blocks; threads and warps per block."""
BLOCK_RECORDS, FIBER_RECORDS, WARP_RECORDS = 17, 18, 19
STACKS = 20
GRID_X, GRID_Y, GRID_Z = 21, 22, 23
BLOCK_X, BLOCK_Y, BLOCK_Z = 24, 25, 26
COOPERATIVE = 27
GRID_WAITING, GRID_SITE = 28, 29
STAMP = 30
"""Increases with each launch and each grid barrier; accesses with different stamps are ordered."""
REGIONS, REGION_COUNT, SITE_REGIONS = 31, 32, 33
"""Region records; their number; per site, the region of its last access."""
SHARED_REGIONS, SHARED_BYTES = 34, 35
ENTRY, EXIT, START = 36, 37, 38
"""Addresses of the kernel, of the hook that ends a thread, and of the stub that calls both."""
FRAME_WORDS, FRAME_STATE, FRAME_ENTRY, FRAME_EXIT, FRAME_START = 39, 40, 41, 42, 43
"""A saved context: its size in words, and the positions of four registers."""
COUNTING, SITE_COUNTS, SITES = 44, 45, 46
SECTORS, OLD_SECTORS, SECTORS_MASK, SECTORS_USED = 47, 62, 48, 49
OCCURRENCES = 50
SHARED_COUNT, LOCAL_COUNT, WARP_OPERATIONS = 51, 52, 77
LAUNCH = 53
"""STAMP at the start of the launch."""
POLLING = 78
"""Per site, whether it is left out of the accesses of a lane."""
LONGEST_LANE, USED_LANES, LANE_ACCESSES = 79, 80, 81
"""Most accesses of a lane to global memory; lanes with any; accesses of all lanes."""
FAULT = 54
FAULT_SITE, FAULT_THREAD, FAULT_ADDRESS, FAULT_SIZE, FAULT_VALUE = 55, 56, 57, 58, 59
FAULT_OTHER_THREAD, FAULT_OTHER_SITE = 60, 61
LATE, NOW = 63, 64
"""Table of late writes, or 0 if the launch has one block; time, counted in fences."""
FENCE_LOG, FENCES, LAST_FENCE = 65, 96, 128
"""Times of the latest fences of each multiprocessor; per multiprocessor, their number and the time of the last one."""
CLOCKS, CLOCK_COUNT, CLOCKS_USED, FREE_CLOCK = 66, 67, 68, 69
"""Pool of clocks; its size; number of clocks used so far; first of the clocks that are free again, or 0."""
PLACES, PLACE_COUNT, CLOCKS_LOST = 70, 71, 72
"""Table of atomics that release; its number of entries; whether the pool or the table has been too small."""
BLOCK_FENCES = 73
"""Whether the kernel has fences of block scope."""
PARKED, PARK_UNTIL, PARKS_LEFT = 74, 75, 76
"""A thread that is not scheduled although it is ready, or 0; until which step; how often that may happen again."""
NEVER = 1 << 62
STATE_WORDS = 160

# --- A thread. The first words are the special registers, indexed by code.
TID, NTID, CTAID, NCTAID = 0, 3, 6, 9
LANE, WARP_SIZE, ACTIVE_MASK = 12, 13, 14
MASK_EQ, MASK_LE, MASK_LT, MASK_GE, MASK_GT = 15, 16, 17, 18, 19
STACK_POINTER, STATUS = 20, 21
OWN_BLOCK, OWN_WARP = 22, 23
IDENTITY, INDEX = 24, 25
"""Linear index of the thread in the grid, and in its block."""
STACK_LOW, STACK_HIGH = 26, 27
SHARED_REGION = 28
WAIT_SITE = 29
"""Site at which the thread last yielded or waited."""
OWN_OCCURRENCES = 30
"""How often the thread has executed each site, then its accesses to global memory, in 32 bits each."""
BUFFERED, BUFFER = 31, 32
BUFFER_ENTRIES, ENTRY_WORDS = 4, 5
ENTRY_ADDRESS, ENTRY_SIZE, ENTRY_BITS, ENTRY_WRITTEN, ENTRY_SHARED = 0, 1, 2, 3, 4
KNOWN = 52
"""Clock of the accesses that are ordered before this thread by fences, or 0."""
DEVICE_SCOPE, BLOCK_SCOPE = 53, 58
"""Per scope: a clock that the next fence acquires, and what the last fence releases."""
PENDING, RELEASE_TIME, RELEASE_EPOCH, RELEASE_GROUP, RELEASE_KNOWN = range(5)
MULTIPROCESSOR = 63
FIBER_WORDS = 64

ABSENT, RUNNABLE, AT_WARP, AT_BLOCK, AT_GRID, ENDED = 0, 1, 2, 3, 4, 5
"""Values of STATUS."""

# --- A block.
FIRST_FIBER, LINEAR = 0, 1
BLOCK_LIVE, BLOCK_WAITING, BLOCK_EXITED = 2, 3, 4
BARRIER_SITE, BARRIER_KIND, BARRIER_COUNT, BARRIER_RESULT = 5, 6, 7, 8
EPOCH = 9
FIRST_WARP = 10
BLOCK_REGION = 11
BLOCK_CLOCK = 12
"""Clock of the threads that have arrived at the barrier, or 0."""
BLOCK_WORDS = 16

# --- A warp: masks and clocks, then tables with one word per lane.
LANES, WAITING, EXITED = 0, 1, 2
TIME, FULL_TIME = 3, 4
"""Number of warp operations so far, and of the last one in which all lanes took part."""
WARP_FIBERS = 5
LANE_MASK = 8
LANE_SITE = 40
LANE_A, LANE_B, LANE_C = 72, 104, 136
LANE_RESULT = 168
LANE_EPOCH = 200
CLOCK = 232
"""32 words per lane: the last warp operation of each other lane that is ordered before this lane."""
WARP_WORDS = 232 + 32 * 32

# --- A region: an array of the launch, or a block's shared memory.
BASE, NBYTES, WRITTEN, RACES, SHIFT, FLAGS, REGION_INDEX, SHADOW_BASE = 0, 1, 2, 3, 4, 5, 6, 7
"""WRITTEN: shadow of the region's first byte. RACES: shadow of address SHADOW_BASE, one entry per 2**SHIFT bytes."""
REGION_WORDS = 8
RACY, CONSTANT, SHARED, RELAXED = 1, 2, 4, 8
"""Bits of FLAGS."""
LAST_WRITE, LAST_READ, EARLIER_READ, RACE_WORDS = 0, 2, 4, 6
"""A granule's shadow: three accesses of two words, (stamp, thread) and (site, atomic, block epoch, lane epoch)."""

# --- A late write: one that some multiprocessors do not see yet.
LATE_ADDRESS, LATE_BITS, LATE_META, LATE_SINCE = 0, 1, 2, 3
"""Address; previous content; multiprocessors that see it, size and writer; when it reaches memory."""
LATE_WORDS, LATE_ENTRIES = 4, 2048
MULTIPROCESSORS, LOG_ENTRIES = 32, 64
"""Multiprocessors, which blocks use in turn; a multiprocessor's fences whose times are kept."""

# --- A clock: per block, the number of barriers up to which its accesses are known, and two words per warp.
REFERENCES, CLOCK_DATA = 0, 1
WARP_KNOWN = 2
"""Words per warp: lanes and the warp operation before which their accesses are known; of releasing lanes, of others."""
LANE_BITS = 26
"""Bits of a warp operation's number; the lanes are in the bits above."""
PLACE_KEY, PLACE_CLOCK, PLACE_WORDS, PLACE_ENTRIES = 0, 1, 2, 4096

# --- Counts of a site.
EXECUTIONS, BYTES, TOUCHED = 0, 1, 2
COUNT_WORDS = 3

# --- Kinds of synchronisation.
BARRIER, BARRIER_POPC, BARRIER_AND, BARRIER_OR = 0, 1, 2, 3
WARP_SYNC, VOTE_ALL, VOTE_ANY, VOTE_UNI, BALLOT = 4, 5, 6, 7, 8
MATCH_ANY, MATCH_ALL = 9, 10
SHUFFLE_INDEX, SHUFFLE_UP, SHUFFLE_DOWN, SHUFFLE_XOR = 11, 12, 13, 14
GRID_BARRIER = 15

# --- Operations of emu_rmw.
XCHG, ADD, SUB, AND, OR, XOR, MAX, MIN, UMAX, UMIN, FADD, ATOMIC_LOAD, ATOMIC_STORE = range(13)
IN_BLOCK = 32
"""Added to the operation of emu_rmw, or to the size of emu_cas, if the atomic has block scope."""

# --- Faults.
(
    OUTSIDE,
    MISALIGNED,
    UNWRITTEN,
    CONSTANT_WRITTEN,
    RACE,
    NOT_IN_MASK,
    MASK_EXITED,
    MASK_ABSENT,
    WARP_ELSEWHERE,
    WARP_AT_BARRIER,
    SHUFFLE_OUTSIDE,
    BARRIER_SPLIT,
    BARRIER_EXITED,
    BARRIER_WARP,
    GRID_SPLIT,
    GRID_EXITED,
    GRID_NOT_COOPERATIVE,
    DEADLOCK,
    ENDLESS,
    STACK_OVERFLOW,
    DIVISION_BY_ZERO,
    DIVISION_OVERFLOW,
    SHIFT_TOO_FAR,
    FLOAT_RANGE,
    UNKNOWN_SYNC,
    UNKNOWN_ATOMIC,
) = range(1, 27)

OTHER_ACCESS = 4
"""Bit position of the other thread's access in the fault value of a race."""

DONE, INTERRUPTED, FAILED = 0, 1, 2
"""Return values of emu_run."""

STACK_BYTES = 64 << 10
CANARY = 0x5AFE57AC5AFE57AC
POISON = 0xCD
