"""The state of a run on the CPU: how its phases are divided among threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.host.devices import get_device
from gpu_pregel.host.devices.cpu import CpuDevice
from gpu_pregel.host.programs.factory import compile_for_device, make_state
from tests.programs import SUMS


def test_the_pieces_of_a_hub_are_combined_by_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel combines into an inbox without atomics, and several pieces have the same inbox."""
    leaves = np.arange(1, 200_000)
    star, target = gp.Graph.from_edgelist(np.zeros_like(leaves), leaves), get_device("cpu", threads=2)
    compiled = compile_for_device(target, star, SUMS)
    chunks: list[tuple[int, int | None]] = []
    launch = CpuDevice.launch

    def record(self: CpuDevice, kernel: Any, size: int, *arguments: Any, chunk: int | None = None, **more: Any) -> None:
        if kernel is compiled.slot:
            chunks.append((size, chunk))
        launch(self, kernel, size, *arguments, chunk=chunk, **more)

    monkeypatch.setattr(CpuDevice, "launch", record)
    run = make_state(target, star, compiled, always=False)
    run.execute("pull", 1, run.initialise(), (), 1)
    assert chunks == [(4, 4)]
    assert run.values[0][0] == sum(range(2, len(leaves) + 2))
