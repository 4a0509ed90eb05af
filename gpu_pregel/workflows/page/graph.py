"""The graph of a run on its page: its vertices or, of a large one, groups of vertices with similar ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from typing import Any

from gpu_pregel.host.agents.codec import decode
from gpu_pregel.host.agents.records import Id, VertexData
from gpu_pregel.workflows.page.labels import Labels, label_of, shape_of
from gpu_pregel.workflows.page.layout import place_nodes

MAX_NODES = 60
_MAX_NOTABLE = 20
"""Vertices that failed or ask, which are drawn beside the groups."""
_MAX_EDGES = 600
_OTHERS = "others"


def draw_graph(
    vertices: Mapping[Id, VertexData], routes: Counter[tuple[Id, Id]], labels: Labels, notable: Collection[Id]
) -> dict[str, Any]:
    """Return the nodes with their positions, the edges between them, and which node each labelled vertex belongs to.

    Edges are those of vertices, and the routes of messages. A node has a label, its number of vertices and its place;
    an edge its two nodes, and how many edges and messages there are.
    """
    names, node_of = _make_nodes(vertices, notable)
    sizes = Counter(node_of.values())
    edges: Counter[tuple[int, int]] = Counter()
    total = 0
    for vertex, one in vertices.items():
        total += len(one.edges) // 2
        for end in one.targets:
            if end in node_of:
                edges[node_of[vertex], node_of[end]] += 1
    messages: Counter[tuple[int, int]] = Counter()
    for (sender, receiver), count in routes.items():
        if sender in node_of and receiver in node_of:
            messages[node_of[sender], node_of[receiver]] += count
    drawn = list(dict.fromkeys([*edges, *messages]))[:_MAX_EDGES]
    positions = place_nodes(len(names), drawn)
    return {
        "nodes": [[name, sizes[number], *positions[number]] for number, name in enumerate(names)],
        "edges": [[source, target, edges[source, target], messages[source, target]] for source, target in drawn],
        "nodeOf": {labels.number(vertex): node_of[vertex] for vertex in _labelled(vertices, labels)},
        "isGrouped": len(names) != len(vertices),
        "vertices": len(vertices),
        "totalEdges": total,
    }


def _make_nodes(vertices: Mapping[Id, VertexData], notable: Collection[Id]) -> tuple[list[str], dict[Id, int]]:
    """Return the names of the nodes, and the node of each vertex."""
    if len(vertices) <= MAX_NODES:
        return [label_of(decode(vertex)) for vertex in vertices], {vertex: k for k, vertex in enumerate(vertices)}
    shapes = {vertex: shape_of(decode(vertex)) for vertex in vertices}
    alone = [vertex for vertex in notable if vertex in vertices][:_MAX_NOTABLE]
    counts = Counter(shapes[vertex] for vertex in vertices)
    common = [shape for shape, _ in counts.most_common(MAX_NODES - len(alone))]
    if len(counts) > len(common):
        common[-1] = _OTHERS
    names, numbers = list(common), {shape: number for number, shape in enumerate(common)}
    others = numbers.get(_OTHERS, 0)
    node_of = {vertex: numbers.get(shape, others) for vertex, shape in shapes.items()}
    for vertex in alone:
        node_of[vertex] = len(names)
        names.append(label_of(decode(vertex)))
    return names, node_of


def _labelled(vertices: Mapping[Id, VertexData], labels: Labels) -> list[Id]:
    """Return the vertices that the page names; all of a small graph."""
    if len(vertices) <= MAX_NODES:
        return list(vertices)
    return [vertex for vertex in labels.known() if vertex in vertices]
