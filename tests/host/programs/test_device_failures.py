"""Tests of a device that fails in the middle of a run: what the error says, and that the run can be resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import DeviceError, GpuPregelError, NotEnoughMemoryError
from gpu_pregel.host.devices import get_device
from gpu_pregel.host.devices.cpu import CpuDevice
from gpu_pregel.host.programs.cpu_state import CpuState
from gpu_pregel.host.superstep.phases import Phases
from tests.programs import HOPS

PATH = gp.Graph.from_edgelist(range(9), range(1, 10))


@pytest.fixture
def failing(monkeypatch: pytest.MonkeyPatch) -> list[GpuPregelError]:
    """Errors that the device raises, each in superstep 5."""
    failures: list[GpuPregelError] = []
    execute = CpuState.execute

    def fail(self: CpuState, direction: str, superstep: int, *arguments: Any) -> Any:
        if superstep == 5 and failures:
            raise failures.pop()
        return execute(self, direction, superstep, *arguments)

    monkeypatch.setattr(CpuState, "execute", fail)
    return failures


@pytest.mark.parametrize("error", [DeviceError("the GPU is lost"), NotEnoughMemoryError("too little")])
def test_nothing_is_saved_without_a_checkpoint(failing: list[GpuPregelError], error: GpuPregelError) -> None:
    failing.append(error)
    with pytest.raises(type(error)) as found:
        gp.run(PATH, HOPS, device="cpu")
    assert str(found.value) == (
        f"{error}\nThe run had finished 5 supersteps; "
        f"nothing is saved: run again; a run of gp.run with checkpoint= can be resumed."
    )


@pytest.mark.parametrize(
    ("every", "saved"), [(2, "the newest checkpoint holds supersteps 0 to 3"), (9, "the first checkpoint had not been")]
)
def test_the_run_is_resumed_from_the_newest_checkpoint(
    failing: list[GpuPregelError], tmp_path: Path, every: int, saved: str
) -> None:
    checkpoint = gp.Checkpoint(tmp_path / "run.db", every=every)
    failing.append(DeviceError("device 'cuda:0': lost"))
    with pytest.raises(DeviceError, match=rf"lost\nThe run had finished 5 supersteps; {saved}.*resume=True"):
        gp.run(PATH, HOPS, device="cpu", checkpoint=checkpoint)
    result = gp.run(PATH, HOPS, device="cpu", checkpoint=checkpoint, resume=True)
    assert result.values.tolist() == list(range(10))


@pytest.mark.parametrize("error", [DeviceError("the GPU is lost"), NotEnoughMemoryError("too little")])
def test_before_the_first_superstep(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, error: GpuPregelError) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    checkpoint = gp.Checkpoint(tmp_path / "run.db", every=2)
    with monkeypatch.context() as patch:
        patch.setattr("gpu_pregel.host.programs.run.make_state", fail)
        with pytest.raises(type(error)) as found:
            gp.run(PATH, HOPS, device="cpu")
        assert str(found.value) == f"{error}\nThe run had not begun."
        with pytest.raises(
            type(error), match=r"\nThe run had not begun; the first checkpoint had not .*resume=True\.$"
        ):
            gp.run(PATH, HOPS, device="cpu", checkpoint=checkpoint)
    gp.run(PATH, HOPS, device="cpu", checkpoint=checkpoint, resume=True, max_supersteps=5, on_limit="return")
    with monkeypatch.context() as patch:
        patch.setattr("gpu_pregel.host.programs.run.make_state", fail)
        with pytest.raises(
            type(error), match=r"\nThe run had not begun; the newest checkpoint holds supersteps 0 to 4:"
        ):
            gp.run(PATH, HOPS, device="cpu", checkpoint=checkpoint, resume=True)
    result = gp.run(PATH, HOPS, device="cpu", checkpoint=checkpoint, resume=True)
    assert result.values.tolist() == list(range(10))


def test_while_the_result_is_completed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fail(*_: Any) -> None:
        raise DeviceError("the GPU is lost")

    monkeypatch.setattr("gpu_pregel.host.graphs.results.hand_out", fail)
    with pytest.raises(DeviceError, match=r"lost\nThe run had finished 11 supersteps; .* 0 to 10:"):
        gp.run(PATH, HOPS, device="cpu", checkpoint=tmp_path / "run.db")


@pytest.mark.parametrize("error", [DeviceError("the GPU is lost"), NotEnoughMemoryError("too little")])
def test_outside_of_runs_nothing_is_saved(monkeypatch: pytest.MonkeyPatch, error: GpuPregelError) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise error

    frontier = gp.Frontier(PATH, device="cpu")
    for name in ("launch", "launch_ranges"):
        monkeypatch.setattr(CpuDevice, name, fail)
    for call in (
        lambda: gp.connected_components(PATH, device="cpu"),
        lambda: gp.process_vertices(lambda v: v, frontier),
        lambda: gp.process_edges(lambda u, v, weight: True, frontier),
    ):
        with pytest.raises(type(error)) as found:
            call()
        assert str(found.value) == f"{error}\nNothing is saved: run again."


def test_a_failed_run_within_a_phase_is_explained_once(failing: list[GpuPregelError]) -> None:
    failing.append(DeviceError("the GPU is lost"))
    phases = Phases(get_device("cpu"), shown=False)
    with pytest.raises(DeviceError, match=r"^the GPU is lost\nThe run .* be resumed\.$"), phases.measure("hops"):
        gp.run(PATH, HOPS, device="cpu")
