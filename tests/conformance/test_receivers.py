"""``receives`` and ``combine="any"`` on every device, in both directions and with any number of partitions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, GpuPregelError, ProgramError
from gpu_pregel.host.traverse.directions import Mode
from tests.devices import LONG, PROGRAM_DEVICES, PROGRAM_NAMES, on, spread, ways
from tests.programs import GATED, SEARCH

GATED_ALONG_EDGES = replace(
    GATED, message=lambda value, weight, ctx: value + ctx.vertex + 3 * np.int64(weight), combine="max"
)
PROGRAMS: dict[str, gp.VertexProgram] = {
    "per source": GATED,
    "per edge": GATED_ALONG_EDGES,
    "always": replace(GATED, active="always"),
}
SUPERSTEPS = 5


def digraph(seed: int, n: int = 300) -> gp.Graph:
    """A random directed graph with weights, self-loops and parallel edges."""
    random = np.random.default_rng(seed)
    src, dst = random.integers(0, n, (2, 4 * n))
    return gp.Graph.from_edgelist(src, dst, random.integers(0, 9, 4 * n), num_vertices=n, directed=True)


def simulate(graph: gp.Graph, name: str) -> tuple[list[int], list[int], list[int]]:
    """The values after all supersteps, and the numbers of vertices that applied and were active, in plain Python."""
    n, always, per_edge = graph.num_vertices, name == "always", name == "per edge"
    assert graph.weights is not None
    src, dst = (array.tolist() for array in graph.to_edgelist()[:2])
    weights = graph.weights.tolist()
    sent, received = np.bincount(src, minlength=n).tolist(), np.bincount(dst, minlength=n).tolist()
    value, active, total = [v % 5 for v in range(n)], [True] * n, 0
    nothing = np.iinfo(np.int64).min if per_edge else 0
    applied, activity = [0], [n]
    for superstep in range(1, SUPERSTEPS):
        inbox = [nothing] * n
        for u, v, weight in zip(src, dst, weights, strict=True):
            if active[u]:
                message = value[u] + u
                inbox[v] = max(inbox[v], message + 3 * weight) if per_edge else inbox[v] + message
        count, sums, new_total = 0, [False] * n, 0
        for v in range(n):
            takes = (value[v] + superstep + v + received[v] + 2 * sent[v] + total) % 3 == 0
            incoming = inbox[v] if takes else nothing
            if always or incoming != nothing:
                value[v] = (value[v] + incoming + 1) % 1000
                sums[v] = always or value[v] % 4 != 0
                count, new_total = count + 1, new_total + value[v]
        active, total = sums, new_total
        applied.append(count)
        activity.append(sum(active))
    return value, applied, activity


@pytest.mark.parametrize("name", [pytest.param("per source", marks=LONG), "per edge", "always"])
@ways(mode=("push", "pull"), partitions=(1, 3))
def test_only_receivers_take_messages(device: str, way: dict[str, Any], name: str) -> None:
    check_receivers(name, device, **way)


@pytest.mark.parametrize("mode", ["push", "pull"])
@pytest.mark.parametrize("device", [on("emulated")])
def test_receivers_are_those_of_the_superstep_that_applies(device: str, mode: Mode) -> None:
    """The state that launches CUDA's kernels tells them the number of that superstep."""
    check_receivers("per source", device, mode=mode)


def check_receivers(name: str, device: str, **way: Any) -> None:
    graph = digraph(3)
    options: dict[str, Any] = {"max_supersteps": SUPERSTEPS, "on_limit": "return"}
    result = gp.run(graph, PROGRAMS[name], device=device, **way, **options)
    values, applied, activity = simulate(graph, name)
    assert result.to_numpy().tolist() == values
    assert [row["applied"] for row in result.trace] == applied
    assert [row["active_vertices"] for row in result.trace] == activity
    # Messages are counted where they are sent, whether or not they are taken.
    assert [row["messages"] for row in result.trace[1:]] == [row["active_edges"] for row in result.trace[:-1]]


def expected_hops(graph: gp.Graph) -> list[int]:
    """Hops from vertex 0 by NetworkX; -1 if it does not reach the vertex."""
    lengths = nx.single_source_shortest_path_length(graph.to_networkx(), 0)
    return [lengths.get(v, -1) for v in range(graph.num_vertices)]


@ways(mode=("push", "pull", "auto"), partitions=(1, 3), threads=(1, 3))
def test_hops_are_those_of_networkx(device: str, way: dict[str, Any]) -> None:
    for graph in (gp.kronecker(9, 4), digraph(7, 200), gp.grid(15)):
        result = gp.run(graph, SEARCH, device=device, **way)
        assert result.to_numpy().tolist() == expected_hops(graph)
        # Each vertex applies once.
        assert sum(row["applied"] for row in result.trace) == (result.to_numpy() > 0).sum()


@settings(max_examples=40, deadline=None)
@given(
    edges=st.lists(st.tuples(st.integers(0, 140), st.integers(0, 140)), max_size=400),
    directed=st.booleans(),
    mode=st.sampled_from(["push", "pull", "auto"]),
    partitions=st.integers(1, 3),
)
def test_hops_on_random_graphs(edges: list[tuple[int, int]], directed: bool, mode: Mode, partitions: int) -> None:
    src, dst = np.array(edges, np.int64).reshape(-1, 2).T
    graph = gp.Graph.from_edgelist(src, dst, num_vertices=141, directed=directed)
    result = gp.run(graph, SEARCH, device="cpu", mode=mode, partitions=partitions)
    assert result.to_numpy().tolist() == expected_hops(graph)


@ways(mode=("push", "pull"), partitions=(1, 2))
def test_hubs_take_one_message(device: str, way: dict[str, Any]) -> None:
    """The centre of a star has more edges than are read in one piece; its neighbours are found in one superstep."""
    leaves = np.arange(1, 70_000 if device == "cpu" else 2_500)
    hub = len(leaves) // 2
    graph = gp.Graph.from_edgelist(np.full_like(leaves, hub), np.where(leaves <= hub, leaves - 1, leaves))
    result = gp.run(graph, SEARCH, device=device, **way)
    assert result.to_numpy()[[0, hub]].tolist() == [0, 1]
    assert (np.delete(result.to_numpy(), [0, hub]) == 2).all()
    assert [row["applied"] for row in result.trace] == [0, 1, graph.num_vertices - 2, 0]


@PROGRAM_DEVICES
def test_receivers_of_hubs_are_chosen(device: str) -> None:
    """Each of two hubs has messages from all other vertices, and only one takes them."""
    leaves = np.arange(2, 70_000 if device == "cpu" else 2_500)
    graph = gp.Graph.from_edgelist(
        np.append(leaves, leaves), np.repeat([0, 1], len(leaves)), num_vertices=len(leaves) + 2, directed=True
    )
    program = gp.VertexProgram(
        value=np.int64,
        init=lambda ctx: 1,
        message=lambda value, ctx: value,
        combine="sum",
        receives=lambda value, ctx: ctx.vertex == 1,
        apply=lambda value, incoming, ctx: incoming,
        active=lambda old, new, ctx: False,
    )
    ways: list[dict[str, Any]] = [{"mode": "push"}, {"mode": "pull"}, {"mode": "pull", "partitions": 2}]
    for way in ways:
        result = gp.run(graph, program, device=device, **way)
        assert result.to_numpy()[:3].tolist() == [1, len(leaves), 1]
        assert result.trace[1]["applied"] == 1


@pytest.mark.parametrize(
    ("device", "dtype"),
    spread([(np.bool_,)], lambda dtype: dtype.__name__)
    + [
        on(device, dtype, name=dtype.__name__, marks=[LONG])
        for device in PROGRAM_NAMES
        for dtype in (np.int8, np.uint16, np.uint64, np.float32)
    ],
)
def test_any_takes_messages_of_every_type(device: str, dtype: Any) -> None:
    """Vertices 0 to 3 send to 4, from which a different message goes to 5; 6 sends the identity, which is a message."""
    graph = gp.Graph.from_edgelist([0, 1, 2, 3, 4, 6], [4, 4, 4, 4, 5, 7], directed=True)
    identity = dtype({"b": True, "f": np.inf}.get(np.dtype(dtype).kind) or np.iinfo(dtype).max)
    zero, one = dtype(0), dtype(1)
    program = gp.VertexProgram(
        value=dtype,
        init=lambda ctx: identity if ctx.vertex == 6 else zero,
        message=lambda value, ctx: value,
        combine="any",
        apply=lambda value, incoming, ctx: one if incoming > one else incoming + one,
        active=lambda old, new, ctx: True,
    )
    modes: tuple[Mode, ...] = ("push", "pull")
    for mode in modes:
        result = gp.run(graph, program, device=device, mode=mode)
        # True + True is True.
        expected = [0, 0, 0, 0, one, one if dtype is np.bool_ else dtype(2), identity, one]
        assert result.to_numpy().tolist() == expected
        assert [row["applied"] for row in result.trace[:3]] == [0, 3, 1]


@pytest.mark.parametrize(
    ("device", "mode"), [on(name, mode, name=mode) for name in PROGRAM_NAMES for mode in ("push", "pull")]
)
def test_any_takes_a_message_that_is_not_a_number(device: str, mode: Mode) -> None:
    program = gp.VertexProgram(
        value=np.float32,
        init=lambda ctx: np.nan if ctx.vertex < 2 else 0.0,
        message=lambda value, ctx: value,
        combine="any",
        apply=lambda value, incoming, ctx: 7.0 if np.isnan(incoming) else 8.0,
        active=lambda old, new, ctx: False,
    )
    graph = gp.Graph.from_edgelist([0, 1, 2], [3, 3, 4], directed=True)
    assert gp.run(graph, program, device=device, mode=mode).to_numpy()[2:].tolist() == [0.0, 7.0, 8.0]


@ways(partitions=(1, 3))
def test_any_takes_tuples(device: str, way: dict[str, Any]) -> None:
    """Hops, and the parity of their number as a second field."""
    program = gp.VertexProgram(
        value=(np.int32, np.float64),
        init=lambda ctx: (0, 0.0) if ctx.vertex == 0 else (-1, 0.0),
        initially_active=lambda ctx: ctx.vertex == 0,
        message=lambda value, ctx: (value[0] + 1, 1.0 - value[1]),
        combine="any",
        receives=lambda value, ctx: value[0] < 0,
        apply=lambda value, incoming, ctx: incoming,
    )
    graph = gp.kronecker(9, 4)
    found, parity = gp.run(graph, program, device=device, **way).values
    expected = np.array(expected_hops(graph))
    hops = np.asarray(found.get() if hasattr(found, "get") else found)
    assert hops.tolist() == expected.tolist()
    bits = np.asarray(parity.get() if hasattr(parity, "get") else parity)
    assert bits.tolist() == np.where(expected < 0, 0, expected % 2).tolist()


@ways(mode=("push", "pull"), partitions=(1, 3))
def test_the_smallest_of_ascending_messages_is_taken(device: str, way: dict[str, Any]) -> None:
    """Every fortieth vertex sends its number; vertex 2000 has several pieces of edges."""
    program = gp.VertexProgram(
        value=np.int32,
        init=lambda ctx: -1,
        initially_active=lambda ctx: ctx.vertex % 40 == 3,
        message=lambda value, ctx: ctx.vertex,
        combine="min",
        ascending=True,
        apply=lambda value, incoming, ctx: incoming,
        active=lambda old, new, ctx: False,
    )
    random = np.random.default_rng(1)
    src = np.concatenate([np.arange(4, 2000), random.integers(0, 2000, 4000)])
    dst = np.concatenate([np.full(1996, 2000), random.integers(0, 300, 4000)])
    graph = gp.Graph.from_edgelist(src, dst, num_vertices=2001, directed=True)
    smallest = np.full(2001, 9999)
    np.minimum.at(smallest, dst[src % 40 == 3], src[src % 40 == 3])
    expected = np.where(smallest == 9999, -1, smallest)
    assert (expected[:300] >= 0).sum() > 60
    assert expected[2000] == 43
    assert gp.run(graph, program, device=device, **way).to_numpy().tolist() == expected.tolist()


def fails_at_64(**changes: Any) -> gp.VertexProgram:
    """A program whose message fails for vertex 64 on devices that check."""
    program = gp.VertexProgram(
        value=np.int64,
        init=lambda ctx: -1 if ctx.vertex == 100 else 0,
        initially_active=lambda ctx: ctx.vertex < 100,
        message=lambda value, ctx: 1 // (64 - ctx.vertex) * 0 + 7,
        combine="min",
        apply=lambda value, incoming, ctx: incoming,
        active=lambda old, new, ctx: False,
    )
    return replace(program, **changes)


def last_value(program: gp.VertexProgram, device: str, mode: Mode, **options: Any) -> int:
    """Run a program on a graph in which vertex 100 has an edge from each of the vertices 0 to 99; return its value."""
    graph = gp.Graph.from_edgelist(range(100), [100] * 100, directed=True)
    result = gp.run(graph, program, device=device, mode=mode, check=device == "cpu", **options)
    return int(result.to_numpy()[100])


CHECKING = pytest.mark.parametrize("device", [on("cpu"), on("emulated", marks=[LONG])])


@CHECKING
def test_a_pull_stops_at_the_first_message(device: str) -> None:
    assert last_value(fails_at_64(combine="any"), device, "pull") == 7
    assert last_value(fails_at_64(ascending=True), device, "pull") == 7
    with pytest.raises(GpuPregelError, match="line"):
        last_value(fails_at_64(), device, "pull")


@CHECKING
def test_rows_of_other_vertices_are_not_read(device: str) -> None:
    program = fails_at_64(receives=lambda value, ctx: ctx.vertex != ctx.parameters.closed, parameters={"closed": 100})
    assert last_value(program, device, "pull") == -1
    if device == "cpu":  # On CUDA, a push computes the messages before it finds out which are taken.
        assert last_value(program, device, "push") == -1
    for mode in ("pull", "push"):
        with pytest.raises(GpuPregelError, match="line"):
            last_value(program, device, mode, parameters={"closed": -1})


def _never(value: Any) -> Any:
    return False


def _unknown(value: Any, ctx: Any) -> Any:
    return ctx.hops


def test_what_is_refused() -> None:
    with pytest.raises(ArgumentTypeError, match=r"receives takes 1 argument, but must take \(value, ctx\)"):
        replace(SEARCH, receives=_never)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"combine must be one of .*'any' or a gp.Combiner"):
        replace(SEARCH, combine="first")  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match=r"combine of aggregator 'one' must be one of 'min', .*, not 'any'"):
        replace(SEARCH, aggregators={"one": gp.Aggregator("any", lambda old, new, ctx: 1)})
    for combine in ("any", "max", gp.Combiner(lambda a, b: a + b, 0)):
        with pytest.raises(
            ArgumentError, match=r"ascending=True requires combine='min', not .*; remove one of the two"
        ):
            replace(SEARCH, combine=combine, ascending=True)
    with pytest.raises(ArgumentTypeError, match=r"ascending must be True or False, not 1"):
        replace(SEARCH, combine="min", ascending=1)  # type: ignore[arg-type]
    graph = gp.Graph.from_edgelist([0], [1])
    with pytest.raises(ProgramError, match=r"receives returns .*, but must return True or False"):
        gp.run(graph, replace(SEARCH, receives=lambda value, ctx: (value, value)), device="cpu")
    with pytest.raises(ProgramError, match=r"receives cannot be compiled"):
        gp.run(graph, replace(SEARCH, receives=_unknown), device="cpu")


def test_programs_that_differ_in_receives_are_compiled_apart() -> None:
    graph = gp.Graph.from_edgelist([0, 1], [1, 2])
    programs = [replace(SEARCH, receives=_receives_up_to(last)) for last in (1, 2)]
    found = [gp.run(graph, program, device="cpu").to_numpy().tolist() for program in programs]
    assert found == [[0, 1, -1], [0, 1, 2]]


def _receives_up_to(last: int) -> Callable[[Any, Any], Any]:
    return lambda value, ctx: value < 0 and ctx.vertex <= last
