"""Checks of arguments that several algorithms share; all run before any work."""

from __future__ import annotations

import math
from numbers import Real
from typing import Any

import numpy as np

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, GraphError, UnknownVertexError
from gpu_pregel.host.graphs.graph import Graph

Array = np.ndarray[Any, Any]


def vertex_number(graph: Graph, name: str, id: Any) -> int:
    """Return the number of the vertex with this id, the argument ``name``; raise ``ArgumentError`` if none has it.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> vertex_number(gp.Graph.from_edgelist(["ann"], ["bob"]), "source", "bob")
    1
    """
    try:
        return graph.vertex(id)
    except UnknownVertexError as error:
        raise ArgumentError(f"{name}: {error}") from None


def vertex_numbers(graph: Graph, name: str, ids: Any) -> Array:
    """Return the numbers of the vertices with these ids, int64[k]; repeated ids are kept, and sets sorted by number.

    Raises
    ------
    ArgumentError
        No vertex has one of the ids, or there are none.
    ArgumentTypeError
        ``ids`` is a single id, or an array of several dimensions.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> vertex_numbers(gp.Graph.from_edgelist(["ann"], ["bob"]), "sources", ["bob", "ann"]).tolist()
    [1, 0]
    """
    try:
        numbers = graph.vertices(ids)
    except UnknownVertexError as error:
        raise ArgumentError(f"{name}: {error}") from None
    except ArgumentTypeError as error:
        raise ArgumentTypeError(f"{name}: {error}") from None
    if len(numbers) == 0:
        raise ArgumentError(f"{name} is empty: give at least one id of a vertex")
    # The order of a set of strings changes from process to process.
    return np.sort(numbers) if isinstance(ids, (set, frozenset)) else numbers


def check_undirected(graph: Graph, name: str) -> None:
    """Raise ``GraphError`` if the graph is directed; ``name`` is the algorithm."""
    if graph.is_directed:
        sums = ", or graph.to_undirected(combine='sum'), which adds up their weights"
        raise GraphError(
            f"{name} needs an undirected graph, and this one is directed: pass graph.to_undirected(), which keeps all "
            f"edges between two vertices{sums if graph.weights is not None else ''}"
        )


def check_directed(graph: Graph, name: str) -> None:
    """Raise ``GraphError`` if the graph is undirected; ``name`` is the algorithm."""
    if not graph.is_directed:
        raise GraphError(f"{name} needs a directed graph, and this one is undirected: build it with directed=True")


def weights_required(graph: Graph, name: str) -> Array:
    """Return the weights of a graph's stored edges, or raise ``GraphError`` if it has none."""
    if graph.weights is None:
        raise GraphError(f"{name} needs weights, and this graph has none: pass weight= when building or reading it")
    return graph.weights


def check_weights_nonnegative(graph: Graph, name: str) -> None:
    """Raise ``GraphError`` if a weight is negative or NaN; a graph without weights passes."""
    weights = graph.weights
    if weights is None or weights.dtype.kind == "u":
        return
    if not graph._fact("weights nonnegative", lambda: bool((weights >= 0).all())):
        e = int((~(weights >= 0)).argmax())
        u = int(np.searchsorted(graph.indptr, e, "right")) - 1
        source, target = graph.to_ids(np.array([u, graph.indices[e]])).tolist()
        raise GraphError(
            f"{name} needs weights of at least 0, and the edge from {source!r} to {target!r} has {weights[e]}: "
            "shift or drop such weights, or pass weight=None when building the graph"
        )


def check_open_interval(name: str, value: Any, low: float, high: float = math.inf) -> float:
    """Return ``value`` as a float, or raise unless it is a finite number above ``low`` and below ``high``."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Real)):
        raise ArgumentTypeError(f"{name} must be a number, not {value!r:.80}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not low < number < high:
        limits = "a finite number" if high == math.inf else f"below {high}"
        raise ArgumentError(f"{name} must be above {low} and {limits}, not {value!r:.80}")
    return number


def check_positive(name: str, value: Any) -> float:
    """Return ``value`` as a float, or raise unless it is a finite number above 0."""
    return check_open_interval(name, value, 0)
