"""The comparison of breadth-first search with GAPBS's ``bfs``, of which a script takes the place."""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from pathlib import Path
from typing import Any

import pytest
from scipy.sparse.csgraph import breadth_first_order

ROOT = Path(__file__).resolve().parents[1]
if not (ROOT / "benchmarks" / "__main__.py").exists():
    pytest.skip("the benchmarks are part of a checkout, not of the package", allow_module_level=True)
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))

from benchmarks import programs  # noqa: E402
from benchmarks._graphs import generate  # noqa: E402
from benchmarks.peers._contestant import PEERS_VARIABLE  # noqa: E402
from benchmarks.peers.gapbs import GapbsSearch  # noqa: E402

SCRIPT = """#!{python} -S
import argparse, json
parser = argparse.ArgumentParser()
for letter, kind in (("-f", str), ("-n", int), ("-r", str)):
    parser.add_argument(letter, type=kind)
parser.add_argument("-a", action="store_true")
given = parser.parse_args()
with open({folder!r} + "/sources", "a") as file:
    print(given.r, file=file)
with open({folder!r} + "/reached.json") as file:
    reached = json.load(file)
print("Read Time:           0.00100")
for run in range(given.n):
    print(f"Trial Time:          {{0.001 * (run + 1):.5f}}")
print("BFS Tree has", reached[given.r], "nodes and 0 edges")
"""


def compare(folder: Path, monkeypatch: pytest.MonkeyPatch, lost: int) -> dict[str, Any]:
    adjacency = generate("kron:7").to_scipy()
    reached = {v: len(breadth_first_order(adjacency, v, return_predecessors=False)) - lost for v in range(128)}
    (folder / "reached.json").write_text(json.dumps(reached))
    program = folder / "gapbs-bfs"
    program.write_text(SCRIPT.format(python=sys.executable, folder=str(folder)))
    program.chmod(0o755)
    monkeypatch.setenv(PEERS_VARIABLE, str(folder))
    arguments = Namespace(trials=1, runs=3, budget=60, threads=2, cache=folder)
    contestants = [programs.Search, GapbsSearch]
    report = programs._compare("search", "kron:7", contestants, programs.SOURCES, arguments)
    found: dict[str, Any] = json.loads(json.dumps(report))
    return found


def test_both_search_from_the_same_sources(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report = compare(tmp_path, monkeypatch, 0)
    assert report["errors"] == []
    ours, theirs = report["contestants"]
    assert ours["answer"] == theirs["answer"]
    assert len(ours["answer"]) == programs.SOURCES
    assert min(ours["answer"]) > 1
    # The runs take 1, 2 and 3 ms from each of the sources.
    assert theirs["trials"] == pytest.approx([0.002 * programs.SOURCES])
    assert theirs["median"] == pytest.approx(0.002)
    sources = (tmp_path / "sources").read_text().split()
    assert len(set(sources)) == programs.SOURCES
    assert sources == sources[: programs.SOURCES] * 2
    assert "gapbs bfs" in capsys.readouterr().out


def test_a_tree_that_lacks_a_vertex_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (error,) = compare(tmp_path, monkeypatch, 1)["errors"]
    assert error.startswith("gapbs bfs: ")
