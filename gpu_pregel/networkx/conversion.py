"""Converts NetworkX graphs into those of this backend, and back."""

from __future__ import annotations

from operator import ne
from typing import TYPE_CHECKING, Any

import numpy as np

from gpu_pregel.host.graphs.networkx_adjacency import (
    attribute_values,
    read_adjacency,
    read_edge_data,
    read_edge_numbers,
)
from gpu_pregel.networkx.edge_columns import EdgeColumn, check_infinite, edge_column
from gpu_pregel.networkx.graph import BackendGraph
from gpu_pregel.networkx.topology import Topology

if TYPE_CHECKING:
    import networkx

_READERS = (
    *(
        "__iter__",
        "__contains__",
        "__len__",
        "__getitem__",
        "nodes",
        "adjacency",
        "adj",
        "neighbors",
        "edges",
        "degree",
    ),
    *("succ", "pred", "successors", "predecessors", "out_edges", "in_edges", "out_degree", "in_degree"),
)
"""What NetworkX's functions read graphs by; directed graphs have the second row."""


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
        An attribute of edges is not of numbers of one type, a node is not equal to itself, as NaN, the graph is of a
        class that has its own idea of neighbours, or a view of edges from one end; NetworkX then runs its own function.
    """
    _check_class(type(graph))
    if hasattr(graph, "_graph"):
        # A change of the graph of which this is a view would not clear the cache of the view.
        graph.__networkx_cache__ = None
    if (preserve_edge_attrs or edge_attrs) and _joins_directions(graph):
        raise NotImplementedError("both directions of an edge of an undirected view may have attributes of their own")
    return BackendGraph._converted(
        _known_topology(graph) or _read_topology(graph),
        columns={} if preserve_edge_attrs else _columns(graph, edge_attrs or {}),
        edge_data=read_edge_data(graph) if preserve_edge_attrs else None,
        node_data=list(graph._node.values()) if preserve_node_attrs or node_attrs else None,
        # Not a copy: setting an attribute does not clear the cache.
        attributes=graph.graph if preserve_graph_attrs else {},
    )


def _columns(graph: networkx.Graph, defaults: dict[Any, Any]) -> dict[Any, Any]:
    """Return some attributes of the edges as arrays."""
    columns = {}
    for name, default in defaults.items():
        if (numbers := read_edge_numbers(graph, name, default)) is not None:
            columns[name] = EdgeColumn(check_infinite(name, numbers))
        else:
            columns[name] = edge_column(name, attribute_values(read_edge_data(graph), name, default))
    return columns


def _check_class(kind: type) -> None:
    """Refuse classes that override how nodes, neighbours, edges and degrees are read."""
    base = next(one for one in kind.__mro__ if one.__module__.startswith("networkx.classes."))
    for name in _READERS:
        if getattr(kind, name, None) is not getattr(base, name, None):
            raise NotImplementedError(f"{kind.__name__} overrides {name}")


def _read_topology(graph: networkx.Graph) -> Topology:
    """Read the nodes and edges; NetworkX's results differ where it compares a node with itself and finds it unequal."""
    directed, multigraph = graph.is_directed(), graph.is_multigraph()
    topology = Topology(read_adjacency(graph), directed=directed, multigraph=multigraph, source=graph)
    if hasattr(graph, "_graph") and not topology.directed and not _is_symmetric(topology):
        raise NotImplementedError("the view shows an edge from one of its ends only")
    try:
        unequal = any(map(ne, topology.nodes, topology.nodes))
    except TypeError:
        unequal = True
    if unequal:
        raise NotImplementedError("a node is not equal to itself")
    return topology


def _is_symmetric(topology: Topology) -> bool:
    """Return whether the edges of an undirected graph are stored from both ends: a filter may tell their directions."""
    sources, targets = topology.sources.astype(np.int64), topology.neighbors.astype(np.int64)
    n = topology.n
    return np.array_equal(np.sort(sources * n + targets), np.sort(targets * n + sources))


def _joins_directions(graph: Any) -> bool:
    """Return whether this is an undirected view of a directed graph."""
    base = graph
    while hasattr(base, "_graph"):
        base = base._graph
    return bool(base.is_directed() and not graph.is_directed())


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
    result = kinds[value.is_directed(), value.is_multigraph()]()
    # Keys need not be strings.
    result.graph.update(value.graph)
    result.add_nodes_from(zip(value.topology.nodes, map(dict, value.node_data()), strict=True))
    rows = _rows(value)
    result._adj.update(rows)
    if value.is_directed():
        result._pred.update(_in_rows(value.topology, rows))
    return result


def _rows(graph: BackendGraph) -> dict[Any, dict[Any, Any]]:
    """Return the neighbours of each node in order, with a copy of the attributes of each edge, or of parallel ones."""
    topology = graph.topology
    nodes, ends = topology.nodes, topology.indptr.tolist()
    neighbors, data = topology.neighbors.tolist(), graph.edge_data()
    rows: dict[Any, dict[Any, Any]] = {}
    for u, node in enumerate(nodes):
        row: dict[Any, Any] = {}
        for e in range(ends[u], ends[u + 1]):
            v = neighbors[e]
            other = nodes[v]
            if not topology.directed and v < u:
                # Both directions of an edge share the attributes.
                row[other] = rows[other][node]
            elif topology.multigraph:
                parallel = row.setdefault(other, {})
                parallel[len(parallel)] = dict(data[e])
            else:
                row[other] = dict(data[e])
        rows[node] = row
    return rows


def _in_rows(topology: Topology, rows: dict[Any, dict[Any, Any]]) -> dict[Any, dict[Any, Any]]:
    """Return the in-edges of each node in order, which share the attributes of the out-edges."""
    nodes = topology.nodes
    indptr, sources = (part.tolist() for part in topology.predecessors)
    return {
        node: {nodes[u]: rows[nodes[u]][node] for u in sources[indptr[v] : indptr[v + 1]]}
        for v, node in enumerate(nodes)
    }
