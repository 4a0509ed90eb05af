"""Tests of device memory: the need is computed before allocation, and memory is released after a failure."""

from __future__ import annotations

import gc
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import NotEnoughMemoryError
from gpu_pregel.host import devices
from gpu_pregel.host.devices.emulated import EmulatedDevice
from gpu_pregel.host.emulator.machine.arrays import DeviceArray, EmulatedMemory
from tests.devices import EMULATED, EXHAUSTIVE
from tests.programs import DISTANCES, LABELS, RANKS

pytestmark = EMULATED


class FailingMemory(EmulatedMemory):
    """Device memory with one allocation that fails: number ``fail_in``, where 1 is the next one."""

    fail_in: int | None = None

    def empty(self, size: int | tuple[int, ...], dtype: Any) -> DeviceArray:
        if self.fail_in is not None:
            self.fail_in -= 1
            if self.fail_in == 0:
                self.fail_in = None
                raise MemoryError(f"out of memory allocating {size} elements of {dtype}")
        return super().empty(size, dtype)


class RecordingDevice(EmulatedDevice):
    """An emulated device with its own memory that records calls of ``require`` and ``trim``."""

    def __init__(self, capacity: int | None = None) -> None:
        super().__init__(0)
        self.memory: FailingMemory = FailingMemory(capacity)
        self.required: list[int] = []
        self.trimmed = 0

    def require(self, needed: int, purpose: str) -> None:
        self.required.append(needed)
        super().require(needed, purpose)

    def trim(self) -> None:
        self.trimmed += 1


@pytest.fixture
def use(monkeypatch: pytest.MonkeyPatch) -> Callable[..., RecordingDevice]:
    """Replace "emulated" by a device with the given capacity."""

    def make(capacity: int | None = None) -> RecordingDevice:
        device = RecordingDevice(capacity)
        monkeypatch.setitem(devices._devices, ("emulated", 0), (os.getpid(), device))
        return device

    return make


def star_graph() -> gp.Graph:
    """Return a hub whose row is split into pieces, with isolated vertices."""
    return gp.Graph.from_edgelist(np.zeros(3_000, np.int64), np.arange(1, 3_001), num_vertices=3_500)


def weighted_graph() -> gp.Graph:
    src, dst, _ = gp.kronecker(9, 4).to_edgelist()
    return gp.Graph.from_edgelist(src, dst, np.arange(len(src)) % 7 + 1.0, num_vertices=512)


@dataclass(frozen=True)
class Case:
    """An operation on a graph that is built for each test."""

    name: str
    make: Callable[[], gp.Graph]
    work: Callable[..., Any]
    is_long: bool = True
    """Whether the operation allocates memory that is released, and the pool trimmed, before the error is raised."""

    def __str__(self) -> str:
        return self.name


def run_program(program: gp.VertexProgram, **options: Any) -> Callable[..., Any]:
    return lambda graph, **device: gp.run(graph, program, **options, **device).to_numpy()


CASES = [
    Case("push", star_graph, run_program(LABELS, mode="push")),
    Case("pull, three partitions", star_graph, run_program(LABELS, mode="pull", partitions=3)),
    Case("weights", weighted_graph, run_program(DISTANCES)),
    Case("aggregates", weighted_graph, run_program(RANKS, max_supersteps=4)),
    Case(
        "connected components",
        star_graph,
        lambda graph, **device: gp.connected_components(graph, **device).to_numpy(),
        is_long=False,
    ),
]


def cached_bytes(graph: gp.Graph) -> int:
    """Return the bytes of the graph's copies on the device."""
    copies = graph._facts.get("copies on emulated")
    return 0 if copies is None else sum(copy.nbytes for _, copy in copies._copies.values())


@pytest.mark.usefixtures("young_heap")
@pytest.mark.parametrize("case", CASES, ids=str)
def test_every_allocation_may_fail(case: Case, use: Callable[..., RecordingDevice]) -> None:
    device, graph = use(), case.make()
    expected = case.work(graph, device="cpu")
    warm_up(case)
    for failing in range(1, 100, 1 if EXHAUSTIVE else 5):
        device.memory.fail_in, trimmed = failing, device.trimmed
        live, problem, found = attempt(device, lambda: case.work(graph, device="emulated"))  # noqa: B023
        device.memory.fail_in = None
        if found is not None:
            break
        assert "device emulated: out of memory allocating" in problem
        if case.is_long:
            assert live == cached_bytes(graph)
            assert device.trimmed > trimmed
        assert device.memory.live_bytes == cached_bytes(graph)
        # The same operation now succeeds on the same graph. The next iteration starts with an empty cache.
        np.testing.assert_allclose(case.work(graph, device="emulated"), expected, rtol=1e-12)
        graph = case.make()
    assert failing > 2
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert device.memory.live_bytes == cached_bytes(graph)


def warm_up(case: Case) -> None:
    """Compile the kernels, because exceptions within Numba keep the frames above alive until garbage collection."""
    case.work(case.make(), device="emulated")
    gc.collect()


def attempt(device: RecordingDevice, work: Callable[[], Any]) -> tuple[int, str, Any]:
    """Return the bytes allocated while the error is alive, its message, and the result."""
    try:
        return 0, "", work()
    except NotEnoughMemoryError as error:
        return device.memory.live_bytes, str(error), None


def test_a_failure_while_resuming_from_a_checkpoint(use: Callable[..., RecordingDevice], tmp_path: Path) -> None:
    device, graph, runs = use(), weighted_graph(), tmp_path / "runs.db"
    gp.run(graph, RANKS, device="cpu", max_supersteps=4, checkpoint=runs)
    options: dict[str, Any] = {"device": "emulated", "max_supersteps": 6, "checkpoint": runs, "resume": True}
    failures = 0
    while True:
        device.memory.fail_in = failures + 1
        try:
            found = gp.run(graph, RANKS, **options).to_numpy()
        except NotEnoughMemoryError:
            failures += 1
        else:
            break
        assert device.memory.live_bytes == cached_bytes(graph)
        # The graph's copies stay cached, so the next attempt allocates less and fails later.
        graph = weighted_graph()
    assert failures > 20
    expected = gp.run(graph, RANKS, device="cpu", max_supersteps=6).to_numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-12)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_computed_need_matches_the_usage(case: Case, use: Callable[..., RecordingDevice]) -> None:
    device, graph = use(), case.make()
    for cached in (False, True):
        before = device.memory.live_bytes
        device.memory.peak_bytes = before
        device.required.clear()
        case.work(graph, device="emulated")
        needed, used = device.required[0], device.memory.peak_bytes - before
        assert used <= needed <= 1.5 * used
        assert (before > 0) == cached


@pytest.mark.parametrize("case", CASES, ids=str)
def test_too_little_memory_raises_before_anything_is_allocated(case: Case, use: Callable[..., RecordingDevice]) -> None:
    device, graph = use(), case.make()
    case.work(graph, device="emulated")
    needed = device.required[0]
    device, graph = use(needed - 1), case.make()
    figures = r"needs [\d.]+ \w+ of memory on device emulated, but only [\d.]+ \w+ are available: use a smaller graph"
    what = f"{graph.num_vertices:,} vertices and {graph.num_stored_edges:,} stored edges"
    with pytest.raises(NotEnoughMemoryError, match=f"{re.escape(what)} {figures}"):
        case.work(graph, device="emulated")
    assert (device.memory.live_bytes, device.memory.peak_bytes, device.memory.uploads) == (0, 0, 0)
    use(needed)
    expected = case.work(graph, device="cpu")
    np.testing.assert_allclose(case.work(case.make(), device="emulated"), expected, rtol=1e-12)


def test_the_shadow_memory_of_the_emulated_device_is_included(
    use: Callable[..., RecordingDevice], monkeypatch: Any
) -> None:
    use()
    graph, small = gp.grid(100), gp.grid(3)
    monkeypatch.setattr("gpu_pregel.host.devices.memory.available_memory", lambda: 2_000_000)
    with pytest.raises(NotEnoughMemoryError, match=r"on the emulated device needs .* of memory, but only 1\.9 MiB are"):
        gp.run(graph, LABELS, device="emulated")
    assert gp.run(small, LABELS, device="emulated").supersteps > 1


def test_device_copies_are_released_with_their_graph(use: Callable[..., RecordingDevice]) -> None:
    device, graph = use(), weighted_graph()
    result = gp.run(graph, DISTANCES, device="emulated")
    assert device.memory.live_bytes > cached_bytes(graph) > 0
    values = result.to_numpy()
    del graph, result
    assert device.memory.live_bytes == 0
    assert len(values) == 512
