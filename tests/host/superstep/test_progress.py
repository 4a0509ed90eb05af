"""Tests of the progress bar and of phases."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu_pregel.host.devices import get_device
from gpu_pregel.host.superstep import progress
from gpu_pregel.host.superstep.phases import Phases
from gpu_pregel.host.superstep.progress import ProgressBar


def test_a_hidden_bar_is_not_polled_and_prints_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with ProgressBar("working", shown=False) as bar:
        assert bar.tick is None
    assert capsys.readouterr() == ("", "")


def test_a_bar_appears_on_stderr_after_the_delay(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with ProgressBar("working", shown=True) as bar:
        assert bar.tick is not None
        monkeypatch.setattr(progress, "_DELAY_SECONDS", 1000)
        bar.tick(1, 10)
        assert capsys.readouterr().err == ""
        monkeypatch.setattr(progress, "_DELAY_SECONDS", 0)
        bar.tick(5, 10)
    out, err = capsys.readouterr()
    assert out == ""
    assert "working:  50%" in err


def test_phases_are_traced_in_order() -> None:
    def kernel(work: Any, seen: Any) -> None:
        seen[0] += 1

    seen = np.zeros(1)
    phases = Phases(get_device("cpu", threads=1), shown=False)
    for name in ("first", "second"):
        phases.run(name, kernel, 1, seen)
    assert seen[0] == 2
    assert [row["phase"] for row in phases.trace()] == ["first", "second"]
