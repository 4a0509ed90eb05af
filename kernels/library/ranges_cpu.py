"""How threads share work of unknown cost: each has a range of its own, and steals from the others' ends.

``work`` is an int64 array that ``gpu_pregel.host.devices.threads`` creates for each region: a header, and a line for
each range. A thread claims chunks from the front of its range, at first of one item; they grow while they take little
time, and shrink if they take long. A thread without work takes half of what another has left, first of those of its
own NUMA node.
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
REST, CHUNK, BEGAN, NODE_FIRST, NODE_LAST = 0, 1, 2, 3, 4
"""In a line: first and end of what is left of the range, in the halves of a word; the size of the next chunk; when the
last one began; and the ranges of the same NUMA node."""
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
    first, last = work[line + NODE_FIRST], work[line + NODE_LAST]
    for k in range(1, last - first):
        if _steal_from(work, line, first + (own - first + k) % (last - first)):
            return True
    for k in range(1, count):
        other = (own + k) % count
        if (other < first or other >= last) and _steal_from(work, line, other):
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


def make_ranges(first: int, size: int, nodes: list[int], deadline: int = 0) -> Any:
    """Return ``work`` for the items from ``first`` to ``size``, in as many equal ranges as there are threads.

    ``nodes`` has the number of threads of each NUMA node.
    """
    count, begin = sum(nodes), first
    work: Any = np.zeros(WORK_LENGTH + LINE * count, np.int64)
    work[SIZE], work[RANGES], work[DEADLINE] = size, count, deadline
    node_last = 0
    for threads in nodes:
        node_first, node_last = node_last, node_last + threads
        for k in range(node_first, node_last):
            end, line = first + (size - first) * (k + 1) // count, WORK_LENGTH + LINE * k
            work[line + REST], work[line + CHUNK] = (begin << END_BITS) | end, 1
            work[line + NODE_FIRST], work[line + NODE_LAST] = node_first, node_last
            begin = end
    return work
