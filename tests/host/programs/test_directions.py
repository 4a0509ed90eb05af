"""The direction rule: when a superstep pushes, and which programs cannot."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError
from gpu_pregel.host.programs.compiler import compile_program
from gpu_pregel.host.programs.direction_costs import DirectionCosts
from gpu_pregel.host.programs.directions import DirectionRule, make_direction_rule
from gpu_pregel.host.programs.state import Activity
from gpu_pregel.host.traverse.directions import PULL_SHARE
from gpu_pregel.host.traverse.operators_cpu import CpuOperators
from tests.devices import EMULATED
from tests.programs import LABELS, PAIRS, RANKS, SEARCH


@pytest.mark.parametrize("stored", [0, 1, 19, 20, 21, 1000, 1001])
def test_a_superstep_pushes_with_few_active_edges(stored: int) -> None:
    rule = DirectionRule("auto", True, stored)
    for active in range(stored + 1):
        chosen = rule.choose(Activity(1, active))
        assert chosen == ("push" if active < stored / PULL_SHARE else "pull")
        # The device applies the same threshold to a superstep that follows a push.
        assert rule.push_limit is not None
        assert (chosen == "push") == (active <= rule.push_limit)


@pytest.mark.parametrize(
    ("sent", "active", "chosen"),
    # Of 1000 edges, a pull of 100 rows reads those that nobody has sent along, which are counted as one more per row.
    [(0, 49, "push"), (0, 50, "pull"), (900, 9, "push"), (900, 10, "pull"), (990, 5, "push"), (990, 6, "pull")],
)
def test_a_search_pulls_earlier_when_few_vertices_are_left(sent: int, active: int, chosen: str) -> None:
    rule = DirectionRule("auto", True, 1000, search_vertices=100)
    assert rule.choose(Activity(1, active), sent) == chosen
    assert rule.name(Activity(1, active), sent) == ("unexplored" if sent else "1/20")
    assert DirectionRule("auto", True, 1000).choose(Activity(1, active), sent) == ("push" if active < 50 else "pull")


def test_vertices_that_send_twice_are_no_search() -> None:
    assert DirectionRule("auto", True, 1000, search_vertices=100).choose(Activity(1, 49), 952) == "push"


@pytest.mark.parametrize("changes", [{"receives": None}, {"combine": "min"}])
def test_a_search_takes_one_message_per_vertex(changes: dict[str, Any]) -> None:
    for program, vertices in ((SEARCH, 9), (replace(SEARCH, combine="min", ascending=True), 9)):
        compiled = compile_program(program, weight=None)
        rule = make_direction_rule(program, compiled, 99, vertices=9, mode="auto", deterministic=True)
        assert rule.search_vertices == vertices
    other = replace(SEARCH, **changes)
    rule = make_direction_rule(other, compiled, 99, vertices=9, mode="auto", deterministic=True)
    assert rule.search_vertices is None


def test_a_mode_fixes_the_direction() -> None:
    for mode in ("push", "pull"):
        rule = DirectionRule(mode, True, 1000)
        assert {rule.choose(Activity(1, active)) for active in (0, 10, 1000)} == {mode}
        assert rule.push_limit is None


def test_a_program_that_cannot_push_pulls() -> None:
    for program, problem in (
        (PAIRS, "messages are tuples"),
        (RANKS, r"floating-point messages .*\(deterministic=False"),
        (replace(RANKS, combine=gp.Combiner(lambda a, b: a + b, 0.0)), "floating-point messages"),
    ):
        compiled = compile_program(program, weight=None)
        rule = make_direction_rule(program, compiled, 1000, mode="auto", deterministic=True)
        assert rule.choose(Activity(0, 0)) == "pull"
        with pytest.raises(
            ArgumentError, match=rf"mode='push' is not possible: {problem}.*; use mode='pull' or 'auto'"
        ):
            make_direction_rule(program, compiled, 1000, mode="push", deterministic=True)


@pytest.mark.parametrize(
    ("program", "options", "rule"),
    [
        (LABELS, {}, "1/20"),
        (SEARCH, {}, "1/20"),
        (LABELS, {"mode": "pull"}, "mode"),
        (RANKS, {"max_supersteps": 2}, "only"),
        (LABELS, {"device": "agents"}, "only"),
        (LABELS, {"device": "python"}, "1/20"),
        pytest.param(LABELS, {"device": "emulated"}, "cost", marks=EMULATED),
    ],
)
def test_the_trace_says_what_chose_the_direction(program: gp.VertexProgram, options: dict[str, Any], rule: str) -> None:
    trace = gp.run(gp.grid(5), program, **{"device": "cpu", **options}).trace
    assert [row["rule"] for row in trace][:2] == ["only", rule]
    if program is SEARCH:
        assert {row["rule"] for row in trace[2:-1]} == {"unexplored"}


def test_the_trace_of_operators_says_what_chose_the_direction() -> None:
    frontier = gp.Frontier(gp.grid(30, holes=0), [0], device="cpu")
    for mode in ("auto", "push", "pull"):
        gp.process_edges(lambda u, v, weight: False, frontier, mode=mode)
    gp.process_vertices(lambda v: False, frontier)
    rows = [(row["direction"], row["rule"]) for row in frontier.trace()]
    assert rows == [("push", "1/20"), ("push", "mode"), ("pull", "mode"), ("vertices", "only")]


def test_the_trace_says_where_a_gpu_does_not_pull(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CpuOperators, "pushes_to_all", True)
    frontier = gp.Frontier(gp.grid(4, holes=0), [0, 1, 2, 3], device="cpu")
    gp.process_edges(lambda u, v, weight: False, frontier)
    assert [(row["direction"], row["rule"]) for row in frontier.trace()] == [("push", "only push")]


def test_costs_replace_the_rule_on_a_gpu() -> None:
    compiled = compile_program(LABELS, weight=None)
    costs = DirectionCosts(9, 99, 4, 4, 4, 8, True, False, False, 1 << 20)
    rule = make_direction_rule(LABELS, compiled, 99, mode="auto", deterministic=True, costs=costs)
    assert rule.name(Activity(1, 9), 9) == "cost"


def test_programs_that_can_push() -> None:
    for program, deterministic in ((LABELS, True), (RANKS, False), (replace(LABELS, value=np.float32), True)):
        compiled = compile_program(program, weight=None)
        assert make_direction_rule(program, compiled, 9, mode="push", deterministic=deterministic).can_push
