"""Small graphs for tests of calls: a number, a log, and nodes that write their names."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Annotated, Any, TypedDict

import pytest

from gpu_pregel.workflows import END, START, CompiledGraph, Interrupt, StateGraph, append


class Notes(TypedDict):
    x: int
    log: Annotated[list[Any], append]


def thread(name: str = "t", **more: Any) -> dict[str, Any]:
    return {"configurable": {"thread_id": name, **more}}


def noted(name: str) -> Callable[[Any], dict[str, Any]]:
    """Return a node that counts and writes its name."""

    def note(state: Any) -> dict[str, Any]:
        return {"x": state.get("x", 0) + 1, "log": name}

    return note


def chain(names: Iterable[str] = "abc", *, failing: Any = (), **options: Any) -> CompiledGraph:
    """Return a chain of nodes; those whose names are in ``failing`` when they run raise."""

    def node(name: str) -> Callable[[Any], dict[str, Any]]:
        def note(state: Any) -> dict[str, Any]:
            if name in failing:
                raise ValueError(f"no {name}")
            return {"x": state.get("x", 0) + 1, "log": name}

        return note

    graph, before = StateGraph(Notes), START
    for name in names:
        graph.add_node(name, node(name)).add_edge(before, name)
        before = name
    app: CompiledGraph = graph.add_edge(before, END).compile(**options)
    return app


def single(function: Callable[..., Any], name: str = "a", *, options: Any = None, **of_node: Any) -> CompiledGraph:
    """Return a graph of one node."""
    graph = StateGraph(Notes).add_node(name, function, **of_node)
    app: CompiledGraph = graph.add_edge(START, name).compile(**(options or {}))
    return app


def naps(count: int, seconds: float, kind: str, **options: Any) -> CompiledGraph:
    """Return nodes that sleep side by side."""

    def nap(state: Any) -> dict[str, Any]:
        time.sleep(seconds)
        return {"log": 1}

    async def async_nap(state: Any) -> dict[str, Any]:
        await asyncio.sleep(seconds)
        return {"log": 1}

    graph = StateGraph(Notes)
    for number in range(count):
        is_async = kind == "async" or (kind == "mixed" and number % 2)
        graph.add_node(f"n{number}", async_nap if is_async else nap).add_edge(START, f"n{number}")
    app: CompiledGraph = graph.compile(**options)
    return app


def asked(output: dict[str, Any]) -> list[Any]:
    """Return what a call asks."""
    questions: list[Interrupt] = output.get("__interrupt__", [])
    return [one.value for one in questions]


def call(app: Any, given: Any, config: Any = None) -> Any:
    return app.invoke(given, config)


def acall(app: Any, given: Any, config: Any = None) -> Any:
    return asyncio.run(app.ainvoke(given, config))


WAYS = pytest.mark.parametrize("way", [call, acall])
