"""Retries, timeouts and error handlers of nodes, on threads and in workers."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.agents import RetryPolicy
from gpu_pregel.errors import AgentsFailedError
from gpu_pregel.workflows import END, START, Command, Send, StateGraph, interrupt
from tests.devices import LONG
from tests.gpu_pregel.workflows.small_graphs import Notes, acall, call, noted, single, thread

AT_ONCE = RetryPolicy(attempts=3, wait=0)
TWICE = RetryPolicy(attempts=2, wait=0)
WHERE = pytest.mark.parametrize("workers", [0, 1])


def flaky(state: Any, context: Any) -> dict[str, Any]:
    """Fail twice."""
    if context.attempt < 3:
        raise OSError(f"try {context.attempt}")
    return {"log": [context.attempt]}


async def async_flaky(state: Any, context: Any) -> dict[str, Any]:
    await asyncio.sleep(0)
    return flaky(state, context)


def tell(state: Any, error: Exception) -> dict[str, Any]:
    return {"log": f"{type(error).__name__}: {error}"}


async def async_tell(state: Any, error: Exception) -> dict[str, Any]:
    await asyncio.sleep(0)
    return tell(state, error)


def sleepy(state: Any) -> None:
    time.sleep(30)


async def async_sleepy(state: Any) -> None:
    await asyncio.sleep(30)


def dying(state: Any) -> None:
    os.kill(os.getpid(), 9)


@pytest.mark.parametrize(("way", "workers"), [(call, 0), (acall, 0), (call, 1), pytest.param(acall, 1, marks=LONG)])
@pytest.mark.parametrize("node", [flaky, async_flaky])
def test_retries(way: Callable[..., Any], workers: int, node: Callable[..., Any]) -> None:
    app = single(node, options={"workers": workers}, retry=AT_ONCE)
    assert way(app, {}) == {"log": [3]}
    with pytest.raises(AgentsFailedError, match="'a': OSError: try 2"):
        way(single(node, options={"workers": workers}, retry=TWICE), {})


def test_each_node_has_its_own_policy_or_that_of_the_graph() -> None:
    tries: list[tuple[str, int]] = []

    def node(name: str) -> Callable[..., Any]:
        def run(state: Any, context: Any) -> None:
            tries.append((name, context.attempt))
            raise OSError(name)

        return run

    graph = StateGraph(Notes).add_node("a", node("a"), retry=TWICE).add_node("b", node("b"))
    graph.add_node("c", node("c"), retry=RetryPolicy(attempts=1)).add_edge(START, "a").add_edge(START, "b")
    with pytest.raises(AgentsFailedError):
        graph.add_edge(START, "c").compile(retry=AT_ONCE).invoke({})
    assert sorted(tries) == [("a", 1), ("a", 2), ("b", 1), ("b", 2), ("b", 3), ("c", 1)]


def test_only_matching_exceptions_are_tried_again() -> None:
    retry = RetryPolicy(attempts=3, wait=0, exceptions=(KeyError,))
    with pytest.raises(AgentsFailedError, match="try 1"):
        single(flaky, retry=retry).invoke({})
    app = single(flaky, retry=retry, error_handler=tell)
    assert app.invoke({})["log"] == ["OSError: try 1"]


@WHERE
@pytest.mark.parametrize("handler", [tell, async_tell])
def test_error_handlers(workers: int, handler: Callable[..., Any]) -> None:
    app = single(flaky, options={"workers": workers}, retry=TWICE, error_handler=handler)
    assert app.invoke({})["log"] == ["OSError: try 2"]


def test_an_error_handler_returns_what_a_node_would() -> None:
    def handle(state: Any, error: Exception) -> Command:
        return Command(update={"log": str(error)}, goto=["b", Send("b", {})])

    graph = StateGraph(Notes).add_node("a", flaky, error_handler=handle, destinations=("b",))
    app = graph.add_node("b", lambda state: {"log": "b"}).add_edge(START, "a").compile()
    assert app.invoke({})["log"] == ["try 1", "b", "b"]


WRONG: dict[str, tuple[Any, str]] = {
    "unknown key": ({"z": 1}, "ArgumentError: node 'a' writes 'z'"),
    "number": (5, "ArgumentTypeError: node 'a' must give a dict"),
    "goto": (Command(goto=5), "ArgumentTypeError: goto must be"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("case", WRONG)
def test_error_handlers_see_wrong_outputs(case: str) -> None:
    returned, text = WRONG[case]
    (told,) = single(lambda state: returned, error_handler=tell).invoke({})["log"]
    assert told.startswith(text)


def test_an_error_handler_that_raises_fails_the_node() -> None:
    def handle(state: Any, error: Exception) -> None:
        raise KeyError("handler") from error

    with pytest.raises(AgentsFailedError, match="'a': KeyError: 'handler'"):
        single(flaky, error_handler=handle).invoke({})


def test_an_error_handler_takes_the_place_of_a_refused_update() -> None:
    def handle(state: Any, error: Exception) -> dict[str, Any]:
        return {"log": type(error).__name__}

    graph = StateGraph(Notes).add_node("a", lambda state: {"x": 1}, error_handler=handle)
    graph.add_node("b", lambda state: {"x": 2}, error_handler=handle).add_edge(START, "a").add_edge(START, "b")
    assert graph.compile().invoke({})["log"] == ["TimeoutError", "TimeoutError"]


def test_an_error_handler_does_not_see_questions() -> None:
    app = single(lambda state: {"log": interrupt("?")}, options={"store": gp.MemoryStore()}, error_handler=tell)
    assert "__interrupt__" in app.invoke({}, thread())
    assert app.invoke(Command(resume="yes"), thread())["log"] == ["yes"]


# Timeouts.


@pytest.mark.parametrize(("way", "workers"), [(call, 0), (acall, 0), (call, 1), pytest.param(acall, 1, marks=LONG)])
@pytest.mark.parametrize("node", [sleepy, async_sleepy])
def test_timeouts(way: Callable[..., Any], workers: int, node: Callable[..., Any]) -> None:
    begin = time.monotonic()
    with pytest.raises(AgentsFailedError, match=r"'a': TimeoutError: took more than 0.2 s"):
        way(single(node, options={"workers": workers}, timeout=0.2), {})
    assert time.monotonic() - begin < 10


@WHERE
@pytest.mark.parametrize("node", [sleepy, async_sleepy])
def test_timeouts_are_tried_again_and_handled(workers: int, node: Callable[..., Any]) -> None:
    app = single(node, options={"workers": workers}, timeout=0.1, retry=TWICE, error_handler=tell)
    (told,) = app.invoke({})["log"]
    assert told.startswith("TimeoutError: ")


@WHERE
def test_only_the_late_node_is_ended(workers: int) -> None:
    graph = StateGraph(Notes).add_node("late", sleepy, timeout=0.3, error_handler=lambda state, error: {"log": "late"})
    graph.add_node("a", noted("a")).add_edge(START, "late").add_edge(START, "a").add_edge("late", END)
    assert sorted(graph.compile(workers=workers).invoke({})["log"]) == ["a", "late"]


@WHERE
def test_heartbeats_extend_a_timeout(workers: int) -> None:
    def node(state: Any, context: Any) -> dict[str, Any]:
        for _ in range(6):
            time.sleep(0.1)
            context.heartbeat()
        return {"log": "beat"}

    assert single(node, options={"workers": workers}, timeout=0.4).invoke({})["log"] == ["beat"]


def test_what_an_abandoned_node_does_has_no_effect() -> None:
    def node(state: Any, context: Any) -> dict[str, Any]:
        if context.attempt == 1:
            time.sleep(0.4)
        return {"log": [context.attempt]}

    app = single(node, timeout=0.2, retry=TWICE)
    assert app.invoke({})["log"] == [2]


# The death of a worker.


def test_a_worker_that_dies() -> None:
    with pytest.raises(AgentsFailedError, match="'a': WorkerDied"):
        single(dying, options={"workers": 1}).invoke({})
    (told,) = single(dying, options={"workers": 1}, error_handler=tell).invoke({})["log"]
    assert "its worker died" in told


def test_a_worker_that_dies_once(tmp_path: Any) -> None:
    flag = tmp_path / "died"

    def node(state: Any) -> dict[str, Any]:
        if not flag.exists():
            flag.touch()
            os.kill(os.getpid(), 9)
        return {"log": "alive"}

    graph = StateGraph(Notes).add_node("a", node, retry=TWICE).add_node("b", lambda state: {"log": "b"})
    app = graph.add_edge(START, "a").add_edge(START, "b").compile(workers=1)
    assert app.invoke({})["log"] == ["alive", "b"]
