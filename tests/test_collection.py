"""Tests of what collecting the tests imports: the environment of README's second command is enough for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import importlib, pkgutil, sys

class Blocker:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Blocker())
import gpu_pregel
names = [
    one.name
    for one in pkgutil.walk_packages(gpu_pregel.__path__, "gpu_pregel.")
    if not one.name.startswith("gpu_pregel.examples") and not one.name.endswith("__main__")
]
for name in names:
    importlib.import_module(name)
print(len(names), *sorted(BLOCKED & set(sys.modules)))
"""
BLOCKED = {"cupy", "cupyx", "cupy_backends", "nvidia", "networkit", "rustworkx", "ruff", "importlinter", "pre_commit"}
"""What other extras than ``test`` bring."""


def test_all_modules_can_be_imported_without_what_the_extra_test_leaves_out() -> None:
    done = subprocess.run(
        [sys.executable, "-c", f"BLOCKED = {BLOCKED}\n{PROGRAM}"],
        cwd=Path(__file__).parents[1],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    count, *imported = done.stdout.split()
    assert int(count) > 300
    assert imported == []
