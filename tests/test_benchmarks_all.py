"""The comparison of all algorithms: tasks, graph files with directions and weights, and scripts in place of peers."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp

ROOT = Path(__file__).resolve().parents[1]
if not (ROOT / "benchmarks" / "__main__.py").exists():
    pytest.skip("the benchmarks are part of a checkout, not of the package", allow_module_level=True)
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))

from benchmarks import _contest, _graphs, _tasks  # noqa: E402
from benchmarks.__main__ import main  # noqa: E402
from benchmarks.all import choose_tasks  # noqa: E402
from benchmarks.peers import PEERS, gapbs, gbbs, gve, ours  # noqa: E402
from benchmarks.peers._contestant import PEERS_VARIABLE, ProgramContestant  # noqa: E402
from gpu_pregel.algorithms._entry import Algorithm  # noqa: E402
from gpu_pregel.algorithms.registry import ALGORITHMS  # noqa: E402
from gpu_pregel.errors import VerificationError  # noqa: E402


@pytest.fixture(autouse=True)
def without_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PEERS_VARIABLE, raising=False)


@pytest.mark.parametrize("entry", ALGORITHMS, ids=lambda entry: entry.name)
def test_the_registry_names_the_peers_that_have_an_adapter(entry: Algorithm) -> None:
    adapters = {name for name, classes in PEERS.items() if entry.name in {one.algorithm for one in classes}}
    assert set(entry.peers) == adapters
    assert not adapters or entry.name in {task.name for task in _tasks.TASKS}


def test_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "all.json"
    options = ["--algorithms", "connected_components", "--graphs", "kron:8", "--peers", "scipy", "--trials", "2"]
    assert main(["all", *options, "--cache", str(tmp_path), "-o", str(output)]) == 0
    report = json.loads(output.read_text())
    assert report["machine"]["cpu"]
    (graph,) = report["algorithms"]["connected_components"]["graphs"]
    assert graph["answer"] == gp.connected_components(_graphs.generate("kron:8")).count
    ours, scipy, strong = graph["contestants"]
    assert graph["best_ratio"] == max(scipy["ratio"], strong["ratio"])
    assert ours["answer"] == scipy["answer"]
    assert "connected components: Kronecker, scale 8" in capsys.readouterr().out


@pytest.mark.parametrize("command", [["cc"], ["all", "--algorithms", "maximal_independent_set"]])
def test_our_results_are_verified(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "report.json"
    name = {"cc": "connected_components"}.get(command[0], command[-1])

    def refuse(_graph: gp.Graph, _result: object) -> None:
        raise VerificationError("vertex 7 is wrong")

    command = [*command, "--graphs", "kron:6", "--peers", "none", "--trials", "1", "--cache", str(tmp_path)]
    assert main([*command, "-v", "-o", str(output)]) == 0
    assert json.loads(output.read_text())["parameters"]["verified"] is True
    monkeypatch.setattr(f"gpu_pregel.algorithms.checkers.{name}.check_{name}", refuse)
    assert main([*command, "-v", "-o", str(output)]) == 1
    assert "VerificationError: vertex 7 is wrong" in capsys.readouterr().out
    assert main([*command, "-o", str(output)]) == 0
    assert json.loads(output.read_text())["parameters"]["verified"] is False


def test_unknown_algorithms_are_rejected(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["all", "--algorithms", "sorting"]) == 2
    assert "unknown algorithm: sorting; algorithms with peers: connected_components" in capsys.readouterr().err
    assert [task.name for task in choose_tasks("connected_components")] == ["connected_components"]


def test_directed_files_have_each_edge_once(tmp_path: Path) -> None:
    files = _graphs.prepare("kron:7", tmp_path, {".adj"}, directed=True)
    graph, whole = gp.read_graph(files.paths[".sg"]), _graphs.generate("kron:7")
    assert graph.is_directed
    assert graph.num_stored_edges == whole.num_stored_edges // 2
    assert graph.to_undirected().to_scipy().astype(bool).nnz == whole.num_stored_edges
    lines = files.paths[".adj"].read_text().split()
    assert lines[:3] == ["AdjacencyGraph", str(graph.num_vertices), str(graph.num_stored_edges)]
    assert list(map(int, lines[3:])) == [*graph.indptr[:-1].tolist(), *graph.indices.tolist()]


def test_weighted_files_have_the_same_weights_both_ways(tmp_path: Path) -> None:
    files = _graphs.prepare("grid:6", tmp_path, {".wadj"}, weighted=True)
    assert set(files.paths) == {".wsg", ".wadj"}
    graph = gp.read_graph(files.paths[".wsg"])
    assert graph.weights is not None
    matrix = graph.to_scipy()
    assert (abs(matrix - matrix.T)).nnz == 0
    assert 1 <= graph.weights.min() < graph.weights.max() <= 255
    indptr, indices, weights = _graphs.read_serialized(files.paths[".wsg"])
    assert np.array_equal(indptr, graph.indptr)
    assert np.array_equal(indices, graph.indices)
    assert np.array_equal(np.asarray(weights), graph.weights)
    lines = files.paths[".wadj"].read_text().split()
    assert lines[0] == "WeightedAdjacencyGraph"
    assert list(map(int, lines[-graph.num_stored_edges :])) == graph.weights.tolist()


def test_sources_have_edges_and_are_the_same_every_time(tmp_path: Path) -> None:
    files = _graphs.prepare("kron:8", tmp_path)
    chosen = _graphs.choose_sources(files.paths[".sg"], 4)
    assert chosen == _graphs.choose_sources(files.paths[".sg"], 4)
    assert _graphs.generate("kron:8").out_degrees[chosen].min() > 0


def gapbs_output(answer: str) -> str:
    return f"Read Time:           0.01\nTrial Time:          0.5\nTrial Time:          0.25\n{answer}\n"


SCORES = gapbs_output("6129:0.00680333\n16155:0.00313889")
GBBS = "### Threads: 2\n{}\n### Running Time: 0.5\n{}\n### Running Time: 2.5e-1\n# time per iter: 0.3\n"
GVE = (
    "OMP_NUM_THREADS=2\n{{002 threads}} -> {{0000500.0ms, 0000014.4ms mark, 0003 passes, {} modularity}} {}StaticOmp\n"
)
LEIDEN = "{{0000500.0ms, 0000011.3ms mark, 0.101398029 modularity, 6/3865 disconnected}} louvainStaticOmp\n"


@pytest.mark.parametrize(
    ("contestant", "output", "runs", "answer", "arguments"),
    [
        (gapbs.GapbsSearch, gapbs_output("BFS Tree has 12530 nodes and 9 edges"), [0.5, 0.25], [12530], "-a -r 7"),
        (gapbs.GapbsPaths, gapbs_output("SSSP Tree reaches 896 nodes"), [0.5, 0.25], [896], "-a -r 7 -d 1"),
        (gapbs.GapbsBetweenness, f"7:1\n{SCORES}", [0.5, 0.25], [6129], "-a -r 7 -i 1"),
        (gapbs.GapbsPageRank, SCORES, [0.5, 0.25], 6129, "-a -i 20 -t 0"),
        (gapbs.GapbsPageRankGaussSeidel, SCORES, [0.5, 0.25], None, "-a -i 20 -t 0"),
        (gapbs.GapbsTriangles, gapbs_output("2813542 triangles"), [0.5, 0.25], 2813542, "-a"),
        (gbbs.GbbsCores, GBBS.format(*2 * ["rho = 9 k_{max} = 218"]), [0.5, 0.25], 218, "-s -stats -rounds 2 graph"),
        (gbbs.GbbsStrongComponents, GBBS.format(*2 * ["n_scc = 31"]), [0.5, 0.25], 31, "-beta 1.5 -rounds 2 graph"),
        (gbbs.GbbsColoring, GBBS.format(*2 * ["num_colors = 5"]), [0.5, 0.25], 5, "-rounds 2 graph"),
        (gbbs.GbbsSpanningForest, GBBS.format(*2 * ["total weight = 77"]), [0.5, 0.25], 77, "-s -w -rounds 2 graph"),
        (gbbs.GbbsBetweenness, GBBS.format("-nan", "0"), [0.5, 0.25], [None], "-s -src 7 -rounds 2 graph"),
        (gbbs.GbbsSearch, GBBS.format(*2 * ["Reachable: 4"]), [0.5, 0.25], [4], "-s -src 7 -rounds 2 graph"),
        (gve.GveLouvain, GVE.format("0.101398029", "louvain"), [0.5], 0.101398029, "graph 1 0"),
        (gve.GveLeiden, LEIDEN.format() + GVE.format("0.088494157", "leiden"), [0.5], 0.088494157, "graph 1 0"),
    ],
    ids=lambda case: getattr(case, "__name__", ""),
)
def test_the_output_of_programs_is_parsed(
    contestant: type[ProgramContestant],
    output: str,
    runs: list[float],
    answer: Any,
    arguments: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(PEERS_VARIABLE, str(tmp_path))
    program = tmp_path / contestant.locations[0]
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f"#!/bin/sh\necho \"$@\" >{tmp_path}/given\ncat <<'END'\n{output}END\n")
    program.chmod(0o755)
    peer = contestant()
    peer.sources = [7] if isinstance(answer, list) else []
    peer.iterations = 20
    monkeypatch.chdir(tmp_path)
    peer.open(Path("graph"), 1024, 2)
    trial = peer.trial(2)
    assert trial.runs == runs
    assert trial.answer == answer
    assert (tmp_path / "given").read_text().strip().endswith(arguments)


@pytest.mark.parametrize(
    ("theirs", "ours", "tolerance", "agrees"),
    [
        (5, 5, 0.0, True),
        (5, 6, 0.0, False),
        ([5, 6], [5, 6], 0.0, True),
        ([5, 6], [5, 7], 0.0, False),
        (0.101, 0.1, 0.02, True),
        (0.103, 0.1, 0.02, False),
        (None, 5, 0.0, True),
        (9, 5, None, True),
        ([None, None], [1, 2], 0.0, True),
        ([None, 3], [1, 2], 0.0, False),
    ],
)
def test_answers_are_compared(theirs: Any, ours: Any, tolerance: float | None, agrees: bool) -> None:
    assert _contest.agree(theirs, ours, tolerance) is agrees


@pytest.mark.parametrize(
    ("task", "name"),
    [
        pytest.param(task, name, id=f"{task.name}-{name}")
        for task in _tasks.TASKS
        for name in ("gpu_pregel", *task.variants)
    ],
)
def test_tasks_can_be_run(task: _tasks.Task, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a tiny graph, without peers; the checkers accept the results."""
    monkeypatch.setattr(ours.GpuPregel, "verifies", True)
    files = _graphs.prepare("kron:5", tmp_path, directed=task.directed, weighted=task.weighted)
    path = files.paths[".wsg" if task.weighted else ".sg"]
    one = _tasks.contestant(task, name)()
    assert one.name == name
    one.sources = _graphs.choose_sources(path, task.sources)
    loading = one.open(path, files.vertices, 2)
    answers: list[Any] = loading.answer if task.sources else [loading.answer]
    assert len(answers) == max(task.sources, 1)
    assert all(isinstance(answer, (int, float)) for answer in answers)
    assert one.trial(1).answer == loading.answer


PACKAGES = [one for name in ("networkit", "scipy", "rustworkx") for one in PEERS[name]]


@pytest.mark.parametrize("peer", PACKAGES, ids=lambda peer: f"{peer.name}-{peer.algorithm}")
def test_packages_agree_with_us(peer: Callable[[], Any], tmp_path: Path) -> None:
    one = peer()
    if (reason := one.why_unavailable(2)) is not None:
        pytest.skip(reason)
    (task,) = [task for task in _tasks.TASKS if task.name == one.algorithm]
    if task.name not in {entry.name for entry in ALGORITHMS}:
        pytest.skip(f"{task.name} is not in the registry")
    files = _graphs.prepare("kron:6", tmp_path, directed=task.directed, weighted=task.weighted)
    path = files.paths[one.suffix]
    same = _tasks.contestant(task)()
    for contestant in (one, same):
        contestant.sources = _graphs.choose_sources(path, task.sources)
        contestant.iterations = task.iterations
    theirs, expected = one.open(path, files.vertices, 2).answer, same.open(path, files.vertices, 2).answer
    assert _contest.agree(theirs, expected, 0.2 if task.tolerance is None else task.tolerance)
