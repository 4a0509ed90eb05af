"""Tasks of new users, as scripts of up to thirty lines, each run by a new interpreter in an empty folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import gpu_pregel as gp

TASKS = Path(__file__).parent / "tasks"


def run_task(name: str, folder: Path, typed: str = "") -> list[str]:
    """Run a script and return the lines that it prints."""
    script = TASKS / f"{name}.py"
    assert len(script.read_text().splitlines()) <= 30
    environment = {**os.environ, "PYTHONPATH": str(Path(gp.__file__).parents[1])}
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=folder,
        input=typed,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_components_of_people(tmp_path: Path) -> None:
    assert run_task("components_of_people", tmp_path) == [
        "<Graph: 6 vertices, 8 stored edges, undirected, float64 weights>",
        "{'alice': 43.5, 'dave': 29.5}",
        "alice alice 2",
    ]


def test_hops_from_alice(tmp_path: Path) -> None:
    assert run_task("hops_from_alice", tmp_path) == [
        "3 4 -1",
        "{'alice': 0, 'bob': 1, 'carol': 2, 'dave': 3, 'eve': -1, 'frank': -1, 7: 4}",
        "['carol', 7] 2 False",
        "no vertex has the id '7', which is a string; there is the id 7, which is an integer",
    ]


def test_paths_from_parquet(tmp_path: Path) -> None:
    assert run_task("paths_from_parquet", tmp_path) == ["True", "True"]


def test_debugging(tmp_path: Path) -> None:
    checked, *session = run_task(
        "debugging", tmp_path, "p value, ctx.vertex, ctx.out_degree\nc\nc\nc\np ctx.vertex\nc\n"
    )
    place = f"{TASKS / 'debugging.py'}, line 11"
    assert checked.startswith(f"d 0 message fails for vertex 'd' in superstep 0 ({place}: return value")
    assert "out of" in checked
    assert "(Pdb) (1.0, 0, 1)" in session
    assert "(Pdb) 3" in session
    assert session[-1].removeprefix("(Pdb) ").startswith(f"d 0 message fails for vertex 'd' in superstep 0 ({place}")


def test_saving(tmp_path: Path) -> None:
    kept = "['ann', 'bob', 'cid', 'dora'] [1.5, 1.5, 2.5, 2.5] 4"
    lines = run_task("saving", tmp_path)
    assert lines[0] == f"graph.pregel: {kept}"
    assert lines[1].startswith("graph.parquet: [")
    assert sorted(lines[1]) == sorted(f"graph.parquet: {kept}")
    assert lines[2:7] == [
        f"graph.{suffix}: refused, .pregel is named: True" for suffix in ("csv", "el", "mtx", "graph", "sg")
    ]
    assert lines[7:12] == ['"vertex","component"', '"ann","ann"', '"bob","ann"', '"cid","ann"', '"dora","dora"']


def test_the_scripts_are_not_run_when_tests_are_collected() -> None:
    # Collecting docstring tests imports every file: a breakpoint stops it, and other scripts write to the folder.
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "--collect-only", "--ignore-glob=*/test_*", "tests"]
    done = subprocess.run(command, cwd=TASKS.parents[1], capture_output=True, text=True, timeout=300)
    assert "tests/tasks" not in done.stdout
    assert "error" not in done.stdout
