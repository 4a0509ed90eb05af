"""Scores of pairs of nodes by common neighbours."""

from __future__ import annotations

from gpu_pregel.networkx.conditions import python_numbers
from gpu_pregel.networkx.function import Function

FUNCTIONS = (
    Function("jaccard_coefficient", "link_prediction"),
    Function("adamic_adar_index", "link_prediction"),
    Function("resource_allocation_index", "link_prediction"),
    Function("preferential_attachment", "link_prediction"),
    Function("common_neighbor_centrality", "link_prediction"),
    Function("cn_soundarajan_hopcroft", "link_prediction"),
    Function("ra_index_soundarajan_hopcroft", "link_prediction"),
    Function("within_inter_cluster", "link_prediction", conditions=(python_numbers("delta"),)),
)
