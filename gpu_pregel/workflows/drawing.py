"""Pictures of a graph: in the language of Mermaid, and as an SVG image that needs nothing else."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from gpu_pregel.workflows.commands import END, START
from gpu_pregel.workflows.graph_spec import GraphSpec, NodeSpec
from gpu_pregel.workflows.layered_layout import Arrow, Box, Point, place

_MOST_NODES, _MOST_LINKS, _MOST_LIGHT_LINKS = 150, 400, 100
"""Larger graphs are not laid out. The last number limits the arrows of routers that may lead anywhere."""


# Mermaid.


def draw_mermaid(graph: GraphSpec) -> str:
    """Return a graph in the language of Mermaid.

    Arrows of routers and commands are dashed, and have the results that lead there; a join is a circle with "all" in
    it; nodes with ``defer=True`` have dashed borders; graphs that are nodes are boxes around their nodes.

    Parameters
    ----------
    graph : GraphSpec

    Returns
    -------
    str

    Examples
    --------
    >>> from gpu_pregel.workflows import END, START, GraphState, StateGraph
    >>> graph = StateGraph(GraphState).add_node("llm_call", lambda state: None).add_node("act", lambda state: None)
    >>> graph = graph.add_edge(START, "llm_call").add_edge("act", "llm_call")
    >>> graph = graph.add_conditional_edges("llm_call", lambda state: "done", {"call": "act", "done": END})
    >>> print(graph.draw_mermaid())
    flowchart TD
        n0(["start"]):::terminal
        n1["llm_call"]
        n2["act"]
        n3(["end"]):::terminal
        n0 --> n1
        n1 -. "call" .-> n2
        n1 -. "done" .-> n3
        n2 --> n1
        classDef terminal fill:#2d9d6d,stroke:#2d9d6d,color:#fff
        classDef deferred stroke-dasharray:4 3
    <BLANKLINE>
    """
    lines = ["flowchart TD", *_mermaid_lines(graph, "n", "    ")]
    lines += [
        "    classDef terminal fill:#2d9d6d,stroke:#2d9d6d,color:#fff",
        "    classDef deferred stroke-dasharray:4 3",
    ]
    return "\n".join(lines) + "\n"


def _mermaid_lines(graph: GraphSpec, prefix: str, indent: str) -> Iterator[str]:
    """Yield the lines of nodes and arrows; names are replaced by numbers with a prefix."""
    links = links_of(graph)
    ids = {name: f"{prefix}{number}" for number, name in enumerate(shown_names(graph, links))}
    for name, key in ids.items():
        node = graph.nodes.get(name)
        inner = None if node is None else inner_graph(node)
        if node is None:
            yield f'{indent}{key}(["{name.strip("_")}"]):::terminal'
        elif inner is not None:
            yield f'{indent}subgraph {key}["{_mermaid_text(name)}"]'
            yield from _mermaid_lines(inner, f"{key}_", indent + "    ")
            yield f"{indent}end"
        else:
            text, style = _mermaid_text(name), ":::deferred" if node.defer else ""
            yield f'{indent}{key}["{text}{" (deferred)" if node.defer else ""}"]{style}'
    for (target, number), name in shown_joins(graph).items():
        ids[name] = key = f"{ids[target]}_join{number}"
        yield f'{indent}{key}(("all"))'
    for link in links:
        yield f"{indent}{ids[link.source]} {_mermaid_arrow(link)} {ids[link.target]}"


def _mermaid_arrow(link: Link) -> str:
    if not link.is_conditional:
        return "-->"
    text = "any" if link.is_any else _mermaid_text(", ".join(link.labels))
    return f'-. "{text}" .->' if text else "-.->"


def _mermaid_text(text: str) -> str:
    """Escape what is not a letter, digit, space or harmless sign."""
    return re.sub(r"[^\w .,()+-]", lambda match: f"#{ord(match[0])};", text)


def inner_graph(node: NodeSpec) -> GraphSpec | None:
    """Return the graph that is a node, if it is one."""
    inner = getattr(node.function, "graph", None) if node.is_graph else None
    return inner if isinstance(inner, GraphSpec) else None


# SVG.

_FONT, _CHARACTER = 13, 7.3
_LABEL_FONT, _LABEL_CHARACTER = 11, 6.2
_LONGEST_NAME, _LONGEST_LABEL = 32, 28
_HEIGHT, _PADDING, _MARGIN, _TITLE = 32.0, 14.0, 12.0, 30.0
_GREEN = "#2d9d6d"


def draw_svg(graph: GraphSpec) -> str:
    """Return a graph as an SVG image, in the colour of the text around it.

    Parameters
    ----------
    graph : GraphSpec

    Returns
    -------
    str
    """
    solid = sum(not one.is_any for one in links_of(graph))
    if len(graph.nodes) > _MOST_NODES or solid > _MOST_LINKS:
        return f"<div>A graph of {len(graph.nodes):,} nodes, too large to show: see <code>draw_mermaid()</code></div>"
    picture = _Picture(graph)
    width, height = picture.width + 2 * _MARGIN, picture.height + 2 * _MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" style="max-width:100%;height:auto" role="img" '
        f'font-family="system-ui,sans-serif" font-size="{_FONT}" fill="currentColor">'
        f"<title>State graph of {len(graph.nodes)} nodes</title>"
        f'<g transform="translate({_MARGIN:.0f} {_MARGIN:.0f})">{"".join(picture.elements())}</g></svg>'
    )


class _Picture:
    """The layout of a graph, and of the graphs that are its nodes."""

    def __init__(self, graph: GraphSpec) -> None:
        self._graph, self._links = graph, links_of(graph)
        self._names = [*shown_names(graph, self._links), *shown_joins(graph).values()]
        self._inner = {
            name: _Picture(inner) for name, node in graph.nodes.items() if (inner := inner_graph(node)) is not None
        }
        light = [one for one in self._links if one.is_any]
        self._anywhere = {one.source for one in light}
        if len(light) > _MOST_LIGHT_LINKS:
            self._links = [one for one in self._links if not one.is_any]
        self._boxes = [self._box(name) for name in self._names]
        for name, box in zip(self._names, self._boxes, strict=True):
            box.room = 28.0 if name in self._anywhere else 0.0
        places = {name: number for number, name in enumerate(self._names)}
        self._arrows = [
            Arrow(places[one.source], places[one.target], self._label_size(one), is_light=one.is_any)
            for one in self._links
        ]
        self.width, self.height = place(self._boxes, self._arrows)

    def _box(self, name: str) -> Box:
        if name in self._inner:
            inner = self._inner[name]
            width = max(inner.width, _text_width(name, _CHARACTER, _LONGEST_NAME))
            return Box(width + 2 * _PADDING, inner.height + _TITLE + _PADDING)
        if name in (START, END):
            return Box(64.0, 28.0)
        if name not in self._graph.nodes:
            return Box(26.0, 18.0)
        return Box(_text_width(name, _CHARACTER, _LONGEST_NAME) + 2 * _PADDING, _HEIGHT)

    @staticmethod
    def _label_size(link: Link) -> tuple[float, float] | None:
        text = ", ".join(link.labels)
        return (_text_width(text, _LABEL_CHARACTER, _LONGEST_LABEL) + 8, 16.0) if text else None

    def elements(self) -> Iterator[str]:
        """Yield the SVG elements: arrows first."""
        for link, arrow in sorted(zip(self._links, self._arrows, strict=True), key=lambda one: not one[0].is_any):
            yield from _draw_arrow(link, arrow)
        for name, box in zip(self._names, self._boxes, strict=True):
            yield from self._draw_box(name, box)
            if name in self._anywhere:
                side = box.x + box.width / 2 + 5
                yield _text("any", side, box.y, f'font-size="{_LABEL_FONT}" opacity=".6"', anchor="start")

    def _draw_box(self, name: str, box: Box) -> Iterator[str]:
        left, top = box.x - box.width / 2, box.y - box.height / 2
        size = f'x="{left:.1f}" y="{top:.1f}" width="{box.width:.1f}" height="{box.height:.1f}"'
        node = self._graph.nodes.get(name)
        if name in (START, END):
            yield f'<rect {size} rx="14" fill="{_GREEN}"/>'
            yield _text(name.strip("_"), box.x, box.y, 'fill="#fff" font-weight="600"')
        elif node is None:
            yield f'<rect {size} rx="9" fill="none" stroke="currentColor" stroke-opacity=".6"/>'
            yield _text("all", box.x, box.y, f'font-size="{_LABEL_FONT}"')
        else:
            dashes = ' stroke-dasharray="4 3"' if node.defer else ""
            yield f"<g><title>{_escaped(name + (' (deferred)' if node.defer else ''))}</title>"
            yield f'<rect {size} rx="6" fill-opacity=".06" stroke="currentColor" stroke-opacity=".55"{dashes}/>'
            shown = _shortened(name, _LONGEST_NAME)
            if name not in self._inner:
                yield _text(shown, box.x, box.y)
            else:
                yield _text(shown, box.x, top + _TITLE / 2 - 1, 'font-weight="600"')
                inner = self._inner[name]
                x, y = box.x - inner.width / 2, top + _TITLE
                yield f'<g transform="translate({x:.1f} {y:.1f})">{"".join(inner.elements())}</g>'
            yield "</g>"


def _draw_arrow(link: Link, arrow: Arrow) -> Iterator[str]:
    """Yield the elements of an arrow; it is interrupted where its label is."""
    dashes = ' stroke-dasharray="5 4"' if link.is_conditional else ""
    opacity = ".22" if link.is_any else ".75"
    style = f'fill="none" stroke="currentColor" stroke-opacity="{opacity}" stroke-width="1.3"{dashes}'
    points, label = arrow.points, arrow.label
    text, small = _shortened(", ".join(link.labels), _LONGEST_LABEL), f'font-size="{_LABEL_FONT}" opacity=".85"'
    if arrow.is_loop:
        x, y = points[0]
        bend = f"C{x + 24:.1f} {y - 16:.1f} {x + 24:.1f} {y + 16:.1f} {x + 6:.1f} {y + 8:.1f}"
        yield f'<path d="M{x:.1f} {y - 7:.1f}{bend}" {style}/>'
        yield _head((x, y + 6), (-1, 0), opacity)
        if text:
            yield _text(text, x + 23, y, small, anchor="start")
        return
    down = 1 if points[-1][1] > points[0][1] else -1
    if label is None:
        yield f'<path d="{_curve(points, 5 * down)}" {style}/>'
    else:
        x, y = points[label]
        yield f'<path d="{_curve([*points[:label], (x, y - 8 * down)])}" {style}/>'
        yield f'<path d="{_curve([(x, y + 8 * down), *points[label + 1 :]], 5 * down)}" {style}/>'
        yield _text(text, x, y, small)
    yield _head(points[-1], (0, down), opacity)


def _curve(points: list[Point], shorter: float = 0) -> str:
    """Return a path that is vertical at each point, and whose end is left out."""
    points = [*points[:-1], (points[-1][0], points[-1][1] - shorter)]
    path = [f"M{points[0][0]:.1f} {points[0][1]:.1f}"]
    for (x, y), (to_x, to_y) in pairwise(points):
        middle = (y + to_y) / 2
        if x == to_x:
            path.append(f"V{to_y:.1f}")
        else:
            path.append(f"C{x:.1f} {middle:.1f} {to_x:.1f} {middle:.1f} {to_x:.1f} {to_y:.1f}")
    return "".join(path)


def _head(tip: Point, direction: tuple[int, int], opacity: str) -> str:
    """Return the head of an arrow."""
    (x, y), (right, down) = tip, direction
    back_x, back_y = x - 7 * right, y - 7 * down
    corners = [(x, y), (back_x - 4 * down, back_y - 4 * right), (back_x + 4 * down, back_y + 4 * right)]
    points = " ".join(f"{one:.1f},{other:.1f}" for one, other in corners)
    return f'<polygon points="{points}" fill-opacity="{opacity}"/>'


def _text(text: str, x: float, y: float, style: str = "", anchor: str = "middle") -> str:
    extra = f" {style}" if style else ""
    return f'<text x="{x:.1f}" y="{y:.1f}" dy=".35em" text-anchor="{anchor}"{extra}>{_escaped(text)}</text>'


def _escaped(text: str) -> str:
    """Escape for XML, in which most control characters and surrogates are not allowed."""
    return html.escape("".join("\ufffd" if unicodedata.category(one) in ("Cc", "Cs") else one for one in text))


def _shortened(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _text_width(text: str, character: float, most: int) -> float:
    """Estimate the width of a text that is shortened to a number of characters."""
    wide = sum(unicodedata.east_asian_width(one) in "WF" for one in text[:most])
    return character * (min(len(text), most) + 0.8 * wide)


@dataclass(frozen=True)
class Link:
    """An arrow.

    Attributes
    ----------
    source, target : str
        Names of nodes, or of joins.
    labels : tuple of str
        The results of a router that lead here.
    is_conditional : bool
        Whether it depends on a router or a command.
    is_any : bool
        Whether it is one of those to all nodes, where a router may lead anywhere.
    """

    source: str
    target: str
    labels: tuple[str, ...] = ()
    is_conditional: bool = False
    is_any: bool = False


def shown_joins(graph: GraphSpec) -> dict[tuple[str, int], str]:
    """Return the name of each join, the k-th one of a target; it is the name of no node."""
    return {
        (target, number): f"{target}:{number}"
        for target, joins in graph.joins.items()
        for number in range(len(joins))
        if target in graph.nodes
    }


def shown_names(graph: GraphSpec, links: list[Link]) -> list[str]:
    """Return what a picture shows, in order: the start, nodes and, if something leads there, the end."""
    ends = [END] if any(one.target == END for one in links) else []
    return [START, *graph.nodes, *ends]


def links_of(graph: GraphSpec) -> list[Link]:
    """Return the arrows of a graph; those that lead nowhere are left out."""
    found: dict[Link, None] = {}
    for source in (START, *graph.nodes):
        for target in (*graph.edges.get(source, ()), *([END] if source in graph.ends else [])):
            found[Link(source, target)] = None
        for link in _conditional_links(graph, source):
            found[link] = None
    joins = shown_joins(graph)
    for (target, number), name in joins.items():
        for source in sorted(graph.joins[target][number]):
            found[Link(source, name)] = None
        found[Link(name, target)] = None
    known = {START, END, *graph.nodes, *joins.values()}
    return [one for one in found if one.source in known and one.target in known]


def _conditional_links(graph: GraphSpec, source: str) -> list[Link]:
    """Return the arrows of routers and commands of a node."""
    labels: dict[str, list[str]] = {}
    anywhere = False
    for router in graph.branches.get(source, ()):
        for key, target in (router.routes or {}).items():
            labels.setdefault(target, []).extend([] if key == target else [str(key)])
        for target in router.targets or ():
            labels.setdefault(target, [])
        anywhere = anywhere or router.targets is None
    if source in graph.nodes:
        for target in graph.nodes[source].destinations:
            labels.setdefault(target, [])
    links = [Link(source, target, tuple(dict.fromkeys(names)), True) for target, names in labels.items()]
    if anywhere:
        links += [
            Link(source, target, (), True, True) for target in (*graph.nodes, END) if target not in {*labels, source}
        ]
    return links
