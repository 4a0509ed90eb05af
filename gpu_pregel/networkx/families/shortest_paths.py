"""Shortest paths by the number of edges."""

from __future__ import annotations

from functools import partial

from gpu_pregel.networkx.conditions import float_or_none
from gpu_pregel.networkx.function import Function, Reads

_limited = partial(Function, module="shortest_paths", conditions=(float_or_none("cutoff"),))
_from_source = partial(_limited, reads=Reads(start="source", steps=("cutoff",)), keeps=("source",))
_to_target = partial(_limited, reads=Reads(start="target", along="in", steps=("cutoff",)), keeps=("target",))

FUNCTIONS = (
    Function(
        "bidirectional_shortest_path",
        "shortest_paths",
        reads=Reads(ends=("source", "target"), ends_early=True),
        keeps=("source", "target"),
    ),
    _limited("all_pairs_shortest_path"),
    _limited("all_pairs_shortest_path_length"),
    _from_source("predecessor", reads=Reads(start="source", limits=("target",), steps=("cutoff",))),
    _from_source("single_source_shortest_path"),
    _from_source("single_source_shortest_path_length"),
    _to_target("single_target_shortest_path"),
    _to_target("single_target_shortest_path_length"),
)
