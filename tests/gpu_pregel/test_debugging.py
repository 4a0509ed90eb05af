"""A program debugged as a user would: a breakpoint on the device "python", and ``pdb`` after a failure."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from gpu_pregel.cli import main

SCRIPT = """
import numpy as np

import gpu_pregel as gp


def take_smaller(value, incoming, ctx):
    if ctx.vertex == 3 and ctx.superstep == 2:
        breakpoint()
    smaller = min(value, incoming)
    return smaller


def divide(value, ctx):
    share = 60 // (value - 2)
    return share


labels = gp.VertexProgram(
    value=np.int64,
    init=lambda ctx: ctx.vertex,
    message=lambda value, ctx: value,
    combine="min",
    apply=take_smaller,
)
shares = gp.VertexProgram(
    value=np.int64,
    init=lambda ctx: ctx.vertex,
    message=divide,
    combine="min",
    apply=lambda value, incoming, ctx: value,
)
graph = gp.Graph.from_edgelist(["alice", "bob", "carol"], ["bob", "carol", "dan"])
"""


def session(tmp_path: Path, run: str, commands: str, **environment: str) -> str:
    """Run the script with these commands to the debugger; return what it prints."""
    path = tmp_path / "program.py"
    path.write_text(SCRIPT + run + "\n")
    found = subprocess.run(
        [sys.executable, str(path)],
        input=commands,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
        check=True,
    )
    assert found.stderr == ""
    return found.stdout


@pytest.mark.parametrize(
    "options", [{"call": ', device="python"'}, {"call": "", "GPU_PREGEL_DEVICE": "python"}], ids=["device", "variable"]
)
def test_a_breakpoint_stops_in_the_function(tmp_path: Path, options: dict[str, Any]) -> None:
    environment = dict(options)
    run = f"print('labels', gp.run(graph, labels{environment.pop('call')}).to_dict())"
    steps = "p value, incoming\np ctx.vertex, ctx.out_degree\nn\np smaller\nc\n"
    shown = session(tmp_path, run, steps, **environment)
    assert "-> smaller = min(value, incoming)" in shown
    # "dan" has the label of "carol", who has meanwhile taken that of "bob".
    assert "(Pdb) (2, 1)\n(Pdb) (3, 1)\n" in shown
    assert "-> return smaller\n(Pdb) 1\n" in shown
    assert "labels {'alice': 0, 'bob': 0, 'carol': 0, 'dan': 0}" in shown


@pytest.mark.parametrize("call", ['device="python"', 'device="cpu", check=True'])
def test_the_debugger_starts_in_the_function_that_failed(tmp_path: Path, call: str) -> None:
    run = f"""
import pdb, sys
try:
    gp.run(graph, shares, {call})
except ArithmeticError as error:
    print(error)
    pdb.post_mortem(error.__traceback__)
"""
    shown = session(tmp_path, run, "p value\np ctx.vertex\nq\n")
    line = 1 + SCRIPT.splitlines().index("    share = 60 // (value - 2)")
    place = f"{tmp_path / 'program.py'}, line {line}: share = 60 // (value - 2)"
    assert f"message fails for vertex 'carol' in superstep 0 ({place}): ZeroDivisionError" in shown
    assert "(Pdb) 2\n(Pdb) 2\n" in shown


@pytest.mark.parametrize("options", [["--check", "--device", "cpu"], ["--device", "python"]], ids=["check", "python"])
def test_the_command_line_reports_the_line_and_the_vertex(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    path = tmp_path / "program.py"
    path.write_text(SCRIPT)
    assert main(["run", f"{path}:shares", "--grid", "1x4", "--holes", "0", *options]) == 1
    line = 1 + SCRIPT.splitlines().index("    share = 60 // (value - 2)")
    place = f"{path}, line {line}: share = 60 // (value - 2)"
    assert f"message fails for vertex 2 in superstep 0 ({place}): ZeroDivisionError" in capsys.readouterr().err
    # The functions are called for the given graph only, so that no breakpoint stops elsewhere.
    path.write_text(SCRIPT.replace("breakpoint()", "print('vertex', ctx.vertex)"))
    assert main(["run", f"{path}:labels", "--grid", "1x4", "--holes", "0", "--device", "python"]) == 0
    assert capsys.readouterr().out == "vertex 3\n"
