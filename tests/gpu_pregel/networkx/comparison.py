"""Compares a call of the backend with the same call of NetworkX: values, types, order, errors and their messages."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set, ValuesView
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import networkx as nx
import numpy as np
import scipy.sparse

_EXACT = 1e-12
"""Results with a larger absolute error are approximations."""
Arguments = tuple[tuple[Any, ...], dict[str, Any]]
"""Positional and keyword arguments of a call."""


@dataclass(frozen=True)
class Case:
    """Arguments with which one function is called on many graphs.

    ``arguments(graph)`` returns the positional and the keyword arguments, or None where they make no sense. ``ordered``
    says whether lists of results are compared in order, ``tolerance`` is the relative error of floats, and ``check``
    compares two results that may differ, as of heuristics: it raises AssertionError. ``graphs`` names the graphs, all
    by default.
    """

    arguments: Callable[[nx.Graph], Arguments | None] = lambda graph: ((graph,), {})
    tolerance: float = 1e-9
    absolute: float = _EXACT
    ordered: bool = True
    check: Callable[[nx.Graph, Any, Any], None] | None = None
    graphs: Sequence[str] = field(default=())


def call(*extra: Any, graphs: Sequence[str] = (), **options: Any) -> Case:
    """Return the case that passes the graph, then these arguments."""
    return Case(lambda graph: ((graph, *extra), options), graphs=graphs)


def outcome(function: Any, arguments: Arguments, backend: str) -> Any:
    """Return the result of a call, an iterator as a list; or the exception that it raises."""
    args, kwargs = arguments
    try:
        result = function(*args, **kwargs, backend=backend)
    except Exception as error:
        return error
    if not isinstance(result, Iterator):
        return result
    items = _Iterated()
    try:
        items.extend(result)
    except Exception as error:
        return Failed(error, items) if items else error
    return items


class _Iterated(list[Any]):
    """What an iterator yields."""


class Failed(NamedTuple):
    """The error that an iterator raises, and what it yields before."""

    error: Exception
    items: list[Any]


def assert_same(ours: Any, theirs: Any, case: Case, place: str = "result") -> None:
    """Raise AssertionError that names the place if two results differ."""
    if isinstance(theirs, Exception):
        assert isinstance(ours, Exception), f"{place}: {ours!r:.200} instead of {theirs!r}"
        assert type(ours) is type(theirs), f"{place}: {ours!r} instead of {theirs!r}"
        messages = {str(theirs), repr(str(theirs).strip("'").removeprefix("Key ").removesuffix(" not found"))}
        assert str(ours) in messages, f"{place}: {ours} instead of {theirs}"
        return
    if isinstance(ours, Exception):
        raise AssertionError(f"{place}: {ours!r} instead of {theirs!r:.200}") from ours
    if isinstance(theirs, nx.Graph):
        _assert_same_graph(ours, theirs, case, place)
    elif isinstance(theirs, np.ndarray) or scipy.sparse.issparse(theirs):
        assert type(ours) is type(theirs), place
        assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), place
        dense = [part.toarray() if scipy.sparse.issparse(part) else part for part in (ours, theirs)]
        if dense[0].dtype.kind not in "biufc":
            assert_same(dense[0].tolist(), dense[1].tolist(), case, place)
            return
        np.testing.assert_allclose(dense[0], dense[1], rtol=case.tolerance, atol=case.absolute)
        if case.absolute <= _EXACT and dense[0].dtype.kind == "f":
            zeros = (dense[0] == 0) & (dense[1] == 0)
            np.testing.assert_array_equal(np.signbit(dense[0][zeros]), np.signbit(dense[1][zeros]), "signs of zeros")
    else:
        assert type(ours) is type(theirs), f"{place}: {type(ours).__name__} instead of {type(theirs).__name__}"
        _assert_same_value(ours, theirs, case, place)


def _assert_same_value(ours: Any, theirs: Any, case: Case, place: str) -> None:
    if isinstance(theirs, float):
        both_nan = math.isnan(ours) and math.isnan(theirs)
        close = math.isclose(ours, theirs, rel_tol=case.tolerance, abs_tol=case.absolute)
        # Zeros of approximations have any sign.
        same_sign = (
            case.absolute > _EXACT or ours != 0 or theirs != 0 or math.copysign(1, ours) == math.copysign(1, theirs)
        )
        assert both_nan or (close and same_sign), f"{place}: {ours} instead of {theirs}"
    elif isinstance(theirs, Mapping):
        assert list(ours) == list(theirs), f"{place}: keys {list(ours)!r:.300} instead of {list(theirs)!r:.300}"
        assert _types(ours) == _types(theirs), f"{place}: keys {_types(ours)} instead of {_types(theirs)}"
        for key in theirs:
            assert_same(ours[key], theirs[key], case, f"{place}[{key!r}]")
    elif isinstance(theirs, Set):
        assert ours == theirs, f"{place}: {ours!r:.300} instead of {theirs!r:.300}"
        assert _types(ours) == _types(theirs), f"{place}: {_types(ours)} instead of {_types(theirs)}"
    elif isinstance(theirs, ValuesView):
        assert_same(list(ours), list(theirs), case, place)
    elif isinstance(theirs, (list, tuple)):
        assert len(ours) == len(theirs), f"{place}: {len(ours)} items instead of {len(theirs)}: {ours!r:.300}"
        if not case.ordered:
            ours, theirs = (sorted(items, key=repr) for items in (ours, theirs))
        for i, (left, right) in enumerate(zip(ours, theirs, strict=True)):
            assert_same(left, right, case, f"{place}[{i}]")
    else:
        assert ours == theirs, f"{place}: {ours!r:.200} instead of {theirs!r:.200}"


def _types(items: Iterable[Any]) -> dict[Any, Any]:
    """Return the type of each node or other key."""
    return {item: _type(item) for item in items}


def _type(item: Any) -> Any:
    """Return the type of an item, of the members of a tuple or set, and the sign of a zero."""
    if isinstance(item, tuple):
        return type(item), tuple(map(_type, item))
    if isinstance(item, Set):
        return type(item), frozenset(map(_type, item))
    return (type(item), str(item)) if isinstance(item, float) and item == 0 else type(item)


def _assert_same_graph(ours: nx.Graph, theirs: nx.Graph, case: Case, place: str) -> None:
    """Graphs are the same if nodes, neighbours and attributes are, in the same order."""
    assert type(ours) is type(theirs), f"{place}: {type(ours).__name__} instead of {type(theirs).__name__}"
    assert_same(dict(ours.graph), dict(theirs.graph), case, f"{place}.graph")
    assert_same(dict(ours.nodes(data=True)), dict(theirs.nodes(data=True)), case, f"{place}.nodes")
    for name in ("_adj", "_pred") if theirs.is_directed() else ("_adj",):
        left, right = ({u: dict(row) for u, row in getattr(graph, name).items()} for graph in (ours, theirs))
        assert_same(left, right, case, f"{place}.{name}")
    back = ours._pred if ours.is_directed() else ours._adj
    shared = all(data is back[v][u] for u, row in ours._adj.items() for v, data in row.items())
    assert shared, f"{place}: the attributes of an edge are not one dict"
