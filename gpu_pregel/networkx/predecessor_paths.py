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
