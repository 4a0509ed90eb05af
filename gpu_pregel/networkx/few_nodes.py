"""Which calls read a few rows of a large graph only, as NetworkX does faster than it is converted or looked through.

This imports neither NumPy nor NetworkX.
"""

from __future__ import annotations

from typing import Any

from gpu_pregel.networkx.reach import argument, count_nodes, reads_a_part
from gpu_pregel.networkx.sizes import NEVER

_CONVERTS = 10
"""In a graph that is not converted, up to the nodes divided by this are few."""
_FEW_NODES, _FEW_PAIRS = 8, 24
"""Up to these numbers of chosen nodes and of pairs are few in a graph of any size."""

_CHOSEN: dict[str, tuple[str, int, int]] = {
    "adamic_adar_index": ("ebunch", 1, 40),
    "average_clustering": ("nodes", 1, NEVER),
    "average_degree_connectivity": ("nodes", 3, 40),
    "boundary_expansion": ("S", 1, 15),
    "clustering": ("nodes", 1, NEVER),
    "cn_soundarajan_hopcroft": ("ebunch", 1, 40),
    "common_neighbor_centrality": ("ebunch", 1, NEVER),
    "constraint": ("nodes", 1, NEVER),
    "cut_size": ("S", 1, 50),
    "degree_assortativity_coefficient": ("nodes", 4, 30),
    "degree_pearson_correlation_coefficient": ("nodes", 4, 30),
    "edge_boundary": ("nbunch1", 1, 30),
    "effective_size": ("nodes", 1, NEVER),
    "generalized_degree": ("nodes", 1, NEVER),
    "jaccard_coefficient": ("ebunch", 1, 1_000),
    "node_boundary": ("nbunch1", 1, 30),
    "node_degree_xy": ("nodes", 4, 200),
    "node_expansion": ("S", 1, 15),
    "preferential_attachment": ("ebunch", 1, 30),
    "ra_index_soundarajan_hopcroft": ("ebunch", 1, 40),
    "reciprocity": ("nodes", 1, 6),
    "resource_allocation_index": ("ebunch", 1, 40),
    "square_clustering": ("nodes", 1, NEVER),
    "to_scipy_sparse_array": ("nodelist", 1, 100),
    "triangles": ("nodes", 1, NEVER),
    "volume": ("S", 1, 6),
    "within_inter_cluster": ("ebunch", 1, 40),
}
"""The argument with the nodes or pairs that are read, and its position; up to the nodes divided by the number are few
in a graph that is converted, as measured with 3,000 and 20,000 nodes. ``NEVER`` is for functions that read as few rows
as NetworkX's."""


def measured_as(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Return the function whose size decides: searches between two nodes, from a node and from all have their own."""
    if name not in ("shortest_path", "shortest_path_length"):
        return name
    source, target, weight = (argument(one, i, args, kwargs) for i, one in enumerate(("source", "target", "weight"), 1))
    if source is None and target is None:
        return name
    is_dijkstra = weight is not None and argument("method", 4, args, kwargs) in (None, "dijkstra")
    if source is not None and target is not None:
        return "bidirectional_shortest_path" if weight is None else "bidirectional_dijkstra" if is_dijkstra else name
    length = name.removeprefix("shortest_path")
    if weight is None:
        return f"single_{'target' if source is None else 'source'}_shortest_path{length}"
    return f"single_source_{'dijkstra' if is_dijkstra else 'bellman_ford'}_path{length}"


def reads_few_nodes(
    graph: Any, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], *, is_converted: bool
) -> str | None:
    """Return why NetworkX is expected to be faster at this call, as it reads a few rows, or None."""
    if (measured := measured_as(name, args, kwargs)).startswith("bidirectional"):
        name = measured
    if (reason := reads_a_part(graph, name, args, kwargs, is_converted=is_converted)) is not None:
        return reason
    if name not in _CHOSEN:
        return None
    nodes, position, share = _CHOSEN[name]
    chosen = argument(nodes, position, args, kwargs)
    if chosen is None:
        return None
    count = count_nodes(graph, chosen)
    least = _FEW_PAIRS if nodes == "ebunch" else _FEW_NODES
    few = max(least, len(graph) // (share if is_converted else min(share, _CONVERTS)))
    if count > few:
        return None
    everything = "all pairs" if nodes == "ebunch" else f"{len(graph):,} nodes"
    return f"{nodes} has {count:,} of {everything}"
