"""What callers pass, what nodes return, and which nodes run next: commands, Send, joins and deferred nodes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import AgentsFailedError, ArgumentError, ArgumentTypeError, CodecError
from gpu_pregel.workflows import END, START, Command, Send, StateGraph
from tests.gpu_pregel.workflows.small_graphs import WAYS, Notes, chain, noted, thread

# Inputs.

BAD_INPUTS: dict[str, tuple[Any, type[Exception], str]] = {
    "unknown key": ({"z": 1}, ArgumentError, "the input writes 'z'"),
    "no mapping": (3, ArgumentTypeError, "the input must give a dict"),
    "unstorable": ({"x": object()}, CodecError, "the input: .*type object"),
    "nothing": (None, ArgumentError, "no run to continue: pass the input"),
    "empty command": (Command(), ArgumentError, "no run to continue"),
    "answer": (Command(resume=1), ArgumentError, "no run to continue"),
    "unknown node": (Command(goto="z"), ArgumentError, "goto names 'z', which is no node: 'a', 'b', 'c'"),
    "unknown node sent to": (Command(goto=Send("z", 1)), ArgumentError, "goto names 'z'"),
    "goto None": (Command(goto=None), ArgumentTypeError, "goto must be the name of a node.*not None"),  # type: ignore[arg-type]
    "unstorable argument": (Command(goto=Send("a", object())), CodecError, "the input: .*type object"),
    "unknown key in command": (Command(update={"z": 1}), ArgumentError, "the input writes 'z'"),
    "answer and goto": (Command(resume=1, goto="a"), ArgumentError, "answers a question"),
    "to the parent": (Command(graph=Command.PARENT, goto="a"), ArgumentError, "only be returned by a node of a sub"),
}


@WAYS
@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize("case", BAD_INPUTS)
def test_bad_inputs_are_refused_before_anything_is_stored(way: Callable[..., Any], case: str, kept: bool) -> None:
    given, error, text = BAD_INPUTS[case]
    store = gp.MemoryStore()
    app = chain(store=store if kept else None)
    with pytest.raises(error, match=text):
        way(app, given, thread())
    assert not store.runs()


@pytest.mark.parametrize(
    ("command", "log"),
    [
        (Command(goto="c"), ["c"]),
        (Command(goto=["c", "c"]), ["c"]),
        (Command(goto=["a", "c"]), None),
        (Command(update={"log": "in"}, goto="b"), ["in", "b", "c"]),
        (Command(update={"log": "in"}), ["in", "a", "b", "c"]),
        (Command(goto=Send("c", {"x": 7})), ["c"]),
        (Command(goto=[Send("c", {"x": 7}), Send("b", {})]), None),
        (Command(update={"log": "in"}, goto=END), ["in"]),
    ],
)
def test_commands_as_inputs(command: Command, log: list[str] | None) -> None:
    app = chain()
    if log is None:  # both write x
        with pytest.raises(AgentsFailedError, match="wrote key 'x'"):
            app.invoke(command)
    else:
        assert app.invoke(command)["log"] == log


OUTPUTS: dict[str, tuple[Any, str]] = {
    "Send": (Send("b", 1), "node 'a' returned a Send"),
    "list of Send": ([Send("b", 1)], "node 'a' returned a Send"),
    "answer": (Command(resume=1), r"node 'a' returned Command\(resume=...\)"),
    "goto None": (Command(goto=None), "goto must be the name of a node"),  # type: ignore[arg-type]
    "goto start": (Command(goto=START), "'a' goes to '__start__'"),
    "goto number": (Command(goto=[5]), "goes to 5"),  # type: ignore[list-item]
    "unknown key": (Command(update={"z": 1}), "node 'a' writes 'z'"),
    "text": ("b", "node 'a' must give a dict"),
    "to no parent": (Command(graph=Command.PARENT, goto="b"), "its graph is no node of another one"),
}


@pytest.mark.parametrize("case", OUTPUTS)
def test_wrong_outputs(case: str) -> None:
    returned, text = OUTPUTS[case]
    graph = StateGraph(Notes).add_node("a", lambda state: returned, destinations=("b",)).add_node("b", noted("b"))
    with pytest.raises(AgentsFailedError, match=text):
        graph.add_edge(START, "a").compile().invoke({})


GOTO: list[tuple[Any, list[str]]] = [
    (Command(goto=["b", "c"]), ["b", "c"]),
    (Command(goto=["b", "b"]), ["b"]),
    (Command(goto=END), []),
    (Command(goto=[END, "b"]), ["b"]),
    (Command(update={"log": "a"}, goto="b"), ["a", "b"]),
    (Command(goto=[Send("b", {}), "b"]), ["b", "b"]),
    (Command(goto=[Send("b", {})] * 3), ["b", "b", "b"]),
    ([Command(update={"log": 1}), {"log": 2}, Command(goto="b")], [1, 2, "b"]),  # type: ignore[list-item]
]


@pytest.mark.parametrize(("returned", "log", "workers"), [*((*one, 0) for one in GOTO), (*GOTO[5], 1)])
def test_commands_of_nodes(returned: Any, log: list[Any], workers: int) -> None:
    graph = StateGraph(Notes).add_node("a", lambda state: returned, destinations=("b", "c"))
    graph.add_node("b", lambda state: {"log": "b"}).add_node("c", lambda state: {"log": "c"})
    assert graph.add_edge(START, "a").compile(workers=workers).invoke({})["log"] == log


# Send.


@pytest.mark.parametrize("kept", [False, True])
def test_a_thousand_tasks_of_one_node(kept: bool) -> None:
    graph = StateGraph(Notes).add_node("work", lambda number: {"log": 2 * number})
    graph.add_conditional_edges(START, lambda state: [Send("work", k) for k in range(1000)])
    app = graph.compile(store=gp.MemoryStore() if kept else None)
    assert app.invoke({}, thread())["log"] == [2 * k for k in range(1000)]


def test_tasks_send_tasks_and_themselves() -> None:
    def split(depth: int) -> Command:
        goto = [Send("split", depth - 1)] * 2 if depth else [Send("leaf", "x")]
        return Command(update={"log": depth}, goto=goto)

    graph = StateGraph(Notes).add_node("split", split, destinations=("leaf", "split"))
    graph.add_node("leaf", lambda text: {"log": text})
    log = graph.add_conditional_edges(START, lambda state: Send("split", 3)).compile().invoke({})["log"]
    assert log == [3, 2, 2, 1, 1, 1, 1, *[0] * 8, *"x" * 8]


def test_a_node_is_sent_and_triggered_in_one_superstep() -> None:
    graph = StateGraph(Notes).add_node("a", lambda state: Command(goto=Send("b", {"x": 10})), destinations=("b",))
    graph.add_node("b", lambda state: {"log": state["x"]}).add_edge("a", "b").add_edge(START, "a")
    assert graph.compile().invoke({"x": 1})["log"] == [1, 10]


def test_what_cannot_be_sent_names_the_node() -> None:
    graph = StateGraph(Notes).add_node("a", lambda state: Command(goto=Send("b", object())), destinations=("b",))
    app = graph.add_node("b", noted("b")).add_edge(START, "a").compile()
    with pytest.raises(AgentsFailedError, match=r"'a'.*type object, which cannot be encoded"):
        app.invoke({})


# Joins and deferred nodes.


def _joined(edges: str, *, defer: str = "", workers: int = 0) -> list[str]:
    """Return the log of a graph given by edges such as "Sa Sb ab,c": S is the start, and a,b>c a join."""
    graph, names = StateGraph(Notes), sorted(set(edges) - set(" ,>S"))
    for name in names:
        graph.add_node(name, lambda state, name=name: {"log": name}, defer=name in defer)
    for edge in edges.split():
        sources, target = edge.split(">")
        graph.add_edge(START if sources == "S" else sources.split(",") if "," in sources else sources, target)
    found: list[str] = graph.compile(workers=workers).invoke({})["log"]
    return found


@pytest.mark.parametrize(
    ("edges", "defer", "log"),
    [
        ("S>a S>b a,b>c", "", "abc"),
        ("S>a a>b S>c b,c>d", "", "acbd"),
        ("S>a S>b S>c a,b>d b,c>d", "", "abcd"),
        ("S>a S>b a,b>c a,b>d c,d>e", "", "abcde"),
        ("S>a a>b b>c S>d", "d", "abcd"),
        ("S>a a>b S>d S>e", "de", "abde"),
        ("S>a S>b a,b>c b>d d>e S>f", "f", "abcdef"),
        ("S>a a>b b>c S>d a>d d>e", "d", "abcde"),
        ("S>a S>b b>e e>f a,b>c", "c", "abefc"),
    ],
)
def test_joins_and_deferred_nodes(edges: str, defer: str, log: str) -> None:
    assert "".join(_joined(edges, defer=defer)) == log


def test_joins_and_deferred_nodes_on_workers() -> None:
    assert "".join(_joined("S>a S>b a,b>c b>d d>e S>f", defer="f", workers=2)) == "abcdef"


def test_a_join_in_a_loop_waits_for_all_sources_again() -> None:
    graph = StateGraph(Notes)
    for name in "abc":
        graph.add_node(name, noted(name) if name == "c" else lambda state, name=name: {"log": name})
    graph.add_edge(START, "a").add_edge(START, "b").add_edge(["a", "b"], "c")
    graph.add_conditional_edges("c", lambda state: ["a", "b"] if state["x"] < 3 else END, ["a", "b", END])
    assert "".join(graph.compile().invoke({"x": 0})["log"]) == "abcabcabc"


def test_one_source_of_a_join_may_end_many_times() -> None:
    graph = StateGraph(Notes).add_node("a", noted("a")).add_node("b", lambda state: {"log": "b"})
    graph.add_node("slow", lambda state: {"log": "s"}).add_node("c", lambda state: {"log": "c"})
    graph.add_edge(START, "a").add_conditional_edges("a", lambda state: "a" if state["x"] < 3 else "b")
    graph.add_edge("b", "slow").add_edge(["a", "slow"], "c")
    assert "".join(graph.compile().invoke({"x": 0})["log"]) == "aaabsc"
