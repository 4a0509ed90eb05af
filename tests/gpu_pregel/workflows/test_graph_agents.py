"""State graphs as compute functions of agents, alone and beside numeric vertices."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.agents import RetryPolicy, Vertex
from gpu_pregel.errors import AgentsFailedError, ArgumentError, ArgumentTypeError
from gpu_pregel.workflows import START, CompiledGraph, StateGraph, interrupt
from tests.gpu_pregel.workflows.small_graphs import Notes, chain, noted

ONCE = RetryPolicy(attempts=1)
IS_ASYNC = pytest.mark.parametrize("is_async", [False, True])


def pair(function: Callable[..., Any], is_async: bool, **options: Any) -> CompiledGraph:
    """Return a graph that runs a node twice, side by side, and a third one after both."""

    def node(name: str) -> Callable[..., Any]:
        def run(state: Any, context: Any) -> dict[str, Any]:
            return {"log": [(name, function(state["x"], context))]}

        async def run_async(state: Any, context: Any) -> dict[str, Any]:
            await asyncio.sleep(0)
            return run(state, context)

        return run_async if is_async else run

    graph = StateGraph(Notes).add_node("a", node("a")).add_node("b", node("b")).add_node("c", noted("c"))
    graph.add_edge(START, "a").add_edge(START, "b").add_edge(["a", "b"], "c")
    app: CompiledGraph = graph.compile(**options)
    return app


def read(ctx: Any) -> dict[str, Any]:
    return {"x": ctx.value}


def write(ctx: Any, output: dict[str, Any]) -> None:
    ctx.value = output["log"]
    ctx.vote_to_halt()


@IS_ASYNC
@pytest.mark.parametrize("workers", [0, 2])
def test_vertices_are_runs_of_a_graph(is_async: bool, workers: int) -> None:
    compute = pair(lambda x, context: (x * 2, context.config["vertex_id"]), is_async).as_agent(read, write)
    values = gp.agents.run([Vertex("v", 1), Vertex(7, 2)], compute, workers=workers).values
    assert values == {7: [("a", (4, 7)), ("b", (4, 7)), "c"], "v": [("a", (2, "v")), ("b", (2, "v")), "c"]}


@IS_ASYNC
@pytest.mark.parametrize("workers", [0, 1])
def test_questions_are_asked_by_the_vertex(is_async: bool, workers: int) -> None:
    compute = pair(lambda x, context: interrupt((context.node, x)), is_async).as_agent(read, write)
    asked, values = [], {}
    with gp.agents.start([Vertex("v", 1), Vertex("w", 2)], compute, workers=workers) as agents:
        while agents.step():
            pass
        while questions := agents.result().interrupts:
            asked.append(questions)
            for vertex, (node, x) in questions.items():
                agents.answer(vertex, f"{node}{x}")
            while agents.step():
                pass
        values = dict(agents.result().values)
    assert asked == [{"v": ("a", 1), "w": ("a", 2)}, {"v": ("b", 1), "w": ("b", 2)}]
    assert values == {"v": [("a", "a1"), ("b", "b1"), "c"], "w": [("a", "a2"), ("b", "b2"), "c"]}


@IS_ASYNC
def test_questions_of_subgraphs_of_agents(is_async: bool) -> None:
    inner = pair(lambda x, context: interrupt(context.node), is_async)
    app = StateGraph(Notes).add_node("sub", inner).add_edge(START, "sub").compile()
    asked = []
    with gp.agents.start([Vertex("v", 1)], app.as_agent(read, write)) as agents:
        while agents.step() or agents.result().interrupts:
            for vertex, payload in agents.result().interrupts.items():
                asked.append(payload)
                agents.answer(vertex, payload.upper())
        assert agents.result().values == {"v": [("a", "A"), ("b", "B"), "c"]}
    assert asked == ["a", "b"]


@pytest.mark.parametrize("is_async", [False, True])
def test_keys_of_nodes_are_the_same_in_each_attempt(is_async: bool) -> None:
    keys: Counter[str] = Counter()

    def compute(x: int, context: Any) -> None:
        keys[context.key] += 1
        if sum(keys.values()) < 5:
            raise OSError

    graph = pair(compute, is_async)
    retry = RetryPolicy(attempts=5, wait=0)
    gp.agents.run([Vertex("v", 1)], graph.as_agent(read, write), retry=retry)
    assert len(keys) == 2


def test_a_failing_node_fails_the_vertex() -> None:
    app = chain("abc", failing={"b"})
    with pytest.raises(AgentsFailedError, match=r"(?s)vertex 'v'.*'b': ValueError: no b"):
        gp.agents.run([Vertex("v", 1)], app.as_agent(read, write), retry=ONCE)


def test_what_nodes_emit_is_emitted_by_the_vertex() -> None:
    def node(state: Any, context: Any) -> None:
        context.emit("token")
        context.write({"done": 1})

    events: list[Any] = []
    app = StateGraph(Notes).add_node("a", node).add_edge(START, "a").compile()
    gp.agents.run([Vertex("v", 1)], app.as_agent(read, write), observer=events.append)
    about = {"node": "a", "task": "a", "superstep": 0, "attempt": 1}
    emitted = [(one.vertex, one.facts["payload"]) for one in events if one.kind == "emit"]
    assert emitted == [("v", ("messages", ("token", about))), ("v", ("custom", {"done": 1}))]


def test_a_graph_answers_messages() -> None:
    def read_messages(ctx: Any) -> dict[str, Any]:
        return {"log": ctx.messages}

    def answer(ctx: Any, output: dict[str, Any]) -> None:
        ctx.value = output["log"]
        if ctx.superstep < 2:
            ctx.send_to_neighbors(ctx.vertex_id)
        ctx.vote_to_halt()

    app = StateGraph(Notes).add_node("a", noted("a")).add_edge(START, "a").compile()
    given = [Vertex("v", edges=["w"]), Vertex("w", edges=["v"])]
    assert gp.agents.run(given, app.as_agent(read_messages, answer)).values == {"v": ["w", "a"], "w": ["v", "a"]}


# Beside numeric vertices.


def halving(is_async: bool) -> Callable[[Any], Any]:
    """Return the agents of the example of ``AgentContext``, in two nodes."""

    def halve(state: Any) -> dict[str, Any]:
        return {"x": state["x"] / 2}

    async def async_halve(state: Any) -> dict[str, Any]:
        return halve(state)

    app = StateGraph(Notes).add_node("halve", async_halve if is_async else halve).add_edge(START, "halve").compile()
    return app.as_agent(lambda ctx: {"x": float(ctx.value)}, lambda ctx, output: output["x"])


@IS_ASYNC
@pytest.mark.parametrize(("device", "workers"), [("python", 0), ("cpu", 2)])
def test_graphs_beside_numeric_vertices(is_async: bool, device: str, workers: int) -> None:
    doubling = gp.VertexProgram(
        value=np.float64,
        init=lambda ctx: 1.0,
        message=lambda value, ctx: value,
        combine="sum",
        apply=lambda value, incoming, ctx: value + incoming,
    )
    result = gp.run(
        gp.Graph.from_edgelist([0], [1]),
        doubling,
        agents=gp.Agents(halving(is_async), workers=workers),
        wake=lambda old, new, ctx: ctx.vertex == 0 and new > 3,
        max_supersteps=4,
        on_limit="return",
        device=device,
    )
    assert result.values.tolist() == [2.0, 8.0]
    assert (result.trace[2]["woken"], result.trace[3]["computed"]) == (1, 1)


def test_questions_beside_numeric_vertices() -> None:
    def ask(state: Any) -> dict[str, Any]:
        return {"x": interrupt("how much?") if state["x"] == 0 else state["x"]}

    app = StateGraph(Notes).add_node("ask", ask).add_edge(START, "ask").compile()
    agents = gp.Agents(app.as_agent(lambda ctx: {"x": int(ctx.value)}, lambda ctx, output: output["x"]), vertices=[0])
    program = gp.VertexProgram(
        value=np.int64,
        init=lambda ctx: 0,
        message=lambda value, ctx: value,
        combine="max",
        apply=lambda value, incoming, ctx: max(value, incoming),
    )
    graph, store = gp.Graph.from_edgelist([0, 1], [1, 2]), gp.MemoryStore()

    def run(**options: Any) -> Any:
        return gp.run(graph, program, agents=agents, device="python", checkpoint=gp.Checkpoint(store), **options)

    held = run()
    assert (held.status, held.agents.interrupts) == ("interrupted", {0: "how much?"})
    gp.agents.answer(store, store.runs()[0].id, 0, 42)
    assert run(resume=True).values.tolist() == [42, 42, 42]


# Bad arguments.


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"store": gp.MemoryStore()}, "a graph with a store cannot be an agent"),
        ({"interrupt_before": "*"}, "interrupt_before or interrupt_after cannot be an agent"),
        ({"carry": "messages"}, "carry='messages' cannot be an agent"),
    ],
)
def test_graphs_that_are_no_agents(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        chain(**options).as_agent(read, write)


def test_bad_arguments() -> None:
    with pytest.raises(ArgumentTypeError, match=r"read must be a function of \(ctx\)"):
        chain().as_agent(3, write)  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match=r"write must be a function of \(ctx, output\)"):
        chain().as_agent(read, None)  # type: ignore[arg-type]
    with pytest.raises(AgentsFailedError, match="the input writes 'z', which is no key"):
        gp.agents.run([Vertex("v", 1)], chain().as_agent(lambda ctx: {"z": 1}, write), retry=ONCE)
    with pytest.raises(AgentsFailedError, match="read must return the input"):
        gp.agents.run([Vertex("v", 1)], chain().as_agent(lambda ctx: None, write), retry=ONCE)
