"""The devices that tests run on: the CPU, the emulated device with two seeds, and a GPU or its stand-in.

The stand-in launches on the emulated device too, with a third seed; see ``tests.host.devices.standin``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from importlib.util import find_spec
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings

from gpu_pregel.host.devices.cuda import unavailable_reason

EXHAUSTIVE = os.environ.get("GPU_PREGEL_TESTS") == "all"
"""Whether to run the variants that the default leaves out."""
_ALL_SEEDS = (0, 1, 2)
SEEDS = _ALL_SEEDS if EXHAUSTIVE else _ALL_SEEDS[:2]
LONG = pytest.mark.skipif(not EXHAUSTIVE, reason="runs with GPU_PREGEL_TESTS=all")
"""Mark for such a variant."""
_HAS_GPU = unavailable_reason() is None
_EXAMPLES = 15
"""Number of random examples on devices other than the CPU."""

# In CI, a missing package is a failure and not a reason to skip.
EMULATED = pytest.mark.skipif(
    find_spec("numba_cuda") is None and not os.environ.get("CI"),
    reason="numba-cuda is not installed: pip install gpu-pregel[emulated]",
)
"""Mark for tests that need the emulated device."""


def emulated(seed: int) -> str:
    """Return the name of the emulated device with a seed."""
    return "emulated" if seed == 0 else f"emulated:{seed}"


def on(device: str, *values: Any, name: str = "", marks: Iterable[Any] = ()) -> Any:
    """Return a case of a parametrised test, starting with the device; skipped if the device is unavailable."""
    needs = [pytest.mark.gpu] if device.startswith("cuda") else [EMULATED] if is_emulated(device) else []
    return pytest.param(device, *values, marks=(*needs, *marks), id=f"{device}-{name}" if name else device)


def is_emulated(device: str) -> bool:
    """Whether a device is emulated, and therefore slow."""
    return device.startswith("emulated")


def is_slow(device: str) -> bool:
    """Whether a device is emulated or, by default, the stand-in of a GPU, which launches on the emulated one."""
    return is_emulated(device) or (device.startswith("cuda") and not EXHAUSTIVE and not _HAS_GPU)


def threads_of(device: str, threads: int) -> dict[str, Any]:
    """Return the option ``threads``, which only the CPU supports."""
    return {"threads": threads} if device == "cpu" else {}


GPUS = ("cuda",)
NAMES = ("cpu", *map(emulated, SEEDS), *GPUS)
PROGRAM_NAMES = (*NAMES, "python")
"""The devices that run vertex programs: those without compiled kernels too."""
RUN_NAMES = (*PROGRAM_NAMES, "agents")
"""What ``gp.run`` takes as its device: agents too, which only it can start."""

DEVICES = pytest.mark.parametrize("device", [on(name) for name in NAMES])
"""Runs a test with an argument ``device`` on every device and with every seed."""
PROGRAM_DEVICES = pytest.mark.parametrize("device", [on(name) for name in PROGRAM_NAMES])
"""The same for a test of vertex programs."""
RUN_DEVICES = pytest.mark.parametrize("device", [on(name) for name in RUN_NAMES])
"""The same with agents, for a test of what ``gp.run`` returns."""
CUDA_DEVICES = pytest.mark.parametrize("device", [on(name) for name in NAMES[1:]])
"""The same as ``DEVICES`` without the CPU."""
EMULATED_DEVICES = pytest.mark.parametrize("device", [on(emulated(seed)) for seed in _ALL_SEEDS])
"""The emulated device with three seeds, for tests that no GPU runs."""


def ways(**options: Iterable[Any]) -> pytest.MarkDecorator:
    """Run a test on every device with every combination of options, as arguments ``device`` and ``way``, a dict.

    ``threads`` varies only on the CPU. The seeds alternate, so that together they run each combination once. With
    partitions, which only vertex programs have, the test runs on "python" too, which accepts but does not use them, and
    exhaustively with agents, which take a hundred times as long.
    """
    cases = []
    interpreted = ("python", *(["agents"] if EXHAUSTIVE else []))
    for device in (*NAMES, *(interpreted if "partitions" in options else ())):
        known = {key: list(values) for key, values in options.items() if key != "threads" or device == "cpu"}
        if device in interpreted:
            known["partitions"] = known["partitions"][-1:]
        for number, values in enumerate(product(*known.values())):
            if _has_turn(device, number):
                way = dict(zip(known, values, strict=True))
                cases.append(on(device, way, name="-".join(map(str, values))))
    return pytest.mark.parametrize(("device", "way"), cases)


def spread(rows: Iterable[tuple[Any, ...]], name: Callable[..., str]) -> list[Any]:
    """Return the cases of a table of vertex programs: on each device, every other row on one of the emulated ones."""
    return [
        on(device, *row, name=name(*row))
        for number, row in enumerate(rows)
        for device in PROGRAM_NAMES
        if _has_turn(device, number // 2) and (EXHAUSTIVE or number % 2 == 0 or not is_emulated(device))
    ]


def _has_turn(device: str, number: int) -> bool:
    """Whether a device runs a case: the seeds of the emulated one take turns."""
    return EXHAUSTIVE or not is_emulated(device) or device == emulated(SEEDS[number % len(SEEDS)])


def examples(device: str, **strategies: Any) -> Callable[[Callable[..., None]], Callable[[], None]]:
    """Apply Hypothesis's ``given`` to a function inside a test, with fewer examples on slow devices."""

    def decorate(check: Callable[..., None]) -> Callable[[], None]:
        tried: Callable[[], None] = given(**strategies)(check)
        return tried if device == "cpu" else settings(max_examples=_EXAMPLES)(tried)

    return decorate
