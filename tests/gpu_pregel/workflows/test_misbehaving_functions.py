"""Functions that change what they are given, end programs, ask in the words of subgraphs, or make runs of their own."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable
from typing import Annotated, Any, TypedDict

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import AgentError, NodesFailedError
from gpu_pregel.host.agents.retry import RetryPolicy
from gpu_pregel.workflows import END, START, CompiledGraph, Send, StateGraph, append, interrupt
from tests.gpu_pregel.workflows.small_graphs import WAYS, Notes, asked, single, thread

SECONDS = 20


def meddle(old: list[Any], new: list[Any]) -> list[Any]:
    """Change both arguments."""
    new.append(len(new))
    old.extend(new)
    return old


class Lists(TypedDict, total=False):
    plain: list[Any]
    log: Annotated[list[Any], append]
    meddled: Annotated[list[Any], meddle]


WRITES: dict[str, Any] = {"plain": [[1]], "log": [[2]], "meddled": [[3]]}


@pytest.mark.parametrize("source", [START, "a"])
def test_nobody_sees_what_routers_and_reducers_change(source: str) -> None:
    seen = []

    def route(state: dict[str, Any]) -> str:
        seen.append(repr(state))
        for value in state.values():
            value[0].append("changed")
            value.clear()
        return END

    graph = StateGraph(Lists).add_node("a", lambda state: WRITES if source == "a" else None)
    for name in ("one", "other"):
        graph.add_conditional_edges(
            source, lambda state, name=name: route(state), ["a", END] if name == "one" else None
        )
    graph.add_edge(START, "a")
    output = graph.compile().invoke({} if source == "a" else WRITES)
    assert output == {"plain": [[1]], "log": [[2]], "meddled": [[3], 1]}
    assert seen == [repr(output)] * 2
    assert WRITES == {"plain": [[1]], "log": [[2]], "meddled": [[3]]}


def reducing(reducer: Callable[[Any, Any], Any], **options: Any) -> CompiledGraph:
    state: Any = TypedDict("state", {"x": Annotated[Any, reducer]}, total=False)
    graph = StateGraph(state).add_node("a", lambda state: {"x": 1})
    app: CompiledGraph = graph.add_edge(START, "a").compile(**options)
    return app


@WAYS
@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit(), asyncio.CancelledError(), StopIteration()], ids=repr)
def test_a_reducer_that_ends_programs_fails_its_node(way: Any, error: BaseException) -> None:
    def end(old: Any, new: Any) -> Any:
        raise error

    store = gp.MemoryStore()
    with pytest.raises(
        NodesFailedError, match=f"node 'a': AgentError: the reducer of key 'x' failed: {type(error).__name__}"
    ):
        way(reducing(end, store=store), {"x": 0}, thread())
    assert way(reducing(lambda old, new: old + new, store=store), None, thread()) == {"x": 1}


def test_errors_of_values_name_the_key() -> None:
    with pytest.raises(NodesFailedError, match="the value of key 'x' is of type object, which cannot be encoded"):
        reducing(lambda old, new: object()).invoke({"x": 0})
    with pytest.raises(AgentError, match="the input: the reducer of key 'x' failed: TypeError: can only concatenate"):
        StateGraph(Sums).add_node("a", lambda state: None).add_edge(START, "a").compile().invoke({"x": 5})


def add(old: list[int], new: list[int]) -> list[int]:
    return old + new


class Sums(TypedDict):
    x: Annotated[list[int], add]


@pytest.mark.parametrize("payload", [("__nested__",), ("__nested__", [("0:a:0", "a", 1)])], ids=repr)
def test_questions_in_the_words_of_subgraphs_are_refused(payload: Any) -> None:
    app = single(lambda state: {"x": interrupt(payload)}, options={"store": gp.MemoryStore()})
    with pytest.raises(NodesFailedError, match="a question must not begin with '__nested__'"):
        app.invoke({}, thread())
    assert app.get_state(thread()).next == ("a",)


def test_questions_may_begin_with_an_array() -> None:
    app = single(lambda state: {"x": interrupt((np.arange(3), 1))}, options={"store": gp.MemoryStore()})
    (payload,) = asked(app.invoke({}, thread()))
    assert payload[0].tolist() == [0, 1, 2]


# Runs within runs.


async def write(state: Any) -> dict[str, Any]:
    return {"log": "async"}


def nested(count: int) -> CompiledGraph:
    """Return a graph whose ordinary node calls a graph on an event loop of its own, for several inputs side by side."""
    inner = graph_of_both_kinds()
    outer = StateGraph(Notes).add_node("write", write).add_node("call", lambda state: {"log": inner.invoke({})["log"]})
    outer.add_edge(START, "write").add_conditional_edges("write", lambda state: [Send("call", {})] * count, ["call"])
    app: CompiledGraph = outer.compile()
    return app


def graph_of_both_kinds() -> CompiledGraph:
    graph = StateGraph(Notes).add_node("write", write).add_node("function", lambda state: {"log": "function"})
    app: CompiledGraph = graph.add_edge(START, "write").add_edge("write", "function").compile()
    return app


def within(seconds: float, function: Callable[[], Any]) -> Any:
    """Return the result of a function, or fail if it hangs."""
    results: list[Any] = []
    worker = threading.Thread(target=lambda: results.append(function()), daemon=True)
    worker.start()
    worker.join(seconds)
    assert results, "hangs, or has raised"
    return results[0]


@WAYS
@pytest.mark.parametrize("count", [1, 40])
def test_an_ordinary_node_beside_async_ones_may_call_a_graph(way: Any, count: int) -> None:
    output = within(SECONDS, lambda: way(nested(count), {}))
    assert output["log"] == ["async"] + ["async", "function"] * count


def test_a_forked_process_has_threads_of_its_own() -> None:
    app = graph_of_both_kinds()
    assert app.invoke({})["log"] == ["async", "function"]
    child = os.fork()
    if child == 0:
        try:
            signal.alarm(SECONDS)
            os._exit(0 if app.invoke({})["log"] == ["async", "function"] else 1)
        finally:
            os._exit(2)
    assert os.waitpid(child, 0)[1] == 0


@WAYS
@pytest.mark.parametrize("beside", [None, lambda state: None, write])
def test_a_function_that_hangs_does_not_keep_the_process_alive(way: Any, beside: Any) -> None:
    seen = []

    def note(state: Any) -> None:
        here = threading.current_thread()
        seen.append(here is threading.main_thread() or here.daemon)

    graph = StateGraph(Notes).add_node("note", note).add_edge(START, "note")
    if beside is not None:
        graph.add_node("beside", beside).add_edge(START, "beside")
    way(graph.compile(), {})
    assert seen == [True]


@pytest.mark.parametrize("kept", [True, False])
def test_a_subgraph_is_tried_again_although_its_last_attempt_goes_on(kept: bool) -> None:
    may_end, calls = threading.Event(), []

    def slow(state: Any) -> dict[str, Any]:
        calls.append(1)
        if len(calls) == 1:
            may_end.wait(SECONDS)
        return {"log": f"call {len(calls)}"}

    inner = StateGraph(Notes).add_node("quick", lambda state: {"log": "quick"}).add_node("slow", slow)
    inner.add_edge(START, "quick").add_edge("quick", "slow")
    graph = StateGraph(Notes).add_node("inner", inner.compile(), timeout=0.1, retry=RetryPolicy(attempts=2, wait=0))
    app = graph.add_edge(START, "inner").compile(store=gp.MemoryStore() if kept else None)
    try:
        assert app.invoke({}, thread() if kept else None)["log"] == ["quick", "call 2"]
    finally:
        may_end.set()
