"""The counts of algorithms as a command: the report, the comparison with an earlier one, the bytes of the result."""

from __future__ import annotations

import inspect
import json
import sys
from dataclasses import dataclass
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

from benchmarks import counts  # noqa: E402
from benchmarks.__main__ import main  # noqa: E402
from benchmarks._counts import KernelCounts, count_run  # noqa: E402
from gpu_pregel.algorithms.registry import ALGORITHMS, algorithm  # noqa: E402
from gpu_pregel.host.graphs.results import Result  # noqa: E402

FIGURES = {"launches": 100, "readbacks": 7, "host_bytes": 0, "rounds": 3, "longest_lane": 50, "worst_kernel": "pull"}


def run_counts(folder: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    output = folder / "counts.json"
    status = main(["counts", "--threads", "1", "-o", str(output), *arguments])
    return status, json.loads(output.read_text())


@dataclass(frozen=True, eq=False, repr=False)
class Found(Result):
    """A result with one array, or with several."""

    values: Any


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba_cuda")
    monkeypatch.setattr(counts, "GRAPHS", ("kron:7",))


@pytest.mark.usefixtures("small")
def test_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, report = run_counts(tmp_path, "--only", "k_hop", "triangle_count")
    assert status == 0
    assert set(report) == {"benchmark", "machine", "packages", "commit", "algorithms"}
    assert list(report["algorithms"]) == ["triangle_count", "k_hop"]
    row = report["algorithms"]["triangle_count"]["kron:7"]
    assert row["launches"] == sum(kernel["launches"] for kernel in row["kernels"].values()) > 0
    # The graph is on the device already; the triangles of each vertex stay there, their number is read.
    assert (row["uploaded"], row["downloaded"], row["readbacks"]) == (0, 8, 1)
    assert row["device"] == "emulated"
    worst = row["kernels"][row["worst_kernel"]]
    assert (row["longest_lane"], row["mean_lane"]) == (worst["longest_lane"], worst["mean_lane"])
    assert worst["longest_lane"] > worst["mean_lane"] > 0
    assert report["algorithms"]["k_hop"]["kron:7"]["arguments"] == {"sources": "64 vertices", "k": 2}
    assert "triangle_count" in capsys.readouterr().out


@pytest.mark.usefixtures("small")
def test_two_runs_differ_in_nothing_but_the_header(tmp_path: Path) -> None:
    first = run_counts(tmp_path, "--only", "k_hop", "connected_components")[1]["algorithms"]
    assert run_counts(tmp_path, "--only", "connected_components")[1]["algorithms"].items() <= first.items()
    assert run_counts(tmp_path, "--only", "k_hop")[1]["algorithms"].items() <= first.items()


@pytest.mark.usefixtures("small")
def test_comparison_with_an_earlier_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = run_counts(tmp_path, "--only", "k_hop")[1]
    earlier = tmp_path / "earlier.json"
    earlier.write_text(json.dumps(report))
    assert run_counts(tmp_path, "--only", "k_hop", "--compare", str(earlier))[0] == 0
    row = report["algorithms"]["k_hop"]["kron:7"]
    row["launches"] -= 1
    row["longest_lane"] *= 2
    earlier.write_text(json.dumps(report))
    capsys.readouterr()
    assert run_counts(tmp_path, "--only", "k_hop", "--compare", str(earlier))[0] == 1
    text = capsys.readouterr().out
    smaller, larger = text[text.index("smaller: 1 ") :].split("LARGER: 1 ")
    assert f"k_hop, kron:7: longest_lane {row['longest_lane']:,} before" in smaller
    assert f"k_hop, kron:7: launches {row['launches']:,} before, {row['launches'] + 1:,} after" in larger


def test_what_an_earlier_report_lacks_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {**FIGURES, "mean_lane": 2.0, "sectors_over_floor": 1.0, "device": "emulated"}
    monkeypatch.setattr(counts, "count_algorithm", lambda _: {"kron:10": row})
    earlier = tmp_path / "earlier.json"
    earlier.write_text(json.dumps({"benchmark": "counts", "algorithms": {"sssp": {}}}))
    assert main(["counts", "--only", "bfs", "--compare", str(earlier)]) == 0
    assert "not in the earlier report: bfs\n" in capsys.readouterr().out
    earlier.write_text(json.dumps({"benchmark": "cc"}))
    assert main(["counts", "--only", "bfs", "--compare", str(earlier)]) == 2
    assert "is not a report of python -m benchmarks counts" in capsys.readouterr().err


@pytest.mark.parametrize(
    "where, line",
    [
        ({"device": "emulated"}, None),
        ({"device": "cpu"}, "bfs on kron:10: everything on the CPU"),
        ({"device": "emulated", "on_cpu": "small levels"}, "bfs on kron:10: small levels on the CPU"),
    ],
)
def test_what_ran_on_the_cpu_is_told(
    where: dict[str, str], line: str | None, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    row = {**FIGURES, "mean_lane": 2.0, "sectors_over_floor": 1.0, **where}
    monkeypatch.setattr(counts, "count_algorithm", lambda _: {"kron:10": row})
    assert main(["counts", "--only", "bfs"]) == 0
    assert [one for one in capsys.readouterr().out.splitlines() if "CPU" in one] == ([line] if line else [])


@pytest.mark.parametrize(
    "figure, number, is_larger",
    [("launches", 102, False), ("launches", 103, True), ("host_bytes", 1, True), ("rounds", 4, True)],
)
def test_what_is_larger(figure: str, number: int, is_larger: bool) -> None:
    before = {"bfs": dict.fromkeys(counts.GRAPHS, FIGURES)}
    after = {"bfs": {**before["bfs"], "grid:10": {**FIGURES, figure: number}}, "new": before["bfs"]}
    larger, smaller = counts.compare(before, after)
    assert smaller == []
    assert larger == [f"bfs, grid:10: {figure} {FIGURES[figure]} before, {number} after"] * is_larger


def test_the_kernel_is_named_where_the_longest_lane_is_longer() -> None:
    before = {"bfs": dict.fromkeys(counts.GRAPHS, FIGURES)}
    slower = {**FIGURES, "longest_lane": 99, "worst_kernel": "push"}
    after = {"bfs": dict.fromkeys(counts.GRAPHS, slower)}
    larger, _ = counts.compare(before, after)
    assert larger[0] == "bfs, kron:10: longest_lane 50 before, 99 after (pull, push)"


def test_counts_do_not_depend_on_earlier_runs() -> None:
    pytest.importorskip("numba_cuda")
    graph = gp.kronecker(7)

    def count() -> KernelCounts:
        return count_run(lambda: gp.connected_components(graph, device="emulated"))

    count()
    first = count()
    assert first.launches == 3
    assert count() == first


def test_each_array_of_the_result_is_one_download() -> None:
    state, other, sizes = np.zeros(8, np.int32), np.zeros(8, np.int64), np.zeros(3, np.int64)

    def own(*downloads: Any, values: Any) -> int:
        result = Found(graph=gp.Graph.from_edgelist([0], [1]), stats={}, trace=(), values=values)
        return counts.own_bytes(downloads, result)

    assert own(state, sizes, values=np.zeros(8, bool)) == 32
    assert own(other, state, values=np.zeros(8, bool)) == 32
    assert own(other, state, values=(np.zeros(8, bool), np.zeros(8))) == 96
    assert own(sizes, values=np.zeros(8)) == 0


@pytest.mark.parametrize("entry", ALGORITHMS, ids=lambda entry: entry.name)
def test_each_algorithm_gets_a_graph_and_arguments_that_it_accepts(entry: Any) -> None:
    graph = counts.make_graph(entry, "kron:7")
    inspect.signature(entry.load()).bind(graph, **counts.make_arguments(entry, [0, 1]))
    assert graph.is_directed >= bool({"directed", "acyclic"} & set(entry.requires))
    assert graph.is_directed <= ("undirected" not in entry.requires)


def test_vertices_are_in_the_largest_component() -> None:
    graph = gp.Graph.from_edgelist([1, 2, 3], [2, 3, 4], num_vertices=9)
    vertices = counts.spread_vertices(graph)
    assert vertices == [1, 2, 3, 4]
    assert counts.make_arguments(algorithm("bfs"), vertices) == {"source": 1}
    assert counts.make_arguments(algorithm("k_hop"), vertices)["sources"] == vertices
    assert counts.make_arguments(algorithm("betweenness_centrality"), vertices) == {"sources": 4}
    assert len(counts.spread_vertices(gp.grid(20, 20))) == 64
