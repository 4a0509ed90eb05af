"""Converts NetworkX graphs into those of this backend, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpu_pregel.host.graphs.networkx_adjacency import attribute_values, read_edge_data
from gpu_pregel.networkx.edge_columns import edge_column
from gpu_pregel.networkx.graph import BackendGraph
from gpu_pregel.networkx.topology import Topology

if TYPE_CHECKING:
    import networkx


def convert_from_nx(
    graph: networkx.Graph,
    *,
    edge_attrs: dict[Any, Any] | None = None,
    node_attrs: dict[Any, Any] | None = None,
    preserve_edge_attrs: bool = False,
    preserve_node_attrs: bool = False,
    preserve_graph_attrs: bool = False,
    **_: Any,
) -> BackendGraph:
    """Convert a NetworkX graph; NetworkX calls it, and keeps the result in the graph's cache until the graph changes.

    Raises
    ------
    NotImplementedError
        An attribute of edges is not of numbers of one type; NetworkX then runs its own function.
    """
    data = read_edge_data(graph) if preserve_edge_attrs or edge_attrs else []
    columns = {}
    if edge_attrs and not preserve_edge_attrs:
        columns = {key: edge_column(key, attribute_values(data, key, default)) for key, default in edge_attrs.items()}
    return BackendGraph._converted(
        _known_topology(graph) or Topology.from_networkx(graph),
        columns=columns,
        edge_data=data if preserve_edge_attrs else None,
        node_data=list(graph._node.values()) if preserve_node_attrs or node_attrs else None,
        attributes=dict(graph.graph) if preserve_graph_attrs else {},
    )


def _known_topology(graph: networkx.Graph) -> Topology | None:
    """Return the topology of an earlier conversion of this graph for other attributes."""
    cache = getattr(graph, "__networkx_cache__", None) or {}
    known = cache.get("backends", {}).get("gpu_pregel", {})
    return next((other.topology for other in list(known.values()) if isinstance(other, BackendGraph)), None)


def convert_to_nx(value: Any, **_: Any) -> Any:
    """Return a graph of this backend as a NetworkX graph; any other object as it is."""
    if not isinstance(value, BackendGraph):
        return value
    import networkx

    kinds = {
        (False, False): networkx.Graph,
        (False, True): networkx.MultiGraph,
        (True, False): networkx.DiGraph,
        (True, True): networkx.MultiDiGraph,
    }
    topology = value.topology
    result = kinds[value.is_directed(), value.is_multigraph()](**value.graph)
    result.add_nodes_from(zip(topology.nodes, map(dict, value.node_data()), strict=True))
    nodes = topology.nodes
    edges = zip(topology.sources.tolist(), topology.neighbors.tolist(), value.edge_data(), strict=True)
    # An undirected edge is stored in both directions.
    result.add_edges_from((nodes[u], nodes[v], data) for u, v, data in edges if value.is_directed() or u <= v)
    return result
