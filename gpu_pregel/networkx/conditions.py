"""What a call must fulfil so that this backend runs it. Importing this module imports neither NumPy nor NetworkX."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from numbers import Integral, Real
from typing import Any

from gpu_pregel.networkx.function import Condition

EXACT = 1 << 53
"""Integers up to this size are exact as floats."""


def attribute_names(*arguments: str) -> Condition:
    """Require that each of these arguments is the name of an attribute, or None.

    Functions of edges are refused, and True and False, for which NetworkX takes all attributes or none.
    """

    def reason(values: Mapping[str, Any]) -> str | None:
        for name in arguments:
            if callable(values[name]):
                return f"{name} is a function"
            if isinstance(values[name], bool):
                return f"{name} is {values[name]}"
        return None

    return reason


def numbers(*arguments: str) -> Condition:
    """Require that each of these arguments is a number and not NaN, or None."""

    def reason(values: Mapping[str, Any]) -> str | None:
        for name in arguments:
            value = values[name]
            if value is not None and (not isinstance(value, Real) or value != value):
                return f"{name} is not a number"
        return None

    return reason


def plain_numbers(*arguments: str) -> Condition:
    """Require that each of these arguments is no number of another precision than Python's, or of a type of its own.

    NumPy's float64 is as precise, and results have its type.
    """

    def reason(values: Mapping[str, Any]) -> str | None:
        for name in arguments:
            value = values[name]
            if not isinstance(value, (int, float)) and isinstance(value, Real):
                return f"{name} is of type {type(value).__name__}"
        return None

    return reason


def python_numbers(*arguments: str) -> Condition:
    """Require that each of these arguments is no number, or one of Python's, as results would have its type."""

    def reason(values: Mapping[str, Any]) -> str | None:
        for name in arguments:
            if isinstance(values[name], Real) and type(values[name]) not in (int, float, bool):
                return f"{name} is of type {type(values[name]).__name__}"
        return None

    return reason


def float_or_none(argument: str) -> Condition:
    """Require that an argument is None, a float that is not NaN, or an integer that is equal to one.

    NetworkX compares others as they are: fractions, and float32 in its own precision.
    """

    def reason(values: Mapping[str, Any]) -> str | None:
        value = values[argument]
        if value is None or (isinstance(value, float) and value == value):
            return None
        if isinstance(value, Integral) and abs(int(value)) <= EXACT:
            return None
        return f"{argument} is neither a float nor an integer up to 2^53"

    return reason


def integers(*arguments: str) -> Condition:
    """Require that each of these arguments is an integer, or None."""

    def reason(values: Mapping[str, Any]) -> str | None:
        for name in arguments:
            if values[name] is not None and not isinstance(values[name], Integral):
                return f"{name} is not an integer"
        return None

    return reason


def simple(graph: str = "G") -> Condition:
    """Require a graph without parallel edges."""

    def reason(values: Mapping[str, Any]) -> str | None:
        return f"{graph} is a multigraph" if values[graph].is_multigraph() else None

    return reason


def node_or_none(argument: str, graph: str = "G") -> Condition:
    """Require that an argument is a node, or None."""

    def reason(given: Mapping[str, Any]) -> str | None:
        node = given[argument]
        return None if node is None or node in given[graph] else f"{argument} is not in the graph"

    return reason


def one_of(argument: str, *values: Any) -> Condition:
    """Require that an argument has one of these values."""

    def reason(given: Mapping[str, Any]) -> str | None:
        return None if given[argument] in values else f"{argument} is {given[argument]!r}"

    return reason


def simple_if_given(argument: str, graph: str = "G") -> Condition:
    """Require a graph without parallel edges unless this argument is None."""

    def reason(values: Mapping[str, Any]) -> str | None:
        refused = values[argument] is not None and values[graph].is_multigraph()
        return f"{graph} is a multigraph and {argument} is given" if refused else None

    return reason


def undirected(graph: str = "G") -> Condition:
    """Require an undirected graph."""

    def reason(values: Mapping[str, Any]) -> str | None:
        return f"{graph} is directed" if values[graph].is_directed() else None

    return reason


def unset(*arguments: str) -> Condition:
    """Require that each of these arguments is None."""

    def reason(values: Mapping[str, Any]) -> str | None:
        for name in arguments:
            if values[name] is not None:
                return f"{name} is given"
        return None

    return reason


def all_nodes(argument: str, graph: str = "G") -> Condition:
    """Require that this argument is None or has all nodes, each once."""

    def reason(values: Mapping[str, Any]) -> str | None:
        nodes = values[argument]
        if nodes is None:
            return None
        try:
            complete = len(nodes) == len(values[graph]) == len(set(nodes)) and all(u in values[graph] for u in nodes)
        except TypeError:
            complete = False
        return None if complete else f"{argument} does not have all nodes, each once"

    return reason


def collections_of_nodes(*arguments: str, graph: str = "G") -> Condition:
    """Require that each of these arguments is None or a collection, which may be read more than once, and no node."""

    def reason(values: Mapping[str, Any]) -> str | None:
        for name in arguments:
            nodes = values.get(name)
            if not isinstance(nodes, (list, tuple, set, frozenset, dict, range, type(None))):
                return f"{name} is no collection"
            # Nodes may be tuples and frozensets themselves.
            if isinstance(nodes, Hashable) and nodes is not None and nodes in values[graph]:
                return f"{name} is a node"
        return None

    return reason


def lists(*arguments: str) -> Condition:
    """Require that each of these arguments is a list, or None: NetworkX adds it to other lists."""

    def reason(values: Mapping[str, Any]) -> str | None:
        for name in arguments:
            if not isinstance(values[name], (list, type(None))):
                return f"{name} is no list"
        return None

    return reason


def sortable_nodes(graph: str = "G") -> Condition:
    """Require nodes that can be compared with one another: NetworkX sorts some of them."""

    def reason(values: Mapping[str, Any]) -> str | None:
        try:
            sorted(values[graph])
        except TypeError as error:
            return str(error)
        return None

    return reason


def numbers_of_all_nodes(argument: str, graph: str = "G") -> Condition:
    """Require that this argument is None or a mapping whose keys are the nodes."""

    def reason(values: Mapping[str, Any]) -> str | None:
        given = values[argument]
        complete = given is None or (isinstance(given, Mapping) and set(given) == set(values[graph]))
        return None if complete else f"{argument} does not have a number for each node"

    return reason


def false(*arguments: str) -> Condition:
    """Require that each of these arguments is False."""

    def reason(values: Mapping[str, Any]) -> str | None:
        for name in arguments:
            if values[name]:
                return f"{name} is set"
        return None

    return reason


def plain_class(graph: str = "G") -> Condition:
    """Require one of the classes of NetworkX or of this backend: NetworkX's result has the class of the graph."""

    def reason(values: Mapping[str, Any]) -> str | None:
        kind = type(values[graph])
        plain = kind.__module__.startswith(("networkx.classes.", "gpu_pregel.networkx."))
        return None if plain else f"the result is a {kind.__name__}"

    return reason


def plain_data(values: Mapping[str, Any]) -> str | None:
    """Require True or False as ``data``: attributes of edges are all returned or none."""
    return None if isinstance(values["data"], bool) else "data is no bool"
