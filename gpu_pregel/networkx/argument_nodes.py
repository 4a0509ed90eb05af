"""Nodes among arguments that are equal to nodes of the graph but of other types, which NetworkX's results may contain.

NetworkX begins a search with the caller's own object: the result of a search from ``np.int64(1)`` has this key, not the
node ``1``. Importing this module imports neither NumPy nor NetworkX.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Any

from gpu_pregel.networkx.function import Function


def with_argument_nodes(
    function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments of a call, with a graph that has the nodes that are arguments as the caller's objects.

    Raises
    ------
    NotImplementedError
        The graph is one of NetworkX, and its results have either object, an iterator would have to be read twice, or
        an argument is not hashable, which NetworkX reports late or never.
    """
    graph = args[0] if args else kwargs["G"]
    if not graph.topology.is_converted:
        return args, kwargs
    found: dict[int, Any] = {}
    for parameter in function.keeps or function.mixes:
        value = function.argument(parameter, args, kwargs)
        if value is None or type(value) is graph.topology.kind:
            continue
        if function.unhashable == "late" and not isinstance(value, Hashable):
            raise NotImplementedError(f"{parameter} is not hashable")
        nodes = _nodes_of(graph, value)
        if isinstance(nodes, Iterator):
            raise NotImplementedError(f"{parameter} is an iterator")
        for vertex, node in _other_objects(graph, nodes, reported=function.unhashable == "reported").items():
            if not _is_same(found.setdefault(vertex, node), node):
                raise NotImplementedError("a node is given as two objects of different types")
    if not found:
        return args, kwargs
    if function.mixes:
        raise NotImplementedError("a node is of another type than that of the graph that is equal to it")
    graph = graph.renamed(found)
    return ((graph, *args[1:]), kwargs) if args else (args, {**kwargs, "G": graph})


def _nodes_of(graph: Any, value: Any) -> Iterable[Any]:
    """Return the nodes that an argument is or has."""
    if value in graph:
        return (value,)
    try:
        iter(value)
    except TypeError:
        return ()
    return value  # type: ignore[no-any-return]


def _other_objects(graph: Any, nodes: Iterable[Any], *, reported: bool) -> dict[int, Any]:
    """Return those that are equal to nodes of the graph but of other types, by their vertices."""
    topology = graph.topology
    if topology.kind is not None and set(map(type, nodes)) <= {topology.kind}:
        return {}
    found: dict[int, Any] = {}
    for node in nodes:
        if not isinstance(node, Hashable):
            if reported:
                continue
            raise NotImplementedError("an item of an argument is not hashable")
        if node not in graph:
            continue
        vertex = topology.numbers[node]
        if not _is_same(found.setdefault(vertex, node), node):
            raise NotImplementedError("a node is given as two objects of different types")
    return {vertex: node for vertex, node in found.items() if not _is_same(topology.nodes[vertex], node)}


def _is_same(node: Any, other: Any) -> bool:
    """Return whether two equal nodes cannot be told apart, save by ``is``."""
    if node is other:
        return True
    kind = type(node)
    if kind is not type(other):
        return False
    if kind is tuple:
        return all(map(_is_same, node, other))
    if kind is frozenset:
        return {(type(one), one) for one in node} == {(type(one), one) for one in other}
    return kind in (int, str, bytes) or (kind is float and repr(node) == repr(other))
