"""How many processes run the tests; it lies here so that it holds for the examples in docstrings, too."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

_MOST_PROCESSES = 4
"""Each compiles kernels of its own, and has a PostgreSQL server of its own."""


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Folders are run in several processes, single files and tests in this one."""
    if not any(Path(name).is_dir() for name in config.args):
        return 0
    return min(os.cpu_count() or 1, _MOST_PROCESSES)
