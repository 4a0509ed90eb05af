"""Compiling a kernel, or loading it from disk, is reported apart from the run time, on every device."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
from numba import types
from numba.core import caching

import gpu_pregel as gp
from gpu_pregel.host.devices import get_device
from gpu_pregel.host.superstep import master, phases
from gpu_pregel.kernels.library import compile_clock
from gpu_pregel.kernels.library.jit_cpu import jit
from gpu_pregel.kernels.library.work_cpu import claim
from tests.devices import on

HOUR = 3600.0
"""What compiling or loading each kernel takes by the clock of these tests; everything else takes no time."""


class Clock:
    """A clock that stands still except while a kernel is compiled."""

    def __init__(self) -> None:
        self.now = 0.0
        self.compiled = 0

    def slow(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Return ``function`` with a duration of an hour."""

        def compile_slowly(*arguments: Any) -> Any:
            self.now += HOUR
            self.compiled += 1
            return function(*arguments)

        return compile_slowly


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    for module in (master, phases, compile_clock):
        monkeypatch.setattr(module, "perf_counter", lambda: clock.now)
    monkeypatch.setattr(caching.FunctionCache, "load_overload", clock.slow(caching.FunctionCache.load_overload))
    return clock


DEVICES = pytest.mark.parametrize(
    ("device", "threads", "size"),
    [
        on("cpu", 1, 10, name="1"),
        on("cpu", 2, 10, name="2"),
        on("cpu", 2, 40_000, name="on threads"),
        on("emulated", None, 10),
    ],
)


def slow_device(device: str, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let compiling for the emulated device take an hour, too."""
    if device == "emulated":
        from gpu_pregel.host.devices import emulated

        monkeypatch.setattr(emulated, "compile_for_emulation", clock.slow(emulated.compile_for_emulation))


def new_program(number: float) -> gp.VertexProgram:
    """A program that was never compiled before in this process."""
    return gp.VertexProgram(
        value=np.float64,
        init=lambda ctx: number,
        message=lambda value, ctx: value,
        combine="max",
        apply=lambda value, incoming, ctx: incoming + number,
        active="always",
    )


@DEVICES
def test_supersteps_do_not_include_the_compilation_of_their_kernels(
    device: str, threads: int | None, size: int, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow_device(device, clock, monkeypatch)
    program, graph = new_program(size + 0.125 * (threads or 0)), gp.grid(1, size, holes=0)
    clock.compiled = 0
    where: dict[str, Any] = {"device": device, "threads": threads, "mode": "pull", "max_supersteps": 4}
    first = gp.run(graph, program, **where)
    assert clock.compiled >= 3
    assert [row["seconds"] for row in first.trace] == pytest.approx([0] * 4, abs=1e-6)
    compiled = [row["compile_seconds"] for row in first.trace]
    assert compiled[0] >= HOUR - 1
    assert compiled[1] >= 2 * HOUR - 1
    assert compiled[2:] == [0, 0]
    assert first.stats["seconds"] == pytest.approx(0, abs=1e-6)
    assert first.stats["compile_seconds"] == pytest.approx(HOUR * clock.compiled)
    again = gp.run(graph, program, **where)
    assert [row["compile_seconds"] for row in again.trace] == [0, 0, 0, 0]
    assert again.stats["compile_seconds"] == 0
    assert np.array_equal(again.to_numpy(), first.to_numpy())


@DEVICES
def test_phases_do_not_include_the_compilation_of_their_kernels(
    device: str, threads: int | None, size: int, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow_device(device, clock, monkeypatch)
    if device == "emulated":
        from numba import cuda

        from gpu_pregel.kernels.library.jit_cuda import kernel

        @kernel(types.int64[::1])
        def count(counts: Any) -> None:
            i = cuda.grid(1)
            if i < len(counts):
                counts[i] += 1
    else:

        @jit
        def count(work: Any, counts: Any) -> None:  # type: ignore[misc]
            first, last = claim(work)
            while first < last:
                for i in range(first, last):
                    counts[i] += 1
                first, last = claim(work)

    target = get_device(device, threads=threads)
    counts = target.zeros(size, np.int64)
    run = phases.Phases(target, shown=False)
    for name in ("first", "second"):
        run.run(name, cast(Any, count), size, counts)
    assert target.download(counts).tolist() == [2] * size
    assert run.trace() == (
        {"phase": "first", "seconds": pytest.approx(0, abs=1e-6), "compile_seconds": pytest.approx(HOUR)},
        {"phase": "second", "seconds": 0, "compile_seconds": 0},
    )


def test_what_is_compiled_within_another_compilation_is_counted_once(clock: Clock) -> None:
    before = compile_clock.compile_seconds()
    with compile_clock.compiling():
        clock.now += 1
        with compile_clock.compiling():
            clock.now += 2
        clock.now += 4
    assert compile_clock.compile_seconds() - before == pytest.approx(7)


def test_a_failed_compilation_is_counted(clock: Clock) -> None:
    before = compile_clock.compile_seconds()

    @compile_clock.compiling()
    def fail() -> None:
        clock.now += 1
        raise ValueError("planted")

    with pytest.raises(ValueError, match="planted"):
        fail()
    assert compile_clock.compile_seconds() - before == pytest.approx(1)


def test_connected_components_reports_compile_times_apart() -> None:
    components = gp.connected_components(gp.grid(4), device="cpu")
    keys = {"device", "threads", "seconds", "compile_seconds"}
    assert components.stats.keys() == {*keys, "device_reason"}
    assert all(row.keys() == {"phase", "seconds", "compile_seconds"} for row in components.trace)
    assert components.stats["compile_seconds"] == sum(row["compile_seconds"] for row in components.trace)
