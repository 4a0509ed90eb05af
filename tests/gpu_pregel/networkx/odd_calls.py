"""Random calls of NetworkX's functions with arguments of odd types, which the backend must answer as NetworkX does.

The calls are those of the cases of all functions. Nodes and numbers among the arguments, nodes of the graph and weights
become equal objects of other types, collections become other ones, and some nodes are absent. A call that the backend
leaves to NetworkX is not compared.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import networkx as nx
import numpy as np

from gpu_pregel.networkx import FUNCTIONS
from tests.gpu_pregel.networkx.cases import CASES
from tests.gpu_pregel.networkx.comparison import Arguments, Case, assert_same, outcome
from tests.gpu_pregel.networkx.graphs import GRAPHS

_SMALL = tuple(
    name for name in GRAPHS if name not in ("karate", "random", "sparse", "view", "directed view", "bipartite", "tree")
)
_LEFT_OUT = {"eigenvector_centrality_numpy", "fast_gnp_random_graph", "gnm_random_graph", "gnp_random_graph"}
"""Functions without a graph among their arguments, and one whose result is any of several where weights are odd."""
NAMES = sorted(FUNCTIONS.keys() - _LEFT_OUT)


class Text(str):
    """A string of a class of its own."""

    __slots__ = ()


def _odd_int(number: int) -> list[Any]:
    others = [np.int64(number), np.int32(number), float(number), np.float64(number), Fraction(number)]
    return [*others, bool(number), np.bool_(number)] if number in (0, 1) else others


_ODD: dict[type, Callable[[Any], list[Any]]] = {
    int: _odd_int,
    bool: lambda value: [int(value), np.bool_(value), float(value)],
    float: lambda value: [np.float64(value), *([int(value), -value] if value == 0 else [])],
    str: lambda value: [Text(value), np.str_(value)],
    tuple: lambda value: [tuple(odd(random.Random(1), one) for one in value)],
}
_COLLECTIONS: tuple[Callable[[Any], Any], ...] = (
    *(list, tuple, set, dict.fromkeys, np.array),
    lambda items: [*items, *items[:1]],
    lambda items: [
        *items,
        (items[0][0], "absent") if items and type(items[0]) is tuple and items[0] else "absent",
        *items[:1],
    ],
)


def odd(chance: random.Random, value: Any) -> Any:
    """Return an equal value of another type, if one is known."""
    kinds = _ODD.get(type(value))
    return chance.choice(kinds(value)) if kinds is not None else value


def _odd_argument(chance: random.Random, graph: nx.Graph, value: Any, *, is_part: bool = False) -> Any:
    """Return an argument with odd parts; a node is one part, and parts of collections may be nodes and pairs."""
    try:
        is_node = value in graph
    except TypeError:
        is_node = False
    if is_node or not isinstance(value, (list, tuple, set, frozenset, dict)):
        return odd(chance, value) if chance.random() < 0.8 else value
    if isinstance(value, dict):
        changes = chance.random() < 0.5
        return {
            _odd_argument(chance, graph, key, is_part=True): odd(chance, item) if changes else item
            for key, item in value.items()
        }
    parts = [_odd_argument(chance, graph, part, is_part=True) if chance.random() < 0.6 else part for part in value]
    if chance.random() < 0.5:
        return type(value)(parts)
    try:
        return chance.choice(_COLLECTIONS if is_part else (*_COLLECTIONS, iter))(parts)
    except (TypeError, ValueError):
        return parts


def _odd_graph(chance: random.Random, graph: nx.Graph) -> nx.Graph:
    """Return a graph with weights of one type of NumPy, or some that are -0.0; or with nodes of one of its types."""
    kind = chance.randrange(8)
    if kind == 0:
        return graph
    if kind == 1:
        names = {node: np.int64(node) if type(node) is int else node for node in graph}
        fresh = graph.__class__()
        fresh.add_nodes_from((names[node], data) for node, data in graph.nodes(data=True))
        fresh.add_edges_from((names[u], names[v], data) for u, v, data in graph.edges(data=True))
        return fresh
    convert: Callable[[Any], Any] = (float, np.float64, np.float32, np.int64, np.int8, float, np.float64)[kind - 1]
    zeros = chance.choice((0.3, 1.0)) if kind >= 6 else 0.0
    for *_, data in graph.edges(data=True):
        for name in ("weight", "cost"):
            if name in data or kind < 6:
                data[name] = convert(data.get(name, 1))
        if chance.random() < zeros:
            data["weight"] = convert(-0.0)
    for data in graph.nodes.values():
        if "size" in data:
            data["size"] = (float if convert is np.int8 else convert)(-0.0 if chance.random() < zeros else data["size"])
    return graph


def _arguments(name: str, seed: int) -> tuple[Case, str, Arguments | None]:
    """Return a case of a function, and what to call it with: the same objects for the same seed."""
    chance = random.Random(f"{name} {seed}")
    case = chance.choice(CASES[name])
    graph_name = chance.choice([one for one in _SMALL if not case.graphs or one in case.graphs] or list(case.graphs))
    found = case.arguments(GRAPHS[graph_name]())
    if found is None or not isinstance(found[0][0], nx.Graph) or nx.is_frozen(found[0][0]):
        return case, graph_name, None
    (graph, *others), options = found
    graph = _odd_graph(chance, graph) if chance.random() < 0.5 else graph
    args = [_odd_argument(chance, graph, value) for value in others]
    odd_options = {key: v if key == "dtype" else _odd_argument(chance, graph, v) for key, v in options.items()}
    return case, graph_name, ((graph, *args), odd_options)


def try_call(name: str, seed: int) -> str | None:
    """Compare one call of a function; return how the results differ, or None."""
    case, graph_name, arguments = _arguments(name, seed)
    function = FUNCTIONS[name].original()
    if arguments is None or "networkx" not in function.__wrapped__.backends:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours = outcome(function, arguments, "gpu_pregel")
        if isinstance(ours, NotImplementedError):
            return None
        again = _arguments(name, seed)[2]
        assert again is not None
        theirs = outcome(function, again, "networkx")
    if any("truth value of an array" in str(getattr(found, "error", found)) for found in (ours, theirs)):
        return None  # a number of NumPy is not equal to a tuple, but an array of comparisons
    try:
        if case.check is None or isinstance(ours, Exception) or isinstance(theirs, Exception):
            assert_same(ours, theirs, case)
    except AssertionError as error:
        return f"{name} of {graph_name!r}, seed {seed}: {error}"
    return None


def try_calls(seed: int, names: Sequence[str] = NAMES) -> list[str]:
    """Compare one call of each function; return how results differ."""
    return [found for name in names if (found := try_call(name, seed)) is not None]
