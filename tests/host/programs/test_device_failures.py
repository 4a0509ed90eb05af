"""Tests of a device that fails in the middle of a run: what the error says, and that the run can be resumed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import DeviceError, GpuPregelError, NotEnoughMemoryError
from gpu_pregel.host.programs.cpu_state import CpuState
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
        f"nothing is saved: with checkpoint= in gp.run, the next run can be resumed."
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
