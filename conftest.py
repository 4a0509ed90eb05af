"""The number of processes that run the tests, here so that it also applies to the examples in docstrings."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_MOST_PROCESSES = 4
"""Each process compiles kernels and starts a PostgreSQL server."""


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Run folders in one process more than there are processors, as many tests only wait; files and tests in this one."""
    if not any(Path(name).is_dir() for name in config.args):
        return 0
    return min((os.cpu_count() or 1) + 1, _MOST_PROCESSES)
