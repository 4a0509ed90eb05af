"""The origin's compute function, sentence by sentence of its documents (000 to 003)."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict, get_type_hints

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, EndNotReachedError
from gpu_pregel.workflows import (
    END,
    START,
    GraphState,
    MessagePassingGraph,
    StateGraph,
    activated,
    aggregate_state_messages,
    append,
    initial_state,
    inject_initial_state,
)


class Trail(TypedDict):
    trail: Annotated[list[str], append]
    answer: str


def stepped(name: str) -> Any:
    return lambda state: {"trail": name}


def chain(**options: Any) -> MessagePassingGraph:
    """The origin's example: start, llm_call, execute_tools, end."""
    graph = StateGraph(Trail).add_node("llm_call", stepped("llm_call")).add_node("execute_tools", stepped("tools"))
    graph.add_edge(START, "llm_call").add_edge("llm_call", "execute_tools").add_edge("execute_tools", END)
    return graph.compile(carry="messages", **options)


S0 = {"trail": ["asked"]}
S1 = {"trail": ["asked", "llm_call"]}
S2 = {"trail": ["asked", "llm_call", "tools"]}


def after(supersteps: int, vertices: list[gp.agents.Vertex], compute: Any) -> Any:
    """The result after some supersteps, and what waits to be delivered."""
    with gp.agents.start(vertices, compute) as agents:
        for _ in range(supersteps):
            agents.step()
        return agents.result()


def outcomes(result: Any) -> dict[str, Any]:
    return {name: value["result"] for name, value in result.values.items()}


# 000: the compute function.


@pytest.mark.parametrize(
    "supersteps, expected",
    [
        (1, {START: ("ok", S0), "llm_call": None, "execute_tools": None, END: None}),
        (2, {START: ("ok", S0), "llm_call": ("ok", S1), "execute_tools": None, END: None}),
        (3, {START: ("ok", S0), "llm_call": ("ok", S1), "execute_tools": ("ok", S2), END: None}),
        (4, {START: ("ok", S0), "llm_call": ("ok", S1), "execute_tools": ("ok", S2), END: ("ok", S2)}),
    ],
)
def test_000_example_runs_a_node_a_superstep(supersteps: int, expected: dict[str, Any]) -> None:
    app = chain()
    result = after(supersteps, app.vertices(S0), app.compute)
    assert outcomes(result) == expected
    assert all(vertex.halted for vertex in result.vertices.values())


def test_000_final_state_is_taken_from_the_result_of_the_end() -> None:
    app = chain()
    result = gp.agents.run(app.vertices(S0), app.compute)
    assert result.values[END]["result"] == ("ok", S2)
    assert (result.status, result.superstep) == ("completed", 4)
    assert app.invoke(S0) == S2
    assert app.run(S0).state == S2


def test_000_start_that_is_not_activated_stops() -> None:
    app = chain()
    result = gp.agents.run(app.vertices(), app.compute)
    assert outcomes(result) == dict.fromkeys([START, "llm_call", "execute_tools", END])
    assert result.superstep == 1


def test_000_start_stops_in_any_superstep_but_the_first() -> None:
    app = chain()
    with gp.agents.start(app.vertices(S0), app.compute) as agents:
        while agents.step():
            pass
        before = agents.result().values
        agents.send(START, {"state": {"trail": ["again"]}})
        assert not agents.step()
        assert agents.result().values == before


def test_000_end_and_nodes_stop_without_messages_that_have_a_state() -> None:
    app = chain()
    with gp.agents.start(app.vertices(), app.compute) as agents:
        while agents.step():
            pass
        for name in ("llm_call", END):
            agents.send(name, "hello")
            agents.send(name, {"other": 1})
        agents.step()
        assert outcomes(agents.result()) == dict.fromkeys([START, "llm_call", "execute_tools", END])


def test_000_a_node_that_fails_stores_the_error_sends_nothing_and_the_run_goes_on() -> None:
    def fail(state: Trail) -> None:
        raise ValueError("no such tool")

    graph = (
        StateGraph(Trail)
        .add_node("bad", fail)
        .add_node("after_bad", stepped("never"))
        .add_node("good", stepped("good"))
    )
    graph.add_edge(START, "bad").add_edge("bad", "after_bad").add_edge("after_bad", END)
    graph.add_edge(START, "good").add_edge("good", END)
    app = graph.compile(carry="messages")
    result = gp.agents.run(app.vertices(S0), app.compute)
    status, failure = result.values["bad"]["result"]
    assert (status, failure["type"], failure["text"]) == ("error", "ValueError", "no such tool")
    assert "in fail" in failure["traceback"]
    assert result.values["after_bad"]["result"] is None
    assert result.values[END]["result"] == ("ok", {"trail": ["asked", "good"]})
    assert (result.status, result.failed) == ("completed", {})
    found = app.run(S0)
    assert found.status == "partial"
    assert {name: one.status for name, one in found.nodes.items()} == {
        START: "ok",
        "bad": "error",
        "after_bad": "idle",
        "good": "ok",
        END: "ok",
    }
    assert list(found.failed) == ["bad"]
    assert found.nodes["bad"].error == "ValueError: no such tool"
    assert found.nodes["good"].state == {"trail": ["asked", "good"]}
    assert app.invoke(S0) == {"trail": ["asked", "good"]}


def test_000_without_a_state_at_the_end_the_error_names_the_nodes_that_failed() -> None:
    graph = StateGraph(Trail).add_node("bad", lambda state: 1 / 0).add_edge(START, "bad").add_edge("bad", END)
    app = graph.compile(carry="messages")
    with pytest.raises(
        EndNotReachedError, match=r"no state reached the end: node 'bad' failed: ZeroDivisionError"
    ) as info:
        app.invoke(S0)
    assert info.value.result.nodes["bad"].status == "error"
    assert app.run(S0).state is None


def test_000_all_vertices_share_one_stateless_compute_function() -> None:
    app = chain()
    first = gp.agents.run(app.vertices(S0), app.compute)
    second = gp.agents.run(app.vertices({"trail": ["other"]}), app.compute)
    third = gp.agents.run(app.vertices(S0), app.compute, workers=1)
    assert second.values[END]["result"] == ("ok", {"trail": ["other", "llm_call", "tools"]})
    assert first.values == third.values


def test_000_values_of_vertices() -> None:
    vertices = {vertex.id: vertex for vertex in chain().vertices(S0)}
    assert vertices["llm_call"].value == {"node": "llm_call", "result": None}
    assert vertices[START].value == {"node": START, "result": None, "activated": True, "initial_state": S0}
    assert {name: list(vertex.edges) for name, vertex in vertices.items()} == {
        START: ["llm_call"],
        "llm_call": ["execute_tools"],
        "execute_tools": [END],
        END: [],
    }


# 001: superstep 0.


def test_001_only_the_start_sends_in_superstep_0_and_everybody_halts() -> None:
    app = chain()
    with gp.agents.start(app.vertices(S0), app.compute) as agents:
        assert not any(vertex.halted for vertex in agents.result().vertices.values())
        agents.step()
        result = agents.result()
        assert all(vertex.halted for vertex in result.vertices.values())
        agents.step()
        trace = agents.result().trace
        assert [(row["computed"], row["messages"]) for row in trace] == [(4, 1), (1, 1)]


def test_001_a_message_is_the_state_and_is_delivered_in_the_next_superstep() -> None:
    seen: list[Any] = []

    def spy(context: Any) -> None:
        seen.append((context.superstep, context.vertex_id, context.messages))
        app.compute(context)

    app = chain()
    gp.agents.run(app.vertices(S0), spy)
    assert [one for one in seen if one[2]] == [
        (1, "llm_call", [{"state": S0}]),
        (2, "execute_tools", [{"state": S1}]),
        (3, END, [{"state": S2}]),
    ]
    assert {name for superstep, name, _ in seen if superstep == 0} == {START, "llm_call", "execute_tools", END}


def test_001_inject_initial_state_activates_the_start() -> None:
    vertices = chain().vertices()
    assert (activated(vertices), initial_state(vertices)) == (False, None)
    injected = inject_initial_state(vertices, S0)
    assert (activated(injected), initial_state(injected)) == (True, S0)
    assert not activated(vertices)


@pytest.mark.parametrize(
    "given, message",
    [
        ({"trial": []}, "the initial state writes 'trial', which is no key of the state: trail, answer"),
        ([1], "the initial state must give a dict"),
    ],
)
def test_001_inject_initial_state_checks_the_keys_of_a_class(given: Any, message: str) -> None:
    with pytest.raises((ArgumentError, TypeError), match=message):
        inject_initial_state(chain().vertices(), given, Trail)


def test_001_inject_initial_state_needs_the_start() -> None:
    with pytest.raises(ArgumentError, match="there is no vertex '__start__' of a graph"):
        inject_initial_state([gp.agents.Vertex("a")], {})


def test_001_fields_of_the_state() -> None:
    assert list(get_type_hints(GraphState)) == [
        "messages",
        "full_messages",
        "system_prompt",
        "tools",
        "max_iterations",
        "iteration",
        "scratchpad",
        "context",
        "callbacks",
        "callback_meta",
    ]
    graph = StateGraph(GraphState).add_node("a", lambda state: {"iteration": 1}).add_edge(START, "a").add_edge("a", END)
    state = graph.compile(carry="messages").invoke({"messages": "hi", "system_prompt": "Be brief."})
    assert (state["iteration"], state["scratchpad"], state["context"]) == (1, [], {})
    assert state["messages"] == [{"role": "user", "content": "hi"}]


# 002: retries of a vertex, with the same input.


def test_002_a_failed_vertex_is_tried_again_with_the_same_input_and_its_siblings_are_not() -> None:
    inputs: list[Any] = []
    runs = {"flaky": 0, "steady": 0}

    def flaky(state: Trail) -> dict[str, Any]:
        inputs.append([*state["trail"]])
        state["trail"].append("modified")
        runs["flaky"] += 1
        if runs["flaky"] < 3:
            raise TimeoutError("LLM call timeout")
        return {"trail": "flaky"}

    def steady(state: Trail) -> dict[str, Any]:
        runs["steady"] += 1
        return {"trail": "steady"}

    graph = StateGraph(Trail).add_node("flaky", flaky).add_node("steady", steady)
    graph.add_edge(START, "flaky").add_edge(START, "steady").add_edge(["flaky", "steady"], END)
    app = graph.compile(carry="messages", retry=gp.agents.RetryPolicy(attempts=3, wait=0))
    assert app.invoke(S0) == {"trail": ["asked", "flaky", "steady"]}
    assert runs == {"flaky": 3, "steady": 1}
    assert inputs == [["asked"]] * 3


def test_002_after_the_last_attempt_the_error_is_final() -> None:
    tried: list[int] = []

    def limited(state: Trail, context: Any) -> None:
        tried.append(context.attempt)
        raise RuntimeError("API rate limit")

    graph = StateGraph(Trail).add_node("a", limited).add_edge(START, "a").add_edge("a", END)
    app = graph.compile(carry="messages", retry=gp.agents.RetryPolicy(attempts=2, wait=0))
    assert app.run(S0).nodes["a"].error == "RuntimeError: API rate limit"
    assert tried == [1, 2]


def tools_fail(ctx: Any) -> None:
    """The origin's superstep: a node is done, one has failed, and one has not begun."""
    if ctx.vertex_id == "execute_tools":
        raise RuntimeError("API rate limit")
    state = aggregate_state_messages(ctx.messages, Trail)
    assert state is not None
    ctx.value = {**ctx.value, "result": ("ok", state)}
    ctx.send("execute_tools", {"state": state})
    ctx.vote_to_halt()


NODES = ("llm_call", "execute_tools", "yet_another_node")


def held_superstep(attempts: int, observer: Any = ()) -> Any:
    vertices = [gp.agents.Vertex(name, {"node": name, "result": None}, halted=True) for name in NODES]
    retry = gp.agents.RetryPolicy(attempts=attempts, wait=0)
    agents = gp.agents.start(vertices, tools_fail, retry=retry, observer=observer)
    for name in NODES:
        agents.send(name, {"state": S1})
    return agents


def test_002_complete_example_of_the_superstep_state_while_it_runs() -> None:
    seen: dict[str, list[tuple[str, int]]] = {name: [] for name in NODES}

    def observe(event: gp.agents.Event) -> None:
        if event.kind in ("attempt", "failure"):
            for name, one in dict(agents.superstep_state).items():
                seen[name].append((one.status, one.attempts))

    with held_superstep(2, observe) as agents:
        agents.step()
    assert list(dict.fromkeys(seen["execute_tools"])) == [("failed", 1), ("failed", 2)]
    assert seen["llm_call"][-1] == ("completed", 1)


def test_002_fields_of_completed_and_failed_vertices_of_a_held_superstep() -> None:
    with held_superstep(2) as agents:
        assert agents.superstep_state is None
        agents.step()
        state: Any = agents.superstep_state
        assert set(state) == set(NODES)
        done, failed = state["llm_call"], state["execute_tools"]
        assert (done.status, done.attempts, done.messages) == ("completed", 1, [{"state": S1}])
        assert done.outbox == [("execute_tools", {"state": S1})]
        assert done.vertex.value == {"node": "llm_call", "result": None}
        assert (failed.status, failed.attempts, failed.messages, failed.outbox) == ("failed", 2, [{"state": S1}], [])
        assert failed.vertex.value == {"node": "execute_tools", "result": None}
        assert (failed.failure.type, failed.failure.text) == ("RuntimeError", "API rate limit")
        assert "in tools_fail" in failed.failure.traceback
        assert list(state.failures) == ["execute_tools"]
        assert state.failed_vertices() == ["execute_tools"]
        assert state.retryable == state.retryable_vertices(2) == []
        assert state.retryable_vertices(3) == ["execute_tools"]
        vertices, outbox = state.completed_results()
        assert vertices["llm_call"].value == {"node": "llm_call", "result": ("ok", S1)}
        assert vertices["llm_call"].halted
        assert outbox[0] == ("execute_tools", {"state": S1})


def test_002_the_superstep_state_is_cleared_at_the_commit() -> None:
    app = chain()
    with gp.agents.start(app.vertices(S0), app.compute) as agents:
        while agents.step():
            assert agents.superstep_state is None


# 003: vertices and contexts below the state, which is data to them.


def test_003_the_state_is_data_to_the_engine_and_travels_as_it_is() -> None:
    given = {"trail": ["ä", "\x00"], "answer": "ok"}
    assert chain().invoke(given) == {"trail": ["ä", "\x00", "llm_call", "tools"], "answer": "ok"}


def test_003_complete_example() -> None:
    def compute(ctx: Any) -> None:
        assert (ctx.superstep, ctx.num_vertices) == (0 if ctx.vertex_id == "a" else 1, 2)
        state = ctx.value if ctx.superstep == 0 else aggregate_state_messages(ctx.messages)
        assert state is not None
        ctx.value = {**state, "iteration": state["iteration"] + 1}
        for target in ctx.neighbors:
            ctx.send(target, {"state": ctx.value})
        ctx.vote_to_halt()

    vertices = [gp.agents.Vertex("a", {"iteration": 0}, ["b"]), gp.agents.Vertex("b", halted=True)]
    result = gp.agents.run(vertices, compute)
    assert result.values == {"a": {"iteration": 1}, "b": {"iteration": 2}}
    assert [(edge.target, edge.weight) for edge in result.vertices["a"].edges] == [("b", 1)]
    assert result.vertices["b"].halted
