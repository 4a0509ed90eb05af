"""The graphs that this backend computes on: the adjacency of a NetworkX graph as arrays, and its attributes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from gpu_pregel.errors import ArgumentTypeError
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.graphs.networkx_adjacency import attribute_values
from gpu_pregel.networkx.edge_columns import edge_column
from gpu_pregel.networkx.topology import Topology

if TYPE_CHECKING:
    import numpy.typing as npt

Array = np.ndarray[Any, Any]


class BackendGraph:
    """A graph of this package for the functions of NetworkX: no dicts are built, and nothing is converted.

    Functions that this backend does not implement get a NetworkX graph if ``nx.config.fallback_to_nx`` is True.

    Parameters
    ----------
    graph : gpu_pregel.Graph
        Its ids are the nodes, and its weights the attribute ``weight`` of the edges.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> import networkx as nx
    >>> graph = gp.networkx.Graph(gp.Graph.from_edgelist(["ann", "bob", "cid"], ["bob", "cid", "ann"]))
    >>> nx.number_connected_components(graph, backend="gpu_pregel")
    1
    """

    __networkx_backend__ = "gpu_pregel"

    def __init__(self, graph: Graph) -> None:
        if not isinstance(graph, Graph):
            raise ArgumentTypeError(
                f"graph must be a gpu_pregel Graph, not {type(graph).__name__}: pass NetworkX graphs to NetworkX's "
                f"functions as they are, and read files with gp.read_graph(path)"
            )
        self.__networkx_cache__: dict[str, Any] = {}
        self.topology = Topology.from_engine(graph)
        self.graph: dict[Any, Any] = {}
        self._columns: dict[Any, Array] = {}
        self._engines: dict[Any, Graph] = {None: graph}
        self._edge_data: list[dict[Any, Any]] | None = None
        self._node_data: list[dict[Any, Any]] | None = None
        if graph.weights is not None:
            kind = np.float64 if graph.weights.dtype.kind == "f" else np.int64
            self._columns["weight"] = graph.weights.astype(kind)

    @classmethod
    def _converted(
        cls,
        topology: Topology,
        *,
        columns: dict[Any, Array],
        edge_data: list[dict[Any, Any]] | None,
        node_data: list[dict[Any, Any]] | None,
        attributes: dict[Any, Any],
    ) -> BackendGraph:
        """Return the graph that stands for a NetworkX graph; see ``conversion``."""
        graph = cls.__new__(cls)
        graph.__networkx_cache__ = {}
        graph.topology = topology
        graph.graph = attributes
        graph._columns = columns
        graph._engines = {}
        graph._edge_data = edge_data
        graph._node_data = node_data
        return graph

    def is_directed(self) -> bool:
        """Return whether edges have a direction."""
        return self.topology.directed

    def is_multigraph(self) -> bool:
        """Return whether there may be parallel edges."""
        return self.topology.multigraph

    def number_of_nodes(self) -> int:
        """Return the number of nodes."""
        return self.topology.n

    order = number_of_nodes

    def number_of_edges(self) -> int:
        """Return the number of edges; an undirected one counts once."""
        if self.topology.directed:
            return self.topology.m
        loops = int(np.count_nonzero(self.topology.sources == self.topology.neighbors))
        return (self.topology.m + loops) // 2

    def __len__(self) -> int:
        return self.topology.n

    def __iter__(self) -> Iterator[Any]:
        return iter(self.topology.nodes)

    def __contains__(self, node: object) -> bool:
        try:
            return node in self.topology.numbers
        except TypeError:
            return False

    def __repr__(self) -> str:
        kind = ("Multi" if self.is_multigraph() else "") + ("DiGraph" if self.is_directed() else "Graph")
        return f"<{kind} of gpu_pregel: {len(self):,} nodes, {self.number_of_edges():,} edges>"

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"a gp.networkx.Graph has no {name!r}: it is an argument of NetworkX's functions only; "
            f"to_networkx() of the gpu_pregel graph returns a NetworkX graph"
        )

    # What the functions of this backend read.

    def edge_values(self, name: Any, default: Any = 1) -> Array | None:
        """Return an attribute of all stored edges, int64[m] or float64[m]; None if ``name`` is None.

        Edges without it have ``default``.
        """
        if name is None:
            return None
        if name not in self._columns:
            if self._edge_data is None:
                # It is not kept: columns are attributes that the edges have.
                return np.repeat(edge_column(name, [default]), self.topology.m)
            self._columns[name] = edge_column(name, attribute_values(self._edge_data, name, default))
        return self._columns[name]

    def edge_data(self) -> list[dict[Any, Any]]:
        """Return the attributes of each stored edge, for functions that preserve all of them."""
        if self._edge_data is not None:
            return self._edge_data
        weights = self._columns.get("weight")
        return [{} for _ in range(self.topology.m)] if weights is None else [{"weight": w} for w in weights.tolist()]

    def node_data(self) -> list[dict[Any, Any]]:
        """Return the attributes of each node, for functions that need any of them."""
        return [{} for _ in self.topology.nodes] if self._node_data is None else self._node_data

    def engine(self, weight: Any = None) -> Graph:
        """Return the graph of the engine, with vertices as ids and an attribute of the edges as weights."""
        if weight is None:
            return self.topology.engine
        if weight not in self._engines:
            self._engines[weight] = self.topology.weighted_engine(self.edge_values(weight))
        return self._engines[weight]

    def by_node(self, values: npt.NDArray[Any]) -> dict[Any, Any]:
        """Return the value of each vertex by its node, as Python objects, in the order of the graph."""
        return dict(zip(self.topology.nodes, values.tolist(), strict=True))

    def nodes_at(self, vertices: npt.NDArray[Any]) -> list[Any]:
        """Return the nodes of vertices."""
        topology = self.topology
        found: list[Any] = (vertices if topology.is_numbered else topology.node_array[vertices]).tolist()
        return found
