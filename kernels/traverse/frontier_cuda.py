"""Sets of active vertices on CUDA: a bitmap and, where few are active, a queue of them.

Beside the queue stands a list of the hubs in it, rows of more than ``HUB_EDGES`` edges. Item ``i`` of that list is the
vertex ``hubs[i]``, whose pieces have the numbers from ``firsts[i]``, which ascend, up to those of the next hub.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_pregel.kernels.library.atomics_cuda import fetch_and_add, fetch_and_or
from gpu_pregel.kernels.library.bits_cuda import bit, rank_in
from gpu_pregel.kernels.library.compiler_cuda import cuda, from_dtype, types
from gpu_pregel.kernels.library.jit_cuda import BLOCK, OFFSETS, WARP, WARPS, Kernel, device, kernel
from gpu_pregel.kernels.library.warps_cuda import ALL, lane_number, shuffle, sum_of_warp, sum_up_to
from gpu_pregel.kernels.traverse.rows_cuda import HUB_EDGES, warp_number

COUNT, EDGES, HUBS, RECORD, CONTROL_LENGTH = 0, 1, 2, 4, 6
"""Positions in ``control``, int64: active vertices, their edges, hubs * 2**32 + pieces of hubs, and the two words of
the record of a body that raised."""
LIST_WARPS = 256
"""Maximum number of warps that list a bitmap's vertices; each lists a range of its words."""
BUFFER = 2 * BLOCK
"""Length of the shared array in which the warps of a block gather vertices before they append them to a queue."""
FOLDED = 32 * BLOCK
"""Partial sums that a block adds: those of all warps over vertices, of which there are at most 1,024 blocks."""
_VERTICES, _CONTROL = types.uint32[::1], types.int64[::1]


@device
def pieces_of(degree):
    """Return 2**32 plus the number of pieces of a hub of this degree, an int64; 0 if it is no hub."""
    if degree <= np.int64(HUB_EDGES):
        return np.int64(0)
    return (np.int64(1) << np.int64(32)) + (degree + np.int64(HUB_EDGES - 1)) // np.int64(HUB_EDGES)


@device
def gather(is_new, v, buffer, held):
    """Add the vertices of those lanes for which ``is_new`` holds to the warp's buffer, which holds ``held`` vertices.

    Return how many it holds afterwards; if more than 32, it must be emptied before the next call. All lanes call it.
    """
    among = np.uint32(cuda.ballot_sync(ALL, is_new))
    if among != np.uint32(0):
        lane = lane_number()
        if is_new:
            buffer[np.uint32(_own_part() + held + rank_in(among, lane))] = v
        held = np.uint32(held + np.uint32(cuda.popc(among)))
    return held


@device
def append(buffer, held, out):
    """Append the vertices in the warp's buffer to a queue; return the number of edges of this lane's share of them.

    ``out`` is that of :class:`RowOutput`.
    """
    degrees, _, queue, hubs, firsts, control = out
    lane, place, edges = lane_number(), np.uint32(0), np.int64(0)
    cuda.syncwarp()
    if lane == np.uint32(0):
        place = np.uint32(fetch_and_add(control, COUNT, held))
    place, i = shuffle(place, 0), lane
    while i < held:
        v = buffer[np.uint32(_own_part() + i)]
        queue[np.uint32(place + i)] = v
        degree = np.int64(degrees[v])
        edges += degree
        if degree > np.int64(HUB_EDGES):
            before = fetch_and_add(control, HUBS, pieces_of(degree))
            hub = np.uint32(before >> np.uint64(32))
            hubs[hub], firsts[hub] = v, np.uint32(before)
        i = np.uint32(i + np.uint32(WARP))
    cuda.syncwarp()
    return edges


@device
def add_edges(edges, out):
    """Add the edges that each lane passes to the figures of a queue."""
    edges = sum_of_warp(edges)
    if lane_number() == np.uint32(0) and edges > np.int64(0):
        fetch_and_add(out[5], EDGES, edges)


@device
def _own_part():
    """Return the position of the warp's part of the buffer."""
    return np.uint32((np.uint32(cuda.threadIdx.x) >> np.uint32(5)) * np.uint32(2 * WARP))


@device
def add_figures(count, edges, hubs, control):
    """Add the figures of a block to ``control``; each lane passes its own. All threads of the block call it."""
    figures = cuda.shared.array(3, types.int64)
    thread = np.uint32(cuda.threadIdx.x)
    if thread < np.uint32(3):
        figures[thread] = 0
    cuda.syncthreads()
    if np.uint32(cuda.ballot_sync(ALL, count != np.int64(0))) != np.uint32(0):
        count, edges, hubs = sum_of_warp(count), sum_of_warp(edges), sum_of_warp(hubs)
        if lane_number() == np.uint32(0):
            fetch_and_add(figures, COUNT, count)
            fetch_and_add(figures, EDGES, edges)
            fetch_and_add(figures, HUBS, hubs)
    cuda.syncthreads()
    if thread < np.uint32(3) and figures[thread] != np.int64(0):
        fetch_and_add(control, thread, figures[thread])


@dataclass(frozen=True)
class RowOutput:
    """What kernels over rows do with the results of their vertices.

    Attributes
    ----------
    returns : {"frontier", "sum", "pairs", None}
        The vertices for which ``finish`` returns true are set in a bitmap and appended to a queue; or each warp writes
        the sum of the results; or the result of each pair is written; or nothing is kept.
    total : dtype or None
        Of the sum, or of a result.
    offset : dtype
        Of edge positions and degrees.
    """

    returns: str | None
    total: np.dtype[Any] | None
    offset: np.dtype[Any]

    @property
    def kind(self) -> Any:
        """The type of a kernel's argument ``out``.

        For a frontier: degrees, bitmap, queue, hubs, their first pieces, and figures; for pairs, an array for their
        results; else an array for the sums of warps, and the place of the first warp's.
        """
        if self.returns == "frontier":
            offsets = from_dtype(self.offset)[::1]
            return types.Tuple([offsets, _VERTICES, _VERTICES, _VERTICES, _VERTICES, _CONTROL])
        return self.number[::1] if self.returns == "pairs" else types.Tuple([self.number[::1], types.uint32])

    @property
    def number(self) -> Any:
        """The type of a sum; int64 without."""
        return types.int64 if self.total is None else from_dtype(self.total)

    def make_add(self) -> Any:
        """``add(own, out)``: write the sum of what the lanes of a warp pass, if there is one."""

        @device
        def add(own, out):
            sums, first = out
            own, place = sum_of_warp(own), np.uint32(first + warp_number())
            if lane_number() == np.uint32(0) and place < np.uint32(len(sums)):
                sums[place] = own

        @device
        def nothing(own, out):
            """Every body is silent."""

        return nothing if self.total is None else add

    def make_deliver(self, finish: Any) -> Any:
        """``deliver(has_row, v, found, arrays, out)``: finish the rows of those lanes that have one.

        All threads of a block call it, with ``finish(v, found, arrays)``.
        """
        number, add = self.number, self.make_add()

        @device
        def to_frontier(has_row, v, found, arrays, out):
            is_kept = False
            if has_row:
                is_kept = finish(v, found, arrays) != 0
            if is_kept:
                fetch_and_or(out[1], v >> np.uint32(5), bit(v))
            buffer = cuda.shared.array(BUFFER, types.uint32)
            held = gather(is_kept, v, buffer, np.uint32(0))
            if held > np.uint32(0):
                add_edges(append(buffer, held, out), out)

        @device
        def to_sum(has_row, v, found, arrays, out):
            own = number(0)
            if has_row:
                own = number(finish(v, found, arrays))
            add(own, out)

        @device
        def to_pairs(has_row, v, found, arrays, out):
            if has_row:
                out[v] = number(finish(v, found, arrays))

        @device
        def to_nothing(has_row, v, found, arrays, out):
            if has_row:
                finish(v, found, arrays)

        return {"frontier": to_frontier, "sum": to_sum, "pairs": to_pairs, None: to_nothing}[self.returns]


@kernel(types.boolean, _VERTICES, types.uint32, _VERTICES, _CONTROL, racy=("words",))
def clear(by_queue, queue, count, words, control):
    """Clear a bitmap, whose set bits are those of the first ``count`` vertices of the queue if ``by_queue``."""
    i = np.uint32(cuda.grid(1))
    if by_queue:
        if i < count:
            words[queue[i] >> np.uint32(5)] = 0
    elif i < np.uint32(len(words)):
        words[i] = 0
    if i < np.uint32(len(control)):
        control[i] = 0


@kernel(_VERTICES, _VERTICES, _VERTICES)
def unite(one, other, found):
    """Write the union of two bitmaps to a third."""
    i = np.uint32(cuda.grid(1))
    if i < np.uint32(len(found)):
        found[i] = one[i] | other[i]


@device
def _words_of(warp, words, counts):
    """Return the range of words that a warp lists."""
    warps = _warps(counts)
    groups = np.uint32((words + np.uint32(WARP - 1)) // np.uint32(WARP))
    share = np.uint32(np.uint32((groups + warps - np.uint32(1)) // warps) * np.uint32(WARP))
    first = min(np.uint32(min(warp, warps) * share), words)
    return first, min(np.uint32(first + share), words)


@device
def _warps(counts):
    """Return the number of warps that list words; ``counts`` has the figures of all of them, one after the other."""
    return np.uint32(np.uint32(len(counts)) // np.uint32(3))


@kernel(_VERTICES, OFFSETS, types.boolean, _CONTROL, items=WARPS)
def count_words(words, degrees, by_degree, counts):
    """Write the figures of the words that each warp lists; only the number of vertices unless ``by_degree``."""
    lane, warp = lane_number(), warp_number()
    first, last = _words_of(warp, np.uint32(len(words)), counts)
    count, edges, hubs = np.int64(0), np.int64(0), np.int64(0)
    base = first
    while base < last:
        word = np.uint32(0)
        if base + lane < last:
            word = words[np.uint32(base + lane)]
        count += np.int64(cuda.popc(word))
        busy = np.uint32(0)
        if by_degree:
            busy = np.uint32(cuda.ballot_sync(ALL, word != np.uint32(0)))
        while busy != np.uint32(0):
            owner = np.uint32(cuda.ffs(busy) - 1)
            busy = np.uint32(busy & np.uint32(busy - np.uint32(1)))
            if (shuffle(word, owner) >> lane) & np.uint32(1) != np.uint32(0):
                degree = np.int64(degrees[np.uint32(np.uint32(base + owner) * np.uint32(WARP) + lane)])
                edges += degree
                hubs += pieces_of(degree)
        base = np.uint32(base + np.uint32(WARP))
    count, edges, hubs = sum_of_warp(count), sum_of_warp(edges), sum_of_warp(hubs)
    warps = _warps(counts)
    if lane == np.uint32(0) and warp < warps:
        counts[warp], counts[np.uint32(warps + warp)] = count, edges
        counts[np.uint32(np.uint32(warps << np.uint32(1)) + warp)] = hubs


@device
def _sum_before(counts, warp, figure):
    """Return, to all lanes, the sum of a figure over the warps before this one."""
    total, other = np.int64(0), lane_number()
    first = np.uint32(_warps(counts) * np.uint32(figure))
    while other < warp:
        total += counts[np.uint32(first + other)]
        other = np.uint32(other + np.uint32(WARP))
    return shuffle(sum_of_warp(total), 0)


@kernel(_VERTICES, OFFSETS, types.boolean, _CONTROL, _VERTICES, _VERTICES, _VERTICES, _CONTROL, items=WARPS)
def list_words(words, degrees, by_degree, counts, queue, hubs, firsts, control):
    """List the vertices of a bitmap and, if ``by_degree``, the hubs among them, in ascending order.

    It follows ``count_words``; if ``by_degree``, the figures of all words are written to ``control``.
    """
    lane, warp = lane_number(), warp_number()
    first, last = _words_of(warp, np.uint32(len(words)), counts)
    place, before = np.uint32(_sum_before(counts, warp, COUNT)), np.int64(0)
    if by_degree:
        before = _sum_before(counts, warp, HUBS)
    base = first
    while base < last:
        word = np.uint32(0)
        if base + lane < last:
            word = words[np.uint32(base + lane)]
        busy = np.uint32(cuda.ballot_sync(ALL, word != np.uint32(0)))
        while busy != np.uint32(0):
            owner = np.uint32(cuda.ffs(busy) - 1)
            busy = np.uint32(busy & np.uint32(busy - np.uint32(1)))
            bits = shuffle(word, owner)
            v, pieces = np.uint32(np.uint32(base + owner) * np.uint32(WARP) + lane), np.int64(0)
            if (bits >> lane) & np.uint32(1) != np.uint32(0):
                queue[np.uint32(place + rank_in(bits, lane))] = v
                if by_degree:
                    pieces = pieces_of(np.int64(degrees[v]))
            place = np.uint32(place + np.uint32(cuda.popc(bits)))
            if np.uint32(cuda.ballot_sync(ALL, pieces != np.int64(0))) != np.uint32(0):
                before = _list_hubs(v, pieces, before, hubs, firsts)
        base = np.uint32(base + np.uint32(WARP))
    if by_degree and warp == np.uint32(0):
        for figure in range(3):
            total = _sum_before(counts, _warps(counts), figure)
            if lane == np.uint32(0):
                control[np.uint32(figure)] = total


@device
def _list_hubs(v, pieces, before, hubs, firsts):
    """List the hubs among the vertices of a warp's lanes; return the hubs and pieces listed so far."""
    own = np.uint32(pieces)
    is_hub = np.uint32(own > np.uint32(0))
    pieces_up_to, hubs_up_to = sum_up_to(own), sum_up_to(is_hub)
    if own > np.uint32(0):
        hub = np.uint32(np.uint32(before >> np.int64(32)) + hubs_up_to - np.uint32(1))
        hubs[hub], firsts[hub] = v, np.uint32(np.uint32(before) + pieces_up_to - own)
    return before + (np.int64(shuffle(hubs_up_to, 31)) << np.int64(32)) + np.int64(shuffle(pieces_up_to, 31))


@functools.cache
def make_fold(total: Any) -> Kernel:
    """Return the kernel that sums partial sums in a fixed order: each block ``FOLDED`` of them, into its ``result``.

    ``total`` is the dtype of the sums.
    """
    number = from_dtype(total)
    sums = number[::1]

    @kernel(sums, types.uint32, sums, items=FOLDED)
    def fold(partials, count, result):
        shared = cuda.shared.array(WARPS, number)
        thread = np.uint32(cuda.threadIdx.x)
        own, i = number(0), np.uint32(np.uint32(cuda.blockIdx.x) * np.uint32(FOLDED) + thread)
        for _ in range(FOLDED // BLOCK):
            if i < count:
                own += partials[i]
            i = np.uint32(i + np.uint32(BLOCK))
        own = sum_of_warp(own)
        if lane_number() == np.uint32(0):
            shared[thread >> np.uint32(5)] = own
        cuda.syncthreads()
        if thread == np.uint32(0):
            own = number(0)
            for k in range(WARPS):
                own += shared[np.uint32(k)]
            result[np.uint32(cuda.blockIdx.x)] = own

    return fold
