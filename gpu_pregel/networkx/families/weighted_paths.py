"""Shortest paths by weight: Dijkstra's algorithm."""

from __future__ import annotations

from functools import partial

from gpu_pregel.networkx.conditions import attribute_names, float_or_none
from gpu_pregel.networkx.function import Function, Reads

_WEIGHT, _NOTE = attribute_names("weight"), "with weights by name only"
_limited = partial(Function, module="weighted_paths", conditions=(_WEIGHT, float_or_none("cutoff")), note=_NOTE)
_from_source = partial(_limited, reads=Reads(start="source", limits=("cutoff",)))
_from_sources = partial(_limited, reads=Reads(starts="sources", limits=("cutoff",)))
_between = partial(
    Function,
    module="weighted_paths",
    conditions=(_WEIGHT,),
    note=_NOTE,
    reads=Reads(ends=("source", "target"), ends_early=True),
)

FUNCTIONS = (
    _between("bidirectional_dijkstra", keeps=("source", "target")),
    _between("dijkstra_path", keeps=("source", "target")),
    _between("dijkstra_path_length"),
    _limited("all_pairs_dijkstra"),
    _limited("all_pairs_dijkstra_path"),
    _limited("all_pairs_dijkstra_path_length"),
    _from_source("dijkstra_predecessor_and_distance", keeps=("source",)),
    _limited(
        "multi_source_dijkstra",
        reads=Reads(starts="sources", limits=("target", "cutoff")),
        keeps=("sources", "target"),
    ),
    _from_sources("multi_source_dijkstra_path", keeps=("sources",)),
    _from_sources("multi_source_dijkstra_path_length", keeps=("sources",)),
    _limited(
        "single_source_dijkstra", reads=Reads(start="source", limits=("target", "cutoff")), keeps=("source", "target")
    ),
    _from_source("single_source_dijkstra_path", keeps=("source",)),
    _from_source("single_source_dijkstra_path_length", keeps=("source",)),
)
