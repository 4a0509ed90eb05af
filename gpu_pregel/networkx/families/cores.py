"""Cores, shells and trusses."""

from __future__ import annotations

from gpu_pregel.networkx.conditions import numbers, numbers_of_all_nodes, plain_class
from gpu_pregel.networkx.function import Function

_GIVEN = (plain_class(), numbers("k"), numbers_of_all_nodes("core_number"))

FUNCTIONS = (
    Function("core_number", "cores"),
    Function("k_core", "cores", conditions=_GIVEN),
    Function("k_shell", "cores", conditions=_GIVEN),
    Function("k_crust", "cores", conditions=_GIVEN),
    Function("k_corona", "cores", conditions=_GIVEN),
    Function("k_truss", "cores", conditions=(plain_class(), numbers("k"))),
    Function("onion_layers", "cores"),
)
