"""The cache of nodes: outputs by node and input."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import AgentsFailedError, ArgumentError, ArgumentTypeError
from gpu_pregel.host.agents.codec import encode
from gpu_pregel.workflows import START, CachePolicy, Command, CompiledGraph, Send, StateGraph, interrupt, node_cache
from tests.gpu_pregel.workflows.small_graphs import WAYS, Notes, single, thread


def counted(policy: CachePolicy | None = None, **options: Any) -> tuple[CompiledGraph, Counter[Any]]:
    """Return a graph of a node with a cache, and the inputs that its node has computed."""
    count: Counter[Any] = Counter()

    def node(state: Any) -> dict[str, Any]:
        count[state["x"]] += 1
        return {"log": [state["x"] * 2]}

    return single(node, options=options, cache=policy or CachePolicy()), count


@WAYS
def test_outputs_are_used_again_for_the_same_input(way: Callable[..., Any]) -> None:
    app, count = counted()
    assert [way(app, {"x": x})["log"] for x in (1, 2, 1, 1)] == [[2], [4], [2], [2]]
    assert count == {1: 1, 2: 1}
    assert [way(app, {"x": 1, "log": "more"})["log"]] == [["more", 2]]
    assert count == {1: 2, 2: 1}


def test_a_key_chooses_what_counts() -> None:
    app, count = counted(CachePolicy(key=lambda state: state["x"] % 10))
    assert [app.invoke({"x": x})["log"] for x in (1, 11, 2)] == [[2], [2], [4]]
    assert count == {1: 1, 2: 1}


def test_outputs_expire(monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("gpu_pregel.workflows.node_cache.time.time", lambda: now[0])
    app, count = counted(CachePolicy(seconds=60))
    for seconds in (0, 59, 2, 59):
        now[0] += seconds
        app.invoke({"x": 1})
    assert count == {1: 2}


def test_a_cache_is_shared_by_graphs_and_kept_by_its_owner() -> None:
    kept: dict[str, bytes] = {}
    first, computed = counted(cache=kept)
    first.invoke({"x": 1})
    second, again = counted(cache=kept)
    assert second.invoke({"x": 1})["log"] == [2]
    assert (computed, again, len(kept)) == ({1: 1}, {}, 1)
    kept.clear()
    second.invoke({"x": 1})
    assert again == {1: 1}


def test_nodes_do_not_share_outputs() -> None:
    graph = StateGraph(Notes)
    for name in "ab":
        graph.add_node(name, lambda state, name=name: {"log": name}, cache=CachePolicy(key=lambda state: 1))
        graph.add_edge(START, name)
    app = graph.compile()
    assert [app.invoke({})["log"] for _ in range(2)] == [["a", "b"], ["a", "b"]]


def test_commands_and_routes_are_followed_each_time() -> None:
    graph = StateGraph(Notes).add_node("a", lambda state: Command(goto=[Send("b", 5), "c"]), cache=CachePolicy())
    graph.add_node("b", lambda number: {"log": number}).add_node("c", lambda state: {"log": "c"})
    graph.add_node("d", lambda state: {"log": "d"}, cache=CachePolicy()).add_conditional_edges(
        "d", lambda state: "b" if state["x"] > 1 else "c", ["b", "c"]
    )
    app = graph.add_edge(START, "a").compile()
    assert [app.invoke({})["log"] for _ in range(2)] == [["c", 5], ["c", 5]]


def test_failures_and_questions_are_not_kept() -> None:
    failing = ["yes"]

    def node(state: Any) -> dict[str, Any]:
        if failing:
            raise OSError(failing.pop())
        return {"log": interrupt("?")}

    app = single(node, options={"store": gp.MemoryStore()}, cache=CachePolicy())
    with pytest.raises(AgentsFailedError):
        app.invoke({}, thread())
    assert "__interrupt__" in app.invoke(None, thread())
    assert app.invoke(Command(resume="yes"), thread())["log"] == ["yes"]
    assert app.invoke({}, thread("other"))["log"] == ["yes"]  # the answer is in the output that was kept


def test_the_answer_of_an_error_handler_is_kept_too() -> None:
    tries = []

    def node(state: Any) -> None:
        tries.append(1)
        raise OSError

    app = single(node, cache=CachePolicy(), error_handler=lambda state, error: {"log": "handled"})
    assert [app.invoke({})["log"] for _ in range(2)] == [["handled"], ["handled"]]
    assert len(tries) == 1


@dataclass
class Point:
    x: int = 0


def test_inputs_of_other_classes() -> None:
    count = []
    graph = StateGraph(Point).add_node("a", lambda point: count.append(point.x), cache=CachePolicy())
    app = graph.add_edge(START, "a").compile()
    for x in (1, 1, 2):
        app.invoke({"x": x})
    assert count == [1, 2]


def test_workers_keep_outputs_each() -> None:
    app, _ = counted(workers=1)
    assert [app.invoke({"x": x})["log"] for x in (1, 1)] == [[2], [2]]


def test_the_latest_outputs_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_cache, "_MOST", 2)
    app, count = counted()
    for x in (1, 2, 3, 1):
        app.invoke({"x": x})
    assert count == {1: 2, 2: 1, 3: 1}


def test_bad_policies() -> None:
    with pytest.raises(AgentsFailedError, match=r"the cache key of node 'a': .*pass CachePolicy\(key=...\)"):
        counted(CachePolicy(key=lambda state: object()))[0].invoke({"x": 1})
    with pytest.raises(ArgumentTypeError, match="key must be a function"):
        CachePolicy(key=3)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="seconds"):
        CachePolicy(seconds=-1)
    with pytest.raises(ArgumentTypeError, match="cache of node 'a' must be a CachePolicy"):
        single(lambda state: None, cache=3)


@pytest.mark.parametrize("damage", [b"", b"rubbish", b"\x01", encode((None, 5)), encode(7)])
def test_outputs_that_cannot_be_read_are_computed_again(damage: bytes) -> None:
    kept: dict[str, bytes] = {}
    app, count = counted(cache=kept)
    app.invoke({"x": 1})
    (name,) = kept
    for data in (damage, kept[name]):
        kept[name] = data
        assert app.invoke({"x": 1})["log"] == [2]
    assert count == {1: 2}
