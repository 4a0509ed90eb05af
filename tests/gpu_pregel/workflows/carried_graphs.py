"""Graphs whose state travels in messages, for their tests."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from gpu_pregel.workflows import END, START, StateGraph, append, increment


class State(TypedDict, total=False):
    log: Annotated[list[str], append]
    total: Annotated[int, increment]
    x: int


def extend(old: list[str], new: list[str]) -> list[str]:
    old.extend(new)
    return old


class Extended(TypedDict):
    log: Annotated[list[str], extend]


def log(name: str, **more: Any) -> Any:
    return lambda state: {"log": name, **more}


def built(edges: list[tuple[Any, str]], **nodes: Any) -> StateGraph:
    graph = StateGraph(State)
    for name, function in nodes.items():
        graph.add_node(name, function)
    for source, target in edges:
        graph.add_edge(source, target)
    return graph


DIAMOND = [(START, "s"), ("s", "a"), ("s", "b"), ("a", "j"), ("b", "j"), ("j", END)]
