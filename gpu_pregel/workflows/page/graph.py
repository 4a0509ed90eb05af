"""The graph of a run on its page: its vertices or, of a large one, groups of vertices with similar ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from gpu_pregel.host.agents.codec import decode
from gpu_pregel.host.agents.records import Id, VertexData
from gpu_pregel.workflows.layered_layout import Arrow, Box, place
from gpu_pregel.workflows.page.labels import Labels, label_of, shape_of

MAX_NODES = 60
_MAX_NOTABLE = 20
"""Vertices that failed or ask, which are drawn beside the groups."""
_MAX_EDGES = 240
_MAX_ROW = 9
"""Nodes of a layer of the picture; a wider one is folded into several rows."""
_HEIGHT, _CHARACTER, _PADDING, _MAX_TEXT = 32.0, 6.6, 12.0, 24
_OTHERS = "others"


def draw_graph(
    vertices: Mapping[Id, VertexData], routes: Counter[tuple[Id, Id]], labels: Labels, notable: Collection[Id]
) -> dict[str, Any]:
    """Return the nodes with their positions, the edges between them, and which node each labelled vertex belongs to.

    Edges are those of vertices, and the routes of messages. A node has a label, its number of vertices, its centre and
    its width; an edge its two nodes, how many edges and messages there are, and the points that it passes.
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
    texts = [name if sizes[number] == 1 else f"{name} × {sizes[number]:,}" for number, name in enumerate(names)]
    boxes, arrows = _lay_out(texts, drawn)
    points = [list(map(list, dict.fromkeys((round(x, 1), round(y, 1)) for x, y in one.points))) for one in arrows]
    return {
        "nodes": [
            [name, sizes[number], round(box.x, 1), round(box.y, 1), round(box.width, 1)]
            for number, (name, box) in enumerate(zip(names, boxes, strict=True))
        ],
        "edges": [[*ends, edges[ends], messages[ends], way] for ends, way in zip(drawn, points, strict=True)],
        "nodeOf": {labels.number(vertex): node_of[vertex] for vertex in _labelled(vertices, labels)},
        "isGrouped": len(names) != len(vertices),
        "vertices": len(vertices),
        "totalEdges": total,
    }


def _lay_out(texts: Sequence[str], edges: Sequence[tuple[int, int]]) -> tuple[list[Box], list[Arrow]]:
    """Return the places of nodes, and the ways of edges, with wide layers folded."""
    widths = [_CHARACTER * min(len(text), _MAX_TEXT) + 2 * _PADDING for text in texts]
    boxes = [Box(max(width, 48.0), _HEIGHT) for width in widths]
    arrows = [Arrow(*ends) for ends in edges]
    if boxes:
        place(boxes, arrows)
        layers = _folded(boxes)
        if layers != [box.layer for box in boxes]:
            boxes = [Box(box.width, _HEIGHT, layer=layer) for box, layer in zip(boxes, layers, strict=True)]
            arrows = [Arrow(*ends) for ends in edges]
            place(boxes, arrows)
    return boxes, arrows


def _folded(boxes: Sequence[Box]) -> list[int]:
    """Return the layers of boxes if the number of boxes per layer is limited."""
    rows, row = [0] * len(boxes), 0
    for layer in sorted({box.layer for box in boxes}):
        members = sorted([number for number, box in enumerate(boxes) if box.layer == layer], key=lambda k: boxes[k].x)
        for index, number in enumerate(members):
            rows[number] = row + index // _MAX_ROW
        row += 1 + (len(members) - 1) // _MAX_ROW
    return rows


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
