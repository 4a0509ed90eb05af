"""Breadth-first and depth-first search."""

from __future__ import annotations

from gpu_pregel.networkx.conditions import float_or_none, one_of, simple, unset
from gpu_pregel.networkx.function import Function

_LIMITED = (unset("sort_neighbors"), float_or_none("depth_limit"))
_ALONG_EDGES = (simple(), one_of("orientation", None, "original"))
_ALONG_NOTE = "for simple graphs, along the direction of edges"
_NOTE = "without sort_neighbors"

FUNCTIONS = (
    Function("bfs_edges", "traversal", conditions=_LIMITED, note=_NOTE),
    Function("bfs_labeled_edges", "traversal"),
    Function("bfs_layers", "traversal"),
    Function("bfs_predecessors", "traversal", conditions=_LIMITED, note=_NOTE),
    Function("bfs_successors", "traversal", conditions=_LIMITED, note=_NOTE),
    Function("bfs_tree", "traversal", conditions=_LIMITED, note=_NOTE),
    Function("descendants_at_distance", "traversal", conditions=(float_or_none("distance"),)),
    Function(
        "generic_bfs_edges",
        "traversal",
        conditions=(unset("neighbors"), float_or_none("depth_limit")),
        note="without neighbors",
    ),
    Function("edge_bfs", "traversal", conditions=_ALONG_EDGES, note=_ALONG_NOTE),
    Function("edge_dfs", "traversal", conditions=_ALONG_EDGES, note=_ALONG_NOTE),
    Function("dfs_edges", "traversal", conditions=_LIMITED, note=_NOTE),
    Function("dfs_labeled_edges", "traversal", conditions=_LIMITED, note=_NOTE),
    Function("dfs_postorder_nodes", "traversal", conditions=_LIMITED, note=_NOTE),
    Function("dfs_predecessors", "traversal", conditions=_LIMITED, note=_NOTE),
    Function("dfs_preorder_nodes", "traversal", conditions=_LIMITED, note=_NOTE),
    Function("dfs_successors", "traversal", conditions=_LIMITED, note=_NOTE),
    Function("dfs_tree", "traversal", conditions=_LIMITED, note=_NOTE),
)
