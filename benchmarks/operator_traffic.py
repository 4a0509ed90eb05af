"""Bytes moved by operators on CUDA, per superstep, counted on the emulated device and compared with the minimum.

The minimum streams each array that a superstep must read or write once, and adds one sector per random access: of the
values of a vertex at the other end of an edge, of the bit that says whether it is active, and of each new vertex.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

import gpu_pregel as gp
from benchmarks._counts import KernelCounts, count_run
from gpu_pregel.host.programs.direction_costs import SECTOR
from gpu_pregel.host.traverse.directions import PULL_SHARE
from gpu_pregel.kernels.library import atomics

LIMITS = {"dense": 1.2, "sparse": 1.5}
"""Limits of the ratio to the minimum, for supersteps of many and of few active edges."""
_FEWEST_EDGES = 1_000
"""Supersteps are compared with their limit from this number of active edges, in all supersteps of a phase."""
_VALUE = 4
"""Bytes of a vertex's value."""


def adopt(u: Any, v: Any, weight: Any, parents: Any) -> Any:  # noqa: ARG001
    """Breadth-first search."""
    return atomics.compare_and_swap(parents, v, -1, u)


def has_no_parent(v: Any, parents: Any) -> Any:
    """Receive until a parent is found."""
    return parents[v] < 0


def lower(u: Any, v: Any, weight: Any, labels: Any) -> Any:  # noqa: ARG001
    """Label propagation."""
    label = labels[u]
    return atomics.min(labels, v, label) > label


def approach(u: Any, v: Any, weight: Any, distances: Any) -> Any:
    """Bellman-Ford."""
    distance = distances[u] + weight
    return atomics.min(distances, v, distance) > distance


@dataclass(frozen=True)
class OperatorCase:
    """A search or a propagation, from one vertex or from all.

    Attributes
    ----------
    name : str
    body, receives : callable
    dtype : dtype
    start, first : number
        The values of all vertices and of the first one; None as ``start`` numbers them.
    """

    name: str
    body: Callable[..., Any]
    receives: Callable[..., Any] | None
    dtype: Any
    start: float | None
    first: float


CASES = [
    OperatorCase("breadth-first search", adopt, has_no_parent, np.int32, -1, 0),
    OperatorCase("label propagation", lower, None, np.uint32, None, 0),
    OperatorCase("Bellman-Ford", approach, None, np.float32, np.inf, 0),
]


def count_operators(graph: gp.Graph, case: OperatorCase) -> list[dict[str, Any]]:
    """Count all supersteps of a case; return the totals of the sparse and of the dense ones."""
    n = graph.num_vertices
    source = int(np.argmax(graph.out_degrees >= 4))
    if case.start is None:
        graph = gp.Graph.from_csr(*graph.to_csr()[:2])
        frontier, values = gp.Frontier(graph, device="emulated"), np.arange(n).astype(case.dtype)
    else:
        frontier, values = gp.Frontier(graph, [source], device="emulated"), np.full(n, case.start, case.dtype)
        values[source] = case.first
    array = frontier.upload(values)
    totals: dict[str, dict[str, Any]] = {}
    while frontier:
        before, sender_flags = frontier.download(array), frontier.flags()
        following, found = _count_superstep(case, frontier, array)
        direction = following.trace()[-1]["direction"]
        fewest = _fewest_bytes(graph, case, direction, sender_flags, before, following.flags())
        edges = int(graph.out_degrees[sender_flags].sum())
        phase = "sparse" if edges * PULL_SHARE < graph.num_stored_edges else "dense"
        _add(totals.setdefault(phase, {"program": case.name, "phase": phase}), found, edges, fewest)
        frontier = following
    return [{**row, "ratio": row["bytes"] / row["fewest"]} for row in totals.values()]


def is_above_limit(row: dict[str, Any]) -> bool:
    """Return whether a phase moves more bytes than its limit allows."""
    return bool(row["active_edges"] >= _FEWEST_EDGES and row["ratio"] > LIMITS[row["phase"]])


def _count_superstep(case: OperatorCase, frontier: gp.Frontier, array: Any) -> tuple[gp.Frontier, KernelCounts]:
    results: list[gp.Frontier] = []
    found = count_run(lambda: results.append(gp.process_edges(case.body, frontier, [array], receives=case.receives)))
    return results[0], found


def _add(row: dict[str, Any], found: KernelCounts, edges: int, fewest: float) -> None:
    """Add a superstep to the totals of its phase."""
    added = {"supersteps": 1, "active_edges": edges, "bytes": found.bytes, "fewest": fewest}
    for key, number in {**added, "launches": found.launches, "readbacks": found.readbacks}.items():
        row[key] = row.get(key, 0) + number


def _fewest_bytes(
    graph: gp.Graph, case: OperatorCase, direction: Literal["push", "pull"], active: Any, values: Any, found: Any
) -> float:
    """Return the minimum of bytes of a superstep."""
    n, senders, new = graph.num_vertices, int(active.sum()), int(found.sum())
    indptr, indices, _ = graph.to_csr()
    weight = 4 if case.body is approach else 0
    result = n / 8
    if direction == "push":
        # The bit, the entry of the queue and the degree of each new vertex.
        result = new * (SECTOR + 4 + SECTOR)
        rows = min(4 * n, 2 * SECTOR * senders) + (4 * senders if senders < n else 0)
        messages = int(graph.out_degrees[active].sum())
        own = 0 if case.receives else min(n * _VALUE, senders * SECTOR)
        return rows + own + messages * (4 + weight + SECTOR) + result
    rows = min(4 * n, 2 * SECTOR * n)
    if case.receives is None:
        tests, messages = (0 if senders == n else graph.num_stored_edges), int(graph.out_degrees[active].sum())
        return rows + graph.num_stored_edges * (4 + weight) + (tests + messages) * SECTOR + n * _VALUE + result
    wanted = np.flatnonzero(values < 0)
    read, sectors = 0, 0
    for v in wanted.tolist():
        begin, end = int(indptr[v]), int(indptr[v + 1])
        hits = np.flatnonzero(active[indices[begin:end]])
        stop = begin + int(hits[0]) + 1 if len(hits) else end
        read += stop - begin
        sectors += (4 * stop - 1) // SECTOR - 4 * begin // SECTOR + 1 if stop > begin else 0
    # The values of all vertices decide who receives; those of the new ones are written.
    return rows + n * _VALUE + SECTOR * (sectors + read) + min(n * _VALUE, new * SECTOR) + result
