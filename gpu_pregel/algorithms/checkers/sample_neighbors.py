"""Checker of samples of neighbourhoods: what is sampled of each vertex, and how the sample is numbered."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.errors import VerificationError
from gpu_pregel.host.graphs.graph import Graph

Array = np.ndarray[Any, Any]


def check_sample_neighbors(graph: Graph, result: Any) -> None:
    """Raise ``VerificationError`` unless each hop has the right number of edges of the vertices found before.

    Parameters
    ----------
    graph : Graph
    result : NeighborSample

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> graph = gp.grid(3)
    >>> check_sample_neighbors(graph, gp.sample_neighbors(graph, [0], [2, 2]))
    """
    edges, vertices = np.asarray(result), result.vertices
    for name, places, count in (
        ("hop_edges", result.hop_edges, len(result.fanouts) + 1),
        ("hop_vertices", result.hop_vertices, len(result.fanouts) + 2),
    ):
        if len(places) != count or places[0] != 0 or (np.diff(places) < 0).any():
            raise VerificationError(f"{name} are not {count} numbers in ascending order from 0")
    shapes = {edges.shape, result.sources.shape, result.targets.shape, (result.hop_edges[-1],)}
    if len(shapes) > 1 or len(vertices) != result.hop_vertices[-1]:
        raise VerificationError(f"the numbers of edges differ: {sorted(shapes)}")
    if len(np.unique(vertices)) != len(vertices):
        raise VerificationError("a vertex has two numbers")
    for name, numbers, count in (
        ("vertices", vertices, graph.num_vertices),
        ("edges", edges, graph.num_stored_edges),
        ("sources", result.sources, len(vertices)),
        ("targets", result.targets, len(vertices)),
    ):
        if len(numbers) and not (numbers.min() >= 0 and numbers.max() < count):
            raise VerificationError(f"{name} are not all from 0 to {count - 1}")
    owners, others = vertices[result.sources], vertices[result.targets]
    outside = (edges < graph.indptr[owners]) | (edges >= graph.indptr[owners + 1])
    if outside.any():
        i = int(outside.argmax())
        raise VerificationError(f"edge {edges[i]} does not belong to vertex {owners[i]}")
    if (wrong := graph.indices[edges] != others).any():
        i = int(wrong.argmax())
        raise VerificationError(f"edge {edges[i]} leads to vertex {graph.indices[edges[i]]}, not {others[i]}")
    if not result.replace and len(np.unique(edges)) != len(edges):
        raise VerificationError("an edge was sampled twice")
    _check_hops(graph, result)


def _check_hops(graph: Graph, result: Any) -> None:
    """Raise unless each hop samples the vertices of the hop before, and new vertices are numbered in order."""
    known = result.hop_vertices[1]
    for hop, fanout in enumerate(result.fanouts):
        begin, end = result.hop_edges[hop : hop + 2]
        first, last = result.hop_vertices[hop : hop + 2]
        degrees = np.diff(graph.indptr)[result.vertices[first:last]]
        expected = degrees if fanout < 0 else np.minimum(degrees, fanout)
        if result.replace and fanout >= 0:
            expected = np.where(degrees > 0, fanout, 0)
        if not np.array_equal(np.repeat(np.arange(first, last), expected), result.sources[begin:end]):
            raise VerificationError(f"hop {hop} does not have the right number of edges of each vertex")
        for target in result.targets[begin:end].tolist():
            if target > known:
                raise VerificationError(f"vertex {target} of the sample appears before vertex {known}")
            known += target == known
        if known != result.hop_vertices[hop + 2]:
            raise VerificationError(f"{known} vertices have appeared by hop {hop}, not {result.hop_vertices[hop + 2]}")
