"""Communities and their quality; the Leiden algorithm, which NetworkX declares for backends only."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from gpu_pregel.networkx.conditions import attribute_names, integers, plain_numbers
from gpu_pregel.networkx.function import Function, Reads


def _plain_sets(values: Mapping[str, Any]) -> str | None:
    """Require sets of nodes that are no nodes themselves."""
    partition = values["partition"]
    plain = isinstance(partition, (list, tuple)) and all(isinstance(part, (set, list)) for part in partition)
    return None if plain else "the partition is no list of sets or lists"


def _collection(values: Mapping[str, Any]) -> str | None:
    """Require a partition that can be read twice: NetworkX checks it first."""
    return None if isinstance(values["partition"], Collection) else "the partition is no collection"


def _comparable(values: Mapping[str, Any]) -> str | None:
    """Require nodes whose order decides between equal gains."""
    kinds = set(map(type, values["G"]))
    ordered = kinds <= {int, float} or (len(kinds) == 1 and kinds <= {str, tuple})
    return None if ordered else "nodes are not all numbers, all strings or all tuples"


FUNCTIONS = (
    Function("louvain_communities", "louvain", "community", conditions=(attribute_names("weight"),)),
    Function("louvain_partitions", "louvain", "community", conditions=(attribute_names("weight"),)),
    Function("leiden_communities", "louvain", "community"),
    Function("leiden_partitions", "louvain", "community"),
    Function(
        *("greedy_modularity_communities", "greedy_modularity", "community"),
        conditions=(attribute_names("weight"), integers("cutoff", "best_n"), _comparable),
        reads=Reads(at_once=("best_n", 1)),
    ),
    Function("asyn_lpa_communities", "communities", "community", conditions=(attribute_names("weight"),)),
    Function("fast_label_propagation_communities", "communities", "community", conditions=(attribute_names("weight"),)),
    Function("label_propagation_communities", "communities", "community"),
    Function("asyn_fluidc", "communities", "community"),
    Function(
        *("modularity", "communities", "community"), conditions=(attribute_names("weight"), plain_numbers("resolution"))
    ),
    Function("partition_quality", "communities", "community", conditions=(_collection,)),
    Function(
        *("intra_community_edges", "communities", "community.quality"),
        conditions=(_plain_sets,),
        note="for lists of sets or of lists",
    ),
    Function(
        *("inter_community_edges", "communities", "community.quality"),
        conditions=(_plain_sets,),
        note="for lists of sets or of lists",
    ),
)
