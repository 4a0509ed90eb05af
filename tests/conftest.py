"""Fixtures and settings of all tests."""

from __future__ import annotations

import gc
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.postgres import Cluster, why_missing

# Deadlines would make tests depend on a clock, and the first example often compiles kernels.
settings.register_profile(
    "suite", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow], derandomize=True
)
settings.load_profile("suite")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run quick tests first; skip tests that require a GPU if there is none, with the reason."""
    from gpu_pregel.host.devices.cuda import unavailable_reason

    items.sort(key=lambda item: "conformance" in item.path.parts)
    on_gpu = [item for item in items if item.get_closest_marker("gpu")]
    if on_gpu and (reason := unavailable_reason()):
        for item in on_gpu:
            item.add_marker(pytest.mark.skip(reason=reason))


def pytest_collection_finish() -> None:
    """Collect garbage seldom, and none of what exists now: it takes a fifth of the time of compiling kernels."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 50, 100)


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
