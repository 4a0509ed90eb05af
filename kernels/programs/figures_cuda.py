"""A superstep's figures on CUDA: active vertices and edges, vertices that applied, and aggregates.

Each block writes its figures; the last block to finish adds them up in the order of the blocks and writes a row of
``control``. A row that ends the run, or the direction, sets the done flag, at which kernels launched for later rows
return immediately. The host reads ``control`` once for many supersteps.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_pregel.kernels.library.atomics_cuda import fence, fetch_and_add
from gpu_pregel.kernels.library.bits_cuda import bits_of_float
from gpu_pregel.kernels.library.compiler_cuda import cuda, from_dtype, types
from gpu_pregel.kernels.library.jit_cuda import BLOCK, WARP, WARPS, device
from gpu_pregel.kernels.library.warps_cuda import lane_number, shuffle, sum_of_warp
from gpu_pregel.kernels.programs.apply import make_folding
from gpu_pregel.kernels.traverse.fields import generated

DONE, FINISHED, ROWS, FAILURE, ROW = 0, 1, 2, 3, 4
"""Positions in ``control``, int64: the done flag, number of finished blocks, number of rows written so far in the run,
the record of a function that raised, and the first row."""
FIGURES = 3
"""Figures of a row before its aggregates: active vertices, active edges, vertices that applied."""
WARP_FIGURES = FIGURES * WARPS
"""Figures of the warps of a block."""
NO_LIMIT = np.int64(0x7FFFFFFFFFFFFFFF)
"""The ``edge_limit`` of kernels after which the direction cannot change."""


@device
def is_beyond_the_end(control, row):
    """Whether a superstep was launched after one, of a row before ``row``, that set the done flag."""
    return row > 0 and control[np.uint32(DONE)] != 0


@device
def end_without_row(control):
    """Set the done flag, by the last block to call this; all threads of the grid do."""
    cuda.syncthreads()
    if np.uint32(cuda.threadIdx.x) == np.uint32(0):
        fence()
        if fetch_and_add(control, FINISHED, 1) == np.uint64(np.uint32(cuda.gridDim.x) - np.uint32(1)):
            fence()
            control[np.uint32(DONE)] = 1


@dataclass(frozen=True)
class _Folding:
    """Device functions over tuples of aggregates."""

    start: Any
    """``start()``: the identities of all aggregates."""
    fold: Any
    """``fold(sums, old, new, ctx)``."""
    over_warp: Any
    """``over_warp(sums)``: return, to lane 0 only, the aggregates of all lanes."""
    merge: Any
    load: Any
    store: Any
    publish: Any
    """``publish(control, place, totals, seen, sums)``: show senders the aggregates that ``apply`` saw, and the next
    ``apply`` the new ``sums``, whose bits are also written to the row of ``control``."""


def _make_folding(aggregators: tuple[Any, ...]) -> _Folding:
    names: dict[str, Any] = {"bits_of_float": bits_of_float, "types": types}
    starts, merged, loaded, stores, published = [], [], [], [], []
    for k, (_, _, combine, dtype, identity) in enumerate(aggregators):
        names |= {f"combine{k}": combine, f"type{k}": from_dtype(dtype), f"identity{k}": identity}
        starts.append(f"identity{k}")
        merged.append(f"type{k}(combine{k}(a[{k}], b[{k}]))")
        loaded.append(f"arrays[{k}][i]")
        stores.append(f"    arrays[{k}][i] = sums[{k}]\n")
        number = f"types.float64(sums[{k}])" if dtype.kind == "f" else f"sums[{k}]"
        bits = f"bits_of_float({number})" if dtype.kind == "f" else number
        published.append(
            f"    seen[{k}][0] = totals[{k}][0]\n    totals[{k}][0] = sums[{k}]\n"
            f"    control[place + {k}] = types.int64({bits})\n"
        )

    def made(name: str, arguments: str, body: str) -> Any:
        return generated(device, name, f"def {name}({arguments}):\n{body}", **names)

    def tuple_of(parts: list[str]) -> str:
        return f"    return ({', '.join(parts)},)\n" if parts else "    return 0\n"

    merge = made("merge", "a, b", tuple_of(merged))

    @device
    def over_warp(sums):
        lane = lane_number()
        distance = np.uint32(WARP // 2)
        while distance > np.uint32(0):
            sums = merge(sums, shuffle(sums, lane + distance))
            distance = np.uint32(distance >> np.uint32(1))
        return sums

    @device
    def unchanged(sums):
        return sums

    return _Folding(
        start=made("start", "", tuple_of(starts)),
        fold=make_folding(device, aggregators)[1],
        over_warp=over_warp if aggregators else unchanged,
        merge=merge,
        load=made("load", "arrays, i", tuple_of(loaded)),
        store=made("store", "arrays, i, sums", "".join(stores) or "    pass\n"),
        publish=made("publish", "control, place, totals, seen, sums", "".join(published) or "    pass\n"),
    )


@device
def _sum_block(sums, active, edges, applied):
    """Write the figures of each of the block's warps to ``sums``; ``active`` and ``applied`` count for lane 0 only."""
    edges = sum_of_warp(edges)
    if lane_number() == np.uint32(0):
        place = np.uint32((np.uint32(cuda.threadIdx.x) >> np.uint32(5)) * np.uint32(FIGURES))
        sums[place] = active
        sums[np.uint32(place + np.uint32(1))] = edges
        sums[np.uint32(place + np.uint32(2))] = applied


@device
def _figure(sums, k):
    """Return figure ``k`` of all warps."""
    figure = np.int64(0)
    for place in range(k, WARP_FIGURES, FIGURES):
        figure += sums[np.uint32(place)]
    return figure


@device
def _finish_block(sums, counts, control):
    """Write the block's figures to memory; return whether this block is the last one to do so."""
    is_last = cuda.shared.array(1, types.uint32)
    thread, block, blocks = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockIdx.x), np.uint32(cuda.gridDim.x)
    cuda.syncthreads()
    if thread < np.uint32(FIGURES):
        counts[block * np.uint32(FIGURES) + thread] = _figure(sums, thread)
    cuda.syncthreads()
    if thread == np.uint32(0):
        # Release what the block has written up to the barrier; acquire what the blocks before it released.
        fence()
        is_last[0] = fetch_and_add(control, FINISHED, 1) == np.uint64(blocks - np.uint32(1))
        fence()
    cuda.syncthreads()
    return is_last[0] != np.uint32(0)


@device
def _sum_blocks(sums, counts):
    """Write the figures of all blocks to ``sums``, in which each warp sums its share of the blocks."""
    block, blocks = np.uint32(cuda.threadIdx.x), np.uint32(cuda.gridDim.x)
    active, edges, applied = np.int64(0), np.int64(0), np.int64(0)
    while block < blocks:
        place = np.uint32(block * np.uint32(FIGURES))
        active += counts[place]
        edges += counts[np.uint32(place + np.uint32(1))]
        applied += counts[np.uint32(place + np.uint32(2))]
        block = np.uint32(block + np.uint32(BLOCK))
    _sum_block(sums, sum_of_warp(active), edges, sum_of_warp(applied))


@functools.lru_cache(maxsize=8)
def make_finish(aggregators: tuple[Any, ...]) -> tuple[Any, Any, Any]:
    """``start()``, ``fold(…)`` and ``finish(…)``, which ends a superstep.

    Lane 0 passes the number of vertices of its warp that are ``active`` and that ``applied``; each lane its own
    ``edges``. Cached, so that ``init`` and ``apply`` of a program, and all programs without aggregators, share one.
    """
    folding = _make_folding(aggregators)
    over_warp, store, publish = folding.over_warp, folding.store, folding.publish
    sum_warps, total_of = _make_sums(folding)
    width = FIGURES + len(aggregators)
    has_aggregates = len(aggregators) > 0

    @device
    def finish(active, edges, applied, sums, row, edge_limit, aggregates, figures):
        (seen, totals), (counts, partials, control) = aggregates, figures
        shared = cuda.shared.array(WARP_FIGURES, types.int64)
        thread = np.uint32(cuda.threadIdx.x)
        _sum_block(shared, active, edges, applied)
        sums = over_warp(sums)
        if has_aggregates and lane_number() == np.uint32(0):
            warp = np.uint32(thread >> np.uint32(5))
            store(partials, np.uint32(np.uint32(cuda.blockIdx.x) * np.uint32(WARPS) + warp), sums)
        if not _finish_block(shared, counts, control):
            return
        _sum_blocks(shared, counts)
        if has_aggregates:
            sum_warps(partials)
        cuda.syncthreads()
        if thread == np.uint32(0):
            place = np.uint32(ROW + row * width)
            active, edges = _figure(shared, 0), _figure(shared, 1)
            control[place] = active
            control[place + np.uint32(1)] = edges
            control[place + np.uint32(2)] = _figure(shared, 2)
            if has_aggregates:
                publish(control, np.uint32(place + np.uint32(FIGURES)), totals, seen, total_of(partials))
            control[np.uint32(ROWS)] += 1
            control[np.uint32(FINISHED)] = 0
            is_last = active == 0 or edges > edge_limit
            control[np.uint32(DONE)] = is_last or control[np.uint32(FAILURE)] != 0

    return folding.start, folding.fold, finish


def _make_sums(folding: _Folding) -> tuple[Any, Any]:
    """``sum_warps(partials)`` and then, on one thread, ``total_of(partials)``: fold the aggregates of all warps.

    The first writes one partial result per warp of the last block behind those of the grid.
    """
    start, merge, over_warp = folding.start, folding.merge, folding.over_warp
    load, store = folding.load, folding.store

    @device
    def sum_warps(partials):
        thread = np.uint32(cuda.threadIdx.x)
        count = np.uint32(np.uint32(cuda.gridDim.x) * np.uint32(WARPS))
        sums = start()
        place = thread
        while place < count:
            sums = merge(sums, load(partials, place))
            place = np.uint32(place + np.uint32(BLOCK))
        sums = over_warp(sums)
        if lane_number() == np.uint32(0):
            store(partials, np.uint32(count + np.uint32(thread >> np.uint32(5))), sums)

    @device
    def total_of(partials):
        count = np.uint32(np.uint32(cuda.gridDim.x) * np.uint32(WARPS))
        sums = load(partials, count)
        for k in range(1, WARPS):
            sums = merge(sums, load(partials, np.uint32(count + np.uint32(k))))
        return sums

    return sum_warps, total_of
