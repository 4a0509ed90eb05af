"""Kernels of a vertex program over vertices on CUDA: init, signal, apply; made of the program's own functions.

A run's figures stay on the device: the last block of a superstep adds up what all blocks counted, in their order,
writes a row of ``control``, and sets its done flag, at which kernels of later rows return at once.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numba
import numpy as np
from numba import cuda, types

from gpu_pregel.kernels.library.atomics_cuda import fetch_and_add
from gpu_pregel.kernels.library.bits_cuda import bits_of_float, get_bit
from gpu_pregel.kernels.library.jit_cuda import BLOCK, WARP, Kernel, device, kernel
from gpu_pregel.kernels.library.warps_cuda import ALL, lane_number, shuffle
from gpu_pregel.kernels.programs.combine_cuda import inbox_dtypes
from gpu_pregel.kernels.programs.fields import (
    Functions,
    generated,
    make_cast,
    make_changed,
    make_context,
    make_differs,
    make_folding,
    make_get,
    make_put,
)

MAX_BLOCKS = 1024
"""Blocks of a kernel over all vertices; each goes through a range of them, the same on every chip."""
WARPS = BLOCK // WARP
DONE, FINISHED, ROWS, ROW = 0, 1, 2, 4
"""Places of ``control``, int64: the done flag, blocks that have finished, rows written, and the first row."""
FIGURES = 3
"""Figures of a row before its aggregates: active vertices, active edges, vertices that applied."""


@dataclass(frozen=True)
class Shapes:
    """Numba's types of a run's arrays."""

    offset: Any
    """The unsigned integer that positions of edges are computed in."""
    offsets: Any
    vertices: Any
    weights: Any
    has_weights: bool
    values: Any
    messages: Any
    inbox: Any
    aggregates: Any
    control: Any


def make_shapes(functions: Functions, offset: np.dtype[Any], weight: np.dtype[Any] | None) -> Shapes:
    """The types for edges at positions of dtype ``offset`` (uint32 or int64), with weights or without."""

    def array(dtype: Any) -> Any:
        return numba.from_dtype(np.dtype(dtype))[::1]

    def arrays(dtypes: Any) -> Any:
        return types.Tuple(tuple(array(dtype) for dtype in dtypes))

    return Shapes(
        offset=types.uint32 if offset.itemsize == 4 else types.uint64,
        offsets=array(offset),
        vertices=array(np.uint32),
        weights=array(np.float32 if weight is None else weight),
        has_weights=weight is not None,
        values=arrays(functions.value.dtypes),
        messages=arrays(functions.message.dtypes),
        inbox=arrays(inbox_dtypes(functions.message)),
        aggregates=arrays(dtype for _, _, _, dtype, _ in functions.aggregators),
        control=array(np.int64),
    )


@dataclass(frozen=True)
class _Folding:
    """Device functions over a tuple of aggregates."""

    start: Any
    """``start()``: the identities."""
    fold: Any
    """``fold(sums, old, new, ctx)``."""
    over_warp: Any
    """``over_warp(sums)``: lane 0 gets those of all lanes."""
    merge: Any
    load: Any
    store: Any
    publish: Any
    """``publish(control, place, totals, seen, sums)``: what ``apply`` saw is now seen by senders, and ``sums`` by the
    next ``apply``; the row gets their bits."""


def _make_folding(aggregators: tuple[Any, ...]) -> _Folding:
    names: dict[str, Any] = {"bits_of_float": bits_of_float, "types": types}
    starts, merged, loaded, stores, published = [], [], [], [], []
    for k, (_, _, combine, dtype, identity) in enumerate(aggregators):
        names |= {f"combine{k}": combine, f"type{k}": numba.from_dtype(dtype), f"identity{k}": identity}
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
    def over_warp(sums: Any) -> Any:
        lane = lane_number()
        distance = np.uint32(WARP // 2)
        while distance > np.uint32(0):
            sums = merge(sums, shuffle(sums, lane + distance))
            distance = np.uint32(distance >> np.uint32(1))
        return sums

    @device
    def nothing_to_do(sums: Any) -> Any:
        return sums

    return _Folding(
        start=made("start", "", tuple_of(starts)),
        fold=make_folding(device, aggregators)[1],
        over_warp=over_warp if aggregators else nothing_to_do,
        merge=merge,
        load=made("load", "arrays, i", tuple_of(loaded)),
        store=made("store", "arrays, i, sums", "".join(stores) or "    pass\n"),
        publish=made("publish", "control, place, totals, seen, sums", "".join(published) or "    pass\n"),
    )


@functools.lru_cache(maxsize=8)
def _make_finish(aggregators: tuple[Any, ...]) -> tuple[Any, Any, Any]:
    """``start()``, ``fold(…)`` and ``finish(…)``, which ends a superstep.

    Each block leaves its figures, and the last one adds them up. Lane 0 knows how many vertices of its warp are
    ``active`` and have ``applied``; each lane its own ``edges``. Made once, and so compiled once, for ``init`` and
    ``apply`` of a program, and for all programs without aggregators.
    """
    folding = _make_folding(aggregators)
    start, merge, over_warp = folding.start, folding.merge, folding.over_warp
    load, store, publish = folding.load, folding.store, folding.publish
    width = FIGURES + len(aggregators)
    has_aggregates = len(aggregators) > 0

    @device
    def finish(
        active: Any,
        edges: Any,
        applied: Any,
        sums: Any,
        row: Any,
        edge_limit: Any,
        seen: Any,
        totals: Any,
        counts: Any,
        partials: Any,
        control: Any,
    ) -> None:
        figures = cuda.shared.array(FIGURES, types.int64)
        is_last = cuda.shared.array(1, types.uint32)
        thread, block, blocks = np.uint32(cuda.threadIdx.x), np.uint32(cuda.blockIdx.x), np.uint32(cuda.gridDim.x)
        warp, lane = np.uint32(thread >> np.uint32(5)), lane_number()
        if thread < np.uint32(FIGURES):
            figures[thread] = 0
        cuda.syncthreads()
        distance = np.uint32(WARP // 2)
        while distance > np.uint32(0):
            edges += shuffle(edges, lane + distance)
            distance = np.uint32(distance >> np.uint32(1))
        if lane == np.uint32(0):
            fetch_and_add(figures, 0, active)
            fetch_and_add(figures, 1, edges)
            fetch_and_add(figures, 2, applied)
        sums = over_warp(sums)
        if has_aggregates and lane == np.uint32(0):
            store(partials, np.uint32(block * np.uint32(WARPS) + warp), sums)
        cuda.syncthreads()
        if thread < np.uint32(FIGURES):
            counts[block * np.uint32(FIGURES) + thread] = figures[thread]
        # Only after every block's figures are in memory may the last one read them.
        cuda.threadfence()
        cuda.syncthreads()
        if thread == np.uint32(0):
            is_last[0] = fetch_and_add(control, FINISHED, 1) == np.uint64(blocks - np.uint32(1))
        cuda.syncthreads()
        if is_last[0] == np.uint32(0):
            return
        cuda.threadfence()
        if thread < np.uint32(FIGURES):
            figures[thread] = 0
        cuda.syncthreads()
        place = thread
        while place < np.uint32(blocks * np.uint32(FIGURES)):
            fetch_and_add(figures, place % np.uint32(FIGURES), counts[place])
            place = np.uint32(place + np.uint32(BLOCK))
        if has_aggregates:
            count = np.uint32(blocks * np.uint32(WARPS))
            sums = start()
            place = thread
            while place < count:
                sums = merge(sums, load(partials, place))
                place = np.uint32(place + np.uint32(BLOCK))
            sums = over_warp(sums)
            if lane == np.uint32(0):
                store(partials, np.uint32(count + warp), sums)
        cuda.syncthreads()
        if thread == np.uint32(0):
            if has_aggregates:
                count = np.uint32(blocks * np.uint32(WARPS))
                sums = load(partials, count)
                for k in range(1, WARPS):
                    sums = merge(sums, load(partials, np.uint32(count + np.uint32(k))))
            place = np.uint32(ROW + row * width)
            for k in range(FIGURES):
                control[place + np.uint32(k)] = figures[np.uint32(k)]
            if has_aggregates:
                publish(control, np.uint32(place + np.uint32(FIGURES)), totals, seen, sums)
            control[np.uint32(ROWS)] = row + 1
            control[np.uint32(FINISHED)] = 0
            control[np.uint32(DONE)] = figures[0] == 0 or figures[1] > edge_limit

    return start, folding.fold, finish


_RACY = ("control", "counts", "partials", "seen", "totals")
"""What the last block reads of others', or writes when these are done: ordered by fences and one atomic counter."""


NO_LIMIT = np.int64(0x7FFFFFFFFFFFFFFF)
"""The ``edge_limit`` of kernels that no direction ends."""


@device
def is_beyond_the_end(control: Any, row: Any) -> Any:
    """Whether a superstep was launched behind one, of a row before ``row``, that set the done flag."""
    return row > 0 and control[np.uint32(DONE)] != 0


@device
def _tiles(n: Any) -> Any:
    """The first and last tile of ``BLOCK`` vertices of this block."""
    tiles = np.uint32((n + np.uint32(BLOCK - 1)) // np.uint32(BLOCK))
    blocks = np.uint32(cuda.gridDim.x)
    share = np.uint32((tiles + blocks - np.uint32(1)) // blocks)
    first = min(np.uint32(np.uint32(cuda.blockIdx.x) * share), tiles)
    return first, min(np.uint32(first + share), tiles)


def make_init(functions: Functions, shapes: Shapes) -> Kernel:
    """Superstep 0: set every value and the first frontier."""
    init: Any = functions.init
    initially_active: Any = functions.initially_active
    everywhere = initially_active is None
    put, cast = make_put(device, functions.value), make_cast(device, functions.value)
    context = make_context(device, functions.names)
    start, _, finish = _make_finish(functions.aggregators)

    @device
    def is_first(ctx: Any) -> Any:
        return True if everywhere else initially_active(ctx) != 0

    @kernel(
        *(shapes.offsets, shapes.offsets, shapes.aggregates, shapes.aggregates, shapes.values, shapes.vertices),
        *(shapes.control, shapes.aggregates, shapes.control),
        racy=_RACY,
    )
    def initialise(
        out_degrees: Any,
        in_degrees: Any,
        seen: Any,
        totals: Any,
        values: Any,
        frontier: Any,
        counts: Any,
        partials: Any,
        control: Any,
    ) -> None:
        n = np.uint32(len(out_degrees))
        lane = lane_number()
        active, edges = np.uint32(0), np.int64(0)
        first, last = _tiles(n)
        for tile in range(first, last):
            v = np.uint32(np.uint32(tile) * np.uint32(BLOCK) + np.uint32(cuda.threadIdx.x))
            is_active = False
            if v < n:
                out_degree = np.int64(out_degrees[v])
                ctx = context(np.int64(v), np.int64(0), np.int64(n), out_degree, np.int64(in_degrees[v]), totals)
                put(values, v, cast(init(ctx)))
                if is_first(ctx):
                    is_active = True
                    edges += out_degree
            bits = np.uint32(cuda.ballot_sync(ALL, is_active))
            word = np.uint32(v >> np.uint32(5))
            if lane == np.uint32(0):
                active = np.uint32(active + np.uint32(cuda.popc(bits)))
                if word < np.uint32(len(frontier)):
                    frontier[word] = bits
        sums = start()
        finish(active, edges, np.uint32(0), sums, np.int64(0), NO_LIMIT, seen, totals, counts, partials, control)

    return initialise


def make_signal(functions: Functions, shapes: Shapes) -> Kernel:
    """Dense side: each active source's message, the same for all its edges; the identity where there is none."""
    send, identity = functions.send, functions.identity
    get, cast = make_get(device, functions.value), make_cast(device, functions.message)
    put, context = make_put(device, functions.message), make_context(device, functions.names)

    @kernel(
        *(shapes.offsets, shapes.offsets, types.int64, shapes.aggregates, shapes.values, shapes.vertices),
        shapes.messages,
    )
    def dense_signal(
        out_degrees: Any,
        in_degrees: Any,
        superstep: Any,
        seen: Any,
        values: Any,
        frontier: Any,
        signals: Any,
    ) -> None:
        n = np.int64(len(out_degrees))
        v = np.uint32(cuda.grid(1))
        if v < np.uint32(n):
            message = identity
            if get_bit(frontier, v):
                ctx = context(np.int64(v), superstep, n, np.int64(out_degrees[v]), np.int64(in_degrees[v]), seen)
                message = cast(send(get(values, v), ctx))
            put(signals, v, message)

    return dense_signal


def make_apply(functions: Functions, shapes: Shapes, *, always: bool) -> Kernel:
    """Every vertex with a message applies it; sets the frontier, clears inbox and ``touched``.

    After a pull (``dense``) every vertex may have one; after a push those of ``touched``.
    """
    apply, identity = functions.apply, functions.identity
    user_active: Any = functions.is_active
    by_bits = user_active is None
    get, put, cast = (
        make_get(device, functions.value),
        make_put(device, functions.value),
        make_cast(device, functions.value),
    )
    get_message, put_message = make_get(device, functions.message), make_put(device, functions.message)
    cast_message, differs = make_cast(device, functions.message), make_differs(device, functions.message)
    changed, context = make_changed(device, functions.value, bits_of_float), make_context(device, functions.names)
    start, fold, finish = _make_finish(functions.aggregators)

    @device
    def is_active(old: Any, new: Any, ctx: Any) -> Any:
        if always:
            return True
        return changed(old, new) if by_bits else user_active(old, new, ctx) != 0

    @kernel(
        *(types.boolean, types.int64, types.int64, types.int64, shapes.offsets, shapes.offsets),
        *(shapes.aggregates, shapes.aggregates, shapes.inbox, shapes.vertices, shapes.values, shapes.vertices),
        *(shapes.control, shapes.aggregates, shapes.control),
        racy=_RACY,
    )
    def apply_messages(
        dense: Any,
        superstep: Any,
        row: Any,
        edge_limit: Any,
        out_degrees: Any,
        in_degrees: Any,
        seen: Any,
        totals: Any,
        inbox: Any,
        touched: Any,
        values: Any,
        frontier: Any,
        counts: Any,
        partials: Any,
        control: Any,
    ) -> None:
        if is_beyond_the_end(control, row):
            return
        n = np.uint32(len(out_degrees))
        lane = lane_number()
        active, edges, applied = np.uint32(0), np.int64(0), np.uint32(0)
        sums = start()
        first, last = _tiles(n)
        for tile in range(first, last):
            v = np.uint32(np.uint32(tile) * np.uint32(BLOCK) + np.uint32(cuda.threadIdx.x))
            has_message, stays_active = False, False
            if v < n and (dense or get_bit(touched, v)):
                message = cast_message(get_message(inbox, v))
                if differs(message, identity):
                    put_message(inbox, v, identity)
                    has_message = True
                elif always:
                    has_message = True
                if has_message:
                    out_degree = np.int64(out_degrees[v])
                    in_degree = np.int64(in_degrees[v])
                    ctx = context(np.int64(v), superstep, np.int64(n), out_degree, in_degree, totals)
                    old = get(values, v)
                    new = cast(apply(old, message, ctx))
                    put(values, v, new)
                    sums = fold(sums, old, new, ctx)
                    if is_active(old, new, ctx):
                        stays_active = True
                        edges += out_degree
            bits = np.uint32(cuda.ballot_sync(ALL, stays_active))
            applied_bits = np.uint32(cuda.ballot_sync(ALL, has_message))
            cuda.syncwarp()
            word = np.uint32(v >> np.uint32(5))
            if lane == np.uint32(0):
                active = np.uint32(active + np.uint32(cuda.popc(bits)))
                applied = np.uint32(applied + np.uint32(cuda.popc(applied_bits)))
                if word < np.uint32(len(frontier)):
                    frontier[word] = bits
                    touched[word] = 0
        finish(active, edges, applied, sums, row, edge_limit, seen, totals, counts, partials, control)

    return apply_messages
