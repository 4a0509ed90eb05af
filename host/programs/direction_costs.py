"""A model of what a push and a pull cost on a GPU, in bytes of its memory's bandwidth.

Arrays are streamed once; every random access moves a sector, which costs less if the array stays in the L2 cache.
Launches are left out: both directions need about as many.
"""

from __future__ import annotations

from dataclasses import dataclass

from gpu_pregel.host.devices.gpus import Gpu
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.programs.compiler import CompiledProgram

SECTOR = 32
L2_SPEED = 2.0
"""Bandwidth of the L2 cache as a multiple of the memory's; about 1.7 is published for the H100, 2.5 for the A100."""
ATOMIC_COST = 4
"""Cost of an atomic update in random accesses: its sector is read and written, and updates of a hub wait for another.

This is a guess, to be replaced by a measurement.
"""


@dataclass(frozen=True)
class DirectionCosts:
    """The sizes on which the costs of a superstep depend.

    Attributes
    ----------
    vertices, edges : int
        Number of vertices and of stored edges.
    value, message, edge, row : int
        Bytes per value, message, edge, and of a row's bounds.
    has_signals, receives, is_selective : bool
        Whether a pull computes the message of each source first, and reads not every row to its end; whether a push
        reads the values of receivers.
    l2_bytes : int
        Size of the L2 cache.
    """

    vertices: int
    edges: int
    value: int
    message: int
    edge: int
    row: int
    has_signals: bool
    receives: bool
    is_selective: bool
    l2_bytes: int

    def _access(self, size: float) -> float:
        """Return the cost of a random access to an array of ``size`` bytes."""
        missing = max(0.0, 1 - self.l2_bytes / size) if size else 0.0
        return SECTOR * (missing + (1 - missing) / L2_SPEED)

    def push(self, active_edges: int) -> float:
        """Return the cost of a push along ``active_edges`` edges."""
        n = self.vertices
        per_edge = self.edge + ATOMIC_COST * self._access(n * self.message)
        if self.receives:
            per_edge += self._access(n * self.value)
        sources = 2 * SECTOR * active_edges * n / max(1, self.edges)
        return active_edges * per_edge + sources + 3 * n / 8

    def pull(self, active_edges: int, unexplored: int | None = None) -> float:
        """Return the cost of a pull from vertices with ``active_edges`` edges.

        The receivers have ``unexplored`` edges. Default: all.
        """
        n, share = self.vertices, active_edges / max(1, self.edges)
        cost = n * (self.row + 2 * self.message + self.value)
        if self.has_signals:
            cost += n * (self.value + self.message)
            per_edge = self.edge + self._access(n * self.message)
        else:
            per_edge = self.edge + self._access(n / 8) + share * self._access(n * self.value)
        edges_read = self._edges_read(share)
        return cost + (edges_read if unexplored is None else min(edges_read, unexplored)) * per_edge

    def _edges_read(self, share: float) -> float:
        """Return the edges that a pull reads if any edge comes from an active vertex with probability ``share``."""
        if not self.is_selective or share == 0 or not self.vertices:
            return self.edges
        degree = self.edges / self.vertices
        return float(self.vertices * (1 - (1 - share) ** degree) / share)

    @property
    def push_limit(self) -> int:
        """The most active edges along which a push costs less than a pull; pushes cost more, the more there are."""
        low, high = 0, self.edges
        while low < high:
            middle = (low + high + 1) // 2
            if self.push(middle) < self.pull(middle):
                low = middle
            else:
                high = middle - 1
        return low


def direction_costs(gpu: Gpu | None, program: CompiledProgram, graph: Graph) -> DirectionCosts | None:
    """Return the costs of a program on a graph; None without a GPU."""
    if gpu is None:
        return None
    edges, weights = graph.num_stored_edges, graph.weights
    weight = 0 if weights is None or not program.per_edge else weights.itemsize
    return DirectionCosts(
        vertices=graph.num_vertices,
        edges=edges,
        value=program.value.itemsize,
        message=program.message.itemsize,
        edge=4 + weight,
        row=8 if edges < 1 << 32 else 16,
        has_signals=program.signal is not None,
        receives=program.receives,
        is_selective=program.is_selective,
        l2_bytes=gpu.l2_bytes,
    )
