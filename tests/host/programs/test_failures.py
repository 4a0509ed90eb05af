"""Functions of vertex programs that raise on CUDA devices: the error says which vertex, function and line."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, DeviceError, ProgramError, VertexError
from gpu_pregel.host.devices import get_device
from gpu_pregel.host.devices.emulated import EmulatedDevice
from gpu_pregel.host.programs.cuda_state import CHAIN, CudaState
from gpu_pregel.host.programs.factory import compile_for_device
from gpu_pregel.host.traverse import raises
from gpu_pregel.kernels.programs import figures_cuda
from tests import failing_programs
from tests.devices import CUDA_DEVICES, EMULATED
from tests.failing_programs import APPLY, COMBINING, FIRST, INIT, MESSAGE, PROGRAM, lesser
from tests.programs import HOPS, LABELS

NAMES = ["init", "initially_active", "message", "receives", "apply", "active", "aggregator 'sum'"]
LINES = {0: 'raise ValueError("negative")', 1: 'assert kind != 1, "odd"', 2: "return NUMBERS[kind + 1]"}
CAUSES = {0: "ValueError: negative", 1: "AssertionError: odd", 2: "IndexError: tuple index out of range"}


def circle(n: int = 300) -> gp.Graph:
    """A circle of vertices with the ids 1000, 1001, …, and weights."""
    ids = np.arange(n) + 1000
    return gp.Graph.from_edgelist(ids, np.roll(ids, 1), np.ones(n, np.float32))


GRAPH = circle()


def error_of(device: str, program: gp.VertexProgram = PROGRAM, **options: Any) -> ProgramError:
    with pytest.raises(ProgramError) as caught:
        gp.run(GRAPH, program, device=device, **options)
    return caught.value


@CUDA_DEVICES
@pytest.mark.parametrize("role", range(7))
def test_the_error_names_function_vertex_and_line(device: str, role: int) -> None:
    kind, mode, partitions = role % 3, ("push", "pull")[role % 2], 1 + (role == MESSAGE)
    step = 0 if role <= FIRST else 3
    given = {"role": role, "kind": kind, "step": step}
    error = error_of(device, parameters=given, mode=mode, partitions=partitions)
    assert isinstance(error, VertexError)
    assert (error.role, error.vertex, error.superstep) == (NAMES[role], 1007, step)
    assert error.place.startswith(failing_programs.__file__)
    assert error.place.endswith(LINES[kind])
    assert error.problem == CAUSES[kind]
    cause = error if kind == 2 else error.__cause__
    assert isinstance(cause, (ValueError, AssertionError, IndexError)[kind])


@CUDA_DEVICES
@pytest.mark.parametrize("role", [INIT, MESSAGE, APPLY])
def test_the_smallest_of_the_vertices_that_fail_is_named(device: str, role: int) -> None:
    """Whichever block or warp was the first."""
    step = 0 if role == INIT else 2
    error = error_of(device, parameters={"role": role, "every": 50, "step": step}, mode="pull")
    assert isinstance(error, VertexError)
    assert (error.vertex, error.superstep) == (1007, step)


@CUDA_DEVICES
def test_a_program_that_raises_nowhere_gives_the_same_result(device: str) -> None:
    result = gp.run(GRAPH, PROGRAM, device=device, mode="push", max_supersteps=6, on_limit="return")
    same = gp.run(GRAPH, PROGRAM, device="cpu", max_supersteps=6, on_limit="return")
    assert result.to_numpy().tolist() == same.to_numpy().tolist()
    assert result.aggregated == same.aggregated


def test_supersteps_before_the_failure_are_kept(tmp_path: Path) -> None:
    options: dict[str, Any] = {"parameters": {"role": APPLY, "step": 4}, "checkpoint": tmp_path / "run.db"}
    error = error_of("emulated", **options)
    assert isinstance(error, VertexError)
    assert error.superstep == 4
    kept = gp.run(GRAPH, PROGRAM, device="emulated", resume=True, max_supersteps=4, on_limit="return", **options)
    assert kept.supersteps == 4
    with pytest.raises(VertexError, match=r"apply fails for vertex 1007 in superstep 4"):
        gp.run(GRAPH, PROGRAM, device="emulated", resume=True, **options)


@CUDA_DEVICES
def test_a_combiner_that_raises_fails_for_the_receiver(device: str) -> None:
    """Vertices 9 and 11, in internal numbers, combine the message of vertex 10."""
    error = error_of(device, COMBINING)
    assert isinstance(error, VertexError)
    assert (error.role, error.vertex, error.superstep) == ("combine", 1009, 1)
    assert error.problem == "ValueError in compiled code"
    assert "def lesser" in error.place


@EMULATED
def test_a_combiner_that_raises_cannot_be_pushed() -> None:
    with pytest.raises(ArgumentError, match="mode='push' is not possible: combine may raise an exception"):
        gp.run(GRAPH, COMBINING, device="emulated", mode="push")


@EMULATED
def test_a_gpu_that_is_lost_before_the_call_is_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    def download(self: EmulatedDevice, array: Any) -> np.ndarray[Any, Any]:
        if array.size <= 1:
            raise DeviceError("the GPU is lost")
        content: np.ndarray[Any, Any] = array.get()
        return content

    monkeypatch.setattr(EmulatedDevice, "download", download)
    with pytest.raises(DeviceError, match=r"^the GPU is lost\nThe run had finished 0"):
        gp.run(GRAPH, PROGRAM, device="emulated", parameters={"role": INIT})


@EMULATED
def test_combiners_of_aggregators_must_not_raise_on_a_gpu() -> None:
    total = {"sum": gp.Aggregator(gp.Combiner(lesser, 1 << 40), lambda old, new, ctx: new)}
    with pytest.raises(ProgramError, match=r"the combiner of aggregator 'sum' may raise .*def lesser"):
        gp.run(GRAPH, replace(LABELS, aggregators=total), device="emulated")


@EMULATED
def test_only_programs_that_may_raise_record_failures() -> None:
    """A bound that is checked by the program's own condition counts: compilers remove no such check here."""
    target = get_device("emulated")
    programs = [PROGRAM, COMBINING, LABELS, HOPS]
    assert [compile_for_device(target, GRAPH, one).records for one in programs] == [True, True, False, False]


@EMULATED
def test_what_may_raise_is_found_again_by_other_code(monkeypatch: pytest.MonkeyPatch) -> None:
    kept: dict[str, Any] = {}
    monkeypatch.setattr(raises, "load_value", kept.get)
    monkeypatch.setattr(raises, "save_value", kept.__setitem__)
    assert [raises.noted("a" * 64, lambda: ["message"]), raises.noted("a" * 64, list)] == [["message"]] * 2
    monkeypatch.setattr(raises, "_finding_code", lambda: "b" * 64)
    assert raises.noted("a" * 64, list) == []


Spoil = Callable[[np.ndarray[Any, Any]], None]


@EMULATED
@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda control: control.__setitem__(figures_cuda.ROWS, 1), "ran 0 supersteps of the 5 launched"),
        (lambda control: control.__setitem__(figures_cuda.ROWS, 99), "ran 98 supersteps of the 5 launched"),
        (lambda control: control.__setitem__(figures_cuda.ROW, 0), "ran 5 supersteps of the 5 launched"),
    ],
)
def test_a_device_that_does_not_advance_is_an_error(
    spoil: Spoil, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A row that is not written, too many, and a frontier that was empty before the last row."""

    def download(self: EmulatedDevice, array: Any) -> np.ndarray[Any, Any]:
        content: np.ndarray[Any, Any] = array.get()
        if array.size > figures_cuda.ROW and content[figures_cuda.ROWS] > 1:
            spoil(content)
        return content

    monkeypatch.setattr(EmulatedDevice, "download", download)
    with pytest.raises(DeviceError, match=f"{problem}.*please report this"):
        gp.run(GRAPH, PROGRAM, device="emulated", mode="push", max_supersteps=6)


@EMULATED
@pytest.mark.parametrize(
    ("place", "number", "problem"),
    [
        (figures_cuda.ROWS, -1, "ran -1 supersteps of the 299 launched"),
        (figures_cuda.ROWS, 301, "ran 301 supersteps of the 299 launched"),
        (figures_cuda.ROW, 0, "ran 151 supersteps of the 299 launched"),
    ],
)
def test_a_chain_that_does_not_advance_is_an_error(
    place: int, number: int, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def download(self: EmulatedDevice, array: Any) -> np.ndarray[Any, Any]:
        content: np.ndarray[Any, Any] = array.get()
        if array.size > CHAIN:
            content[place] = number
        return content

    monkeypatch.setattr(EmulatedDevice, "download", download)
    with pytest.raises(DeviceError, match=f"{problem} from superstep 1 on: .*please report this"):
        gp.run(GRAPH, HOPS, device="emulated", max_supersteps=300)


@EMULATED
def test_a_state_that_reports_nothing_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CudaState, "execute", lambda *_: [])
    with pytest.raises(DeviceError, match=r"superstep 1 reports nothing"):
        gp.run(GRAPH, PROGRAM, device="emulated")
