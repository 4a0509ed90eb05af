"""Breadth-first and depth-first search."""

from __future__ import annotations

from functools import partial

from gpu_pregel.networkx.conditions import float_or_none, one_of, simple, unset
from gpu_pregel.networkx.function import Function, Reads

_limited = partial(
    Function,
    module="traversal",
    conditions=(unset("sort_neighbors"), float_or_none("depth_limit")),
    note="without sort_neighbors",
    reads=Reads(start="source", steps=("depth_limit",)),
    keeps=("source",),
)
_depth_first = partial(_limited, unhashable="late")
_unlimited = partial(_depth_first, reads=Reads(start="source"))
_along_edges = partial(
    Function,
    module="traversal",
    conditions=(simple(), one_of("orientation", None, "original")),
    note="for simple graphs, along the direction of edges",
    reads=Reads(ends_early=True),
    mixes=("source",),
    unhashable="reported",
)
_REVERSIBLE = Reads(start="source", reverse="reverse", steps=("depth_limit",))

FUNCTIONS = (
    _limited("bfs_edges", reads=_REVERSIBLE),
    Function("bfs_labeled_edges", "traversal", reads=Reads(starts="sources"), mixes=("sources",)),
    Function("bfs_layers", "traversal", reads=Reads(ends_early=True), keeps=("sources",)),
    _limited("bfs_predecessors"),
    _limited("bfs_successors"),
    _limited("bfs_tree", reads=_REVERSIBLE),
    Function("descendants_at_distance", "traversal", conditions=(float_or_none("distance"),), keeps=("source",)),
    _limited(
        "generic_bfs_edges",
        conditions=(unset("neighbors"), float_or_none("depth_limit")),
        note="without neighbors",
    ),
    _along_edges("edge_bfs"),
    _along_edges("edge_dfs"),
    _depth_first("dfs_edges"),
    _unlimited("dfs_labeled_edges", keeps=(), mixes=("source",)),
    _unlimited("dfs_postorder_nodes"),
    _depth_first("dfs_predecessors"),
    _unlimited("dfs_preorder_nodes"),
    _depth_first("dfs_successors"),
    _unlimited("dfs_tree"),
)
