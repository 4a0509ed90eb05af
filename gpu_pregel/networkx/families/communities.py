"""Communities and their quality."""

from __future__ import annotations

from gpu_pregel.networkx.conditions import attribute_names
from gpu_pregel.networkx.function import Function

_LEIDEN = "NetworkX has no implementation of its own"

FUNCTIONS = (
    Function("louvain_communities", "louvain", "community", conditions=(attribute_names("weight"),)),
    Function("louvain_partitions", "louvain", "community", conditions=(attribute_names("weight"),)),
    Function("leiden_communities", "louvain", "community", note=_LEIDEN),
    Function("leiden_partitions", "louvain", "community", note=_LEIDEN),
    Function("asyn_lpa_communities", "communities", "community", conditions=(attribute_names("weight"),)),
    Function("fast_label_propagation_communities", "communities", "community", conditions=(attribute_names("weight"),)),
    Function("label_propagation_communities", "communities", "community"),
    Function("asyn_fluidc", "communities", "community"),
    Function("modularity", "communities", "community", conditions=(attribute_names("weight"),)),
    Function("partition_quality", "communities", "community"),
)
