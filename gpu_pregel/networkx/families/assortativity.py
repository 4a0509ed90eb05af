"""Degrees of neighbours, reciprocity and rich clubs."""

from __future__ import annotations

from gpu_pregel.networkx.conditions import attribute_names, false, simple
from gpu_pregel.networkx.function import Function, Reads

_BY_NAME = (attribute_names("weight"),)

FUNCTIONS = (
    Function("average_neighbor_degree", "assortativity", conditions=_BY_NAME, keeps=("nodes",)),
    Function("average_degree_connectivity", "assortativity", conditions=_BY_NAME, reads=Reads(rows="nodes", share=40)),
    Function("overall_reciprocity", "assortativity", conditions=(simple(),), note="for simple graphs"),
    Function(
        "reciprocity",
        "assortativity",
        conditions=(simple(),),
        note="for simple graphs",
        reads=Reads(rows="nodes", share=6),
        keeps=("nodes",),
    ),
    Function("rich_club_coefficient", "assortativity", conditions=(false("normalized"),), note="with normalized=False"),
    Function("s_metric", "assortativity"),
)
