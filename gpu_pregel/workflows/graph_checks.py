"""Checks of a state graph before it runs: entry, targets, nodes that cannot be reached."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from gpu_pregel.errors import ArgumentError
from gpu_pregel.workflows.commands import END, START

if TYPE_CHECKING:
    from gpu_pregel.workflows.state_graph import StateGraph


def check_graph(graph: StateGraph) -> None:
    """Refuse a graph without an entry, with unknown nodes in edges, or with nodes that nothing leads to."""
    known = {START, *graph.nodes}
    for source, target in _edges(graph):
        if source not in known:
            raise ArgumentError(f"an edge leads from {source!r}, which is no node: {_list(graph.nodes)}")
        if target not in known and target != END:
            raise ArgumentError(f"an edge leads from {source!r} to {target!r}, which is no node: {_list(graph.nodes)}")
    for source, branches in graph.branches.items():
        for router in branches:
            for key, target in (router.routes or {}).items():
                if target not in known - {START} and target != END:
                    raise ArgumentError(
                        f"the router {router.name!r} of node {source!r} leads for {key!r} to {target!r}, which is no "
                        f"node: {_list(graph.nodes)}"
                    )
    for node in graph.nodes.values():
        for target in node.destinations:
            if target not in known and target != END:
                raise ArgumentError(
                    f"node {node.name!r} has the destination {target!r}, which is no node: {_list(graph.nodes)}"
                )
    if START not in graph.edges and START not in graph.branches:
        raise ArgumentError("the graph has no entry: add an edge from START, or call set_entry_point")
    if not graph._may_go_anywhere:
        _check_reached(graph)


def _check_reached(graph: StateGraph) -> None:
    """Refuse nodes that no path leads to.

    Where a router may return any node, or a node declares no destinations, as nobody can know which, all are reached.
    """
    followers: dict[str, set[str]] = {}
    for source, target in _edges(graph):
        followers.setdefault(source, set()).add(target)
    reached, found = {START}, [START]
    while found:
        name = found.pop()
        following = set(followers.get(name, ()))
        for router in graph.branches.get(name, ()):
            following |= set(graph.nodes) if router.routes is None else set(router.routes.values())
        if name != START:
            following |= set(graph.nodes[name].destinations)
            if not graph.nodes[name].destinations and name not in followers and name not in graph.branches:
                following |= set(graph.nodes)  # it can only go on by a Command
        new = following - reached - {END}
        reached |= new
        found += new
    missing = [name for name in graph.nodes if name not in reached]
    if missing:
        raise ArgumentError(
            f"nothing leads to {_list(missing)}: add an edge, a route, or destinations= of a node that goes there by "
            f"Command or Send"
        )


def _edges(graph: StateGraph) -> Iterable[tuple[str, str]]:
    """Return source and target of each edge, those of joins among them."""
    for source, targets in graph.edges.items():
        for target in targets:
            yield source, target
    for target, joins in graph.joins.items():
        for sources in joins:
            for source in sorted(sources):
                yield source, target
    for source in graph.branches:
        if source == END:
            raise ArgumentError("there can be no conditional edge from the end")
        yield source, END


def _list(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names)) or "there are none"
