"""Trophic levels of food webs, whose edges go from prey to predators."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import scipy.sparse
import scipy.sparse.linalg

from gpu_pregel.networkx.graph import Array, BackendGraph
from gpu_pregel.networkx.searches import search_rows


def trophic_levels(G: BackendGraph, weight: Any = "weight") -> dict[Any, float]:
    """Return the trophic level of each node: 1 for those without in-edges, else 1 more than the mean of its prey."""
    basal, levels = _levels(G, weight, np.ones(G.topology.m, np.bool_))
    found: dict[Any, float] = dict.fromkeys(G.nodes_at(np.flatnonzero(basal)), 1)
    found.update(zip(G.nodes_at(np.flatnonzero(~basal)), levels[~basal].tolist(), strict=True))
    return found


def trophic_differences(G: BackendGraph, weight: Any = "weight") -> dict[tuple[Any, Any], float]:
    """Return by how much the level of the target of each edge is higher than that of its source."""
    topology = G.topology
    _, levels = _levels(G, weight, np.ones(topology.m, np.bool_))
    edges = zip(G.nodes_at(topology.sources), G.nodes_at(topology.neighbors), strict=True)
    return dict(zip(edges, (levels[topology.neighbors] - levels[topology.sources]).tolist(), strict=True))


def trophic_incoherence_parameter(G: BackendGraph, weight: Any = "weight", cannibalism: bool = False) -> float:
    """Return the standard deviation of the differences, without those of self-loops unless ``cannibalism``."""
    topology = G.topology
    kept = np.ones(topology.m, np.bool_) if cannibalism else topology.sources != topology.neighbors
    _, levels = _levels(G, weight, kept)
    return float(np.std(levels[topology.neighbors[kept]] - levels[topology.sources[kept]]))


def _levels(G: BackendGraph, weight: Any, kept: Array) -> tuple[Array, Array]:
    """Return which vertices have no in-edges, and the levels of all, by those of the stored edges that are kept."""
    n, topology = len(G), G.topology
    sources, targets = topology.sources[kept].astype(np.int64), topology.neighbors[kept].astype(np.int64)
    basal = np.bincount(targets, minlength=n) == 0
    if not basal.any():
        raise nx.NetworkXError(
            "This graph has no basal nodes (nodes with no incoming edges).Trophic levels are not defined without at "
            "least one basal node."
        )
    column = G.moderate_values(weight)
    data = np.ones(len(sources)) if column is None else column[kept].astype(float)
    if not (data > 0).all():
        raise NotImplementedError(f"the edges' {weight!r} are not all positive")
    matrix = scipy.sparse.coo_array((data, (targets, sources)), shape=(n, n)).tocsr()
    if not _all_reached(matrix, basal):
        raise nx.NetworkXError(
            "Trophic levels are only defined for graphs where every node has a path from a basal node (basal nodes "
            "are nodes with no incoming edges)."
        )
    levels = np.ones(n)
    fed = int((~basal).sum())
    if fed:
        shares = (scipy.sparse.diags_array(1 / matrix.sum(axis=1)[~basal]) @ matrix[~basal][:, ~basal]).tocsc()
        system = (scipy.sparse.eye_array(fed) - shares).tocsc()
        levels[~basal] = scipy.sparse.linalg.spsolve(system, np.ones(fed)) + 1
    return basal, levels


def _all_reached(matrix: Any, sources: Array) -> bool:
    """Return whether all vertices can be reached; rows of the matrix are in-edges."""
    out = matrix.T.tocsr()
    indptr, neighbors = out.indptr.astype(np.int64), out.indices.astype(np.uint32)
    # Kernels are compiled for write-protected arrays, as those of graphs are.
    indptr.flags.writeable = neighbors.flags.writeable = False
    found = search_rows(indptr, neighbors, np.flatnonzero(sources).astype(np.uint32), None)
    return len(found.order) == len(sources)
