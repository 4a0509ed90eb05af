"""Which calls read a part of a graph only, so that converting the graph would take longer than NetworkX's function.

This imports neither NumPy nor NetworkX.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Set
from itertools import islice
from typing import Any

_COLLECTIONS = (list, tuple, range, str, Set, Mapping)
"""Those that can be read more than once."""
_SHARE, _FEW = 8, 64
"""A search that reaches fewer than one node in eight is left to NetworkX; of a converted graph, one that reaches fewer
than the second number, too."""

ENDS_EARLY = frozenset(
    {
        *("bidirectional_dijkstra", "bidirectional_shortest_path", "dijkstra_path", "dijkstra_path_length"),
        *("bfs_layers", "color", "edge_bfs", "edge_dfs", "efficiency", "find_cycle", "find_negative_cycle"),
        *("has_path", "is_biconnected", "is_bipartite", "is_maximal_matching", "lowest_common_ancestor"),
    }
)
"""NetworkX ends these as soon as it knows the answer, and reads bfs_layers and edge_dfs as far as a caller asks."""

_LIMITS: dict[str, tuple[tuple[str, int], ...]] = {
    "bfs_edges": (("depth_limit", 3),),
    "bfs_predecessors": (("depth_limit", 2),),
    "bfs_successors": (("depth_limit", 2),),
    "bfs_tree": (("depth_limit", 3),),
    "dfs_edges": (("depth_limit", 2),),
    "dfs_predecessors": (("depth_limit", 2),),
    "dfs_successors": (("depth_limit", 2),),
    "dijkstra_predecessor_and_distance": (("cutoff", 2),),
    "generic_bfs_edges": (("depth_limit", 3),),
    "multi_source_dijkstra": (("target", 2), ("cutoff", 3)),
    "multi_source_dijkstra_path": (("cutoff", 2),),
    "multi_source_dijkstra_path_length": (("cutoff", 2),),
    "predecessor": (("target", 2), ("cutoff", 3)),
    "single_source_dijkstra": (("target", 2), ("cutoff", 3)),
    "single_source_dijkstra_path": (("cutoff", 2),),
    "single_source_dijkstra_path_length": (("cutoff", 2),),
    "single_source_shortest_path": (("cutoff", 2),),
    "single_source_shortest_path_length": (("cutoff", 2),),
    "single_target_shortest_path": (("cutoff", 2),),
    "single_target_shortest_path_length": (("cutoff", 2),),
}
"""The arguments that limit how far a search goes, and their positions."""

_SAMPLED = dict.fromkeys(("betweenness_centrality", "edge_betweenness_centrality"), ("k", 1))
_SEARCHED: dict[str, tuple[str, int]] = {
    **_SAMPLED,
    "betweenness_centrality_subset": ("sources", 1),
    "closeness_centrality": ("u", 1),
    "eccentricity": ("v", 1),
    "edge_betweenness_centrality_subset": ("sources", 1),
    "harmonic_centrality": ("nbunch", 1),
}
"""The argument with the nodes from which alone these search, and its position; with their number in the first dict."""
_FEW_SEARCHES = 3
"""Up to this number of searches take less time than a conversion."""

_STARTS: dict[str, str] = {
    "all_shortest_paths": "source",
    "ancestors": "source",
    "bellman_ford_path": "source",
    "bellman_ford_path_length": "source",
    "bellman_ford_predecessor_and_distance": "source",
    "bfs_edges": "source",
    "bfs_labeled_edges": "sources",
    "bfs_predecessors": "source",
    "bfs_successors": "source",
    "bfs_tree": "source",
    "descendants": "source",
    "dfs_edges": "source",
    "dfs_labeled_edges": "source",
    "dfs_postorder_nodes": "source",
    "dfs_predecessors": "source",
    "dfs_preorder_nodes": "source",
    "dfs_successors": "source",
    "dfs_tree": "source",
    "dijkstra_predecessor_and_distance": "source",
    "dominance_frontiers": "start",
    "generic_bfs_edges": "source",
    "group_closeness_centrality": "S",
    "immediate_dominators": "start",
    "local_reaching_centrality": "v",
    "multi_source_dijkstra": "sources",
    "multi_source_dijkstra_path": "sources",
    "multi_source_dijkstra_path_length": "sources",
    "node_connected_component": "n",
    "predecessor": "source",
    "shortest_path": "source",
    "shortest_path_length": "source",
    "single_source_all_shortest_paths": "source",
    "single_source_bellman_ford": "source",
    "single_source_bellman_ford_path": "source",
    "single_source_bellman_ford_path_length": "source",
    "single_source_dijkstra": "source",
    "single_source_dijkstra_path": "source",
    "single_source_dijkstra_path_length": "source",
    "single_source_shortest_path": "source",
    "single_source_shortest_path_length": "source",
    "single_target_shortest_path": "target",
    "single_target_shortest_path_length": "target",
    "voronoi_cells": "center_nodes",
}
"""The second argument of searches from one node or several."""
_SEVERAL = frozenset({"S", "center_nodes", "sources"})
"""Those that may be several nodes."""
_BACKWARDS = frozenset({"ancestors", "single_target_shortest_path", "single_target_shortest_path_length"})
"""Those along in-edges."""

_BETWEEN = frozenset(
    {
        *("bellman_ford_path", "bellman_ford_path_length", "bidirectional_dijkstra", "bidirectional_shortest_path"),
        *("dijkstra_path", "dijkstra_path_length", "efficiency", "has_path", "shortest_path", "shortest_path_length"),
    }
)
"""Their second and third arguments are two nodes."""

_CONNECTED = frozenset({"is_connected", "is_strongly_connected", "is_weakly_connected"})
_ALL_PAIRS = frozenset(
    {"average_shortest_path_length", "gutman_index", "hyper_wiener_index", "schultz_index", "wiener_index"}
)
_FARTHEST = frozenset({"barycenter", "center", "diameter", "periphery", "radius"})
_OTHERS = frozenset({"is_biconnected", "is_semiconnected"})
"""These end as soon as a search from the first node does not reach all others. Those of all pairs search from each node
then; those of the farthest nodes do so at once, until one search does not reach all."""
_FORESTS = frozenset({"is_branching", "is_forest"})
"""These end at the first component with a cycle."""
_FROM_FIRST = _CONNECTED | _ALL_PAIRS | _FARTHEST | _OTHERS | _FORESTS
_WEAKLY = frozenset({"is_branching", "is_forest", "is_semiconnected", "is_weakly_connected"})
"""Those along edges of both directions."""
_BOTH_WAYS = (_CONNECTED - _WEAKLY) | _ALL_PAIRS
"""Those whose search is one in either direction."""
SEARCHES = (
    _STARTS.keys()
    | _CONNECTED
    | {
        *("connected_components", "number_connected_components"),
        *("weakly_connected_components", "number_weakly_connected_components"),
    }
)
"""NetworkX ends these once all nodes have been found, after few edges of a dense graph."""


def argument(name: str, position: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return an argument of a call; None if it is not given."""
    return args[position] if len(args) > position else kwargs.get(name)


def reads_a_part(
    graph: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], *, is_converted: bool
) -> str | None:
    """Return why a call reads a small part of its graph, or None.

    To find out, a search goes as far as a small share of the nodes, as NetworkX's search would do, too.
    """
    unconverted = "" if is_converted else ", and the graph is not converted"
    if name in ENDS_EARLY and not is_converted:
        return f"NetworkX's function may end early{unconverted}"
    for limit, position in _LIMITS.get(name, ()):
        steps = argument(limit, position, args, kwargs)
        if steps is not None and not is_converted:
            return f"{limit} is given{unconverted}"
        if limit != "target" and isinstance(steps, int) and steps <= 1 and "dijkstra" not in name:
            return f"{limit} is {steps}"
    if name in _BETWEEN and _is_same(graph, name, args, kwargs):
        return "both ends are the same node"
    if name == "greedy_modularity_communities":
        most = argument("best_n", 4, args, kwargs)
        if isinstance(most, int) and most == 1:
            return "best_n is 1"
    if name in _SEARCHED:
        given = argument(*_SEARCHED[name], args, kwargs)
        count = given if name in _SAMPLED and isinstance(given, int) else count_nodes(graph, given)
        if count <= (0 if is_converted else _FEW_SEARCHES):
            return f"{_SEARCHED[name][0]} asks for {count:,} searches{unconverted}"
    if name in _STARTS:
        start = argument(_STARTS[name], 1, args, kwargs)
        starts = _nodes(graph, start, is_several=_STARTS[name] in _SEVERAL)
        described = f"the search from {_STARTS[name]}"
    elif name in _FROM_FIRST:
        starts = list(islice(graph, 1))
        described = "the search from the first node"
    else:
        return None
    share = len(graph) // _SHARE
    few = min(share, _FEW) if is_converted else share
    if not starts:
        return None
    for rows in _rows(name, graph, args, kwargs):
        found = _reached(rows, starts, few)
        if found is not None and not (name in _FORESTS and _is_tree(graph, found)):
            return f"{described} reaches fewer than {few:,} of {len(graph):,} nodes{unconverted}"
    return None


def _is_same(graph: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """Return whether both ends of a path are given, and are the same node."""
    names = ("u", "v") if name == "efficiency" else ("source", "target")
    first, last = (argument(end, i, args, kwargs) for i, end in enumerate(names, 1))
    # What is no node, such as an array, may not be comparable.
    return first in graph and last in graph and bool(first == last)


def _rows(name: str, graph: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[tuple[Mapping[Any, Any], ...]]:
    """Return the neighbours of each node as the search follows them, or as several searches do."""
    if not graph.is_directed():
        return [(graph._adj,)]
    if name in _WEAKLY:
        return [(graph._succ, graph._pred)]
    if name in _BOTH_WAYS:
        return [(graph._succ,), (graph._pred,)]
    backwards = name in _BACKWARDS or (name in ("bfs_edges", "bfs_tree") and argument("reverse", 2, args, kwargs))
    return [(graph._pred if backwards else graph._succ,)]


def _nodes(graph: Any, given: Any, *, is_several: bool) -> list[Any]:
    """Return a node, or those of a collection; none if the search fails, is from all, or would use up an iterator."""
    if given in graph:
        return [given]
    return [one for one in given if one in graph] if is_several and isinstance(given, _COLLECTIONS) else []


def count_nodes(graph: Any, given: Any) -> float:
    """Return how many nodes or pairs are given; infinity if all are, or if counting would use up an iterator."""
    if isinstance(given, Hashable) and given in graph:
        return 1
    return len(given) if isinstance(given, _COLLECTIONS) else float("inf")


def _reached(rows: tuple[Mapping[Any, Any], ...], starts: Iterable[Any], limit: int) -> set[Any] | None:
    """Return the nodes that a search finds, or None if there are ``limit`` of them."""
    found = set(starts)
    waiting = list(found)
    while waiting:
        node = waiting.pop()
        for row in rows:
            others = row[node]
            if len(others) >= limit:
                return None
            for other in others:
                if other not in found:
                    if len(found) + 1 >= limit:
                        return None
                    found.add(other)
                    waiting.append(other)
    return found if len(found) < limit else None


def _is_tree(graph: Any, component: set[Any]) -> bool:
    """Return whether a connected component has no cycle."""
    edges = sum(len(graph._adj[node]) for node in component)
    return edges == (len(component) - 1) * (1 if graph.is_directed() else 2)
