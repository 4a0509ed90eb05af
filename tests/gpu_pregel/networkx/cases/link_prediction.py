"""Calls of scores of pairs of nodes by common neighbours."""

from __future__ import annotations

from typing import Any

import networkx as nx

from tests.gpu_pregel.networkx.comparison import Arguments, Case, call


def _pairs(graph: nx.Graph) -> list[tuple[Any, Any]]:
    """Return pairs of nodes: adjacent ones, others, and in the end a node with itself."""
    nodes = list(graph)
    others = list(zip(nodes[:8], nodes[3:], strict=False))
    return [*list(graph.edges())[:6], *others, *((u, u) for u in nodes[1:2])]


def _of_pairs(graph: nx.Graph) -> Arguments:
    return (graph, _pairs(graph)), {}


def _of_iterator(graph: nx.Graph) -> Arguments:
    """NetworkX has used an iterator up when it has checked it."""
    return (graph, iter(_pairs(graph))), {}


def _in_communities(*, missing: int = 0, **options: Any) -> Case:
    """Return the case of nodes in three communities, all but every ``missing``-th."""

    def arguments(graph: nx.Graph) -> Arguments:
        known = {u: i % 3 for i, u in enumerate(graph) if not missing or i % missing}
        nx.set_node_attributes(graph, known, "part")
        return (graph,), {"community": "part", **options}

    return Case(arguments)


_EVERYWHERE = [call(), Case(_of_pairs), Case(_of_iterator), call([("absent", 0)]), call([(0, "absent")])]
_COMMUNITIES = [_in_communities(), _in_communities(missing=7), call(), call([("absent", 0)])]

CASES: dict[str, list[Case]] = {
    "jaccard_coefficient": _EVERYWHERE,
    "adamic_adar_index": _EVERYWHERE,
    "resource_allocation_index": _EVERYWHERE,
    "preferential_attachment": _EVERYWHERE,
    "common_neighbor_centrality": [*_EVERYWHERE, call(alpha=1), call(alpha=0.3)],
    "cn_soundarajan_hopcroft": _COMMUNITIES,
    "ra_index_soundarajan_hopcroft": _COMMUNITIES,
    "within_inter_cluster": [*_COMMUNITIES, _in_communities(delta=0.5), call(delta=0)],
}
