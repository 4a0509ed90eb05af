"""Pictures of graphs: the Mermaid text, and the SVG image, its layout and its escaping."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated, Any, Literal, TypedDict
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_pregel.workflows import END, START, Command, StateGraph, append
from gpu_pregel.workflows.drawing import draw_mermaid, draw_svg
from gpu_pregel.workflows.layered_layout import Arrow, Box, place

SVG = "{http://www.w3.org/2000/svg}"
ODD = '</title><script>alert("1")</script> `&#\x00\n'


class State(TypedDict):
    log: Annotated[list[str], append]


def idle(state: State) -> None:
    """Do nothing."""


def graph(*nodes: str) -> StateGraph:
    found = StateGraph(State)
    for name in nodes:
        found.add_node(name, idle)
    return found


def lines(drawn: StateGraph) -> list[str]:
    """The lines of the Mermaid text between the heading and the classes."""
    text = drawn.draw_mermaid().splitlines()
    assert (text[0], len(text) - 2) == ("flowchart TD", next(i for i, one in enumerate(text) if "classDef" in one))
    return [one.strip() for one in text[1:-2]]


def agent() -> StateGraph:
    found = graph("llm_call", "tools").add_edge(START, "llm_call").add_edge("tools", "llm_call")
    return found.add_conditional_edges("llm_call", lambda state: "done", {"call": "tools", "done": END, "stop": END})


# Mermaid.


def test_mermaid_of_edges_and_routes() -> None:
    assert lines(agent()) == [
        'n0(["start"]):::terminal',
        'n1["llm_call"]',
        'n2["tools"]',
        'n3(["end"]):::terminal',
        "n0 --> n1",
        'n1 -. "call" .-> n2',
        'n1 -. "done, stop" .-> n3',
        "n2 --> n1",
    ]


def test_mermaid_of_joins_and_deferred_nodes() -> None:
    found = graph("a", "b", "c").add_node("last", idle, defer=True)
    found.add_edge(START, "a").add_edge(START, "b").add_edge(["a", "b"], "c").add_edge("c", "last").add_edge(
        "last", END
    )
    assert lines(found)[4:] == [
        'n4["last (deferred)"]:::deferred',
        'n5(["end"]):::terminal',
        'n3_join0(("all"))',
        "n0 --> n1",
        "n0 --> n2",
        "n3 --> n4",
        "n4 --> n5",
        "n1 --> n3_join0",
        "n2 --> n3_join0",
        "n3_join0 --> n3",
    ]


def test_mermaid_of_graphs_that_are_nodes() -> None:
    found = graph("before").add_node("agent", agent().compile())
    found.add_edge(START, "before").add_edge("before", "agent").add_edge("agent", END)
    text = lines(found)
    start, end = text.index('subgraph n2["agent"]'), text.index("end")
    assert text[start + 1] == 'n2_0(["start"]):::terminal'
    assert 'n2_1 -. "call" .-> n2_2' in text[start:end]
    assert text[end + 2 :] == ["n0 --> n1", "n1 --> n2", "n2 --> n3"]


def declared(state: State) -> Literal["a", "b"]:
    return "a"


def commanded(state: State) -> Command[Literal["a", "__end__"]]:
    return Command(goto="a")


@pytest.mark.parametrize(
    "build, expected",
    [
        (lambda found: found.add_conditional_edges(START, declared), ["n0 -.-> n1", "n0 -.-> n2"]),
        (
            lambda found: found.add_conditional_edges(START, lambda state: "a"),
            ['n0 -. "any" .-> n1', 'n0 -. "any" .-> n2', 'n0 -. "any" .-> n3'],
        ),
        (lambda found: found.add_conditional_edges(START, lambda state: "a", ["a"]), ["n0 -.-> n1"]),
        (
            lambda found: found.add_node("c", commanded).add_edge(START, "c"),
            ["n0 --> n3", "n3 -.-> n1", "n3 -.-> n4"],
        ),
        (lambda found: found.add_edge(START, "nowhere").add_edge(["a", "b"], "nowhere"), []),
        (lambda found: found.add_edge(["a", "nowhere"], "b"), ["n1 --> n2_join0", "n2_join0 --> n2"]),
    ],
)
def test_where_routers_and_commands_may_lead(build: Any, expected: list[str]) -> None:
    found = build(graph("a", "b"))
    assert [one for one in lines(found) if "->" in one] == expected


def test_mermaid_escapes_names_and_keys() -> None:
    found = graph('a"]; end', "end").add_edge(START, 'a"]; end').add_edge("end", END)
    found.add_conditional_edges('a"]; end', lambda state: "end", {'"|<': "end"})
    assert lines(found) == [
        'n0(["start"]):::terminal',
        'n1["a#34;#93;#59; end"]',
        'n2["end"]',
        'n3(["end"]):::terminal',
        "n0 --> n1",
        'n1 -. "#34;#124;#60;" .-> n2',
        "n2 --> n3",
    ]


# SVG.


def parsed(drawn: StateGraph) -> ElementTree.Element:
    return ElementTree.fromstring(drawn._repr_html_())


def texts(root: ElementTree.Element) -> list[str]:
    return [one.text or "" for one in root.iter(f"{SVG}text")]


def test_svg_shows_nodes_labels_and_joins() -> None:
    found = agent().add_node("other", idle).add_edge(["llm_call", "tools"], "other").add_edge("other", END)
    root = parsed(found)
    assert sorted(texts(root)) == sorted(["start", "llm_call", "tools", "other", "end", "all", "call", "done, stop"])
    assert root.get("fill") == "currentColor"  # so that it is visible on light and dark pages
    dashed = [one for one in root.iter(f"{SVG}path") if one.get("stroke-dasharray")]
    assert len(dashed) == 4  # two arrows, interrupted by their labels


def test_svg_escapes_names_and_keys() -> None:
    found = graph(ODD).add_edge(START, ODD).add_conditional_edges(ODD, lambda state: 1, {ODD: END})
    root = parsed(found)
    assert not list(root.iter(f"{SVG}script"))
    cleaned = ODD.replace("\x00", "\ufffd").replace("\n", "\ufffd")
    assert cleaned in [one.text for one in root.iter(f"{SVG}title")]
    assert len([one for one in texts(root) if one.endswith("…")]) == 2


def test_svg_of_graphs_that_are_nodes_and_of_deferred_ones() -> None:
    found = graph("before").add_node("agent", agent().compile()).add_node("last", idle, defer=True)
    found.add_edge(START, "before").add_edge("before", "agent").add_edge("agent", "last").add_edge("last", END)
    root = parsed(found)
    assert texts(root).count("start") == 2
    assert "last (deferred)" in [one.text for one in root.iter(f"{SVG}title")]


def test_svg_of_an_unfinished_graph_and_of_a_large_one() -> None:
    assert texts(parsed(graph("a").add_edge(["a", "b"], "c").add_edge("d", "a"))) == ["start", "a"]
    assert texts(parsed(graph())) == ["start"]
    assert "A graph of 151 nodes" in draw_svg(graph(*map(str, range(151))).spec())
    full = graph(*map(str, range(21)))
    for source in range(21):
        for target in range(21):
            full.add_edge(str(source), str(target))
    assert "A graph of 21 nodes, too large to show" in full._repr_html_()


def test_compiled_graphs_draw_the_same() -> None:
    app = agent().compile()
    assert app.draw_mermaid() == agent().draw_mermaid() == draw_mermaid(app.graph)
    assert app._repr_html_() == agent()._repr_html_()


def test_a_node_with_any_followers_says_so_in_light_lines() -> None:
    found = graph("a", "b").add_edge(START, "a").add_conditional_edges("a", lambda state: "b")
    root = parsed(found)
    assert "any" in texts(root)
    light = [one for one in root.iter(f"{SVG}path") if one.get("stroke-opacity") == ".22"]
    assert len(light) == 2
    for number in range(100):
        found.add_node(str(number), idle)
    root = parsed(found)
    assert "any" in texts(root)
    assert not [one for one in root.iter(f"{SVG}path") if one.get("stroke-opacity") == ".22"]


# The layout.


def boxes(count: int) -> list[Box]:
    return [Box(40.0 + 10 * (number % 3), 30.0) for number in range(count)]


@pytest.mark.parametrize(
    "arrows, layers",
    [
        ([(0, 1), (1, 2)], [0, 1, 2]),
        ([(0, 1), (0, 2), (1, 2)], [0, 1, 2]),
        ([(0, 1), (1, 2), (2, 1)], [0, 1, 2]),
        ([(0, 1), (1, 1), (1, 2), (2, 0)], [0, 1, 2]),
        ([(0, 1)], [0, 1, 1]),
    ],
)
def test_layers_are_longest_paths(arrows: list[tuple[int, int]], layers: list[int]) -> None:
    placed = boxes(3)
    place(placed, [Arrow(*one) for one in arrows])
    assert [one.layer for one in placed] == layers


def test_arrows_do_not_cross_where_they_need_not() -> None:
    placed = boxes(7)
    arrows = [Arrow(*one) for one in [(0, 1), (0, 2), (0, 3), (1, 6), (2, 5), (3, 4)]]
    place(placed, arrows)
    tops = [placed[one].x for one in (1, 2, 3)]
    bottoms = [placed[one].x for one in (6, 5, 4)]
    assert sorted(range(3), key=tops.__getitem__) == sorted(range(3), key=bottoms.__getitem__)


def test_labels_have_a_place_of_their_own() -> None:
    placed = boxes(3)
    arrows = [
        Arrow(0, 1, (60.0, 16.0)),
        Arrow(0, 2, (80.0, 16.0)),
        Arrow(2, 0, (30.0, 16.0)),
        Arrow(1, 1, (50.0, 16.0)),
    ]
    width, _ = place(placed, arrows)
    centres = sorted((*arrow.points[arrow.label], arrow.label_size[0]) for arrow in arrows[:3])  # type: ignore[index]
    assert len({y for _, y, _ in centres}) == 1
    for (left, _, size), (right, _, other) in pairwise(centres):
        assert right - left >= (size + other) / 2
    assert width >= placed[1].x + placed[1].width / 2 + 50


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_boxes_do_not_overlap_and_arrows_end_at_them(data: Any) -> None:
    count = data.draw(st.integers(1, 14))
    number = st.integers(0, count - 1)
    size = st.one_of(st.none(), st.just((50.0, 16.0)))
    chosen = data.draw(st.lists(st.tuples(number, number, size, st.booleans()), max_size=30))
    placed, arrows = boxes(count), [Arrow(*one) for one in chosen]
    width, height = place(placed, arrows)
    for index, one in enumerate(placed):
        assert one.width / 2 <= one.x + 1e-6 <= width - one.width / 2 + 1e-3
        assert one.height / 2 <= one.y + 1e-6 <= height - one.height / 2 + 1e-3
        for other in placed[:index]:
            left = min(one, other, key=lambda box: box.x)
            room = left.room if one.layer == other.layer else 0.0
            apart = abs(one.x - other.x) >= (one.width + other.width) / 2 + room - 1e-6
            assert apart or abs(one.y - other.y) >= (one.height + other.height) / 2
    for arrow in arrows:
        source, target = placed[arrow.source], placed[arrow.target]
        if not arrow.is_loop:
            for box, (x, y) in ((source, arrow.points[0]), (target, arrow.points[-1])):
                assert abs(abs(y - box.y) - box.height / 2) < 1e-6
                assert abs(x - box.x) <= box.width / 2
        if arrow.label_size is not None and not arrow.is_loop and not arrow.is_light:
            assert arrow.label is not None
