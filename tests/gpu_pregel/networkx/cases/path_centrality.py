"""Calls of centralities that follow from distances."""

from __future__ import annotations

from typing import Any

from tests.gpu_pregel.networkx.comparison import Case, call


def _of_some(function_of_nodes: Any, graphs: tuple[str, ...] = (), **options: Any) -> Case:
    """Return the case that also passes what a function returns for the list of nodes."""
    return Case(
        lambda graph: ((graph,), {**function_of_nodes(list(graph)), **options}) if graph else None, graphs=graphs
    )


def _with_negative_weight(graph: Any) -> Any:
    """Return the case of which NetworkX raises an error, or finds wrong paths."""
    for *_, data in list(graph.edges(data=True))[:1]:
        data["negative"] = -2
    return (graph,), {"distance": "negative"}


CASES: dict[str, list[Case]] = {
    "closeness_centrality": [
        call(),
        call(wf_improved=False),
        call(distance="weight"),
        call(distance="cost", wf_improved=False),
        _of_some(lambda nodes: {"u": nodes[-1]}),
        _of_some(lambda nodes: {"u": nodes[-1], "distance": "weight"}),
        Case(_with_negative_weight, graphs=("path", "karate", "directed")),
        call(u="absent"),
        call(u="absent", distance="weight"),
    ],
    "harmonic_centrality": [
        call(),
        call(distance="weight"),
        _of_some(lambda nodes: {"nbunch": nodes[1:3]}),
        _of_some(lambda nodes: {"nbunch": nodes[0]}, distance="weight"),
        _of_some(lambda nodes: {"sources": nodes[:2]}),
        _of_some(lambda nodes: {"sources": nodes[:2]}, distance="cost"),
        _of_some(lambda nodes: {"sources": nodes[:2], "nbunch": nodes[1:6]}),
        _of_some(lambda nodes: {"sources": nodes[:5], "nbunch": nodes[2:5]}, distance="cost"),
        call(nbunch="absent"),
        call(nbunch=7.5),
    ],
    "group_closeness_centrality": [
        _of_some(lambda nodes: {"S": nodes[1:3]}),
        _of_some(lambda nodes: {"S": nodes[:4]}, weight="weight"),
        call(["absent"]),
        call([]),
    ],
    "local_reaching_centrality": [
        _of_some(lambda nodes: {"v": nodes[0]}),
        _of_some(lambda nodes: {"v": nodes[-1], "normalized": False}),
        call("absent"),
    ],
    "global_reaching_centrality": [call(), call(normalized=False)],
}
