"""Nodes among arguments that are equal to nodes of the graph but of other types, which NetworkX's results may contain.

NetworkX begins a search with the caller's own object: the result of a search from ``np.int64(1)`` has this key, not the
node ``1``. Importing this module imports neither NumPy nor NetworkX.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator
from typing import Any

from gpu_pregel.networkx.reach import argument

_SOURCE, _ENDS, _NODES = (("source", 1),), (("source", 1), ("target", 2)), (("nodes", 1),)

_KEPT: dict[str, tuple[tuple[str, int], ...]] = {
    **dict.fromkeys(
        (
            *("bfs_edges", "bfs_predecessors", "bfs_successors", "bfs_tree", "descendants_at_distance"),
            *("dfs_edges", "dfs_postorder_nodes", "dfs_predecessors", "dfs_preorder_nodes", "dfs_successors"),
            *("dfs_tree", "dijkstra_predecessor_and_distance", "generic_bfs_edges"),
            *("all_shortest_paths", "bellman_ford_predecessor_and_distance", "predecessor"),
            *("single_source_all_shortest_paths", "single_source_bellman_ford_path"),
            *("single_source_bellman_ford_path_length", "single_source_dijkstra_path"),
            *("single_source_dijkstra_path_length", "single_source_shortest_path"),
            "single_source_shortest_path_length",
        ),
        _SOURCE,
    ),
    **dict.fromkeys(
        (
            *("bellman_ford_path", "bidirectional_dijkstra", "bidirectional_shortest_path", "shortest_path"),
            *("dijkstra_path", "shortest_path_length", "single_source_bellman_ford"),
            "single_source_dijkstra",
        ),
        _ENDS,
    ),
    **dict.fromkeys(("single_target_shortest_path", "single_target_shortest_path_length"), (("target", 1),)),
    **dict.fromkeys(
        (*("bfs_layers", "multi_source_dijkstra_path", "multi_source_dijkstra_path_length"),),
        (("sources", 1),),
    ),
    **dict.fromkeys(
        (
            *("clustering", "constraint", "effective_size", "generalized_degree", "reciprocity", "square_clustering"),
            "triangles",
        ),
        _NODES,
    ),
    "average_neighbor_degree": (("nodes", 3),),
    "multi_source_dijkstra": (("sources", 1), ("target", 2)),
    "node_connected_component": (("n", 1),),
    "voronoi_cells": (("center_nodes", 1),),
}
"""The parameters, with their positions, whose objects the results have wherever they have these nodes."""

_CHECKING = ("edge_bfs", "edge_dfs", "find_cycle")
"""Functions that report an item that is no node themselves."""

_MIXED: dict[str, tuple[tuple[str, int], ...]] = {
    **dict.fromkeys(("bfs_labeled_edges",), (("sources", 1),)),
    **dict.fromkeys(
        (
            *("dfs_labeled_edges", "edge_bfs", "edge_dfs", "eulerian_circuit", "eulerian_path", "find_cycle"),
            "kosaraju_strongly_connected_components",
        ),
        _SOURCE,
    ),
    **dict.fromkeys(("chain_decomposition", "cycle_basis"), (("root", 1),)),
    **dict.fromkeys(("dominance_frontiers", "immediate_dominators"), (("start", 1),)),
    **dict.fromkeys(("edge_boundary", "node_boundary"), (("nbunch1", 1), ("nbunch2", 2))),
    "lowest_common_ancestor": (("node1", 1), ("node2", 2)),
    "hopcroft_karp_matching": (("top_nodes", 1),),
    **dict.fromkeys(("k_core", "k_corona", "k_crust", "k_shell"), (("core_number", 2),)),
}
"""The parameters whose objects the results have in some places, and the graph's own nodes in others."""


def keeps_arguments(name: str) -> bool:
    """Return whether results of a function may have nodes that are arguments."""
    return name in _KEPT or name in _MIXED


def with_argument_nodes(
    name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
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
    for parameter, position in _KEPT.get(name) or _MIXED[name]:
        value = argument(parameter, position, args, kwargs)
        if value is None or type(value) is graph.topology.kind:
            continue
        if name.startswith("dfs_") and not isinstance(value, Hashable):
            raise NotImplementedError(f"{parameter} is not hashable")
        nodes = _nodes_of(graph, value)
        if isinstance(nodes, Iterator):
            raise NotImplementedError(f"{parameter} is an iterator")
        for vertex, node in _other_objects(graph, nodes, checked=name in _CHECKING).items():
            if not _is_same(found.setdefault(vertex, node), node):
                raise NotImplementedError("a node is given as two objects of different types")
    if not found:
        return args, kwargs
    if name in _MIXED:
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


def _other_objects(graph: Any, nodes: Iterable[Any], *, checked: bool) -> dict[int, Any]:
    """Return those that are equal to nodes of the graph but of other types, by their vertices."""
    topology = graph.topology
    if topology.kind is not None and set(map(type, nodes)) <= {topology.kind}:
        return {}
    found: dict[int, Any] = {}
    for node in nodes:
        if not isinstance(node, Hashable):
            if checked:
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
