"""Cores, shells and trusses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np

from gpu_pregel.algorithms import core_number as engine
from gpu_pregel.host.devices.threads import parallel, thread_count
from gpu_pregel.kernels.networkx.cores_cpu import find_layers, peel, peel_edges
from gpu_pregel.kernels.networkx.neighborhoods_cpu import count_common
from gpu_pregel.networkx.degrees import degrees, number_of_loops
from gpu_pregel.networkx.graph import BackendGraph
from gpu_pregel.networkx.results import copied_subgraph

if TYPE_CHECKING:
    import networkx

Array = np.ndarray[Any, Any]

_CHUNK = 64


def core_number(G: BackendGraph) -> dict[Any, int]:
    """Return the core number of each node."""
    return G.by_node(_cores(G))


def _cores(G: BackendGraph) -> Array:
    _refuse_loops(G, "Input graph has self loops which is not permitted; ")
    if not G.is_directed():
        return engine.core_number(G.engine()).to_numpy()
    # Edges in both directions count as two.
    topology = G.topology
    back_indptr, back = topology.predecessors
    owners = np.concatenate([topology.sources, np.repeat(np.arange(len(G)), np.diff(back_indptr))])
    order = np.argsort(owners, kind="stable")
    cores = degrees(G)
    peel(topology.indptr + back_indptr, np.concatenate([topology.neighbors, back])[order].astype(np.uint32), cores)
    return cores


def _refuse_loops(G: BackendGraph, message: str) -> None:
    if number_of_loops(G):
        raise nx.NetworkXNotImplemented(message + "Consider using G.remove_edges_from(nx.selfloop_edges(G)).")


def k_core(G: BackendGraph, k: int | None = None, core_number: Any = None) -> networkx.Graph[Any]:
    """Return the largest subgraph in which all nodes have k neighbours or more."""
    found = _given_cores(G, core_number)
    least = max(found.values()) if k is None else k
    return copied_subgraph(G, (node for node in found if found[node] >= least))


def k_shell(G: BackendGraph, k: int | None = None, core_number: Any = None) -> networkx.Graph[Any]:
    """Return the subgraph of the nodes whose core number is k."""
    found = _given_cores(G, core_number)
    wanted = max(found.values()) if k is None else k
    return copied_subgraph(G, (node for node in found if found[node] == wanted))


def k_crust(G: BackendGraph, k: int | None = None, core_number: Any = None) -> networkx.Graph[Any]:
    """Return the subgraph of the nodes whose core number is k or less."""
    found = _given_cores(G, core_number)
    most = max(found.values()) - 1 if k is None else k
    return copied_subgraph(G, (node for node in found if found[node] <= most))


def k_corona(G: BackendGraph, k: int | None, core_number: Any = None) -> networkx.Graph[Any]:
    """Return the subgraph of the nodes in the k-shell that have exactly k neighbours in the k-core."""
    found = _given_cores(G, core_number)
    k, topology = max(found.values()) if k is None else k, G.topology
    cores = np.array([found[node] for node in topology.nodes])
    inside = np.bincount(topology.sources, cores[topology.neighbors] >= k, minlength=len(G))
    chosen = (cores == k) & (inside == k)
    return copied_subgraph(G, (node for node in found if chosen[topology.numbers[node]]))


def _given_cores(G: BackendGraph, given: Any) -> dict[Any, int]:
    return core_number(G) if given is None else dict(given)


def k_truss(G: BackendGraph, k: int) -> networkx.Graph[Any]:
    """Return the largest subgraph in which all edges are part of k - 2 triangles or more."""
    _refuse_loops(G, "Input graph has self loops which is not permitted; ")
    graph = G.engine()
    indptr, neighbors = graph.indptr, graph.indices
    vertices, support = np.arange(len(G)), np.empty(len(neighbors), np.int64)
    rows = (indptr, neighbors, vertices, indptr[:-1], support)
    parallel(count_common, len(G), _CHUNK, *rows, threads=thread_count(None))
    sources = np.repeat(vertices, np.diff(indptr)).astype(np.uint32)
    kept = np.ones(len(neighbors), np.bool_)
    peel_edges(indptr, neighbors, sources, int(np.ceil(k)) - 2, support, kept)
    # From sorted rows to those in NetworkX's order.
    stored = np.empty(len(kept), np.bool_)
    stored[np.lexsort((G.topology.neighbors, G.topology.sources))] = kept
    left = np.bincount(G.topology.sources[stored], minlength=len(G)) > 0
    return copied_subgraph(G, kept=stored, present=left)


def onion_layers(G: BackendGraph) -> dict[Any, int]:
    """Return the layer of each node, in the order in which layers are removed."""
    _refuse_loops(G, "Input graph contains self loops which is not permitted; ")
    n, topology = len(G), G.topology
    left, layers, at_removal = degrees(G), np.zeros(n, np.int64), np.zeros(n, np.int64)
    find_layers(topology.indptr, topology.neighbors, left, layers, at_removal)
    order = np.lexsort((np.arange(n), at_removal, layers))
    return G.values_at(order, layers[order])
