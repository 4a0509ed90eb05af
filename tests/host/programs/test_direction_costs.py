"""The model of what a push and a pull cost on a GPU."""

from __future__ import annotations

from dataclasses import replace

import pytest

import gpu_pregel as gp
from gpu_pregel.host.devices.gpus import H100
from gpu_pregel.host.programs.compiler import compile_program
from gpu_pregel.host.programs.direction_costs import DirectionCosts, direction_costs
from gpu_pregel.host.programs.directions import make_direction_rule
from gpu_pregel.host.programs.state import Activity
from tests.programs import LABELS, SEARCH

# An edge costs 4 + 16 in a pull, as all arrays stay in the cache, and 4 + 4 * 16 in a push.
CACHED = DirectionCosts(
    vertices=1000,
    edges=100_000,
    value=4,
    message=4,
    edge=4,
    row=8,
    has_signals=True,
    receives=False,
    is_selective=False,
    l2_bytes=1 << 20,
)


def test_costs_of_arrays_in_the_cache() -> None:
    assert CACHED.pull(0) == CACHED.pull(100_000) == 1000 * (8 + 8 + 4 + 8) + 100_000 * 20
    assert CACHED.push(1000) == 1000 * 68 + 2 * 32 * 10 + 375


def test_a_sector_costs_twice_as_much_beyond_the_cache() -> None:
    # Half of 4,000 bytes of messages are in a cache of 2,000 bytes.
    half, none = replace(CACHED, l2_bytes=2000), replace(CACHED, l2_bytes=0)
    assert half.pull(0) - CACHED.pull(0) == 100_000 * 8
    assert none.pull(0) - CACHED.pull(0) == 100_000 * 16


@pytest.mark.parametrize("selective", [False, True])
@pytest.mark.parametrize("cache", [0, 2000, 1 << 20])
def test_a_push_is_chosen_while_it_costs_less(selective: bool, cache: int) -> None:
    costs = replace(CACHED, l2_bytes=cache, has_signals=False, receives=selective, is_selective=selective)
    limit = costs.push_limit
    assert 0 < limit < costs.edges
    for edges in (1, limit // 2, limit):
        assert costs.push(edges) < costs.pull(edges)
    for edges in (limit + 1, 2 * limit, costs.edges):
        assert costs.push(edges) >= costs.pull(edges)


def test_a_pull_that_ends_rows_early_is_chosen_earlier() -> None:
    search = replace(CACHED, is_selective=True)
    # With half of the edges active, a row is read up to its second edge on average.
    assert search.pull(50_000) - 1000 * 28 == pytest.approx(1000 * 2 * 20)
    assert search.push_limit < CACHED.push_limit


def test_a_pull_reads_at_most_the_edges_of_receivers() -> None:
    search = replace(CACHED, is_selective=True)
    assert search.pull(50_000, 0) == 1000 * 28
    assert search.pull(50_000, 1999) == 1000 * 28 + 1999 * 20
    assert search.pull(50_000, 90_000) == search.pull(50_000)
    compiled = compile_program(SEARCH, weight=None)
    rule = make_direction_rule(
        *(SEARCH, compiled, 100_000), vertices=1000, mode="auto", deterministic=True, costs=search
    )
    # A push costs 68 per edge, and its sources.
    assert [rule.choose(Activity(1, edges), 99_500) for edges in (300, 500)] == ["push", "pull"]
    assert rule.choose(Activity(1, 500)) == "push"


def test_a_graph_without_edges_or_vertices_has_a_limit() -> None:
    for n in (0, 1):
        assert replace(CACHED, vertices=n, edges=0, is_selective=True).push_limit == 0


def test_the_rule_follows_the_costs_on_a_gpu_only() -> None:
    graph = gp.uniform(8)
    compiled = compile_program(LABELS, weight=None)
    assert direction_costs(None, compiled, graph) is None
    costs = direction_costs(H100, compiled, graph)
    assert costs is not None
    rule = make_direction_rule(LABELS, compiled, graph.num_stored_edges, mode="auto", deterministic=True, costs=costs)
    limit = costs.push_limit
    assert rule.push_limit == limit > graph.num_stored_edges // 20
    assert [rule.choose(Activity(1, edges)) for edges in (limit, limit + 1)] == ["push", "pull"]
    forced = make_direction_rule(LABELS, compiled, graph.num_stored_edges, mode="pull", deterministic=True, costs=costs)
    assert (forced.choose(Activity(1, 1)), forced.push_limit) == ("pull", None)
