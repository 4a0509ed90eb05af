"""Which calls read a few rows of a large graph only, as NetworkX does faster than it is converted or looked through.

This imports neither NumPy nor NetworkX.
"""

from __future__ import annotations

from collections.abc import Hashable, Sized
from typing import Any

from gpu_pregel.networkx.hand_over import is_converted
from gpu_pregel.networkx.sizes import NEVER, SIZES

_CONVERTS = 10
"""In a graph that is not converted, one node of so many is few."""
_ALWAYS_FEW = 2
"""So many chosen nodes are few in a graph of any size."""

_CHOSEN: dict[str, tuple[str, int, int]] = {
    "adamic_adar_index": ("ebunch", 1, 40),
    "average_degree_connectivity": ("nodes", 3, 40),
    "boundary_expansion": ("S", 1, 15),
    "clustering": ("nodes", 1, NEVER),
    "cn_soundarajan_hopcroft": ("ebunch", 1, 40),
    "cut_size": ("S", 1, 50),
    "degree_assortativity_coefficient": ("nodes", 4, 30),
    "degree_pearson_correlation_coefficient": ("nodes", 4, 30),
    "edge_boundary": ("nbunch1", 1, 30),
    "generalized_degree": ("nodes", 1, NEVER),
    "jaccard_coefficient": ("ebunch", 1, 1_000),
    "node_boundary": ("nbunch1", 1, 30),
    "node_degree_xy": ("nodes", 4, 200),
    "node_expansion": ("S", 1, 15),
    "preferential_attachment": ("ebunch", 1, 30),
    "ra_index_soundarajan_hopcroft": ("ebunch", 1, 40),
    "reciprocity": ("nodes", 1, 6),
    "resource_allocation_index": ("ebunch", 1, 40),
    "to_scipy_sparse_array": ("nodelist", 1, 100),
    "triangles": ("nodes", 1, NEVER),
    "volume": ("S", 1, 6),
    "within_inter_cluster": ("ebunch", 1, 40),
}
"""The argument with the nodes or pairs that are read, and its position; one node of so many is few in a graph that is
converted, as measured with 3,000 and 20,000 nodes. ``NEVER`` is for functions that read as few rows as NetworkX's."""

_DEPTHS: dict[str, tuple[str, int]] = {
    "bfs_edges": ("depth_limit", 3),
    "bfs_predecessors": ("depth_limit", 2),
    "bfs_successors": ("depth_limit", 2),
    "bfs_tree": ("depth_limit", 3),
    "dfs_edges": ("depth_limit", 2),
    "dfs_predecessors": ("depth_limit", 2),
    "dfs_successors": ("depth_limit", 2),
    "generic_bfs_edges": ("depth_limit", 3),
    "predecessor": ("cutoff", 3),
    "single_source_shortest_path": ("cutoff", 2),
    "single_source_shortest_path_length": ("cutoff", 2),
    "single_target_shortest_path": ("cutoff", 2),
    "single_target_shortest_path_length": ("cutoff", 2),
}
"""The argument that limits how far a search from one node goes, and its position."""

_PAIRS = {None: "bidirectional_shortest_path", "dijkstra": "bidirectional_dijkstra"}
"""What NetworkX searches for a path between two nodes with: without weights, and by a method with weights."""


def measured_as(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Return the function whose size decides: that of a search between two nodes is not that of one from a node."""
    if name not in ("shortest_path", "shortest_path_length"):
        return name
    source, target, weight = (
        _argument(one, i, args, kwargs) for i, one in enumerate(("source", "target", "weight"), 1)
    )
    if source is None or target is None:
        return name
    method = _argument("method", 4, args, kwargs) or "dijkstra"
    return _PAIRS.get(None if weight is None else method, name)


def faster_at_every_size(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """Return why NetworkX is expected to be faster at this call even of the largest graph, or None."""
    if name not in SIZES:
        return None
    cached, converting = SIZES[name][:2]
    if cached == NEVER:
        return "NetworkX is faster at graphs of every size"
    if converting == NEVER and not is_converted(_argument("G", 0, args, kwargs)):
        return "NetworkX is faster at graphs of every size that are not converted"
    return None


def reads_few_nodes(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """Return why NetworkX is expected to be faster at this call, as it reads a few rows, or None."""
    graph = _argument("G", 0, args, kwargs)
    if not hasattr(graph, "_adj"):
        return None
    if name == "bfs_layers" and not is_converted(graph):
        # NetworkX's descendants_at_distance reads few layers, and is called between changes of the graph.
        return "the graph is not converted"
    if name in _DEPTHS:
        depth = _argument(*_DEPTHS[name], args, kwargs)
        return f"{_DEPTHS[name][0]} is {depth}" if isinstance(depth, int) and depth <= 1 else None
    if name not in _CHOSEN:
        return None
    argument, position, share = _CHOSEN[name]
    chosen = _argument(argument, position, args, kwargs)
    if chosen is None:
        return None
    count = _count(graph, chosen)
    few = max(_ALWAYS_FEW, len(graph) // (share if is_converted(graph) else min(share, _CONVERTS)))
    return f"{argument} has {count:,} of {len(graph):,} nodes" if count <= few else None


def _argument(name: str, position: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return args[position] if len(args) > position else kwargs.get(name)


def _count(graph: Any, chosen: Any) -> float:
    """Return how many nodes or pairs are given; infinity if they can be counted only by using up an iterator."""
    if isinstance(chosen, Hashable) and chosen in graph:
        return 1
    return len(chosen) if isinstance(chosen, Sized) else float("inf")
