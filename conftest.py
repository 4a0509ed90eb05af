"""Options, time limits and processes of all tests, here so that they also apply to the examples in docstrings."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.time_limits import time_limit

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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Limit the time of each test."""
    with time_limit(item.nodeid, item.config.option.time_limit):
        return (yield)


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Run folders in one process more than there are processors, as many tests only wait; single files in this one."""
    if not any(Path(name).is_dir() for name in config.args):
        return 0
    return min((os.cpu_count() or 1) + 1, _MOST_PROCESSES)
