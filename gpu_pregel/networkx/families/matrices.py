"""Matrices and lists of edges from graphs, and graphs from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpu_pregel.networkx.conditions import attribute_names, collections_of_nodes, unset
from gpu_pregel.networkx.function import Function, Reads


def _sums(values: Mapping[str, Any]) -> str | None:
    if values["multigraph_weight"] is not sum and values["G"].is_multigraph():
        return "multigraph_weight is not sum"
    dtype = values["dtype"]
    if dtype is object:
        return "dtype is object"
    return "dtype is structured" if isinstance(dtype, list) or getattr(dtype, "names", None) else None


_PLAIN = (collections_of_nodes("nodelist", "row_order", "column_order"), attribute_names("weight"))

FUNCTIONS = (
    Function("to_scipy_sparse_array", "matrices", conditions=_PLAIN, reads=Reads(rows="nodelist", share=100)),
    Function("to_numpy_array", "matrices", conditions=(*_PLAIN, _sums)),
    Function("adjacency_matrix", "matrices", conditions=_PLAIN),
    Function("laplacian_matrix", "matrices", conditions=_PLAIN),
    Function("normalized_laplacian_matrix", "matrices", conditions=_PLAIN),
    Function("modularity_matrix", "matrices", conditions=_PLAIN),
    Function("directed_modularity_matrix", "matrices", conditions=_PLAIN),
    Function("incidence_matrix", "matrices", conditions=(*_PLAIN, unset("edgelist")), note="without edgelist"),
    Function("biadjacency_matrix", "matrices", "bipartite", conditions=_PLAIN),
)
