"""The graphs that this backend computes on: the adjacency of a NetworkX graph as arrays, and its attributes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from gpu_pregel.algorithms._driver import AlgorithmRun
from gpu_pregel.errors import ArgumentTypeError
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.graphs.networkx_adjacency import attribute_values
from gpu_pregel.networkx.edge_columns import EdgeColumn, check_magnitudes, edge_column
from gpu_pregel.networkx.filled_dicts import filled_dict
from gpu_pregel.networkx.topology import Topology

if TYPE_CHECKING:
    import numpy.typing as npt

Array = np.ndarray[Any, Any]

_FEWEST = 16
"""Smaller dicts are faster made without a kernel."""


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
        self._columns: dict[Any, EdgeColumn] = {}
        self._defaulted: dict[tuple[Any, type, Any], EdgeColumn] = {}
        self._engines: dict[Any, Graph] = {None: graph}
        self.weighted_rows: dict[Any, Any] = {}
        """What the function of this name has returned."""
        self._edge_data: list[dict[Any, Any]] | None = None
        self._node_data: list[dict[Any, Any]] | None = None
        self._names: tuple[Array, list[Any]] | None = None
        if graph.weights is not None:
            kind = np.float64 if graph.weights.dtype.kind == "f" else np.int64
            self._columns["weight"] = EdgeColumn(graph.weights.astype(kind))

    @classmethod
    def _converted(
        cls,
        topology: Topology,
        *,
        columns: dict[Any, EdgeColumn],
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
        graph._defaulted = {}
        graph._engines = {}
        graph.weighted_rows = {}
        graph._edge_data = edge_data
        graph._node_data = node_data
        graph._names = None
        return graph

    def renamed(self, names: dict[int, Any]) -> BackendGraph:
        """Return this graph with other objects as nodes of some vertices, for results; each is equal to its node."""
        graph = self.__class__.__new__(self.__class__)
        graph.__dict__.update(self.__dict__)
        vertices = sorted(names)
        graph._names = np.array(vertices, np.int64), [names[vertex] for vertex in vertices]
        return graph

    def __reduce_ex__(self, protocol: Any) -> Any:
        if self.topology.is_converted:
            # It is in the cache of a NetworkX graph, and reads that graph: its copies are converted anew.
            return type(None), ()
        return super().__reduce_ex__(protocol)

    @property
    def is_renamed(self) -> bool:
        """Whether it is the result of :meth:`renamed`."""
        return self._names is not None

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

    def __str__(self) -> str:
        """What NetworkX says of the graph, for its errors."""
        if (source := self.topology.source) is not None:
            return str(source)
        kind = ("Multi" if self.is_multigraph() else "") + ("DiGraph" if self.is_directed() else "Graph")
        return f"{kind} with {len(self)} nodes and {self.number_of_edges()} edges"

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(
            f"a gp.networkx.Graph has no {name!r}: it is an argument of NetworkX's functions only; "
            f"to_networkx() of the gpu_pregel graph returns a NetworkX graph"
        )

    # What the functions of this backend read.

    def edge_values(
        self, name: Any, default: Any = 1, *, mixed: bool = False, scalars: bool | None = None
    ) -> Array | None:
        """Return an attribute of all stored edges, int64[m] or float64[m]; None if ``name`` is None.

        Edges without it have ``default``. With ``mixed`` integers among floats become floats, and with
        ``scalars`` (default ``mixed``) NumPy's numbers Python's: for functions whose results do not tell them apart.

        Raises
        ------
        NotImplementedError
            See :func:`edge_column`; or there are integers among floats and not ``mixed``, or NumPy's numbers and not
            ``scalars``.
        """
        if name is None:
            return None
        column = self.edge_column(name, default)
        if column.floats is not None and not mixed:
            raise NotImplementedError(f"the edges' {name!r} are of different types: float and int")
        if column.scalar is not None:
            if not (mixed if scalars is None else scalars):
                raise NotImplementedError(f"the edges' {name!r} are of type {column.scalar.__name__}")
            if not column.values.any():
                raise NotImplementedError(f"the edges' {name!r} are zeros of NumPy, by which a division is no error")
        return column.values

    def moderate_values(self, name: Any, *, scalars: bool = True) -> Array | None:
        """Return :meth:`edge_values`; NotImplementedError if the order of products and quotients decides on results."""
        values = self.edge_values(name, mixed=True, scalars=scalars)
        check_magnitudes(name, values)
        return values

    def edge_column(self, name: Any, default: Any = 1) -> EdgeColumn:
        """Return an attribute of all stored edges, and the types of its values; edges without it have ``default``."""
        if name in self._columns:
            return self._columns[name]
        if self._edge_data is None:
            # It is not kept: columns are attributes that the edges have.
            return EdgeColumn(np.repeat(edge_column(name, [default]).values, self.topology.m))
        key = name, type(default), default
        if key not in self._defaulted:
            self._defaulted[key] = edge_column(name, attribute_values(self._edge_data, name, default))
        return self._defaulted[key]

    def edge_data(self) -> list[dict[Any, Any]]:
        """Return the attributes of each stored edge, for functions that preserve all of them."""
        if self._edge_data is not None:
            return self._edge_data
        weights = self._columns.get("weight")
        if weights is None:
            return [{} for _ in range(self.topology.m)]
        return [{"weight": weight} for weight in weights.values.tolist()]

    def node_data(self) -> list[dict[Any, Any]]:
        """Return the attributes of each node, for functions that need any of them."""
        return [{} for _ in self.topology.nodes] if self._node_data is None else self._node_data

    def engine(self, weight: Any = None) -> Graph:
        """Return the graph of the engine, with vertices as ids and an attribute of the edges as weights."""
        if weight is None:
            return self.topology.engine
        if weight not in self._engines:
            self._engines[weight] = self.topology.weighted_engine(self.edge_values(weight, mixed=True))
        return self._engines[weight]

    def run_of(self, algorithm: str, weight: Any = None) -> AlgorithmRun:
        """Return a run on the engine's graph for searches or sums of an algorithm, on the device of the registry."""
        return AlgorithmRun(algorithm, self.engine(weight))

    def by_node(self, values: npt.NDArray[Any]) -> dict[Any, Any]:
        """Return the value of each vertex by its node, as Python objects, in the order of the graph."""
        return self.values_at(np.arange(len(self), dtype=np.uint32), values)

    def values_at(self, vertices: npt.NDArray[Any], values: npt.NDArray[Any]) -> dict[Any, Any]:
        """Return the value of each of these vertices by its node, as Python objects, in their order."""
        nodes = self.topology.node_addresses if self._names is None else None
        if nodes is None or values.dtype.kind not in "if" or len(vertices) < _FEWEST:
            return dict(zip(self.nodes_at(vertices), values.tolist(), strict=True))
        return filled_dict(nodes, vertices, values)

    def nodes_at(self, vertices: npt.NDArray[Any]) -> list[Any]:
        """Return the nodes of vertices."""
        topology = self.topology
        found: list[Any] = (vertices if topology.is_numbered else topology.node_array[vertices]).tolist()
        if self._names is not None:
            renamed, nodes = self._names
            places = np.searchsorted(renamed, vertices)
            changed = np.flatnonzero(renamed[np.minimum(places, len(renamed) - 1)] == vertices)
            for i, place in zip(changed.tolist(), places[changed].tolist(), strict=True):
                found[i] = nodes[place]
        return found
