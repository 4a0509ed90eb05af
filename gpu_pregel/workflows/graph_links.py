"""The nodes and arrows of a picture of a graph, whatever draws it."""

from __future__ import annotations

from dataclasses import dataclass

from gpu_pregel.workflows.commands import END, START
from gpu_pregel.workflows.graph_spec import GraphSpec


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
