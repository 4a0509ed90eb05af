"""Tests of the kernels' cache on disk: it is used, it notices edits of callees, and it can be absent."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import gpu_pregel

PROGRAM = """
import sys
import numba
from numba.core import event
compiled = []
class Listener(event.Listener):
    def on_start(self, event): compiled.append(event.data["dispatcher"].py_func.__name__)
    def on_end(self, event): pass
with event.install_listener("numba:compile", Listener()):
    import numpy as np
    from gpu_pregel.kernels.library import caller_cpu
    print(int(caller_cpu.outer(np.int64(1))), "outer" in compiled)
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A copy of the package whose kernels may be edited, with two more kernels in two files."""
    source = Path(gpu_pregel.__file__).parent
    target = tmp_path / "gpu_pregel"
    for folder in ("", "host", "host/devices", "kernels", "kernels/library"):
        (target / folder).mkdir()
        for file in (source / folder).glob("*.py"):
            (target / folder / file.name).write_text(file.read_text())
    (target / "kernels/library/callee_cpu.py").write_text(
        "from gpu_pregel.kernels.library.jit_cpu import inline\n@inline\ndef inner(x):\n    return x + 1\n"
    )
    (target / "kernels/library/caller_cpu.py").write_text(
        "from gpu_pregel.kernels.library.jit_cpu import jit\nfrom gpu_pregel.kernels.library.callee_cpu import inner\n"
        "@jit\ndef outer(x):\n    return inner(x) * 10\n"
    )
    return target


def run(package: Path, **environment: str) -> str:
    inherited = {name: value for name, value in os.environ.items() if name != "NUMBA_CACHE_DIR"}
    return subprocess.run(
        [sys.executable, "-c", PROGRAM],
        cwd=package.parent,
        env={**inherited, "PYTHONPATH": str(package.parent), **environment},
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    ).stdout.strip()


def test_the_second_process_compiles_nothing_until_a_callee_changes(package: Path) -> None:
    assert run(package) == "20 True"
    assert run(package) == "20 False"
    callee = package / "kernels/library/callee_cpu.py"
    callee.write_text(callee.read_text().replace("x + 1", "x + 2"))
    assert run(package) == "30 True"
    assert run(package) == "30 False"


def test_a_cache_directory_may_be_named(package: Path, tmp_path: Path) -> None:
    assert run(package, NUMBA_CACHE_DIR=str(tmp_path / "cache")) == "20 True"
    assert run(package, NUMBA_CACHE_DIR=str(tmp_path / "cache")) == "20 False"
    assert list((tmp_path / "cache").rglob("*.nbi"))


def test_kernels_work_where_no_cache_can_be_written(package: Path, tmp_path: Path) -> None:
    # Files stand where the cache folders would have to be made; this holds for root too.
    (package / "kernels/library/__pycache__").write_text("in the way")
    (tmp_path / "home").write_text("in the way")
    blocked = {"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": str(tmp_path / "home"), "PYTHONDONTWRITEBYTECODE": "1"}
    assert run(package, **blocked) == "20 True"
    assert run(package, **blocked) == "20 True"
