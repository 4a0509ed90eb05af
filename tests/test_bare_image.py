"""The tests for GPUs can be collected where only the packages are installed that they need."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.bare_image import Blocker


def test_all_tests_for_gpus_are_collected_on_a_bare_image(request: pytest.FixtureRequest) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.bare_image", "-n", "0", "-m", "gpu", "tests"],
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "CI": ""},
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    collected = {line for line in done.stdout.splitlines() if "::" in line}
    assert len(collected) > 500
    assert {item.nodeid for item in request.session.items if item.get_closest_marker("gpu")} <= collected


def test_optional_packages_are_hidden() -> None:
    blocker = Blocker()
    assert {"matplotlib", "pandas", "pydantic", "argcomplete"} <= blocker.hidden
    assert not {"numpy", "numba_cuda", "llvmlite", "sortedcontainers", "tests", "gpu_pregel"} & blocker.hidden
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'matplotlib\.pyplot'"):
        blocker.find_spec("matplotlib.pyplot")
