"""Checks of a state graph before it runs: entry, targets, nodes that cannot be reached."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from gpu_pregel.errors import ArgumentError, ArgumentTypeError
from gpu_pregel.host.agents.retry import RetryPolicy
from gpu_pregel.workflows.cache_policy import CachePolicy
from gpu_pregel.workflows.commands import END, START
from gpu_pregel.workflows.graph_spec import Router

if TYPE_CHECKING:
    from gpu_pregel.workflows.graph_spec import NodeSpec


class BuiltGraph(Protocol):
    """The parts of a ``StateGraph`` that are checked."""

    nodes: dict[str, NodeSpec]
    edges: dict[str, dict[str, None]]
    joins: dict[str, list[frozenset[str]]]
    branches: dict[str, list[Router]]
    start: NodeSpec | None
    may_go_anywhere: bool


def check_graph(graph: BuiltGraph) -> None:
    """Refuse a graph without an entry, with unknown nodes in edges, or with nodes that nothing leads to."""
    known = {START, *graph.nodes}
    for source, target in _edges(graph):
        if source not in known:
            raise ArgumentError(f"an edge leads from {source!r}, which is no node: {_list(graph.nodes)}")
        if target not in known and target != END:
            raise ArgumentError(f"an edge leads from {source!r} to {target!r}, which is no node: {_list(graph.nodes)}")
    for source, branches in graph.branches.items():
        if source not in known:
            raise ArgumentError(f"conditional edges lead from {source!r}, which is no node: {_list(graph.nodes)}")
        for router in branches:
            for key, target in _routes(router):
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
    if not graph.may_go_anywhere:
        _check_reached(graph)


def check_names(argument: str, names: Sequence[str] | str, nodes: Iterable[str]) -> frozenset[str]:
    """Return the names of nodes that a caller has passed; "*" is all."""
    if names == "*":
        return frozenset(nodes)
    if isinstance(names, str):
        raise ArgumentTypeError(f"{argument} must be a sequence of names or '*', not {names!r}")
    for one in names:
        if one not in nodes:
            raise ArgumentError(f"{argument} names {one!r}, which is no node: {_list(nodes)}")
    return frozenset(names)


def check_node_name(graph: BuiltGraph, name: str) -> None:
    """Refuse a name that a new node of a graph cannot have."""
    if name in graph.nodes or (name == START and graph.start is not None):
        raise ArgumentError(f"there is a node {name!r} already: choose another name")
    if not name or name == END:
        raise ArgumentError(f"{name!r} cannot be the name of a node: choose another one")
    if ":" in name:
        raise ArgumentError(f"the name of a node has no colon, unlike {name!r}: choose another one")


def check_start(name: str, *, is_plain: bool) -> None:
    """Refuse what the node of the start cannot be."""
    if name == START and not is_plain:
        raise ArgumentError(
            "the start's node is a function that superstep 0 computes: graphs, defer= and cache= need another node"
        )


def check_node_options(name: str, cache: object, destinations: object) -> None:
    """Refuse a cache that is not a ``CachePolicy``, and destinations that are a single string."""
    if cache is not None and not isinstance(cache, CachePolicy):
        raise ArgumentTypeError(f"cache of node {name!r} must be a CachePolicy, not {cache!r:.200}")
    if isinstance(destinations, str):
        raise ArgumentTypeError(f"destinations of node {name!r} must be a sequence of names, not a string")


def check_retry(argument: str, retry: object) -> None:
    """Refuse what is no retry policy."""
    if retry is not None and not isinstance(retry, RetryPolicy):
        raise ArgumentTypeError(f"{argument} must be a RetryPolicy, not {retry!r:.200}")


def check_metadata(node: str, metadata: object) -> dict[str, Any]:
    """Return the metadata of a node."""
    if metadata is not None and not isinstance(metadata, Mapping):
        raise ArgumentTypeError(f"metadata of node {node!r} must be a mapping, not {metadata!r:.200}")
    return dict(metadata or {})


def check_join(sources: object) -> list[str]:
    """Return the names of the nodes that a join waits for."""
    if not isinstance(sources, Iterable):
        raise ArgumentTypeError(
            f"the source of an edge must be the name of a node, or a list of them, not {sources!r:.200}"
        )
    names = list(sources)
    if not names or not all(isinstance(one, str) and one not in (START, END) for one in names):
        raise ArgumentError(f"a join needs the names of the nodes to wait for, not {names!r:.200}")
    return names


def check_routes(source: str, routes: object) -> dict[Hashable, str] | None:
    """Return where each result of a router leads, if it is declared."""
    if routes is None:
        return None
    if isinstance(routes, str) or not isinstance(routes, Iterable):
        raise ArgumentTypeError(
            f"routes of node {source!r} must be a mapping to names, or a sequence of names, not {routes!r:.200}"
        )
    pairs = list(routes.items() if isinstance(routes, Mapping) else ((one, one) for one in routes))
    for _, target in pairs:
        if not isinstance(target, str):
            raise ArgumentTypeError(f"routes of node {source!r} must lead to names of nodes, not to {target!r:.200}")
    return dict(pairs)


def _check_reached(graph: BuiltGraph) -> None:
    """Refuse nodes that no path leads to."""
    reached = reached_nodes(graph)
    missing = [name for name in graph.nodes if name not in reached]
    if missing:
        raise ArgumentError(
            f"nothing leads to {_list(missing)}: add an edge, a route, or destinations= of a node that goes there by "
            f"Command or Send"
        )


def reached_nodes(graph: BuiltGraph) -> set[str]:
    """Return the nodes that some path leads to, and the end if one does.

    Where a router may return any node, or a node declares no destinations, as nobody can know which, all are reached.
    """
    followers: dict[str, set[str]] = {}
    for source, target in _edges(graph):
        followers.setdefault(source, set()).add(target)
    anywhere = {*graph.nodes, END}
    reached, found = {START}, [START]
    while found:
        name = found.pop()
        following = set(followers.get(name, ()))
        for router in graph.branches.get(name, ()):
            following |= anywhere if router.targets is None else set(router.targets)
        if name != START:
            following |= set(graph.nodes[name].destinations)
            if not graph.nodes[name].destinations and name not in followers and name not in graph.branches:
                following |= anywhere  # it can only go on by a Command
        new = following - reached
        reached |= new
        found += new - {END}
    return reached


def _edges(graph: BuiltGraph) -> Iterable[tuple[str, str]]:
    """Return source and target of each edge, those of joins among them."""
    for source, targets in graph.edges.items():
        for target in targets:
            yield source, target
    for target, joins in graph.joins.items():
        for sources in joins:
            for source in sorted(sources):
                yield source, target


def _routes(router: Router) -> Iterable[tuple[object, str]]:
    """Return what a router may return, as far as it is declared, and where that leads."""
    return router.routes.items() if router.routes is not None else [(one, one) for one in router.targets or ()]


def _list(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names)) or "none"


def check_carried(graph: BuiltGraph) -> None:
    """Refuse what a state that travels in messages cannot do, and a graph whose end no edge or router can lead to."""
    deferred = [name for name, node in graph.nodes.items() if node.defer]
    if deferred:
        raise ArgumentError(
            f"defer=True of {_list(deferred)} needs compile(carry='shared'): with carry='messages', a node runs when "
            f"states reach it; wait for several by add_edge([...], {deferred[0]!r})"
        )
    if END not in reached_nodes(graph):
        raise ArgumentError(
            "nothing leads to the end, where carry='messages' keeps the state: add an edge to END, or a route"
        )
