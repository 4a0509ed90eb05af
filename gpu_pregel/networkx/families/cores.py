"""Cores, shells and trusses."""

from __future__ import annotations

from functools import partial

from gpu_pregel.networkx.conditions import numbers, numbers_of_all_nodes, plain_class
from gpu_pregel.networkx.function import Function

_subgraph = partial(
    Function,
    module="cores",
    conditions=(plain_class(), numbers("k"), numbers_of_all_nodes("core_number")),
    mixes=("core_number",),
)

FUNCTIONS = (
    Function("core_number", "cores"),
    _subgraph("k_core"),
    _subgraph("k_shell"),
    _subgraph("k_crust"),
    _subgraph("k_corona"),
    Function("k_truss", "cores", conditions=(plain_class(), numbers("k"))),
    Function("onion_layers", "cores"),
)
