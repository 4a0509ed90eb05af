"""Tests of the time limits of tests."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.time_limits import time_limit


def test_an_endless_loop_fails() -> None:
    def run() -> None:
        with time_limit("a loop", 0.05):
            while True:
                pass

    with pytest.raises(pytest.fail.Exception, match=r"^a loop took longer than 0\.05 s$"):
        run()


def test_a_quick_test_passes_and_leaves_no_alarm() -> None:
    with time_limit("a test", 60):
        assert signal.getitimer(signal.ITIMER_REAL)[0] > 0
    assert signal.getitimer(signal.ITIMER_REAL) == (0, 0)


def test_a_call_that_does_not_return_ends_the_process_with_a_traceback() -> None:
    command = [sys.executable, "-m", "tests.time_limits"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, cwd=Path(__file__).parents[1])
    assert done.returncode == 1
    assert "Timeout (0:00:00.1" in done.stderr
    assert "in hang" in done.stderr
