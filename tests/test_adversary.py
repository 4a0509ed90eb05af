"""Tests of what ``python -m tests.adversary`` finds; no run is disturbed here."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from tests.adversary import partitions
from tests.adversary.__main__ import main, table
from tests.adversary.askers import AskerTrial
from tests.adversary.campaigns import CAMPAIGNS, Report
from tests.adversary.evidence import Findings, Kill, Line, check_end, check_kills, check_repeats
from tests.adversary.graph_kills import GraphTrial
from tests.adversary.program import RUN, VERTICES, Settings, program
from tests.adversary.weight_oracles import Edges, check_paths, check_walks
from tests.adversary.weights import CHECKS, takes_weighted, try_graph
from tests.crashes import run_to_end
from tests.programs import HOPS

# What is found


def test_nodes_that_run_again_and_other_states_are_found(tmp_path: Path) -> None:
    trial = GraphTrial(1, tmp_path)
    trial.run(0)
    assert trial.found.problems == []
    lines = (tmp_path / "log").read_text().splitlines()
    repeated, *_ = lines[-1].split(" ")
    trial.judge([(len(lines) - 1, {repeated})])
    assert trial.found.problems == [f"twice: {lines[-1]}"]
    other = GraphTrial(2, tmp_path)
    other.judge([])
    assert len(other.found.errors) == 1


def line(kind: str, incarnation: str, place: tuple[int, str], time: float) -> Line:
    return Line(kind, incarnation, place, 1, "key", time)


def test_an_effect_that_is_repeated_though_its_record_was_durable_is_found() -> None:
    a, b, found = (1, "a"), (1, "b"), Findings()
    lines = [line("effect", "i0", a, 0.0), line("effect", "i0", b, 0.1), line("effect", "i1", b, 0.5)]
    kill = Kill("i0", 0.2, frozenset([a]), "here")
    check_kills(lines, [kill], 0.0, found)
    check_repeats(lines, {}, 0.0, found)
    assert found.problems == []
    check_kills([*lines, line("effect", "i1", a, 0.6)], [kill], 0.0, found)
    assert found.problems == ["twice: (1, 'a') had been durable when i0 was killed here"]


def test_a_finished_record_that_is_not_durable_in_time_is_found() -> None:
    found = Findings()
    lines = [line("finish", "i0", (1, vertex), time) for vertex, time in [("a", 0.0), ("b", 0.95), ("c", 0.99)]]
    check_kills(lines, [Kill("i0", 1.0, frozenset([(1, "a")]), "here")], 0.01, found)
    assert found.problems == ["forgotten: (1, 'b'), finished 50.0 ms before a kill here"]
    assert found.ages == pytest.approx([0.05, 0.01])


def test_an_effect_that_is_repeated_without_a_reason_is_found() -> None:
    a, found = (1, "a"), Findings()
    lines = [line("effect", "i0", a, 0.0), line("finish", "i0", a, 0.1), line("effect", "i0", a, 0.5)]
    check_repeats(lines, {1: 0.1005}, 0.0, found)
    assert (found.problems, found.repeated) == ([], 1)
    check_repeats(lines, {2: 0.1005}, 0.0, found)
    check_repeats(lines, {1: 0.2}, 0.0, found)
    assert found.problems == [
        "twice: (1, 'a') in i0, where no worker had died",
        "forgotten: (1, 'a'), finished 100.0 ms before its worker was killed",
    ]


def test_differences_of_a_run_that_has_ended_are_found(tmp_path: Path) -> None:
    with gp.MemoryStore() as store:
        options = program(Settings(str(tmp_path / "log"), "i0", steps=5, pause=0.0))
        with gp.agents.start(VERTICES, **options, store=store, run_id=RUN) as agents:
            for message in (1, 1, 3):
                agents.send("till", message)
            run_to_end(agents)
        found = Findings()
        check_end(store, [line("effect", "i0", (0, "x"), 0.0)], 6, [1, 2], [], found)
    assert {"the result is another one; the timer came 1 times", "message 2 was not received"} <= {*found.lost}
    assert {"(5, 'a') has no record", "(0, 'x') has an effect and no record"} <= {*found.lost}
    assert found.twice == ["message 1 was received 2 times", "message 3 was not sent"]


# Random graphs and programs


def test_each_algorithm_with_weights_has_a_check() -> None:
    assert takes_weighted() <= CHECKS.keys()


def test_extreme_weights() -> None:
    for seed in range(4):
        assert try_graph(random.Random(f"weights {seed}"), ("python",)) == []


def test_wrong_results_for_extreme_weights_are_found() -> None:
    edges = Edges(3, True, [(0, 1), (0, 2), (1, 2)], np.array([1e20, 1e20, 1.0]))
    found = gp.sssp(gp.Graph.from_edgelist([0, 0, 1], [1, 2, 2], edges.weights, directed=True), 0, device="cpu")
    assert check_paths(edges, {"source": [0]}, found) == []
    assert check_paths(edges, {"source": [1]}, found) != []
    assert check_walks(edges, {"p": 1.0, "q": 1.0}, np.array([[0, 1, 2, -1]])) == []
    assert check_walks(edges, {"p": 1.0, "q": 1.0}, np.array([[0, 1, 0, 2]])) != []


def test_runs_that_depend_on_the_number_of_partitions_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = gp.uniform(scale=9, edge_factor=1, seed=1)
    options = {"parameters": None, "frontier": [0], "device": "cpu", "on_limit": "return"}
    assert partitions.differences(random.Random(1), graph, HOPS, options, rounds=False) == []
    run = partitions._run

    def other(graph: gp.Graph, program: gp.VertexProgram, options: dict[str, Any]) -> Any:
        found = run(graph, program, options)
        return found._replace(values=found.values + options["partitions"])

    monkeypatch.setattr(partitions, "_run", other)
    found = partitions.differences(random.Random(1), graph, HOPS, options, rounds=False)
    assert [problem.partition(":")[0] for problem in found][:2] == ["2 partitions", "5 partitions"]


# The command


def test_the_command_runs_a_campaign_and_writes_its_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "report.json"
    assert main(["--only", "programs", "--count", "1", "--seed", "3", "--minutes", "0", "--json", str(file)]) == 0
    assert capsys.readouterr().out.splitlines()[2].split()[:3] == ["programs", "0", "programs"]
    assert '"seed": 3' in file.read_text()


def test_the_table_shows_what_was_found_and_what_was_skipped() -> None:
    reports = [
        Report("a", "kills", 2, 1, Findings(lost=["x"], ages=[0.5])),
        Report("b", "kills", skipped="there is no server"),
    ]
    text = table(reports).splitlines()
    assert text[1].split() == ["a", "2", "kills", "1", "1", "0", "0", "0", "0", "500", "ms", "of", "1", "0"]
    assert "b was skipped: there is no server" in text


def test_the_whole_table_has_the_numbers_of_its_documentation() -> None:
    counts: Counter[str] = Counter()
    for campaign in CAMPAIGNS:
        target = campaign.ways[0].target if campaign.ways else campaign.unit
        counts["asker" if campaign.kind is AskerTrial else target] += campaign.count
    assert counts == {
        "master": 1000,
        "worker": 500,
        "asker": 160,
        "server": 100,
        "fights": 50,
        "programs": 300,
        "sweeps": 200,
        "graphs": 600,
        "weighted graphs": 2000,
        "vertex programs": 200,
        "graph kills": 260,
    }
