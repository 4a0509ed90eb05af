"""Random graphs end in the same state on LangGraph and here; ``langgraph_oracle`` runs more of them."""

from __future__ import annotations

import random
from itertools import count
from typing import Any

import pytest

from gpu_pregel.workflows import key_folds, node_runner
from tests.devices import LONG
from tests.gpu_pregel.workflows.random_graphs import graph_of
from tests.packages import needs

needs("langgraph", "langgraph")

from tests.gpu_pregel.workflows.langgraph_oracle import disagreements, main  # noqa: E402

_GRAPHS, _CALLS = 6, 6


@pytest.mark.parametrize("defers", [False, True])
def test_random_graphs_agree_with_langgraph(defers: bool) -> None:
    assert [disagreements(seed, defers=defers, calls=_CALLS) for seed in range(_GRAPHS)] == [[]] * _GRAPHS


@pytest.mark.parametrize(
    ("options", "seeds"),
    [
        ({"threads": 1, "calls": _CALLS}, range(60, 64)),
        ({"workers": 2, "ways": ("native",)}, range(3, 4)),
        pytest.param({"workers": 2}, range(60, 80), marks=LONG),
        pytest.param({}, range(100, 400), marks=LONG),
        pytest.param({"defers": True}, range(300), marks=LONG),
    ],
)
def test_random_graphs_agree_wherever_nodes_run(options: dict[str, Any], seeds: range) -> None:
    assert [disagreements(seed, **options) for seed in seeds] == [[]] * len(seeds)


def test_the_command_counts_differences(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--first", "7", "--count", "1"]) == 0
    assert capsys.readouterr().out == "1 graphs, 0 with differences\n"


# Planted faults


def _write_in_another_order(vertex: str) -> Any:
    return tuple(-ord(letter) for letter in vertex)


def _forget_joins(graph: Any, name: str, ended: list[list[str]]) -> list[list[str]]:
    return [[] for _ in ended]


@pytest.mark.parametrize(
    ("module", "name", "fault"),
    [
        (key_folds, "writer_order", _write_in_another_order),
        (node_runner, "without_complete", _forget_joins),
        (node_runner, "arrived", lambda graph, name, value, messages: [sorted(one) for one in graph.joins[name]]),
    ],
)
def test_a_fault_is_found(module: Any, name: str, fault: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, name, fault)
    for seed in count():
        found = disagreements(seed)
        if found:
            assert "LangGraph" in found[1]
            assert "here" in found[1]
            return
        assert seed < 200


def test_random_graphs_have_all_features() -> None:
    graphs = [graph_of(random.Random(seed)) for seed in range(30)]
    nodes = [node for data in graphs for node in data.nodes]
    counts = {
        "joins": sum(bool(data.joins) for data in graphs),
        "several joins": sum(len(data.joins) > 1 for data in graphs),
        "breakpoints": sum(bool(data.before or data.after) for data in graphs),
        "sends": sum(bool(node.sends) for node in nodes),
        "commands": sum(bool(node.goto) and node.form.startswith("command") for node in nodes),
        "deferred": sum(node.defer for node in nodes),
        "questions": sum(node.questions > 0 for node in nodes),
        "failures": sum(bool(node.fails) for node in nodes),
        "routes": sum(router.routed for data in graphs for router in data.routers),
    }
    assert min(counts.values()) >= 5, counts
