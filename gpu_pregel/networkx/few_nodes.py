"""Which calls read a few rows or a part of a large graph only, as NetworkX does faster than it is converted.

This imports neither NumPy nor NetworkX.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Set
from itertools import islice
from typing import Any

from gpu_pregel.networkx.function import Function, Reads
from gpu_pregel.networkx.registry import FUNCTIONS

_CONVERTS = 10
"""In a graph that is not converted, up to the nodes divided by this are few."""
_FEW_NODES, _FEW_PAIRS = 8, 24
"""Up to these numbers of chosen nodes and of pairs are few in a graph of any size."""
_FEW_SEARCHES = 3
"""Up to this number of searches take less time than a conversion."""
_SHARE, _FEW = 8, 64
"""A search that reaches fewer than one node in eight is left to NetworkX; of a converted graph, one that reaches fewer
than the second number, too."""
_COLLECTIONS = (list, tuple, range, str, Set, Mapping)
"""Those that can be read more than once."""


def measured(function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Function:
    """Return the function whose size decides on a call."""
    return function if function.measured_as is None else FUNCTIONS[function.measured_as(function, args, kwargs)]


def reads_few_nodes(
    graph: Any, function: Function, args: tuple[Any, ...], kwargs: dict[str, Any], *, is_converted: bool
) -> str | None:
    """Return why NetworkX is expected to be faster at this call, as it reads a few rows or a part, or None.

    To find out, a search goes as far as a small share of the nodes, as NetworkX's search would do, too.
    """
    if (other := measured(function, args, kwargs)).reads is not None and other.reads.ends:
        function = other
    if (reads := function.reads) is None:
        return None
    if reads.rows:
        return _few_rows(graph, function, reads, args, kwargs, is_converted)
    if reads.sources or reads.samples:
        return _few_searches(graph, function, reads, args, kwargs, is_converted)
    reason = _ends_early(graph, function, reads, args, kwargs, is_converted)
    return reason or _few_reached(graph, function, reads, args, kwargs, is_converted)


def _ends_early(
    graph: Any, function: Function, reads: Reads, args: tuple[Any, ...], kwargs: dict[str, Any], is_converted: bool
) -> str | None:
    """Return why NetworkX may end long before it has read the graph."""
    if reads.ends_early and not is_converted:
        return "NetworkX's function may end early, and the graph is not converted"
    for limit in reads.limits + reads.steps:
        given = function.argument(limit, args, kwargs)
        if given is not None and not is_converted:
            return f"{limit} is given, and the graph is not converted"
        if limit in reads.steps and isinstance(given, int) and given <= 1:
            return f"{limit} is {given}"
    if reads.ends:
        first, last = (function.argument(end, args, kwargs) for end in reads.ends)
        # What is no node, such as an array, may not be comparable.
        if first in graph and last in graph and bool(first == last):
            return "both ends are the same node"
    if reads.at_once is not None:
        parameter, value = reads.at_once
        given = function.argument(parameter, args, kwargs)
        if isinstance(given, int) and given == value:
            return f"{parameter} is {value}"
    return None


def _few_searches(
    graph: Any, function: Function, reads: Reads, args: tuple[Any, ...], kwargs: dict[str, Any], is_converted: bool
) -> str | None:
    """Return why NetworkX searches from few nodes only."""
    parameter = reads.sources or reads.samples
    given = function.argument(parameter, args, kwargs)
    count = given if reads.samples and isinstance(given, int) else _count(graph, given)
    if count > (0 if is_converted else _FEW_SEARCHES):
        return None
    return f"{parameter} asks for {count:,} searches{'' if is_converted else ', and the graph is not converted'}"


def _few_reached(
    graph: Any, function: Function, reads: Reads, args: tuple[Any, ...], kwargs: dict[str, Any], is_converted: bool
) -> str | None:
    """Return why NetworkX's search ends when it has reached a part of the graph."""
    if parameter := reads.start or reads.starts:
        starts = _nodes(graph, function.argument(parameter, args, kwargs), is_several=bool(reads.starts))
    elif reads.from_first:
        starts, parameter = list(islice(graph, 1)), "the first node"
    else:
        return None
    share = len(graph) // _SHARE
    few = min(share, _FEW) if is_converted else share
    if not starts:
        return None
    is_reverse = bool(reads.reverse) and bool(function.argument(reads.reverse, args, kwargs))
    for rows in _rows(graph, "in" if is_reverse else reads.along):
        found = _reached(rows, starts, few)
        if found is not None and not (reads.until_cycle and _is_tree(graph, found)):
            reached = f"the search from {parameter} reaches fewer than {few:,} of {len(graph):,} nodes"
            return reached if is_converted else f"{reached}, and the graph is not converted"
    return None


def _few_rows(
    graph: Any, function: Function, reads: Reads, args: tuple[Any, ...], kwargs: dict[str, Any], is_converted: bool
) -> str | None:
    """Return why NetworkX reads the rows of few nodes or pairs only."""
    if (chosen := function.argument(reads.rows, args, kwargs)) is None:
        return None
    count = _count(graph, chosen)
    is_pairs = reads.rows == "ebunch"
    share = reads.share if is_converted else min(reads.share, _CONVERTS)
    if count > max(_FEW_PAIRS if is_pairs else _FEW_NODES, len(graph) // share):
        return None
    return f"{reads.rows} has {count:,} of {'all pairs' if is_pairs else f'{len(graph):,} nodes'}"


def _rows(graph: Any, along: str) -> list[tuple[Mapping[Any, Any], ...]]:
    """Return the neighbours of each node as the search follows them, or as several searches do."""
    if not graph.is_directed():
        return [(graph._adj,)]
    if along == "both":
        return [(graph._succ, graph._pred)]
    if along == "each":
        return [(graph._succ,), (graph._pred,)]
    return [(graph._pred if along == "in" else graph._succ,)]


def _nodes(graph: Any, given: Any, *, is_several: bool) -> list[Any]:
    """Return a node, or those of a collection; none if the search fails, is from all, or would use up an iterator."""
    if given in graph:
        return [given]
    return [one for one in given if one in graph] if is_several and isinstance(given, _COLLECTIONS) else []


def _count(graph: Any, given: Any) -> float:
    """Return how many nodes or pairs are given; infinity if all are, or if counting would use up an iterator."""
    if isinstance(given, Hashable) and given in graph:
        return 1
    return len(given) if isinstance(given, _COLLECTIONS) else float("inf")


def _reached(rows: tuple[Mapping[Any, Any], ...], starts: Iterable[Any], limit: int) -> set[Any] | None:
    """Return the nodes that a search finds, or None if there are ``limit`` of them."""
    found = set(starts)
    waiting = list(found)
    while waiting:
        node = waiting.pop()
        for row in rows:
            others = row[node]
            if len(others) >= limit:
                return None
            for other in others:
                if other not in found:
                    if len(found) + 1 >= limit:
                        return None
                    found.add(other)
                    waiting.append(other)
    return found if len(found) < limit else None


def _is_tree(graph: Any, component: set[Any]) -> bool:
    """Return whether a connected component has no cycle."""
    edges = sum(len(graph._adj[node]) for node in component)
    return edges == (len(component) - 1) * (1 if graph.is_directed() else 2)
