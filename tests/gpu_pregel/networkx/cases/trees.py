"""Calls of the recognition of trees, and of isolated nodes and self-loops."""

from __future__ import annotations

import networkx as nx

from tests.gpu_pregel.networkx.comparison import Case, call

_FOREST = Case(lambda graph: ((nx.DiGraph([(2, 1), (3, 4), (4, 5)]),), {}), graphs=("empty",))

_TWO_PARENTS = Case(lambda graph: ((nx.DiGraph([(1, 3), (2, 3)]),), {}), graphs=("empty",))

CASES: dict[str, list[Case]] = {
    "is_tree": [call()],
    "is_forest": [call(), _FOREST],
    "is_arborescence": [call(), _TWO_PARENTS],
    "is_branching": [call(), _FOREST, _TWO_PARENTS],
    "isolates": [call()],
    "number_of_isolates": [call()],
    "number_of_selfloops": [call()],
}
