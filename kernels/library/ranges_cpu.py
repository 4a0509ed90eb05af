"""How threads share work of unknown cost: each has a range of its own, and steals from the others' ends.

``work`` is an int64 array that ``gpu_pregel.host.devices.threads`` creates for each region, or for the share of each
NUMA node: a header, and a line for each range. A thread claims chunks from the front of its range, at first of one
item; they grow while they take little time, and shrink if they take long. A thread without work takes half of what
another has left; threads of other nodes, which come when their own share is done, begin with an empty range.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from gpu_pregel.kernels.library.atomics_cpu import compare_and_swap, fetch_and_add, load, store
from gpu_pregel.kernels.library.jit_cpu import inline
from gpu_pregel.kernels.library.work_cpu import NEXT, SIZE, WORK_LENGTH

RANGES, JOINED, DEADLINE = 3, 4, 5
"""In the header: the number of ranges, how many threads have joined, and when to stop in nanoseconds, 0 for never."""
LINE = 16
"""Length of the line of a range, so that no two share a cache line."""
REST, CHUNK, BEGAN = 0, 1, 2
"""In a line: first and end of what is left of the range, in the halves of a word; the size of the next chunk; and when
the last one began."""
END_BITS = 32
_END = (1 << END_BITS) - 1
_SHORT, _LONG = 20_000, 80_000
"""Nanoseconds: a chunk that takes less is followed by a larger one, and one that takes more by a smaller one."""
_MAX_CHUNK = 1 << 9
_CLOCK = time.CLOCK_MONOTONIC


@intrinsic
def nanoseconds(typingctx: Any) -> Any:
    """Return the time of ``time.monotonic_ns``."""

    def codegen(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        word, number = ir.IntType(64), ir.IntType(32)
        moment = cgutils.alloca_once(builder, ir.ArrayType(word, 2))
        kind = ir.FunctionType(number, [number, moment.type])
        function = cgutils.get_or_insert_function(builder.module, kind, "clock_gettime")
        builder.call(function, [number(_CLOCK), moment])
        seconds, rest = (builder.load(builder.gep(moment, [number(0), number(k)], inbounds=True)) for k in range(2))
        return builder.add(builder.mul(seconds, word(1_000_000_000)), rest)

    return types.int64(), codegen


@inline
def join(work: Any) -> Any:
    """Return the position of the line of this thread's range; called once by each thread."""
    return WORK_LENGTH + LINE * (fetch_and_add(work, JOINED, 1) % work[RANGES])


@inline
def claim_range(work: Any, line: Any) -> Any:
    """Claim the next items ``first, last`` of the thread with this line; an empty range means that it is to end."""
    now = nanoseconds()
    if load(work, NEXT) >= work[SIZE] or (work[DEADLINE] > 0 and now > work[DEADLINE]):
        return 0, 0
    chunk = work[line + CHUNK]
    if work[line + BEGAN] > 0:
        taken = now - work[line + BEGAN]
        if taken < _SHORT:
            chunk = min(2 * chunk, _MAX_CHUNK)
        elif taken > _LONG:
            chunk = max(chunk // 2, 1)
        work[line + CHUNK] = chunk
    work[line + BEGAN] = now
    while True:
        rest = load(work, line + REST)
        first, end = rest >> END_BITS, rest & _END
        if first < end:
            last = min(end, first + chunk)
            if compare_and_swap(work, line + REST, rest, (last << END_BITS) | end):
                return first, last
        elif not _steal(work, line):
            return 0, 0


@inline
def _steal(work: Any, line: Any) -> Any:
    """Make the second half of what another thread has left the range of this one; return whether there was any."""
    own, count = (line - WORK_LENGTH) // LINE, work[RANGES]
    for k in range(1, count):
        if _steal_from(work, line, (own + k) % count):
            return True
    return False


@inline
def _steal_from(work: Any, line: Any, other: Any) -> Any:
    place = WORK_LENGTH + LINE * other + REST
    while True:
        rest = load(work, place)
        first, end = rest >> END_BITS, rest & _END
        if first >= end:
            return False
        middle = end - (end - first + 1) // 2
        if compare_and_swap(work, place, rest, (first << END_BITS) | middle):
            store(work, line + REST, (middle << END_BITS) | end)
            return True


def first_left(work: Any) -> int:
    """Return the first item that a region of one range has not begun; the size if there is none."""
    rest = int(work[WORK_LENGTH + REST])
    return rest >> END_BITS


def make_ranges(first: int, size: int, threads: int, *, helpers: int = 0, deadline: int = 0) -> Any:
    """Return ``work`` for the items from ``first`` to ``size``, in as many equal ranges as there are threads.

    ``helpers`` is the number of further threads, which have no range but steal.
    """
    count, begin = threads + helpers, first
    work: Any = np.zeros(WORK_LENGTH + LINE * count, np.int64)
    work[SIZE], work[RANGES], work[DEADLINE] = size, count, deadline
    for k in range(count):
        end = first + (size - first) * min(k + 1, threads) // threads
        line = WORK_LENGTH + LINE * k
        work[line + REST], work[line + CHUNK] = (begin << END_BITS) | end, 1
        begin = end
    return work
