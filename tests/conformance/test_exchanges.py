"""Exchanges between partitions: signals, mirrors and figures arrive whole, and results are equal to the bit."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.host.devices import get_device
from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.graphs.partitions import full_bitmap, pack_bits
from gpu_pregel.host.programs.direction_costs import direction_costs
from gpu_pregel.host.programs.directions import make_direction_rule
from gpu_pregel.host.programs.factory import compile_for_device, make_state
from gpu_pregel.host.programs.policy import NumericPolicy
from gpu_pregel.host.programs.state import ProgramState
from gpu_pregel.host.superstep.master import Master
from gpu_pregel.host.traverse.exchange import (
    Exchange,
    LocalExchange,
)
from tests.devices import LONG, on
from tests.exchanges import CopyingExchange, flags_of
from tests.programs import CONTEXTS, CONTEXTS_PER_EDGE, DISTANCES, GATED, HOPS, LABELS, PAIRS, RANKS, SEARCH, SUMS

EXCHANGES: dict[str, Callable[[Device], Exchange]] = {
    "local": lambda device: LocalExchange(),
    "copying": CopyingExchange,
}
CASES = pytest.mark.parametrize(
    ("device", "exchange"),
    [on("cpu", "local", name="local"), *(on(name, "copying", name="copying") for name in ("cpu", "emulated", "cuda"))],
)


@pytest.fixture(scope="module")
def graph() -> gp.Graph:
    """A graph without isolated vertices, whose aggregates would overflow."""
    src, dst, _ = gp.kronecker(9, 4).to_edgelist()
    ring = np.arange(512)
    return gp.Graph.from_edgelist(np.append(src, ring), np.append(dst, (ring + 1) % 512), num_vertices=512)


@pytest.fixture(scope="module")
def directed(graph: gp.Graph) -> gp.Graph:
    src, dst, _ = graph.to_edgelist()
    return gp.Graph.from_edgelist(src, dst, np.arange(len(src)) % 7 + 0.5, num_vertices=512, directed=True)


def state_of(
    graph: gp.Graph, program: gp.VertexProgram, device: str, exchange: Exchange, partitions: int
) -> ProgramState:
    target = get_device(device)
    compiled = compile_for_device(target, graph, program)
    always = program.active == "always"
    return make_state(target, graph, compiled, always=always, partitions=partitions, exchange=exchange)


def run(
    graph: gp.Graph, program: gp.VertexProgram, device: str, exchange: Exchange, partitions: int, mode: str
) -> tuple[list[bytes], list[dict[str, Any]]]:
    """The bits of the values and the trace of a run of at most nine supersteps."""
    target = get_device(device)
    compiled = compile_for_device(target, graph, program)
    given: dict[str, Any] = {"vertices": graph.num_vertices, "costs": direction_costs(target.gpu, compiled, graph)}
    rule = make_direction_rule(program, compiled, graph.num_stored_edges, **given, mode=mode, deterministic=True)
    always = program.active == "always"
    options: dict[str, Any] = {"partitions": partitions, "push_limit": rule.push_limit, "exchange": exchange}
    state = make_state(target, graph, compiled, always=always, **options)
    policy = NumericPolicy(state, program, rule, (), None)
    master = Master(policy, max_supersteps=9, observe=lambda kind, row: None)
    master.run()
    return [target.download(array).tobytes() for array in state.values], rows_of(master.trace)


def rows_of(trace: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in row.items() if not key.endswith("seconds")} for row in trace]


def runs() -> Iterator[Any]:
    for name, program, mode in (
        ("labels", LABELS, "push"),
        ("labels", LABELS, "pull"),
        ("hops", HOPS, "auto"),
        ("distances", DISTANCES, "push"),
        ("distances", DISTANCES, "pull"),
        ("ranks", RANKS, "pull"),
        ("pairs", PAIRS, "pull"),
        ("contexts", CONTEXTS, "push"),
        ("contexts per edge", CONTEXTS_PER_EDGE, "push"),
        ("contexts per edge", CONTEXTS_PER_EDGE, "pull"),
        ("search", SEARCH, "push"),
        ("search", SEARCH, "pull"),
        ("gated", GATED, "push"),
        ("gated", GATED, "pull"),
    ):
        # "contexts per edge" has the same functions but for its messages, and "gated" the same as "search".
        yield pytest.param(program, mode, id=f"{name}-{mode}", marks=LONG if name in ("contexts", "gated") else ())


@pytest.mark.parametrize(("program", "mode"), list(runs()))
@CASES
def test_results_are_those_of_partitions_that_share_memory(
    graph: gp.Graph, directed: gp.Graph, device: str, exchange: str, program: gp.VertexProgram, mode: str
) -> None:
    program = replace(program, halt=None)
    chosen = directed if program.sends_per_edge else graph
    for partitions in (1, 2, 7):
        carrier = EXCHANGES[exchange](get_device(device))
        values, trace = run(chosen, program, device, carrier, partitions, mode)
        options: dict[str, Any] = {"device": device, "mode": mode, "partitions": partitions}
        expected = gp.run(chosen, program, max_supersteps=9, on_limit="return", **options)
        fields = expected.values if isinstance(expected.values, tuple) else (expected.values,)
        assert values == [get_device(device).download(field).tobytes() for field in fields]
        assert trace == rows_of(expected.trace)
        if isinstance(carrier, CopyingExchange):
            assert carrier.bytes_sent > 0


@CASES
def test_hubs_in_pieces_cross_partitions(device: str, exchange: str) -> None:
    """The centre of a star has a long row in each partition."""
    leaves = np.arange(1, 70_000 if device == "cpu" else 3_000)
    star = gp.Graph.from_edgelist(np.zeros_like(leaves), leaves)
    for mode in ("push", "pull"):
        for partitions in (1, 3):
            carrier = EXCHANGES[exchange](get_device(device))
            ((values,), _) = run(star, SUMS, device, carrier, partitions, mode)
            found = np.frombuffer(values, np.int64)
            assert found[0] == sum(range(2, len(leaves) + 2))
            assert (found[1:] == 1).all()


@CASES
def test_signals_hold_the_active_sources_of_each_partition(graph: gp.Graph, device: str, exchange: str) -> None:
    target = get_device(device)
    carrier = EXCHANGES[exchange](target)
    state = state_of(graph, HOPS, device, carrier, 3)
    active = np.random.default_rng(5).random(512) < 0.3
    state.attach([np.arange(512, dtype=np.int32)], pack_bits(active))
    for part, signals in zip(state.partitions, carrier.send_signals(state), strict=True):
        rows, sources = part.partition.out_edges.rows, part.partition.sources
        assert rows is not None
        assert sources.numbers is not None
        expected = rows[active[rows]]
        places = np.searchsorted(rows, expected) if signals.by_row else expected
        words = target.download(signals.frontier).view(np.uint64)
        if not signals.by_row:
            words = words[sources.numbers]
        assert (words & sources.bits).tolist() == (pack_bits(active)[sources.numbers] & sources.bits).tolist()
        (values,) = signals.values
        assert target.download(values)[places].tolist() == expected.tolist()
        assert target.download(signals.out_degrees)[places].tolist() == graph.out_degrees[expected].tolist()


@CASES
def test_mirrors_are_combined_by_the_masters(graph: gp.Graph, device: str, exchange: str) -> None:
    target = get_device(device)
    carrier = EXCHANGES[exchange](target)
    state = state_of(graph, SUMS, device, carrier, 3)
    n, expected = graph.num_vertices, np.zeros(graph.num_vertices, np.int64)
    received = np.zeros(n, bool)
    state.attach([np.zeros(n, np.int64)], full_bitmap(n))
    for part in state.partitions:
        rows = part.partition.in_edges.rows
        assert rows is not None
        mirror = rows.astype(np.int64) * 10 + part.partition.number
        has_message = rows % 3 != 1
        mirror[~has_message] = 0  # as after a pull
        words = pack_bits(has_message).view(state.frontier.dtype)
        part.mirrors = (target.upload(mirror), target.upload(words))
        expected[rows] += mirror
        received[rows[has_message]] = True
    carrier.send_mirrors(state)
    assert target.download(state.vertices.inbox[0]).tolist() == expected.tolist()
    assert flags_of(target.download(state.vertices.touched))[:n].tolist() == received.tolist()


@pytest.mark.parametrize("exchange", EXCHANGES)
def test_figures_arrive_in_the_order_of_the_partitions(exchange: str) -> None:
    figures = [np.array([k, 2**62 + k]) for k in range(3)] + [np.array([0.1, -0.0])]
    found = EXCHANGES[exchange](get_device("cpu")).gather_figures(figures)
    assert [array.tobytes() for array in found] == [array.tobytes() for array in figures]
    assert [array.dtype for array in found] == [array.dtype for array in figures]


def test_a_local_exchange_copies_nothing(graph: gp.Graph) -> None:
    state = state_of(graph, LABELS, "cpu", LocalExchange(), 3)
    for part, signals in zip(state.partitions, LocalExchange().send_signals(state), strict=True):
        assert signals.values[0] is state.values[0]
        assert signals.frontier is state.frontier
        own = part.vertices
        for view, whole in ((own.values[0], state.values[0]), (own.frontier, state.frontier)):
            assert view.base is whole
        assert len(own.values[0]) == part.partition.last - part.partition.first
    (whole,) = state_of(graph, LABELS, "cpu", LocalExchange(), 1).partitions
    assert whole.vertices.values[0].base is None
