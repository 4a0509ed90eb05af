"""Calls of pairs of degrees and attributes at the ends of edges, and of the correlation of both ends."""

from __future__ import annotations

from typing import Any

import networkx as nx

from tests.gpu_pregel.networkx.comparison import Arguments, Case, call


def _of_nodes(*extra: Any, **options: Any) -> Case:
    """Return the case that passes every node but the first, and one that is absent."""
    return Case(lambda graph: ((graph, *extra), {"nodes": [*list(graph)[1:], "absent"], **options}))


def _mapped(values: dict[Any, int], *extra: Any, **options: Any) -> Case:
    return Case(lambda graph: ((graph, *extra), {"mapping": dict(values), **options}))


def _of_many_values(_: Any) -> Arguments:
    """Return a graph with so many values that their pairs are counted by sorting."""
    graph = nx.cycle_graph(2100)
    nx.set_node_attributes(graph, {u: u * 7 % 2099 for u in graph}, "size")
    return (graph, "size"), {}


_DEGREES = [call(), call(weight="weight"), call(x="in", y="out"), call(x="in", y="in", weight="cost"), _of_nodes()]
_ATTRIBUTES = [call("color"), call("size"), call("absent"), _of_nodes("color")]

CASES: dict[str, list[Case]] = {
    "node_degree_xy": [*_DEGREES, call(x="up"), call(nodes=7.5)],
    "node_attribute_xy": _ATTRIBUTES,
    "degree_mixing_dict": [*_DEGREES, call(normalized=True), call(y="up")],
    "degree_mixing_matrix": [*_DEGREES, call(normalized=False), _mapped({2: 0, 3: 1}, normalized=False)],
    "attribute_mixing_dict": [*_ATTRIBUTES, call("color", normalized=True), Case(_of_many_values, graphs=("empty",))],
    "attribute_mixing_matrix": [*_ATTRIBUTES, _mapped({"red": 1, "blue": 0}, "color", normalized=False)],
    "degree_assortativity_coefficient": [*_DEGREES, call(x="up")],
    "degree_pearson_correlation_coefficient": _DEGREES,
    "attribute_assortativity_coefficient": _ATTRIBUTES,
    "numeric_assortativity_coefficient": [call("size"), call("absent"), _of_nodes("size")],
}
