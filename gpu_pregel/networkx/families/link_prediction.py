"""Scores of pairs of nodes by common neighbours."""

from __future__ import annotations

from functools import partial

from gpu_pregel.networkx.conditions import python_numbers
from gpu_pregel.networkx.function import Function, Reads

_of_pairs = partial(Function, module="link_prediction", reads=Reads(rows="ebunch", share=40))

FUNCTIONS = (
    _of_pairs("jaccard_coefficient", reads=Reads(rows="ebunch", share=1_000)),
    _of_pairs("adamic_adar_index"),
    _of_pairs("resource_allocation_index"),
    _of_pairs("preferential_attachment", reads=Reads(rows="ebunch", share=30)),
    _of_pairs("common_neighbor_centrality", reads=Reads(rows="ebunch")),
    _of_pairs("cn_soundarajan_hopcroft"),
    _of_pairs("ra_index_soundarajan_hopcroft"),
    _of_pairs("within_inter_cluster", conditions=(python_numbers("delta"),)),
)
