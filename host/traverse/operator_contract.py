"""What operators on a device provide: the contract between frontiers and the files of the devices."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from gpu_pregel.host.graphs.csr import CSR
from gpu_pregel.host.traverse.bodies import Bodies
from gpu_pregel.host.traverse.labels import LabelBodies
from gpu_pregel.host.traverse.pairs import PairBodies
from gpu_pregel.host.traverse.rows import RowBodies

Array = np.ndarray[Any, Any]


class VertexSet(Protocol):
    """A set of vertices in the form that suits a device."""

    count: int
    edges: int
    """The sum of the vertices' out-degrees; of in-degrees, if the set was made by, or last used in, a transpose."""


class Operators(Protocol):
    """The operators on one graph and device.

    Attributes
    ----------
    pushes_to_all : bool
        Whether to push even many edges if every vertex receives them, so that no row that is pulled ends early.
    """

    pushes_to_all: bool

    def arrays_of(self, csr: CSR) -> CSR:
        """Return the arrays of the CSR or CSC in the device's memory."""

    def is_of_graph(self, array: Any) -> bool:
        """Whether a device array belongs to the graph, so that bodies only read it; NumPy arrays say so themselves."""

    def everything(self) -> VertexSet:
        """Return the set of all vertices."""

    def chosen(self, flags: Array) -> VertexSet:
        """Return the set of the vertices with true ``flags``, bool[n]."""

    def flags(self, active: Any) -> Array:
        """Return bool[n]: whether each vertex is in the set."""

    def listed(self, active: Any) -> Any:
        """Return the numbers of a set's vertices in ascending order, in device memory that the set keeps."""

    def union(self, one: Any, other: Any) -> VertexSet:
        """Return the set of the vertices of both."""

    def degree_sum(self, active: Any, csr: CSR) -> int:
        """Return the sum of the degrees of a set's vertices in the CSR or CSC."""

    def process_vertices(self, bodies: Bodies, active: Any, arrays: tuple[Any, ...], returns: str | None) -> Any:
        """Return the sum of what the body returns, the set of the vertices for which it returns true, or nothing."""

    def process_edges(
        self, bodies: Bodies, active: Any, arrays: tuple[Any, ...], returns: str | None, *, transpose: bool, push: bool
    ) -> Any:
        """Return the sum of what the body returns, the set of the receivers for which it returns true, or nothing."""

    def reduce_rows(self, bodies: RowBodies, active: Any, arrays: tuple[Any, ...], returns: str | None) -> Any:
        """Return the sum of what ``finish`` returns, the set of the vertices for which it returns true, or nothing."""

    def count_labels(self, bodies: LabelBodies, active: Any, arrays: tuple[Any, ...], returns: str | None) -> Any:
        """Return the sum of what ``finish`` returns, the set of the vertices for which it returns true, or nothing."""

    def edges(self, active: Any) -> tuple[Any, Any]:
        """Return the ends of the edges of a set's vertices, uint32; in an undirected graph each edge once."""

    def intersect_rows(
        self, bodies: PairBodies, pairs: tuple[Any, Any], arrays: tuple[Any, ...], returns: str | None
    ) -> Any:
        """Return the result of each pair, their sum, or nothing."""


class DeviceOperators(Operators, Protocol):
    """The operators on a graph, or on a block of its edges, whose sets have bitmaps in device memory.

    Attributes
    ----------
    bits : int
        Vertices of a word of the bitmaps.
    """

    bits: int

    def bitmap(self, active: Any) -> Any:
        """Return the bitmap of a set that has not all vertices; it is valid as long as the set."""

    def from_bitmap(self, words: Any, most: int) -> VertexSet:
        """Return the set of the vertices of a bitmap, at most ``most``; it is copied."""
