"""What a call must fulfil so that this backend runs it. Importing this module imports neither NumPy nor NetworkX."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Real
from typing import Any

from gpu_pregel.networkx.function import Condition


def attribute_names(*arguments: str) -> Condition:
    """Require that each of these arguments is the name of an attribute, or None; functions of edges are refused."""

    def reason(values: Mapping[str, Any]) -> str | None:
        callables = (name for name in arguments if callable(values[name]))
        return next((f"{name} is a function" for name in callables), None)

    return reason


def numbers(*arguments: str) -> Condition:
    """Require that each of these arguments is a number, or None."""

    def reason(values: Mapping[str, Any]) -> str | None:
        others = (name for name in arguments if values[name] is not None and not isinstance(values[name], Real))
        return next((f"{name} is not a number" for name in others), None)

    return reason


def simple(graph: str = "G") -> Condition:
    """Require a graph without parallel edges."""

    def reason(values: Mapping[str, Any]) -> str | None:
        return f"{graph} is a multigraph" if values[graph].is_multigraph() else None

    return reason


def undirected(graph: str = "G") -> Condition:
    """Require an undirected graph."""

    def reason(values: Mapping[str, Any]) -> str | None:
        return f"{graph} is directed" if values[graph].is_directed() else None

    return reason


def unset(*arguments: str) -> Condition:
    """Require that each of these arguments is None."""

    def reason(values: Mapping[str, Any]) -> str | None:
        return next((f"{name} is given" for name in arguments if values[name] is not None), None)

    return reason
