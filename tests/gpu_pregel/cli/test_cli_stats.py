"""Tests of ``gpu-pregel stats``: figures with known answers, NetworkX as an oracle, the plot, and bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.cli import main, make_parser
from gpu_pregel.cli import stats as stats_command

CPU = {"device": "cpu", "threads": 2}


def test_figures_of_a_small_undirected_graph() -> None:
    graph = gp.Graph.from_edgelist([0, 0, 1, 2, 3], [1, 1, 2, 2, 4], [5, 1, 2, 8, 4], num_vertices=6)
    assert stats_command.collect(graph, CPU) == {
        "vertices": 6,
        "edges": 5,
        "stored_edges": 9,
        "directed": False,
        "density": 2 * 5 / (6 * 5),
        "self_loops": 1,
        "duplicate_edges": 1,
        "weights": {"dtype": "int64", "min": 1, "mean": pytest.approx(32 / 9), "max": 8},
        "degree": {"min": 0, "mean": 1.5, "max": 3, "25%": 1, "50%": 1.5, "75%": 2, "90%": 2.5, "99%": 2.95},
        "isolated_vertices": 1,
        "components": 3,
        "largest_component": 3,
        "diameter_at_least": 2,
    }


def test_figures_of_a_small_directed_graph() -> None:
    graph = gp.Graph.from_edgelist([0, 1, 2, 2, 2], [1, 2, 0, 3, 3], num_vertices=5, directed=True)
    found = stats_command.collect(graph, CPU)
    assert (found["edges"], found["density"], found["duplicate_edges"]) == (5, 5 / 20, 1)
    assert (found["out_degree"]["max"], found["in_degree"]["max"]) == (3, 2)
    assert (found["isolated_vertices"], found["weak_components"], found["largest_weak_component"]) == (1, 2, 4)
    assert (found["strong_components"], found["largest_strong_component"], found["diameter_at_least"]) == (3, 3, 2)


@pytest.mark.parametrize("edges", [[], [(0, 0)]])
@pytest.mark.parametrize("directed", [False, True])
def test_graphs_without_proper_edges(edges: list[tuple[int, int]], directed: bool, tmp_path: Path) -> None:
    src, dst = [u for u, _ in edges], [v for _, v in edges]
    graph = gp.Graph.from_edgelist(src, dst, directed=directed)
    graph.save(tmp_path / "graph.pregel")
    found = stats_command.collect(graph, CPU)
    assert (found["density"], found["self_loops"], found["edges"]) == (0, len(edges), len(edges))
    assert main(["stats", str(tmp_path / "graph.pregel"), "--plot", str(tmp_path / "degrees.png")]) == 0


@pytest.mark.parametrize("directed", [False, True])
def test_figures_agree_with_networkx(directed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stats_command, "_EDGES_AT_ONCE", 100)
    rng = np.random.default_rng(5)
    src, dst = rng.integers(0, 60, (2, 150))
    graph = gp.Graph.from_edgelist(src, dst, num_vertices=60, directed=directed)
    peer: Any = networkx.MultiDiGraph() if directed else networkx.MultiGraph()
    peer.add_nodes_from(range(60))
    peer.add_edges_from(zip(src.tolist(), dst.tolist(), strict=True))
    found = stats_command.collect(graph, CPU)
    simple = networkx.DiGraph(peer) if directed else networkx.Graph(peer)
    weak = list((networkx.weakly_connected_components if directed else networkx.connected_components)(peer))
    assert found["density"] == pytest.approx(networkx.density(peer))
    assert found["self_loops"] == networkx.number_of_selfloops(peer)
    assert found["duplicate_edges"] == peer.number_of_edges() - simple.number_of_edges()
    assert found["isolated_vertices"] == networkx.number_of_isolates(peer)
    kind = "weak_" if directed else ""
    assert (found[f"{kind}components"], found[f"largest_{kind}component"]) == (len(weak), max(map(len, weak)))
    hops = [max(reached.values()) for _, reached in networkx.all_pairs_shortest_path_length(simple)]
    start = int(graph.out_degrees.argmax())
    assert max(networkx.single_source_shortest_path_length(simple, start).values()) <= found["diameter_at_least"]
    assert found["diameter_at_least"] <= max(hops)
    if directed:
        strong = [len(one) for one in networkx.strongly_connected_components(peer)]
        assert (found["strong_components"], found["largest_strong_component"]) == (len(strong), max(strong))


@pytest.mark.parametrize(
    ("src", "dst", "directed", "expected"),
    [
        (range(50), range(1, 51), False, 50),
        (range(50), range(1, 51), True, 50),
        (range(50, 0, -1), range(49, -1, -1), True, 50),
        (range(10), [*range(1, 10), 0], True, 9),
        (range(10), [*range(1, 10), 0], False, 5),
        ([0] * 5, range(1, 6), False, 2),
    ],
)
def test_the_double_sweep_finds_the_diameter_of_trees_and_rings(
    src: Any, dst: Any, directed: bool, expected: int
) -> None:
    graph = gp.Graph.from_edgelist([f"v{u}" for u in src], [f"v{v}" for v in dst], directed=directed)
    assert stats_command.collect(graph, CPU)["diameter_at_least"] == expected


def test_output_and_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "path.el"
    path.write_text("0 1\n1 2\n2 3\n")
    assert main(["stats", str(path), "--directed"]) == 0
    out, err = capsys.readouterr()
    assert "out degree                min 0, mean 0.75, max 1, 25% 0.75, 50% 1, 75% 1, 90% 1, 99% 1\n" in out
    assert "directed                  yes\n" in out
    assert "weights                   none\n" in out
    assert "4 vertices, 3 stored edges, directed" in err
    assert main(["stats", "-g", "6", "--json", "--device", "cpu", "--threads", "1"]) == 0
    found = json.loads(capsys.readouterr().out)
    graph = gp.kronecker(6)
    assert (found["graph"], found["stored_edges"]) == ("kronecker 6", graph.num_stored_edges)
    assert found["degree"]["max"] == graph.out_degrees.max()


def test_the_file_may_be_given_as_in_other_commands() -> None:
    parser = make_parser()
    for words in (["stats", "a.csv"], ["stats", "-f", "a.csv"], ["stats", "--directed", "-f", "a.csv", "--json"]):
        assert parser.parse_args(words).f == "a.csv"
    assert parser.parse_args(["stats", "-g", "4"]).f is None
    for words in (["stats"], ["stats", "-f", "a.csv", "b.csv"], ["stats", "-g", "4", "b.csv"]):
        with pytest.raises(SystemExit):
            parser.parse_args(words)


def test_figures_of_a_public_graph(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """SNAP states the sizes of the largest weak and the largest strong component of wiki-Vote."""
    assert main(["stats", str(data / "snap" / "wiki-Vote.txt"), "--directed", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["vertices"], found["edges"], found["largest_weak_component"]) == (7115, 103689, 7066)
    assert found["largest_strong_component"] == 1300


@pytest.mark.parametrize(("name", "start"), [("degrees.svg", b"<?xml"), ("degrees.png", b"\x89PNG")])
def test_plot(name: str, start: bytes, tmp_path: Path) -> None:
    pairs = tmp_path / "pairs.el"
    pairs.write_text("0 1\n0 2\n3 0\n")
    assert main(["stats", str(pairs), "--directed", "--plot", str(tmp_path / name)]) == 0
    image = (tmp_path / name).read_bytes()
    assert image.startswith(start)
    assert name.endswith("png") or image.count(b'<g id="line2d_') > 2
    assert sorted(path.name for path in tmp_path.iterdir()) == [name, "pairs.el"]


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        ([], 2, "one of the arguments -g -u --grid -f FILE is required"),
        (["a.el", "-g", "4"], 2, "not allowed with"),
        (["nowhere.el"], 1, "nowhere.el: no such file"),
        (["-g", "4", "--plot", "degrees.pdf"], 2, "--plot degrees.pdf: unsupported suffix: use .png or .svg"),
        (["-g", "4", "--plot", "nowhere/degrees.png"], 2, "nowhere"),
        (["-g", "99"], 2, "-g must be from 0 to 31"),
        (["-g", "4", "--device", "tpu"], 2, "unknown device 'tpu'"),
    ],
)
def test_bad_input_is_rejected_before_any_work(
    arguments: list[str],
    status: int,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def work(*_: object) -> None:
        raise AssertionError("work has started")

    monkeypatch.setattr("gpu_pregel.cli._common.load_graph", work)
    try:
        result = main(["stats", *arguments])
    except SystemExit as error:
        result = int(str(error.code))
    out, err = capsys.readouterr()
    assert (result, out) == (status, "")
    assert message in err
