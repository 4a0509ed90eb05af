"""Graphs whose nodes note their names, for the tests of the builder."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any, NotRequired, TypedDict

from gpu_pregel.workflows import END, START, StateGraph, append


class State(TypedDict):
    log: Annotated[list[str], append]
    x: NotRequired[int]


def idle(state: State) -> None:
    """Do nothing."""


def log(name: str, **more: Any) -> Any:
    return lambda state: {"log": name, **more}


def graph(*nodes: str) -> StateGraph:
    found = StateGraph(State)
    for name in nodes:
        found.add_node(name, log(name))
    return found


def chain(*nodes: str) -> StateGraph:
    found = graph(*nodes).add_edge(START, nodes[0]).add_edge(nodes[-1], END)
    for source, target in pairwise(nodes):
        found.add_edge(source, target)
    return found
