"""Tests of all CUDA kernels compiled for real chips: no spills, few registers and no spin loops."""

from __future__ import annotations

import pkgutil
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel import kernels
from gpu_pregel.host.programs.program import with_wake
from gpu_pregel.kernels.traverse import arrays_cuda
from gpu_pregel.kernels.traverse.elements_cuda import make_gather, make_scatter
from tests.devices import EXHAUSTIVE, LONG
from tests.kernels import chips
from tests.kernels.chips import CHIPS, assemble, examine
from tests.kernels.ptx import to_ptx
from tests.kernels.spins import find_spins
from tests.programs import GATED, LABELS, SEARCH

pytestmark = pytest.mark.nvidia

PROGRAMS = {
    "labels": LABELS,
    "pagerank": gp.VertexProgram(
        value=np.float32,
        init=lambda ctx: np.float32(1) / np.float32(ctx.num_vertices),
        message=lambda value, ctx: value / np.float32(ctx.out_degree),
        combine="sum",
        apply=lambda value, incoming, ctx: (
            np.float32(0.15) / np.float32(ctx.num_vertices) + np.float32(0.85) * incoming
        ),
        active="always",
        aggregators={"error": gp.Aggregator("sum", lambda old, new, ctx: abs(new - old))},
    ),
    "distances": gp.VertexProgram(
        value=np.float32,
        init=lambda ctx: np.float32(0) if ctx.vertex == 0 else np.float32(np.inf),
        initially_active=lambda ctx: ctx.vertex == 0,
        message=lambda value, weight, ctx: value + weight,
        combine="min",
        apply=lambda value, incoming, ctx: min(value, incoming),
    ),
    "pairs": gp.VertexProgram(
        value=(np.float32, np.int64),
        init=lambda ctx: (np.float32(ctx.out_degree), ctx.vertex),
        message=lambda value, ctx: value,
        combine="min",
        apply=lambda value, incoming, ctx: incoming if incoming < value else value,
    ),
    # Parameters are in an array of integers and one of floats, fields have names, and vertices wake agents.
    "named": with_wake(
        gp.VertexProgram(
            value={"far": np.float32, "near": np.int64},
            parameters={"source": np.int64, "scale": np.float32, "is_odd": False},
            init=lambda ctx: (ctx.parameters.scale, ctx.parameters.source),
            initially_active=lambda ctx: ctx.parameters.is_odd,
            message=lambda value, ctx: (value.far * ctx.parameters.scale, ctx.parameters.source),
            combine="max",
            apply=lambda value, incoming, ctx: (incoming.far, value.near),
        ),
        lambda old, new, ctx: old.far < new.far,
    ),
    "reached": gp.VertexProgram(
        value=np.bool_,
        init=lambda ctx: ctx.vertex == 0,
        initially_active=lambda ctx: ctx.vertex == 0,
        message=lambda value, ctx: value,
        combine="or",
        apply=lambda value, incoming, ctx: value | incoming,
    ),
    "products": gp.VertexProgram(
        value=np.float64,
        init=lambda ctx: 1.0 + ctx.vertex,
        message=lambda value, ctx: value,
        combine=gp.Combiner(lambda a, b: a * b, 1.0),
        apply=lambda value, incoming, ctx: value * incoming,
    ),
    "search": SEARCH,
    "gated": GATED,
}
EVERY_CHIP = {"labels": np.uint32, "distances": np.int64}
"""Programs compiled for all chips, and an offset type; the others are compiled for one of ``SOME_CHIPS`` in turn."""
SOME_CHIPS = ("sm_75", "sm_90")
OFFSETS = (np.uint32, np.int64)


class _OffsetArray:
    """A substitute for an array argument, of which only the dtype is used."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = np.dtype(dtype)


def library_kernels() -> Iterator[tuple[str, Any]]:
    """Yield all kernels of modules, for each offset type that they support."""
    from gpu_pregel.kernels.library.jit_cuda import Kernel

    for module in pkgutil.walk_packages(kernels.__path__, f"{kernels.__name__}."):
        if module.name.endswith("_cuda"):
            for name, kernel in vars(import_module(module.name)).items():
                if isinstance(kernel, Kernel):
                    resolved = [kernel.resolved((_OffsetArray(dtype),) * len(kernel.signature)) for dtype in OFFSETS]
                    yield name, resolved[0]
                    if resolved[1] is not resolved[0]:
                        yield f"{name} int64", resolved[1]
    for size in (1, 8):
        yield f"gather {size}", make_gather(size)
        yield f"scatter {size}", make_scatter(size)
        yield f"take {size}", arrays_cuda.make_take(size, np.dtype(np.uint32))
    for name in ("i1", "u8", "f4", "f8"):
        dtype = np.dtype(name)
        yield f"order keys {name}", arrays_cuda.make_order_keys(dtype)
        for kind, kernel in zip(("maxima", "places"), arrays_cuda.make_segment_maxima(dtype), strict=True):
            yield f"segment {kind} {name}", kernel
    yield "count i4", arrays_cuda.make_count(np.dtype(np.int32))
    yield "range i8", arrays_cuda.make_range(np.dtype(np.int64))


def program_kernels(name: str, offset: Any) -> Iterator[tuple[str, Any]]:
    """Yield the kernels compiled for a program."""
    from gpu_pregel.host.programs.compiler import compile_for_cuda

    weight = np.dtype(np.float32) if name == "distances" else None
    compiled = compile_for_cuda(PROGRAMS[name], offset=np.dtype(offset), weight=weight)
    for part in ("init", "signal", "pull", "slot", "push", "apply", "chain"):
        if (kernel := getattr(compiled, part)) is not None:
            yield f"{name} {part}" + " int64" * (offset is np.int64), kernel


def all_kernels() -> Iterator[tuple[str, Any]]:
    """Yield the names and the kernels for the table."""
    yield from library_kernels()
    for name in PROGRAMS:
        for offset in OFFSETS if name in EVERY_CHIP else OFFSETS[:1]:
            yield from program_kernels(name, offset)
    yield from operator_kernels()


def problems_of(name: str, kernel: Any, for_chips: Any) -> list[str]:
    """Return the problems of a kernel's code for each chip."""
    problems = []
    for chip, (ptx, usage) in examine(kernel, for_chips).items():
        found = usage.excesses(chip, cooperative=kernel.cooperative) + [
            f"spins at {label}" for label in find_spins(ptx)
        ]
        # All functions are inlined: calls would hide spin loops, and external functions might not be linked.
        found += [f"has {line.strip()}" for line in re.findall(r"^\s*(?:call|\.local|\.extern).*", ptx, re.MULTILINE)]
        # Atomic operations of the whole system are slower, and no other GPU or host thread takes part.
        found += [f"has {name}" for name in re.findall(r"\S+\.sys\b\S*", ptx)]
        problems += [f"{name}, {chip}: {problem}" for problem in found]
    return problems


def test_the_kernels_of_all_modules() -> None:
    found = dict(library_kernels())
    assert {"initialise", "initialise int64", "compress", "link"} <= set(found)
    assert [problem for name, kernel in found.items() for problem in problems_of(name, kernel, CHIPS)] == []


@pytest.mark.parametrize(
    ("name", "offset"),
    [
        pytest.param(name, offset, marks=() if offset is EVERY_CHIP.get(name, np.uint32) else LONG)
        for name in PROGRAMS
        for offset in (OFFSETS if name in EVERY_CHIP else OFFSETS[:1])
    ],
)
def test_the_kernels_of_a_program(name: str, offset: Any) -> None:
    turn = list(PROGRAMS).index(name) % 2
    for_chips = tuple(CHIPS) if name in EVERY_CHIP else SOME_CHIPS if EXHAUSTIVE else SOME_CHIPS[turn : turn + 1]
    assert [
        problem for part, kernel in program_kernels(name, offset) for problem in problems_of(part, kernel, for_chips)
    ] == []


_EVENTS = {
    "st.global": "store",
    "ld.global": "load",
    "atom.global.add.u64": "count",
    "membar.gl": "fence",
    "bar.sync": "barrier",
}


def events_of(ptx: str) -> list[str]:
    """Return the accesses to global memory and what orders them, in the order of the code."""
    lines = (line.strip() for line in ptx.splitlines())
    return [name for line in lines for start, name in _EVENTS.items() if line.startswith(start)]


@pytest.mark.parametrize("name", ["labels", "pagerank"])
def test_fences_order_the_figures_of_all_blocks(name: str) -> None:
    """After the barrier of its block, one thread publishes what all have stored, and takes what other blocks have."""
    parts = dict(program_kernels(name, np.uint32))
    for part in ("init", "apply"):
        ptx, _ = examine(parts[f"{name} {part}"], ["sm_90"])["sm_90"]
        events = events_of(ptx)
        counted = events.index("count")
        assert events.count("count") == 1
        before, after = events[:counted], events[counted + 1 :]
        assert before[-3:] == ["store", "barrier", "fence"]
        assert after[:2] == ["fence", "barrier"]
        assert "load" in after
    # All lanes have read ``touched`` before lane 0 clears it.
    assert "bar.warp.sync" in ptx


def test_lanes_that_share_values_wait_for_each_other() -> None:
    """Before they read values that others have written, and before they write values that others have read."""
    chain = dict(program_kernels("labels", np.uint32))["labels chain"]
    ptx, _ = examine(chain, ["sm_90"])["sm_90"]
    # The emulator's shuffles and votes order memory; a GPU's do not.
    assert ptx.count("bar.warp.sync") == 2


def nearer(u: Any, v: Any, weight: Any, distances: Any, parents: Any, limit: Any) -> Any:
    distance = gp.atomics.load(distances, u) + weight
    if distance < limit and gp.atomics.min(distances, v, distance) > distance:
        gp.atomics.store(parents, v, u)
        return True
    return False


def operator_kernels() -> Iterator[tuple[str, Any]]:
    """Yield the kernels of operators for a body with atomics, ``receives`` and weights, and for sums of floats."""
    from numba import types

    from gpu_pregel.host.traverse.bodies import Bodies
    from gpu_pregel.host.traverse.operator_kernels_cuda import make_kernel

    kinds, offset = (types.float32[::1], types.int64[::1], types.float64), np.dtype(np.uint32)
    search = Bodies(nearer, lambda v, distances, *rest: distances[v] > 0, kinds, types.float32, True)
    sums = Bodies(lambda u, v, weight, *arrays: weight * arrays[0][u], None, kinds, types.float64, True)
    vertex = Bodies(lambda v, distances, parents, limit: distances[v] < limit, None, kinds)
    for kind in ("push", "pull"):
        yield kind, make_kernel(kind, search, "frontier", offset)[0]
        yield f"{kind} sum", make_kernel(kind, sums, "sum", offset)[0]
    for kind, returns in (("sum of vertices", "sum"), ("filter of queue", "frontier"), ("filter of words", "frontier")):
        yield kind, make_kernel(kind, vertex, returns, offset)[0]


def row_kernels() -> Iterator[tuple[str, Any]]:
    """Yield the kernels that reduce rows, count labels and intersect rows."""
    from numba import types

    from gpu_pregel.host.traverse import operator_kernels_cuda as made
    from gpu_pregel.host.traverse.labels import LabelBodies
    from gpu_pregel.host.traverse.pairs import PairBodies
    from gpu_pregel.host.traverse.rows import RowBodies

    kinds, offset = (types.float32[::1], types.int64[::1]), np.dtype(np.uint32)
    weighted: dict[str, Any] = {"kinds": kinds, "weight": types.float32, "has_weights": True, "transpose": False}
    rows = RowBodies(lambda v, u, w, x, y: (x[u] + w, y[u]), "min", lambda v, found, x, y: found[0] < x[v], **weighted)
    labels = LabelBodies(
        label=lambda v, u, w, x, y: y[u],
        weigh=lambda v, u, w, x, y: int(w),
        choose=lambda v, label, total, x, y: x[v] * total,
        finish=lambda v, label, total, x, y: label != y[v],
        **weighted,
    )
    pairs = PairBodies(lambda i, u, v, w, one, other, x, y: x[w] * one * other, lambda i, u, v, t, x, y: t, **weighted)
    of_rows, of_labels = (
        made.make_row_kernels(rows, "frontier", offset),
        made.make_label_kernels(labels, "frontier", offset),
    )
    of_pairs = made.make_pair_kernels(pairs, "pairs", offset, (offset, offset))
    yield from (("rows", of_rows.rows), ("hubs", of_rows.hubs))
    yield from ((f"labels {part}", getattr(of_labels, part)) for part in ("clear", "rows", "pieces", "hubs"))
    yield from (("pairs", of_pairs.pairs), ("pieces", of_pairs.pieces))


def test_the_kernels_over_rows() -> None:
    found = dict(row_kernels())
    assert [problem for name, one in found.items() for problem in problems_of(name, one, SOME_CHIPS)] == []
    # The emulator's shuffles order memory, and it has no cache for what is only read.
    words = ("bar.warp.sync", "ld.global.nc")
    counts = {}
    for name in ("rows", "labels rows", "labels pieces"):
        ptx, _ = examine(found[name], ["sm_90"])["sm_90"]
        counts[name] = tuple(ptx.count(word) for word in words)
    # Around the reading of a warp's buffer; and before and after counting, in each of two kinds of tables. Edges are
    # only read, by one of three ways to count, but not the tables, which atomic operations have written.
    assert counts == {"rows": (2, 1), "labels rows": (6, 3), "labels pieces": (0, 0)}


def test_the_kernels_of_operators() -> None:
    found = dict(operator_kernels())
    assert [problem for name, one in found.items() for problem in problems_of(name, one, SOME_CHIPS)] == []
    # The emulator's shuffles and votes order memory, and it takes plain reads for atomic ones; a GPU does not.
    words = ("bar.warp.sync", "bar.sync", "ld.relaxed.gpu", "st.relaxed.gpu")
    counts = {}
    for name in ("push", "pull", "filter of words"):
        ptx, _ = examine(found[name], ["sm_90"])["sm_90"]
        counts[name] = tuple(ptx.count(word) for word in words)
    # Around the reading of a warp's buffer; before a row's vertex is asked again; around the sums of a block.
    assert counts == {"push": (2, 0, 2, 1), "pull": (1, 3, 2, 1), "filter of words": (0, 2, 0, 0)}


@pytest.mark.parametrize(
    "chip", [pytest.param(chip, marks=() if chip in (*CHIPS,)[:: len(CHIPS) - 1] else LONG) for chip in CHIPS]
)
def test_the_device_links_the_same_code(chip: str) -> None:
    """The device links from LTO-IR instead of PTX, which may cost a register or two."""
    from gpu_pregel.host.devices import launches

    found = list(library_kernels())
    if chip in SOME_CHIPS:
        found += program_kernels("pagerank", np.uint32)
    for name, kernel in found:
        ptx, usage = examine(kernel, [chip])[chip]
        assert f".target {chip}\n" in ptx
        assert re.search(rf"\.maxntid {kernel.block}\b", ptx)
        code, entry, _ = launches.link(kernel, CHIPS[chip])
        assert f".text.{entry}\0".encode() in code
        assert abs(chips.registers_in(code) - usage.registers) <= 2, name


@pytest.mark.parametrize("chip", CHIPS)
def test_a_grid_barrier_links_with_the_device_runtime(chip: str) -> None:
    """The engine's kernels have no grid barrier, but a user's kernel on the emulated device may have one."""
    from numba import cuda
    from numba.cuda import types
    from numba.cuda.cudadrv.libs import get_cudalib

    def in_two_phases(array: Any) -> None:
        i = cuda.grid(1)
        array[i] = i
        cuda.cg.this_grid().sync()
        array[i] += array[cuda.gridsize(1) - i - 1]

    ptx = to_ptx(in_two_phases, (types.uint32[::1],), CHIPS[chip])
    assert "cudaCGSynchronize" in ptx
    chips.link(ptx, chip, get_cudalib("cudadevrt", static=True))
    with pytest.raises(AssertionError, match="Undefined reference to 'cudaCG"):
        chips.link(ptx, chip)


# Tests of the checks themselves.


def test_excessive_resource_usage_is_detected() -> None:
    from numba import cuda
    from numba.cuda import types

    from gpu_pregel.kernels.library.jit_cuda import kernel

    words = types.uint32[::1]

    @kernel(words)
    def with_local_memory(array: Any) -> None:
        own = cuda.local.array(64, types.uint32)
        for i in range(64):
            own[array[np.uint32(i)] & np.uint32(63)] = i
        array[0] = own[array[1] & np.uint32(63)]

    @kernel(words)
    def with_many_registers(array: Any) -> None:
        i = np.uint32(cuda.grid(1))
        a, b, c, d = array[i], array[i + 1], array[i + 2], array[i + 3]
        for k in range(array[0]):
            a, b, c, d = b * array[k], c + a * np.uint32(3), d ^ (b >> np.uint32(k & 31)), a - c
        array[i] = a + b + c + d

    with pytest.raises(AssertionError, match="Local memory used"):
        examine(with_local_memory, ["sm_90"])
    usage = examine(with_many_registers, ["sm_90"])["sm_90"][1]
    assert usage.excesses("sm_90") == []
    assert chips.ResourceUsage(41, 8, 4).excesses("sm_80") == ["registers 41 > 40", "stack 8 > 0", "spilled 4 > 0"]
    assert chips.ResourceUsage(64, 0, 0).excesses("sm_75") == []


def test_a_spill_is_an_error() -> None:
    from numba import cuda
    from numba.cuda import types

    def reverse(array: Any) -> None:
        i = np.uint32(cuda.grid(1)) * np.uint32(8)
        a, b, c, d = array[i], array[i + 1], array[i + 2], array[i + 3]
        e, f, g, h = array[i + 4], array[i + 5], array[i + 6], array[i + 7]
        array[i], array[i + 1], array[i + 2], array[i + 3] = h, g, f, e
        array[i + 4], array[i + 5], array[i + 6], array[i + 7] = d, c, b, a

    signature = (types.int64[::1],)
    assert assemble(to_ptx(reverse, signature, (9, 0)), "sm_90").spilled == 0
    with pytest.raises(AssertionError, match="spill"):
        assemble(to_ptx(reverse, signature, (9, 0), max_registers=16), "sm_90")


def test_missing_tools_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chips.why_no_tools() is None
    monkeypatch.setattr(chips, "_find", lambda name: None)
    assert str(chips.why_no_tools.__wrapped__()).startswith("ptxas, nvlink not found: pip install")
