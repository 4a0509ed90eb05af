"""Tests of what type checkers and editors see: mypy and Pyright check a user's file against an editable install."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

import gpu_pregel as gp
from tests.packages import needs

USER_FILE = """\
from typing import assert_type

import numpy as np
import numpy.typing as npt

import gpu_pregel as gp

graph = gp.Graph.from_edgelist([0, 1], [1, 2], directed=True)
assert_type(graph, gp.Graph)
assert_type(graph.indptr, npt.NDArray[np.int64])
assert_type(graph.num_vertices, int)
assert_type(gp.read_graph("graph.el"), gp.Graph)
assert_type(gp.kronecker(4), gp.Graph)

components = gp.connected_components(graph, device="cpu")
assert_type(components, gp.Components)
assert_type(components.count, int)
assert_type(components.sizes(), npt.NDArray[np.int64])
assert_type(components.relabel(), npt.NDArray[np.uint32])


def init(ctx: gp.VertexContext) -> float:
    assert_type(ctx.vertex, int)
    return 0.0 if ctx.vertex == ctx.parameters.source else np.inf


distances = gp.VertexProgram(
    value=np.float64,
    parameters={"source": np.int64},
    init=init,
    message=lambda value, weight, ctx: value + weight,
    combine="min",
    apply=lambda value, incoming, ctx: min(value, incoming),
)
result = gp.run(graph, distances, parameters={"source": 0}, mode="pull", max_supersteps=9)
assert_type(result.supersteps, int)
assert_type(result.status, str)
result.trace.plot()
result.to_numpy().sum()


def compute(ctx: gp.agents.Context) -> None:
    ctx.send_to_neighbors(ctx.value)
    ctx.vote_to_halt()


def investigate(ctx: gp.AgentContext) -> dict[str, float] | None:
    assert_type(ctx.superstep, int)
    ctx.send(ctx.neighbors[0].id, 1.0)
    return None


woken = gp.run(graph, distances, agents=gp.Agents(investigate, workers=1), wake=lambda old, new, ctx: new > 1)
print(woken.agents.values)
gp.Agents(investigate, max_lags=1)  # wrong

agents = gp.agents.run([gp.agents.Vertex("a", 1, edges=["b"]), gp.agents.Vertex("b", 2)], compute, workers=0)
assert_type(agents, gp.agents.AgentResult)

gp.conected_components(graph)  # wrong
gp.run(graph, distances, mode="pul")  # wrong
gp.run(graph, distances, supersteps=3)  # wrong
gp.run(graph, distances).suporsteps  # wrong
components.label  # wrong
gp.connected_components(graph, device=3)  # wrong
gp.VertexProgram(
    value=np.int64,
    init=lambda ctx: ctx.vertex_number,  # wrong
    message=lambda value, ctx: value,
    combine="mim",  # wrong
    apply=lambda value, incoming, ctx: value + ctx.supersteps,  # wrong
    active="never",  # wrong
)
gp.agents.execute([], compute)  # wrong
"""
WRONG = [number for number, line in enumerate(USER_FILE.splitlines(), 1) if line.endswith("# wrong")]
ROOT = Path(gp.__file__).parents[1]


@pytest.fixture(scope="module")
def interpreter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The interpreter of a virtual environment with the installed packages and, from a checkout, an editable install.

    ``test_distributions.py`` checks that an editable install is this file.
    """
    folder = tmp_path_factory.mktemp("venv")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True, timeout=60)
    (packages,) = folder.glob("lib/python*/site-packages")
    packages.joinpath("packages.pth").write_text(f"{sysconfig.get_path('purelib')}\n")
    if (ROOT / "pyproject.toml").is_file():
        packages.joinpath("__editable__.gpu_pregel.pth").write_text(f"{ROOT}\n")
    return folder / "bin" / "python"


@pytest.fixture
def user_file(tmp_path: Path) -> Path:
    path = tmp_path / "user.py"
    path.write_text(USER_FILE)
    return path


def clean_environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "MYPYPATH")}


def test_mypy_finds_the_mistakes_and_nothing_else(interpreter: Path, user_file: Path) -> None:
    needs("mypy", "test")
    options = ["--strict", "--cache-dir", os.devnull, "--python-executable", str(interpreter)]
    command = [sys.executable, "-m", "mypy", *options, user_file.name]
    done = subprocess.run(
        command, cwd=user_file.parent, env=clean_environment(), capture_output=True, text=True, timeout=300, check=False
    )
    found = re.findall(r"^(\S+?):(\d+): error: ", done.stdout, flags=re.MULTILINE)
    assert [(Path(path).name, int(line)) for path, line in found] == [("user.py", line) for line in WRONG], done.stdout


def test_pyright_finds_the_mistakes_and_nothing_else(interpreter: Path, user_file: Path) -> None:
    needs("basedpyright", "test")
    (user_file.parent / "pyrightconfig.json").write_text('{"typeCheckingMode": "standard"}')
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", str(interpreter), user_file.name]
    done = subprocess.run(
        command, cwd=user_file.parent, env=clean_environment(), capture_output=True, text=True, timeout=300, check=False
    )
    report = json.loads(done.stdout)["generalDiagnostics"]
    found = {one["range"]["start"]["line"] + 1: one["message"] for one in report if one["severity"] == "error"}
    assert sorted(found) == WRONG, found
