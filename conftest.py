"""Options, time limits and processes of all tests, here so that they also apply to the examples in docstrings."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import smoke
from tests.time_limits import time_limit

_common_kernels = pytest.StashKey["subprocess.Popen[bytes]"]()
_MOST_PROCESSES = 4
"""Each process compiles kernels and starts a PostgreSQL server."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of this project."""
    parser.addoption(
        "--gpu",
        choices=("auto", "real", "standin"),
        default="auto",
        help="what runs the tests marked gpu: a GPU, a stand-in on the CPU, or the stand-in only if there is no GPU",
    )
    parser.addoption("--time-limit", type=float, default=300, help="seconds after which a test fails (default 300)")


def pytest_configure(config: pytest.Config) -> None:
    """If several processes run the tests, compile what all of them need once, while they collect the tests.

    In the background of a shell, SIGINT is ignored by all programs that tests start, unless it is handled here.
    """
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("dist", "no") != "no" and not hasattr(config, "workerinput") and not smoke.is_chosen(config):
        config.stash[_common_kernels] = subprocess.Popen(
            [sys.executable, "-m", "tests.common_kernels"],
            cwd=Path(__file__).parent,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def pytest_unconfigure(config: pytest.Config) -> None:
    """End that process if it is still running."""
    process = config.stash.get(_common_kernels, None)
    if process is not None:
        process.kill()
        process.wait()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Import only the files that ``-m smoke`` needs."""
    return True if smoke.is_chosen(config) and smoke.is_unused(collection_path) else None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Limit the time of each test."""
    with time_limit(item.nodeid, item.config.option.time_limit):
        return (yield)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Run folders in one process more than there are processors, as many tests only wait; single files in this one.

    The tests of ``-m smoke`` do not wait, and take little more time than starting a process.
    """
    if not any(Path(name).is_dir() for name in config.args):
        return 0
    if smoke.is_chosen(config):
        return min(os.cpu_count() or 1, 2)
    return min((os.cpu_count() or 1) + 1, _MOST_PROCESSES)
