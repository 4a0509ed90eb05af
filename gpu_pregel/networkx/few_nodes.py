"""Which calls read a few rows of a large graph only, as NetworkX does faster than it is converted or looked through.

This imports neither NumPy nor NetworkX.
"""

from __future__ import annotations

from collections.abc import Hashable, Sized
from typing import Any

from gpu_pregel.networkx.reach import argument, reads_a_part
from gpu_pregel.networkx.sizes import NEVER

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


def measured_as(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Return the function whose size decides: that of a search between two nodes is not that of one from a node."""
    if name not in ("shortest_path", "shortest_path_length"):
        return name
    source, target, weight = (argument(one, i, args, kwargs) for i, one in enumerate(("source", "target", "weight"), 1))
    if source is None or target is None:
        return name
    if weight is None:
        return "bidirectional_shortest_path"
    return "bidirectional_dijkstra" if argument("method", 4, args, kwargs) in (None, "dijkstra") else name


def reads_few_nodes(name: str, args: tuple[Any, ...], kwargs: dict[str, Any], *, is_converted: bool) -> str | None:
    """Return why NetworkX is expected to be faster at this call, as it reads a few rows, or None."""
    graph = argument("G", 0, args, kwargs)
    if not hasattr(graph, "_adj"):
        return None
    if (reason := reads_a_part(name, args, kwargs, is_converted=is_converted)) is not None:
        return reason
    if name not in _CHOSEN:
        return None
    nodes, position, share = _CHOSEN[name]
    chosen = argument(nodes, position, args, kwargs)
    if chosen is None:
        return None
    count = _count(graph, chosen)
    few = max(_ALWAYS_FEW, len(graph) // (share if is_converted else min(share, _CONVERTS)))
    return f"{nodes} has {count:,} of {len(graph):,} nodes" if count <= few else None


def _count(graph: Any, chosen: Any) -> float:
    """Return how many nodes or pairs are given; infinity if they can be counted only by using up an iterator."""
    if isinstance(chosen, Hashable) and chosen in graph:
        return 1
    return len(chosen) if isinstance(chosen, Sized) else float("inf")
