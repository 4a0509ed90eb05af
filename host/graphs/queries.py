"""Queries of a graph by the user's ids."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from gpu_pregel.errors import UnknownVertexError
from gpu_pregel.host.graphs.conversions import GraphConversions
from gpu_pregel.host.graphs.id_index import IdIndex, make_index

if TYPE_CHECKING:
    import numpy.typing as npt

Array = np.ndarray[Any, Any]


class GraphQueries(GraphConversions):
    """The queries of :class:`Graph` by id; each raises ``UnknownVertexError`` for an id that no vertex has."""

    @property
    def _index(self) -> IdIndex:
        return self._fact("id index", lambda: make_index(self.ids, self.num_vertices))

    def vertex(self, id: Any) -> int:
        """Return the vertex number of an id.

        Raises
        ------
        UnknownVertexError
            No vertex has this id. It is a ``KeyError``. Ids of different types differ: "1" is not 1.

        Examples
        --------
        >>> import gpu_pregel as gp
        >>> graph = gp.Graph.from_edgelist(["ann", "bob"], ["bob", "cid"])
        >>> graph.vertex("cid"), "dan" in graph
        (2, False)
        """
        return self._index.number(id)

    def vertices(self, ids: Any) -> npt.NDArray[np.int64]:
        """Return the vertex numbers of an array or another collection of ids, int64[k].

        Raises
        ------
        UnknownVertexError
            No vertex has one of the ids; the message names the first of them.
        ArgumentTypeError
            ``ids`` is a single id, or an array of several dimensions.

        Examples
        --------
        >>> import gpu_pregel as gp
        >>> graph = gp.Graph.from_edgelist(["ann", "bob"], ["bob", "cid"])
        >>> graph.vertices(["cid", "ann"]).tolist()
        [2, 0]
        """
        return self._index.numbers(ids)

    def __contains__(self, id: object) -> bool:
        """Return whether a vertex has this id."""
        try:
            self.vertex(id)
        except UnknownVertexError:
            return False
        return True

    def __len__(self) -> int:
        """Return the number of vertices, as NetworkX does; a graph without vertices is therefore false."""
        return self.num_vertices

    def neighbors(self, id: Any) -> Array:
        """Return the ids of the destinations of a vertex's stored edges, in the order of its row.

        Examples
        --------
        >>> import gpu_pregel as gp
        >>> graph = gp.Graph.from_edgelist(["ann", "bob"], ["bob", "cid"])
        >>> graph.neighbors("bob").tolist()
        ['ann', 'cid']
        """
        return self.to_ids(self._row(self.vertex(id)))

    def out_degree(self, id: Any) -> int:
        """Return the number of stored out-edges of a vertex.

        Examples
        --------
        >>> import gpu_pregel as gp
        >>> graph = gp.Graph.from_edgelist(["ann", "bob"], ["bob", "cid"], directed=True)
        >>> graph.out_degree("cid"), graph.in_degree("cid")
        (0, 1)
        """
        return int(self.out_degrees[self.vertex(id)])

    def in_degree(self, id: Any) -> int:
        """Return the number of stored in-edges of a vertex."""
        return int(self.in_degrees[self.vertex(id)])

    def has_edge(self, source: Any, target: Any) -> bool:
        """Return whether an edge from ``source`` to ``target`` is stored; both are ids of vertices.

        Examples
        --------
        >>> import gpu_pregel as gp
        >>> graph = gp.Graph.from_edgelist(["ann", "bob"], ["bob", "cid"], directed=True)
        >>> graph.has_edge("ann", "bob"), graph.has_edge("bob", "ann")
        (True, False)
        """
        row, v = self._row(self.vertex(source)), self.vertex(target)
        place = int(np.searchsorted(row, np.uint32(v)))
        return place < len(row) and int(row[place]) == v

    def _row(self, u: int) -> Array:
        """Return the destinations of the stored edges of vertex ``u``, ascending."""
        return self.indices[self.indptr[u] : self.indptr[u + 1]]
