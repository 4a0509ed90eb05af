"""All paths along lists of predecessors, in the order in which NetworkX finds them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import networkx as nx

_END = object()


def paths_by_predecessors(source: Any, target: Any, before: dict[Any, list[Any]]) -> Iterator[list[Any]]:
    """Yield all paths from a source by depth-first search from the target; no path passes a node twice."""
    if target not in before:
        raise nx.NetworkXNoPath(f"Target {target} cannot be reached from given sources")
    way, on_way, branches = [target], {target}, [iter(before[target])]
    while way:
        # A source with predecessors, by edges of weight 0, is yielded each time that the search comes back to it.
        if way[-1] == source:
            yield way[::-1]
        node = next(branches[-1], _END)
        if node is _END:
            branches.pop()
            on_way.discard(way.pop())
        elif node not in on_way:
            way.append(node)
            on_way.add(node)
            branches.append(iter(before[node]))


def paths_to_each(source: Any, before: dict[Any, list[Any]]) -> Iterator[tuple[Any, list[list[Any]]]]:
    """Yield each node with lists of predecessors, and all paths to it, from those to its predecessors where known."""
    known: dict[Any, list[tuple[Any, ...]]] = {}
    for node, predecessors in before.items():
        if node == source and not predecessors:
            known[node] = [(node,)]
        elif predecessors and all(other in known for other in predecessors):
            known[node] = [(*path, node) for other in predecessors for path in known[other]]
        else:
            # A predecessor comes later, or edges of weight 0 form a cycle.
            yield node, list(paths_by_predecessors(source, node, before))
            continue
        yield node, list(map(list, known[node]))
