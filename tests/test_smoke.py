"""Tests of the list of tests that ``pytest -m smoke`` runs."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.smoke import FILES, NAMES, ROOT

FOR_CUDA_ALONE = {"tests/kernels", "tests/kernels/algorithms", "tests/kernels/programs", "tests/kernels/traverse"}
"""Rooms all of whose tests compile kernels for CUDA."""


def test_every_room_has_some() -> None:
    rooms = {file.parent.relative_to(ROOT).as_posix() for file in (ROOT / "tests").rglob("test_*.py")}
    assert len(rooms) > 20
    assert rooms - {file.parent.relative_to(ROOT).as_posix() for file in FILES} <= FOR_CUDA_ALONE | {"tests/gpu_pregel"}


def test_every_name_is_that_of_a_test_and_no_other_file_is_imported() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-m", "smoke", "--collect-only", "-q", "-n", "0"],
        cwd=ROOT,
        env={**os.environ, "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    collected = [line for line in done.stdout.splitlines() if "::" in line]
    names = {*collected, *(name.partition("[")[0] for name in collected)}
    assert [name for name in NAMES if name not in names] == []
    assert {ROOT / name.partition("::")[0] for name in collected} == FILES
    assert 250 < len(collected) < 400


def test_the_list_is_sorted_and_has_each_name_once() -> None:
    assert sorted(set(NAMES)) == NAMES
