"""Vectors given as arguments: one number per vertex, by vertex number, or by ids as a mapping or a Series."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from gpu_pregel.algorithms._arguments import vertex_numbers
from gpu_pregel.errors import ArgumentError, ArgumentTypeError
from gpu_pregel.host.graphs.edge_arrays import to_host
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.graphs.vertex_values import by_vertex_number, check_not_ids, ids_remedy

Array = np.ndarray[Any, Any]


def vertex_vector(graph: Graph, name: str, given: Any) -> Array:
    """Return the argument ``name`` as float64[n]; vertices that a mapping or a Series leaves out get 0.

    Raises
    ------
    ArgumentError
        The length is wrong, a key is no vertex, a number is not finite, or an array holds the ids of all vertices.
    ArgumentTypeError
        The values are not numbers.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> vertex_vector(gp.Graph.from_edgelist(["ann"], ["bob"]), "initial", {"bob": 2}).tolist()
    [0.0, 2.0]
    """
    n = graph.num_vertices
    vector: Array = np.zeros(n)
    aligned = by_vertex_number(graph, name, given, default=0)
    values = list(given.values()) if isinstance(given, Mapping) else aligned
    try:
        array = to_host(values)
    except ValueError:
        array = np.empty(0, object)
    if array.dtype.kind not in "buif":
        raise ArgumentTypeError(
            f"{name} must have a real number for each vertex, not {given!r:.80}{ids_remedy(graph, given)}"
        )
    numbers = array.astype(np.float64)
    if isinstance(given, Mapping):
        if len(given):
            vector[vertex_numbers(graph, name, list(given))] = numbers
    elif numbers.shape != (n,):
        raise ArgumentError(
            f"{name} has shape {numbers.shape}: pass an array of {n} numbers, by vertex number, or a mapping from ids"
            f"{ids_remedy(graph, given)}"
        )
    else:
        check_not_ids(graph, name, given, array)
        vector[:] = numbers
    if not np.isfinite(vector).all():
        v = int(np.flatnonzero(~np.isfinite(vector))[0])
        raise ArgumentError(f"{name} has {vector[v]} for the vertex {graph.to_ids(np.array([v])).tolist()[0]!r}")
    return vector


def distribution(graph: Graph, name: str, given: Any) -> Array:
    """Return the argument ``name`` as probabilities, float64[n]: no number is negative, and they are scaled to 1.

    Raises
    ------
    ArgumentError
        As in :func:`vertex_vector`; or a number is negative, or all are 0.
    ArgumentTypeError
        The values are not numbers.
    """
    vector = vertex_vector(graph, name, given)
    if (vector < 0).any():
        v = int((vector < 0).argmax())
        raise ArgumentError(
            f"{name} has {vector[v]} for the vertex {graph.to_ids(np.array([v])).tolist()[0]!r}: pass numbers of at "
            "least 0"
        )
    with np.errstate(over="ignore"):
        total = vector.sum()
    if not 0 < total < np.inf:
        raise ArgumentError(f"{name} sums to {total}: give at least one vertex a number above 0, and a finite sum")
    scaled: Array = vector / total
    return scaled
