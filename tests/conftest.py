"""Fixtures and settings of all tests."""

from __future__ import annotations

import gc
import os
import signal
from collections import Counter
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings

from gpu_pregel.host.agents.codec import registered
from gpu_pregel.host.agents.workers import pool
from gpu_pregel.host.devices.cuda import unavailable_reason
from tests import long, smoke
from tests.agents import threads_by_default
from tests.devices import EXHAUSTIVE
from tests.host.devices.standin import StandinGpu
from tests.kernels.chips import why_no_tools
from tests.postgres import Cluster, why_missing

# Deadlines would make tests depend on a clock, and the first example often compiles kernels.
settings.register_profile(
    "suite",
    deadline=None,
    max_examples=60 if EXHAUSTIVE else 40,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=True,
)
settings.load_profile("suite")


LEFT_OUT = pytest.mark.skip(reason="runs with GPU_PREGEL_TESTS=all")
LONG_TABLE = 8
"""Cases of a test, of which not all run on CUDA by default."""
_STANDIN = pytest.StashKey[StandinGpu | None]()


def pytest_configure(config: pytest.Config) -> None:
    """Choose what runs the tests that need a GPU."""
    config.stash[_STANDIN] = None
    if config.option.gpu == "standin" and (missing := why_no_tools()):
        raise pytest.UsageError(f"--gpu standin: {missing}")
    if config.option.gpu == "standin" or (config.option.gpu == "auto" and unavailable_reason() and not why_no_tools()):
        config.stash[_STANDIN] = StandinGpu()


def pytest_report_header(config: pytest.Config) -> str:
    """Say what runs the tests that need a GPU."""
    if config.stash[_STANDIN]:
        return "gpu tests: on a stand-in; kernels run on the emulated device"
    reason = unavailable_reason()
    return f"gpu tests: skipped, {reason}; the stand-in: {why_no_tools()}" if reason else "gpu tests: on a GPU"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Run quick tests first; skip, with the reason, tests that need a GPU or NVIDIA's compilers where there are none.

    Tests that need a GPU are also marked nvidia, as the stand-in needs NVIDIA's compilers.
    """
    items.sort(key=lambda item: "conformance" in item.path.parts)
    smoke.mark(items)
    no_gpu = None if config.stash[_STANDIN] else unavailable_reason()
    for item in items:
        if item.get_closest_marker("gpu"):
            item.add_marker("nvidia")
            reason = no_gpu
        else:
            reason = why_no_tools() if item.get_closest_marker("nvidia") else None
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))
    is_on_gpu = no_gpu is None and not config.stash[_STANDIN]
    if not EXHAUSTIVE and not is_on_gpu and config.option.markexpr in ("", "nvidia"):
        take_turns(items)
        cover(items)
    if not EXHAUSTIVE:
        long.mark(items, LEFT_OUT)


def take_turns(items: list[pytest.Item]) -> None:
    """Run each case on the emulated device or on the stand-in, which runs the same kernels, and skip the other.

    Without NVIDIA's compilers the turns are the same: ``pytest -m nvidia`` where they are installed runs the others.
    Two thirds of the cases of a long table are skipped on both, also of those that the emulated device does not have.
    """
    cases: dict[str, list[pytest.Item]] = {}
    emulated = set()
    for item in items:
        callspec = getattr(item, "callspec", None)
        device = callspec.params.get("device") if callspec else None
        if callspec and isinstance(device, str) and device.startswith(("emulated", "cuda")):
            name, _, _ = item.nodeid.partition("[")
            cases.setdefault(f"{name}[{callspec.id.replace(device, '', 1)}", []).append(item)
            if not item.get_closest_marker("gpu"):
                emulated.add(name)
    lengths = Counter(case.partition("[")[0] for case in cases)
    for case, variants in cases.items():
        name, _, _ = case.partition("[")
        on_standin = [item for item in variants if item.get_closest_marker("gpu")]
        if name not in emulated or not on_standin:
            continue
        others: list[pytest.Item | None] = [item for item in variants if item not in on_standin]
        turns = [*others[:1], on_standin[0]]
        if lengths[name] > LONG_TABLE:
            turns += [None] * 2 * len(turns)
        chosen = turns[crc32(case.encode()) % len(turns)]
        for item in variants:
            if item is not chosen:
                item.add_marker(LEFT_OUT)


def cover(items: list[pytest.Item]) -> None:
    """Skip combinations of options (``tests.devices.ways``) of which other cases have each part on the same device.

    Each device, each value on the CPU and interpreted, and each combination in CUDA's kernels keeps a case.
    """
    tests: dict[str, dict[pytest.Item, set[tuple[Any, ...]]]] = {}
    for item in items:
        params = getattr(getattr(item, "callspec", None), "params", {})
        left_out = any(marker.kwargs.get("reason") == LEFT_OUT.kwargs["reason"] for marker in item.iter_markers())
        if {"device", "way"} <= params.keys() and not left_out:
            device, _, _ = params["device"].partition(":")
            values = {**params, **params["way"]}
            parts = {(name, str(values[name])) for name in values.keys() - {"device", "way"}}
            kernels = "cuda" if device == "emulated" else device
            if kernels == "cuda":  # Each combination of options is another path through its kernels.
                parts.add(("way", str(params["way"])))
            name, _, _ = item.nodeid.partition("[")
            tests.setdefault(name, {})[item] = {(device,), *((kernels, *part) for part in parts)}
    for cases in tests.values():
        missing = set().union(*cases.values())
        for item in [item for item in cases if item.get_closest_marker("smoke")]:
            missing -= cases.pop(item)
        while missing:
            missing -= cases.pop(max(cases, key=lambda item: len(cases[item] & missing)))
        for item in cases:
            item.add_marker(LEFT_OUT)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Run a test that requires a GPU on the stand-in, and one of agents on threads if it is the case of threads."""
    standin, callspec = item.config.stash[_STANDIN], getattr(item, "callspec", None)
    workers = callspec.params.get("workers") if callspec else None
    needs_gpu = standin and item.get_closest_marker("gpu")
    with standin.installed() if standin and needs_gpu else nullcontext(), threads_by_default(workers):
        return (yield)


def pytest_collection_finish() -> None:
    """Collect garbage seldom, and none of what exists now: it takes a fifth of the time of compiling kernels."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 100)


@pytest.fixture(scope="module", autouse=True)
def _no_types_of_other_tests(request: pytest.FixtureRequest) -> Iterator[None]:
    """Keep types that other modules of tests register from workers, each of which would import those modules."""
    own = getattr(request.node, "obj", None)  # a doctest's module has none
    name = getattr(own, "__name__", "")

    def chosen() -> dict[str, tuple[type, object]]:
        return {
            key: one
            for key, one in registered().items()
            if one[0].__module__ == name or not one[0].__module__.startswith("tests.")
        }

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pool, "registered", chosen)
        yield


@pytest.fixture
def young_heap() -> None:
    """Let ``gc.collect`` look only at objects of this test, as the many of compiled kernels take it a second or two."""
    gc.freeze()


@pytest.fixture
def interrupts() -> Iterator[None]:
    """Make SIGINT raise KeyboardInterrupt, even if the tests run in the background of a shell, where it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """A PostgreSQL server for the tests; without one, tests fail in CI and are skipped elsewhere."""
    if why := why_missing():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(why)
    with Cluster() as started:
        yield started


@pytest.fixture
def postgres(cluster: Cluster) -> str:
    """The connection string of the database of that server."""
    return cluster.dsn


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of public graphs with known results."""
    folder = Path(os.environ.get("GPU_PREGEL_DATA") or Path(__file__).parents[2] / "shared" / "data")
    if not folder.is_dir():
        pytest.skip(f"no public graphs: GPU_PREGEL_DATA is not set, and {folder} does not exist")
    return folder
