"""Positions of a small graph's nodes in layers, so that most edges point down and few cross."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

Edge = tuple[int, int]
Position = tuple[float, float]
_SWEEPS = 8
_MAX_WIDTH = 9
"""Nodes of a layer; a wider one is folded into several rows."""


def place_nodes(count: int, edges: Iterable[Edge]) -> list[Position]:
    """Return the column, which may be a fraction, and the row of each node.

    Nodes are assigned to layers by their longest path from a source, after edges that close a circle have been
    reversed, and sorted within their layers by the mean position of their neighbours (Sugiyama et al., 1981).

    Examples
    --------
    >>> place_nodes(4, [(0, 1), (0, 2), (1, 3), (2, 3), (3, 0)])
    [(0.0, 0), (-0.5, 1), (0.5, 1), (0.0, 2)]
    """
    forward = _without_circles(count, [(a, b) for a, b in dict.fromkeys(edges) if a != b])
    layers = _order(_layers(count, forward), forward)
    rows = [layer[start : start + _MAX_WIDTH] for layer in layers for start in range(0, len(layer), _MAX_WIDTH)]
    places: list[Position] = [(0.0, 0)] * count
    for number, row in enumerate(rows):
        for column, node in enumerate(row):
            places[node] = column - (len(row) - 1) / 2, number
    return places


def _without_circles(count: int, edges: Sequence[Edge]) -> list[Edge]:
    """Reverse the edges that lead back to a node whose search has not ended."""
    targets: list[list[int]] = [[] for _ in range(count)]
    for source, target in edges:
        targets[source].append(target)
    has_source = {target for _, target in edges}
    state, forward = [0] * count, []
    for root in sorted(range(count), key=lambda node: node in has_source):
        if state[root]:
            continue
        stack, state[root] = [(root, iter(targets[root]))], 1
        while stack:
            node, rest = stack[-1]
            for target in rest:
                forward.append((target, node) if state[target] == 1 else (node, target))
                if state[target] == 0:
                    state[target] = 1
                    stack.append((target, iter(targets[target])))
                    break
            else:
                state[node] = 2
                stack.pop()
    return forward


def _layers(count: int, forward: Sequence[Edge]) -> list[list[int]]:
    """Return the nodes of each layer: those whose longest path from a source has the same length."""
    targets: list[list[int]] = [[] for _ in range(count)]
    missing, depth = [0] * count, [0] * count
    for source, target in forward:
        targets[source].append(target)
        missing[target] += 1
    ready = [node for node in range(count) if not missing[node]]
    for node in ready:
        for target in targets[node]:
            depth[target] = max(depth[target], depth[node] + 1)
            missing[target] -= 1
            if not missing[target]:
                ready.append(target)
    layers: list[list[int]] = [[] for _ in range(max(depth, default=-1) + 1)]
    for node in range(count):
        layers[depth[node]].append(node)
    return layers


def _order(layers: list[list[int]], edges: Sequence[Edge]) -> list[list[int]]:
    """Sort each layer by the mean position of neighbours, downwards and upwards in turn."""
    neighbours: dict[int, list[int]] = {}
    for source, target in edges:
        neighbours.setdefault(source, []).append(target)
        neighbours.setdefault(target, []).append(source)
    for sweep in range(_SWEEPS):
        numbers = range(len(layers)) if sweep % 2 == 0 else range(len(layers) - 1, -1, -1)
        for number in numbers:
            beside = _centred(layers[:number] if sweep % 2 == 0 else layers[number + 1 :])
            place = {node: k - (len(layers[number]) - 1) / 2 for k, node in enumerate(layers[number])}
            layers[number].sort(key=lambda node, beside=beside, place=place: _mean(node, neighbours, beside, place))  # type: ignore[misc]
    return layers


def _centred(layers: Iterable[Sequence[int]]) -> dict[int, float]:
    return {node: column - (len(layer) - 1) / 2 for layer in layers for column, node in enumerate(layer)}


def _mean(
    node: int, neighbours: Mapping[int, list[int]], beside: Mapping[int, float], place: Mapping[int, float]
) -> float:
    found = [beside[other] for other in neighbours.get(node, ()) if other in beside]
    return sum(found) / len(found) if found else place[node]
