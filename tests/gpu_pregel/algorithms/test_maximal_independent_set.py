"""Maximal independent sets: the greedy set of the random order, ids, rejected arguments, public graphs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.algorithms._random_order import random_keys
from gpu_pregel.algorithms.checkers.maximal_independent_set import check_maximal_independent_set
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, GraphError, VerificationError
from gpu_pregel.kernels.library.hash_cpu import mix
from tests.chunks import shrink_chunks
from tests.graphs import arrays, edge_lists


def greedy_set(graph: gp.Graph, seed: int) -> list[bool]:
    """The set that the sequential algorithm finds in the random order."""
    members, excluded = [False] * graph.num_vertices, set()
    for v in np.argsort(random_keys(graph.num_vertices, seed)).tolist():
        if v not in excluded:
            members[v] = True
            excluded |= set(graph.indices[graph.indptr[v] : graph.indptr[v + 1]].tolist())
    return members


@pytest.mark.parametrize(
    ("n", "edges", "count"),
    [
        (0, [], 0),
        (1, [(0, 0)], 1),
        (4, [], 4),
        (3, [(0, 1), (0, 1), (1, 1), (1, 2)], None),
        (5, [(u, v) for u in range(5) for v in range(u)], 1),
        (4, [(0, 1), (1, 2), (2, 3), (3, 0)], 2),
    ],
    ids=["empty", "self-loop", "isolated", "repeated edges", "clique", "ring of four"],
)
def test_known_answers(n: int, edges: list[tuple[int, int]], count: int | None) -> None:
    graph = gp.Graph.from_edgelist(*arrays(edges), num_vertices=n)
    found = gp.maximal_independent_set(graph)
    assert count is None or found.count == count
    assert found.members.dtype == bool
    check_maximal_independent_set(graph, found)


@given(graph=edge_lists(), seed=st.integers(0, (1 << 64) - 1))
def test_it_is_the_greedy_set_of_the_random_order(graph: Any, seed: int) -> None:
    n, edges = graph
    built = gp.Graph.from_edgelist(*arrays(edges), num_vertices=n)
    found = gp.maximal_independent_set(built, seed=seed, device="cpu")
    assert found.members.tolist() == greedy_set(built, seed)
    oracle = networkx.Graph([(u, v) for u, v in edges if u != v])
    oracle.add_nodes_from(range(n))
    members = set(found.vertices.tolist())
    assert networkx.is_dominating_set(oracle, members)
    assert oracle.subgraph(members).number_of_edges() == 0


@pytest.mark.parametrize("build", [gp.kronecker, gp.uniform])
def test_threads_share_the_work(build: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    shrink_chunks(monkeypatch)
    graph = build(11, 8)
    for seed in (0, 7):
        expected = greedy_set(graph, seed)
        for threads in (1, 2, 5):
            assert gp.maximal_independent_set(graph, seed=seed, threads=threads).members.tolist() == expected
    assert expected != greedy_set(graph, 0)


def test_keys_are_those_of_the_kernels() -> None:
    offset = random_keys(1, 5)  # the key of vertex 0 is the hash of the offset
    assert len(set(random_keys(1000, 5).tolist())) == 1000
    from gpu_pregel.algorithms._random_order import seed_offset

    assert offset[0] == mix(seed_offset(5))


def test_ids_columns_and_summary() -> None:
    graph = gp.Graph.from_edgelist(["hub"] * 3, ["a", "b", "c"])
    found = gp.maximal_independent_set(graph, seed=1)
    assert found.to_dict() == {"hub": False, "a": True, "b": True, "c": True}
    assert list(found.to_pandas()) == ["vertex", "member"]
    assert found.summary() == {"vertices": 3}
    assert found.describe() == "an independent set of 3 of 4 vertices (75.0%)"
    assert repr(found) == "<IndependentSet: 3 of 4 vertices>"
    assert found.seed == 1


def test_invalid_arguments_are_rejected() -> None:
    with pytest.raises(ArgumentError, match="seed must be from 0 to"):
        gp.maximal_independent_set(gp.grid(2), seed=1 << 64)
    with pytest.raises(ArgumentTypeError, match="seed must be a whole number"):
        gp.maximal_independent_set(gp.grid(2), seed=1.5)  # type: ignore[arg-type]
    with pytest.raises(GraphError, match=r"undirected graph, and this one is directed: pass graph\.to_undirected"):
        gp.maximal_independent_set(gp.Graph.from_edgelist([0], [1], directed=True))


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ([True, True, False], "0 and 1 are neighbours"),
        ([False, False, True], "vertex 0 can be added"),
        ([1, 0, 1], "not bool"),
    ],
)
def test_the_checker_refuses_other_sets(members: list[Any], message: str) -> None:
    with pytest.raises(VerificationError, match=message):
        check_maximal_independent_set(gp.Graph.from_edgelist([0], [1], num_vertices=3), members)


@pytest.mark.parametrize("file", ["mesh/wing.graph", "snap/as20graph.txt"])
def test_public_graphs(data: Path, file: str) -> None:
    graph = gp.read_graph(data / file)
    check_maximal_independent_set(graph, gp.maximal_independent_set(graph))
