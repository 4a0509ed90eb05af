"""Mistakes in nodes, routers and reducers of state graphs: a clear error, and a thread that continues once mended."""

from __future__ import annotations

import re
from functools import partial
from operator import add
from pathlib import Path
from typing import Annotated, Any, TypedDict, cast

import pytest

from gpu_pregel.errors import NodesFailedError, SuperstepLimitError
from gpu_pregel.host.stores.store import Store
from gpu_pregel.workflows import END, START, Command, Send, StateGraph
from tests.devices import LONG

THREAD: dict[str, Any] = {"configurable": {"thread_id": "1"}}
HELD = "1 node failed in superstep 1, which is held: node 'bad': "


def add_positive(old: int, new: int) -> int:
    """Add numbers that are not negative."""
    if new < 0:
        raise ValueError(f"{new} is negative")
    return old + new


class State(TypedDict, total=False):
    log: Annotated[list[str], add]
    total: Annotated[int, add_positive]
    x: Any


def returns(output: Any, state: State) -> Any:
    """Return the same for every state."""
    return output


def raises(state: State) -> Any:
    """Fail."""
    raise ValueError("boom")


def note(log: str, name: str, state: State, **update: Any) -> Any:
    """Run once more, and say so."""
    with open(log, "a") as file:
        file.write(name)
    return {"log": [name], **update}


def graph(log: Path, bad: Any, router: Any = None, routes: Any = None, **update: Any) -> StateGraph:
    """Return a graph with a node that may be bad, and a sibling that should run once."""
    found = StateGraph(State).add_node("first", partial(note, str(log), "f"), destinations=["bad"])
    found.add_node("bad", bad, destinations=["after"]).add_node("sibling", partial(note, str(log), "s", **update))
    found.add_node("after", partial(note, str(log), "a"), defer=True)
    found.add_edge(START, "first").add_edge("first", "bad").add_edge("first", "sibling").add_edge("sibling", "after")
    return found if router is None else found.add_conditional_edges("bad", router, routes)


good = partial(returns, {"log": ["g"]})
ON_BAD: dict[str, tuple[Any, str]] = {
    "node raises": (raises, "ValueError: boom"),
    "type of output": (partial(returns, 3), "ArgumentTypeError: node 'bad' must give a dict of updates, .* not 3 of"),
    "list": (
        partial(returns, [{"x": 1}]),
        "ArgumentTypeError: node 'bad' must give a dict of updates, .* of type list",
    ),
    "unknown key": (
        partial(returns, {"z": 1}),
        "ArgumentError: node 'bad' writes 'z', which is no key of the state: log",
    ),
    "unknown goto": (
        partial(returns, Command(goto="nobody")),
        "ArgumentError: node 'bad' goes to 'nobody', which is no node of the graph: 'first', 'bad', 'sibling', 'after'",
    ),
    "type of goto": (
        partial(returns, Command(goto=[cast(Any, 3)])),
        "node 'bad' goes to 3: goto takes names of nodes and Send",
    ),
    "unknown Send": (
        partial(returns, Command(goto=Send("nobody", {}))),
        "node 'bad' goes to 'nobody', which is no node",
    ),
    "only a Send": (partial(returns, Send("after", {})), r"node 'bad' returned a Send: return Command\(goto=\[Send"),
    "to the parent": (
        partial(returns, Command(graph=Command.PARENT)),
        "command to the parent graph, but its graph is no",
    ),
    "not data": (
        partial(returns, {"x": [print]}),
        r"CodecError: the update of key 'x' by node 'bad'\[0\] is of type .*, which cannot be encoded",
    ),
    "Send is not data": (
        partial(returns, Command(goto=Send("after", {"f": print}))),
        r"CodecError: what node 'bad' sends to 'after'\['f'\] is of type .*, which cannot be encoded",
    ),
    "twice": (
        partial(returns, [Command(update={"x": 1}), Command(update={"x": 2})]),
        "node 'bad' wrote key 'x' twice, and it has no reducer: declare one",
    ),
    "reducer raises": (
        partial(returns, {"total": -1}),
        "AgentError: the reducer of key 'total' failed: ValueError: -1 is negative",
    ),
}
IN_ROUTER: dict[str, tuple[Any, Any, str]] = {
    "router raises": (raises, None, r"ValueError: boom \(raised by the router 'raises' of node 'bad'\)"),
    "unknown route": (
        partial(returns, "north"),
        {"south": "after"},
        "the router 'returns' of node 'bad' returned 'north', which is no key of its routes: 'south'",
    ),
    "unhashable route": (
        partial(returns, {}),
        {"south": "after"},
        "returned {}, which is no key of its routes: 'south'",
    ),
    "unknown node": (
        partial(returns, ["after", "nobody"]),
        None,
        "the router 'returns' of node 'bad' returned 'nobody', which is no node of the graph: 'first', 'bad'",
    ),
    "no route": (partial(returns, None), None, "returned None: return names of nodes or Send objects, or pass routes"),
    "type of route": (partial(returns, [2]), None, "the router 'returns' of node 'bad' returned 2: return names"),
    "unknown Send": (partial(returns, Send("nobody", 1)), None, "node 'bad' goes to 'nobody', which is no node"),
}
CASES = [
    *[(name, case[0], None, None, case[1]) for name, case in ON_BAD.items()],
    *[(f"router: {name}", good, *case) for name, case in IN_ROUTER.items()],
]
IN_PROCESS = [pytest.param(0, *case[1:], id=case[0]) for case in CASES]
IN_WORKERS = [
    pytest.param(2, *case[1:], id=f"{case[0]}, workers", marks=[LONG][number == 9 :])
    for number, case in enumerate(CASES)
]


@pytest.mark.parametrize(("workers", "bad", "router", "routes", "problem"), IN_PROCESS + IN_WORKERS)
def test_a_mistake_holds_the_thread_until_it_is_mended(
    workers: int, bad: Any, router: Any, routes: Any, problem: str, store: Store, tmp_path: Path
) -> None:
    log = tmp_path / "nodes"
    app = graph(log, bad, router, routes).compile(store=store, workers=workers)
    with pytest.raises(NodesFailedError, match=f"(?s)^{HELD}.*{problem}"):
        app.invoke({"log": []}, THREAD)
    held = app.get_state(THREAD)
    assert (held.values["log"], held.next) == (["f", "s"], ("bad",))  # the sibling has finished
    assert re.search(problem, str(held.tasks[0].error))
    mended = graph(log, good).compile(store=store, workers=workers)
    assert mended.invoke(None, THREAD)["log"] == ["f", "g", "s", "a"]
    assert log.read_text() == "fsa"  # neither the first node nor the sibling has run again
    assert mended.get_state(THREAD).next == ()


def test_a_mistake_that_stays_fails_again_with_new_attempts(store: Store, tmp_path: Path) -> None:
    app = graph(tmp_path / "nodes", raises).compile(store=store)
    inputs: list[Any] = [{"log": []}, None, None]
    for given in inputs:
        with pytest.raises(NodesFailedError, match=f"{HELD}ValueError: boom"):
            app.invoke(given, THREAD)
    assert (tmp_path / "nodes").read_text() == "fs"


def test_a_conflict_names_both_nodes_once(store: Store, tmp_path: Path) -> None:
    log = tmp_path / "nodes"
    app = graph(log, partial(returns, {"x": 1}), x=2).compile(store=store)
    with pytest.raises(NodesFailedError) as caught:
        app.invoke({"log": []}, THREAD)
    assert str(caught.value).partition("reducer: ")[0] == (
        "2 nodes failed in superstep 1, which is held: node 'bad', node 'sibling': AgentError: nodes 'bad' and "
        "'sibling' wrote key 'x' in the same superstep, and it has no "
    )
    assert app.get_state(THREAD).next == ("bad", "sibling")
    assert graph(log, good, x=2).compile(store=store).invoke(None, THREAD) == {
        "log": ["f", "g", "s", "a"], "x": 2, "total": 0,
    }  # fmt: skip


def test_a_router_at_the_start_that_is_mended(store: Store) -> None:
    def begin(router: Any) -> Any:
        found = StateGraph(State).add_node("a", partial(returns, {"log": ["a"]}))
        return found.add_conditional_edges(START, router).compile(store=store)

    with pytest.raises(
        NodesFailedError, match=r"node '__start__': .*'returns' of node '__start__' returned 'b', which is no"
    ):
        begin(partial(returns, "b")).invoke({"log": ["input"]}, THREAD)
    assert begin(partial(returns, "a")).invoke(None, THREAD)["log"] == ["input", "a"]


def test_new_input_drops_the_task_that_failed(store: Store, tmp_path: Path) -> None:
    app = graph(tmp_path / "nodes", raises).compile(store=store)
    with pytest.raises(NodesFailedError, match="boom"):
        app.invoke({"log": []}, THREAD)
    mended = graph(tmp_path / "nodes", good).compile(store=store)
    assert mended.invoke({"log": ["again"]}, THREAD)["log"] == ["f", "again", "f", "g", "s", "a"]


def test_input_of_a_start_that_failed_is_dropped(store: Store) -> None:
    def begin(router: Any) -> Any:
        found = StateGraph(State).add_node("a", partial(returns, {"log": ["a"]}))
        return found.add_conditional_edges(START, router).compile(store=store)

    with pytest.raises(NodesFailedError, match="boom"):
        begin(raises).invoke({"log": ["first"]}, THREAD)
    assert begin(partial(returns, "a")).invoke({"log": ["second"]}, THREAD)["log"] == ["second", "a"]


@pytest.mark.parametrize("limit", [{"recursion_limit": 3}, {}])
def test_a_limit_of_supersteps_is_raised_and_passed(limit: dict[str, int], store: Store) -> None:
    def turn(state: State) -> Any:
        return {"log": ["t"]}

    def route(state: State) -> str:
        return "turn" if len(state["log"]) < 5 else END

    app = StateGraph(State).add_node(turn).add_edge(START, "turn").add_conditional_edges("turn", route)
    compiled = app.compile(store=store, max_supersteps=3)
    with pytest.raises(
        SuperstepLimitError, match="node 'turn' had still to run after max_supersteps=3: increase it, by"
    ):
        compiled.invoke({"log": []}, {**THREAD, **limit})
    assert compiled.get_state(THREAD).values["log"] == ["t"] * 3
    assert compiled.invoke(None, THREAD)["log"] == ["t"] * 5
