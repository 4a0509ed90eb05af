"""Converts NetworkX graphs into those of this backend, and back."""

from __future__ import annotations

from operator import ne
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
        An attribute of edges is not of numbers of one type, a node is not equal to itself, as NaN, or the graph is of
        a class that has its own idea of neighbours; NetworkX then runs its own function.
    """
    _check_class(type(graph))
    if hasattr(graph, "_graph"):
        # A change of the graph of which this is a view would not clear the cache of the view.
        graph.__networkx_cache__ = None
    data = read_edge_data(graph) if preserve_edge_attrs or edge_attrs else []
    columns = {}
    if edge_attrs and not preserve_edge_attrs:
        columns = {key: edge_column(key, attribute_values(data, key, default)) for key, default in edge_attrs.items()}
    return BackendGraph._converted(
        _known_topology(graph) or _read_topology(graph),
        columns=columns,
        edge_data=data if preserve_edge_attrs else None,
        node_data=list(graph._node.values()) if preserve_node_attrs or node_attrs else None,
        # Not a copy: setting an attribute does not clear the cache.
        attributes=graph.graph if preserve_graph_attrs else {},
    )


def _check_class(kind: type) -> None:
    """Refuse classes that override how nodes and neighbours are read."""
    base = next(one for one in kind.__mro__ if one.__module__.startswith("networkx.classes."))
    for name in ("__iter__", "__getitem__", "adjacency", "adj", "neighbors"):
        if getattr(kind, name) is not getattr(base, name):
            raise NotImplementedError(f"{kind.__name__} overrides {name}")


def _read_topology(graph: networkx.Graph) -> Topology:
    """Read the nodes and edges; NetworkX's results differ where it compares a node with itself and finds it unequal."""
    topology = Topology.from_networkx(graph)
    try:
        unequal = any(map(ne, topology.nodes, topology.nodes))
    except TypeError:
        unequal = True
    if unequal:
        raise NotImplementedError("a node is not equal to itself")
    return topology


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
