"""Several runs with the same checked options, and their stored form."""

from __future__ import annotations

from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.agents import RetryPolicy, Vertex
from gpu_pregel.errors import ArgumentTypeError
from gpu_pregel.host.agents.agent_run import AgentRun
from gpu_pregel.host.agents.initial_state import initial_state
from gpu_pregel.host.agents.options import RunOptions, make_options
from gpu_pregel.host.agents.recovery import begin_state
from gpu_pregel.host.agents.run import finish
from gpu_pregel.host.agents.stored_options import describe_options


def show_key(ctx: Any) -> None:
    ctx.value = ctx.key
    ctx.vote_to_halt()


def run_again(vertices: list[Vertex], options: RunOptions, run_id: str | None) -> gp.agents.AgentResult:
    return finish(AgentRun(options, begin_state(initial_state(vertices, options), options, run_id=run_id)))


def test_checked_options_serve_for_runs_with_other_ids() -> None:
    options = make_options("test", show_key, {})
    found = [run_again([Vertex("a")], options, run_id).values["a"] for run_id in ("one", "two", None, None)]
    assert len(set(found)) == 4
    assert found[:2] == [gp.agents.run([Vertex("a")], show_key, run_id=one).values["a"] for one in ("one", "two")]
    assert options.run_id is None


def test_checked_options_serve_for_runs_in_one_store() -> None:
    store = gp.MemoryStore()
    options = make_options("test", show_key, {"store": store})
    for run_id in ("one", "two"):
        assert run_again([Vertex("a")], options, run_id).status == "completed"
    assert [gp.agents.state_at(store, one).status for one in ("one", "two")] == ["completed"] * 2


def test_unknown_options_are_named() -> None:
    with pytest.raises(ArgumentTypeError, match=r"^test has no parameter _, given, retries$"):
        make_options("test", show_key, {"retries": 1, "given": (), "_": 1})


def test_the_stored_form_follows_adopted_options() -> None:
    options = make_options("test", show_key, {})
    before = describe_options(options)
    assert before["retry"][0] == 3
    before.clear()  # a copy
    options.adopt({"retry": RetryPolicy(attempts=5)})
    assert describe_options(options)["retry"][0] == 5
