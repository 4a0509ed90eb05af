"""Tests of the limits of the emulated device."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_pregel.errors import EmulationError
from gpu_pregel.host.emulator.machine.compiled_kernel import Site
from tests.host.emulator.machine.ir_kernels import Code, LoadedKernel, launch


@pytest.mark.parametrize(
    "options, match",
    [
        ({"grid": (0, 1, 1)}, "grid of 0 x 1 x 1"),
        ({"grid": (1, 65536, 1)}, "grid of"),
        ({"block": (0, 1, 1)}, "block of 0"),
        ({"block": (1025, 1, 1)}, "block of 1025"),
        ({"block": (32, 33, 1)}, "block of 32 x 33"),
        ({"block": (1, 1, 65)}, "block of"),
        ({"shared_bytes": 49153}, "49153 bytes of static shared memory"),
        ({"grid": (33, 1, 1), "block": (256, 1, 1), "cooperative": True}, "only 32 are resident"),
        ({"grid": (9, 1, 1), "shared_bytes": 48 << 10, "cooperative": True}, "only 8 are resident"),
        ({"grid_barrier": True}, "launch it cooperatively"),
    ],
)
def test_launches_beyond_a_limit_raise(options: dict[str, Any], match: str) -> None:
    with pytest.raises(EmulationError, match=match):
        launch(Code(), **options)


def test_launches_at_the_limits_run() -> None:
    code = Code()
    code.barrier()
    launch(code, grid=32, block=256, cooperative=True)
    launch(code, grid=3, block=1024, shared_bytes=48 << 10)


def test_too_many_sites_raise() -> None:
    kernel = LoadedKernel(Code())
    kernel.compiled.sites.extend([Site("load", "kernel.py", 1)] * ((1 << 16) + 1))
    with pytest.raises(EmulationError, match="65537 memory accesses and barriers"):
        launch(kernel)
