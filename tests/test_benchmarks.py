"""The benchmarks as a program: reports, unavailable peers and wrong results. Nothing here tests speed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import gpu_pregel as gp

ROOT = Path(__file__).resolve().parents[1]
if not (ROOT / "benchmarks" / "__main__.py").exists():
    pytest.skip("the benchmarks are part of a checkout, not of the package", allow_module_level=True)
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))

from benchmarks import _graphs, _measure, build, peers, plot, scaling  # noqa: E402
from benchmarks.__main__ import SUBCOMMANDS, main  # noqa: E402
from benchmarks.peers._contestant import PEERS_VARIABLE, Loading, PythonContestant, Trial  # noqa: E402
from benchmarks.peers.gapbs import Gapbs  # noqa: E402
from benchmarks.peers.gemini import Gemini  # noqa: E402
from tests.devices import LONG  # noqa: E402


class Fake(PythonContestant):
    """Returns the given answers in order, and repeats the last one."""

    name = "fake"
    package = "gpu_pregel"
    converts = False
    answers: ClassVar[list[int]]

    def compute(self, graph: Any, threads: int) -> Any:
        return graph, threads

    def answer(self, result: Any) -> Any:
        assert result[1] == 2
        self.calls = getattr(self, "calls", 0) + 1
        return self.answers[min(self.calls, len(self.answers)) - 1]


@pytest.fixture(autouse=True)
def without_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PEERS_VARIABLE, raising=False)


def run_cc(folder: Path, *arguments: str) -> tuple[int, dict[str, Any]]:
    output = folder / "results" / "cc.json"
    options = ["--trials", "3", "--runs", "2", "--threads", "2", "--cache", str(folder / "cache")]
    status = main(["cc", *options, "-o", str(output), *arguments])
    return status, json.loads(output.read_text())


def test_cc_on_emulated_device(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("numba_cuda")
    status, report = run_cc(tmp_path, "--graphs", "kron:8", "--peers", "none", "--device", "emulated")
    assert status == 0
    assert report["device"] == {"name": "emulated"}
    assert "billion edges/s" in capsys.readouterr().out


def test_cc_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    chart = tmp_path / "cc.svg"
    status, report = run_cc(tmp_path, "--graphs", "kron:8,grid:5", "--peers", "scipy", "--plot", str(chart))
    assert status == 0
    assert set(report) == {"benchmark", "machine", "device", "parameters", "stepped_aside", "graphs", "errors"}
    assert set(report["machine"]) >= {"cpu", "cores", "python", "numpy", "numba", "date"}
    assert report["parameters"] == {
        "graphs": ["kron:8", "grid:5"],
        "trials": 3,
        "runs": 2,
        "budget": 300,
        "threads": 2,
        "verified": False,
    }
    kron, grid = report["graphs"]
    assert (kron["vertices"], grid["vertices"]) == (256, 32)
    graph = _graphs.generate("kron:8")
    assert kron["stored_edges"] == graph.num_stored_edges
    for entry in kron["contestants"]:
        assert entry["answer"] == kron["answer"] == gp.connected_components(graph).count
        assert len(entry["trials"]) == 3
        assert entry["median"] == np.median(entry["trials"])
        assert entry["minimum"] == min(entry["trials"])
        assert entry["quartiles"] == np.percentile(entry["trials"], [25, 75]).tolist()
        assert all(seconds > 0 for runs in entry["runs"] for seconds in runs)
        assert entry["load"] > 0
    ours, scipy, strong = kron["contestants"]
    assert [ours["name"], scipy["name"], strong["name"]] == ["gpu_pregel", "scipy", "scipy-strong"]
    assert ours["ratio"] == 1
    assert scipy["ratio"] == ours["median"] / scipy["median"]
    assert chart.read_text().startswith("<?xml")
    assert "scipy-strong" in capsys.readouterr().out


def test_graph_file_is_accepted_and_cached_once(tmp_path: Path) -> None:
    path = tmp_path / "small.sg"
    gp.Graph.from_edgelist([0, 1, 3], [1, 2, 4], num_vertices=6).save(path)
    for _ in range(2):
        status, report = run_cc(tmp_path, "--graphs", str(path), "--peers", "scipy")
        assert (status, report["graphs"][0]["answer"]) == (0, 3)
        (copy,) = (tmp_path / "cache").glob("*.sg")
        assert copy.read_bytes() == path.read_bytes()


def test_directed_graph_is_read_as_undirected(tmp_path: Path) -> None:
    path = tmp_path / "directed.sg"
    gp.Graph.from_edgelist([0, 2, 3], [1, 1, 4], directed=True).save(path)
    status, report = run_cc(tmp_path, "--graphs", str(path), "--peers", "scipy")
    assert status == 0
    assert (report["graphs"][0]["stored_edges"], report["graphs"][0]["answer"]) == (6, 2)


@pytest.mark.parametrize("arguments", [[], *([name] for name in SUBCOMMANDS)], ids=lambda arguments: "".join(arguments))
def test_help_pages_have_no_markup(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([*arguments, "--help"])
    assert "`" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--graphs", "ring:8"], "ring:8"),
        (["--graphs", "kron:many"], "kron:many"),
        (["--peers", "nobody"], "nobody"),
    ],
)
def test_invalid_arguments(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cc", "--peers", "none", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_missing_peers_are_skipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(Fake, "package", "no_such_package")
    monkeypatch.setitem(peers.PEERS, "fake", (Fake,))
    status, report = run_cc(tmp_path, "--graphs", "kron:8", "--peers", "gapbs,fake,scipy")
    assert status == 0
    assert report["stepped_aside"] == {
        "gapbs": "set GPU_PREGEL_PEERS to the folder with its program (gapbs/cc)",
        "fake": "the package no_such_package is not installed",
    }
    names = [entry["name"] for entry in report["graphs"][0]["contestants"]]
    assert names == ["gpu_pregel", "scipy", "scipy-strong"]
    assert "fake is skipped: the package no_such_package is not installed\n" in capsys.readouterr().err


@pytest.mark.parametrize("answers", [[7], [None, 7]])
def test_wrong_result_is_an_error(
    answers: list[int | None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    right = gp.connected_components(_graphs.generate("kron:8")).count
    given = [right if answer is None else answer for answer in answers]
    monkeypatch.setattr(Fake, "answers", given, raising=False)
    monkeypatch.setitem(peers.PEERS, "fake", (Fake,))
    status, report = run_cc(tmp_path, "--graphs", "kron:8", "--peers", "fake")
    assert status == 1
    (error,) = report["errors"]
    assert error.startswith("kron:8: fake: ")
    assert "7" in error
    assert str(right) in error
    assert report["graphs"][0]["contestants"][1]["ratio"] is None
    assert f"ERROR {error}" in capsys.readouterr().out


def test_right_result_of_the_same_fake_is_accepted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Fake, "answers", [gp.connected_components(_graphs.generate("kron:8")).count], raising=False)
    monkeypatch.setitem(peers.PEERS, "fake", (Fake,))
    assert run_cc(tmp_path, "--graphs", "kron:8", "--peers", "fake")[0] == 0


def test_failing_peer_does_not_affect_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Loading:
        raise RuntimeError("out of luck")

    monkeypatch.setattr(Fake, "open", fail)
    monkeypatch.setitem(peers.PEERS, "fake", (Fake,))
    status, report = run_cc(tmp_path, "--graphs", "kron:8", "--peers", "fake,scipy", "--plot", str(tmp_path / "cc.png"))
    assert status == 1
    assert report["errors"] == ["kron:8: fake: RuntimeError: out of luck"]
    assert report["graphs"][0]["contestants"][2]["median"] > 0


GAPBS_OUTPUT = """\
Read Time:           0.00027
Graph has 1024 nodes and 10496 undirected edges for degree: 10
Trial Time:          0.00010
Trial Time:          0.00008

There are 128 components
Average Time:        0.00009
"""
GEMINI_OUTPUT = """\
active(0)>=1024
exec_time=0.010759(s)
components = 128
exec_time=0.015973(s)
components = 128
"""


@pytest.mark.parametrize(
    ("contestant", "location", "output", "runs", "load"),
    [
        (Gapbs, "gapbs/cc", GAPBS_OUTPUT, [0.0001, 0.00008], 0.00027),
        (Gapbs, "gapbs-cc", GAPBS_OUTPUT, [0.0001, 0.00008], 0.00027),
        (Gemini, "gemini/toolkits/cc", GEMINI_OUTPUT, [0.010759, 0.015973], pytest.approx(0.5, abs=0.49)),
    ],
)
def test_program_output_is_parsed(
    contestant: Any,
    location: str,
    output: str,
    runs: list[float],
    load: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv(PEERS_VARIABLE, str(tmp_path))
    assert str(tmp_path / location) in contestant.why_unavailable(2)
    program = tmp_path / location
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f"#!/bin/sh\nsleep 0.1\ncat <<'END'\n{output}END\n")
    program.chmod(0o755)
    peer = contestant()
    loading = peer.open(tmp_path / "graph", 1024, 2)
    assert (loading.first, loading.answer) == (runs[0], 128)
    assert loading.load == load
    assert peer.trial(2) == Trial(runs, 128)
    program.write_text("#!/bin/sh\necho a note; echo 'no such graph' >&2; exit 3\n")
    with pytest.raises(RuntimeError, match="cc ended with status 3: no such graph"):
        peer.trial(2)
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{output}{output.replace('128', '127')}END\n")
    with pytest.raises(RuntimeError, match="2 different answers"):
        peer.trial(2)


def test_gemini_is_skipped_if_threads_differ_from_processors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "gemini-cc"
    program.touch(mode=0o755)
    monkeypatch.setenv(PEERS_VARIABLE, str(tmp_path))
    monkeypatch.setattr("os.cpu_count", lambda: 4)
    assert Gemini.why_unavailable(4) is None
    assert "not 2" in str(Gemini.why_unavailable(2))


def test_numpy_reads_serialized_graph(tmp_path: Path) -> None:
    graph = _graphs.generate("uniform:6")
    path = tmp_path / "uniform.sg"
    graph.save(path)
    indptr, indices, weights = _graphs.read_serialized(path)
    assert weights is None
    assert _graphs.read_header(path) == (False, graph.num_stored_edges, 64)
    np.testing.assert_array_equal(indptr, graph.indptr)
    np.testing.assert_array_equal(indices, graph.indices)


def test_summary() -> None:
    summary = _measure.Summary.of([5, 1, 2, 4, 3])
    assert (summary.median, summary.minimum, summary.quartiles) == (3, 1, (2, 4))
    assert summary.spread == pytest.approx(2 / 3)


def test_contestants_alternate_until_the_budget_is_spent() -> None:
    calls: list[str] = []
    _measure.in_turn(["a", "b"], 2, calls.append)
    assert calls == ["a", "b", "a", "b"]
    calls.clear()
    _measure.in_turn(["a", "b"], 5, calls.append, budget=0.0)
    assert calls == ["a", "b"]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "-"), (12.34, "12.3 s"), (1.239, "1.24 s"), (0.1234, "123 ms"), (0.00928, "9.28 ms"), (4.5e-6, "4.50 us")],
)
def test_format_seconds(seconds: float | None, text: str) -> None:
    assert _measure.format_seconds(seconds) == text


@pytest.mark.parametrize(
    ("ratio", "text"), [(None, "-"), (2.664, "2.66"), (0.3812, "0.38"), (0.0953, "0.10"), (0.00417, "0.0042")]
)
def test_format_ratio(ratio: float | None, text: str) -> None:
    assert _measure.format_ratio(ratio) == text


def test_table_aligns_figures_right() -> None:
    assert _measure.table(["", "ms"], [["a", "1"], ["bcd", "234"]]) == "      ms\n---  ---\na      1\nbcd  234"


def test_report_is_replaced_atomically(tmp_path: Path) -> None:
    path = tmp_path / "new" / "report.json"
    for number in (1, 2):
        _measure.write_json(path, {"number": number})
        assert json.loads(path.read_text()) == {"number": number}
    assert [file.name for file in path.parent.iterdir()] == ["report.json"]


def test_plot_without_results_is_an_error() -> None:
    with pytest.raises(ValueError, match="nothing to draw"):
        plot.draw({"graphs": []}, Path("never.png"))


@LONG
@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured on Linux only")
def test_build(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "build.json"
    assert main(["build", "--scale", "10", "--trials", "2", "-o", str(output)]) == 0
    report = json.loads(output.read_text())
    assert [entry["name"] for entry in report["contestants"]] == [
        "gpu_pregel",
        "gpu_pregel, ids found",
        "gpu_pregel, ids with gaps",
        "gpu_pregel, sparse ids",
    ]
    assert report["memory"]["input"] == 2 * 4 * 16 * 1024
    assert report["memory"]["peak"] >= report["memory"]["input"]
    assert "gapbs is skipped" in capsys.readouterr().err


def test_built_graph_keeps_duplicates() -> None:
    src, dst = build.random_edges(4)
    assert (src.dtype, len(src), len(dst)) == (np.uint32, 256, 256)
    assert build.build(src, dst, 4, 2).num_stored_edges == 512 - np.count_nonzero(src == dst)


@LONG
def test_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "read.json"
    options = ["--graph", "kron:8", "--trials", "2", "--cache", str(tmp_path), "-o", str(output)]
    assert main(["read", *options]) == 0
    report = json.loads(output.read_text())
    (text,) = tmp_path.glob("*.el")
    assert report["megabytes"] == text.stat().st_size / 1e6
    assert report["megabytes_per_second"] == [report["megabytes"] / seconds for seconds in report["seconds"]]
    assert "MB/s" in capsys.readouterr().out


@LONG
def test_read_detects_missing_edges(tmp_path: Path) -> None:
    _graphs.prepare("kron:8", tmp_path, {".el"})
    (text,) = tmp_path.glob("*.el")
    text.write_text("".join(text.read_text().splitlines(keepends=True)[1:]))
    assert main(["read", "--graph", "kron:8", "--trials", "1", "--cache", str(tmp_path)]) == 1


def test_scaling(tmp_path: Path) -> None:
    output = tmp_path / "scaling.json"
    algorithms = ["--algorithms", "connected_components,triangle_count"]
    assert main(["scaling", "--graphs", "kron:6,kron:8", "--trials", "2", *algorithms, "-o", str(output)]) == 0
    for name, report in json.loads(output.read_text())["algorithms"].items():
        costs = [graph["ns_per_unit"] for graph in report["graphs"]]
        assert costs == [1e9 * graph["median"] / graph["units"] for graph in report["graphs"]]
        assert report["last_to_first"] == costs[1] / costs[0]
        assert report["dearest_to_cheapest"] == max(costs) / min(costs)
        if name == "connected_components":
            assert [graph["units"] for graph in report["graphs"]] == [g["stored_edges"] for g in report["graphs"]]


def test_scaling_rejects_unknown_algorithms(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["scaling", "--graphs", "kron:4", "--algorithms", "sorting"]) == 2
    assert "unknown algorithm: sorting; available algorithms: connected_components" in capsys.readouterr().err


def test_comparisons_of_counting_triangles() -> None:
    """A triangle with a tail: edges from lower to higher degree leave 0: {1, 2}, 1: {2}, 3: {2}."""
    graph = gp.Graph.from_edgelist([0, 1, 0, 2], [1, 2, 2, 3])
    assert scaling.count_comparisons(graph) == (2 + 1) + (2 + 0) + (1 + 0) + (1 + 0)


@LONG
def test_startup(tmp_path: Path) -> None:
    output = tmp_path / "startup.json"
    assert main(["startup", "--scale", "6", "--trials", "1", "-o", str(output)]) == 0
    report = json.loads(output.read_text())
    assert len(report["commands"]) == 3
    assert report["command_seconds"] == report["commands"]["gpu-pregel cc -g 6"]["median"]
