"""The device "python" is the definition of a superstep: the CPU gives the same results on random graphs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.errors import ProgramError, VertexError
from gpu_pregel.host.programs.run import ProgramResult
from tests.graphs import arrays, edge_lists
from tests.programs import CONTEXTS, CONTEXTS_PER_EDGE, DISTANCES, HOPS, LABELS, PAIRS, RANKS, SUMS

# Every optional part of a program at once.
EVERYTHING = gp.VertexProgram(
    value={"level": np.int32, "share": np.float32},
    parameters={"source": np.int64, "limit": 3.5, "double": False},
    init=lambda ctx: (0 if ctx.vertex == ctx.parameters.source else -1, 0.5),
    initially_active=lambda ctx: ctx.vertex == ctx.parameters.source,
    message_type={"level": np.int16, "share": np.float32},
    message=lambda value, weight, ctx: (value.level + 1, value.share * weight),
    combine="max",
    receives=lambda value, ctx: value.level < ctx.parameters.limit and ctx.aggregated.reached < 100,
    apply=lambda value, incoming, ctx: (
        max(value.level, incoming.level) + (1 if ctx.parameters.double else 0),
        min(incoming.share, 2.0),
    ),
    active=lambda old, new, ctx: new.level > old.level,
    aggregators={
        "reached": gp.Aggregator("sum", lambda old, new, ctx: new.level > 0),
        "mean": gp.Aggregator("max", lambda old, new, ctx: new.share / ctx.num_vertices),
    },
)
FIRST = replace(
    HOPS,
    value=np.uint16,
    init=lambda ctx: 0 if ctx.vertex == 0 else 65_535,
    combine="any",
    receives=lambda value, ctx: value == 65_535,
    apply=lambda value, incoming, ctx: incoming,
)
PROGRAMS = {
    "labels": LABELS,
    "hops": HOPS,
    "distances": DISTANCES,
    "ranks": RANKS,
    "pairs": PAIRS,
    "sums": SUMS,
    "contexts": CONTEXTS,
    "contexts per edge": CONTEXTS_PER_EDGE,
    "everything": EVERYTHING,
    "any": FIRST,
}


def rows(result: ProgramResult) -> list[dict[str, Any]]:
    return [
        {key: value for key, value in row.items() if "seconds" not in key and key != "bytes"} for row in result.trace
    ]


@pytest.mark.parametrize("name", PROGRAMS)
def test_random_graphs_give_the_same_values_aggregates_and_trace(name: str) -> None:
    program = PROGRAMS[name]

    @settings(max_examples=20)
    @given(
        graph=edge_lists(max_vertices=100, max_edges=200),
        weighted=st.booleans() if name in ("distances", "contexts per edge") else st.just(name == "everything"),
        mode=st.sampled_from(["pull", "auto"]),
        data=st.data(),
    )
    def check(graph: Any, weighted: bool, mode: Any, data: Any) -> None:
        n, edges = graph
        weight = np.arange(1, len(edges) + 1) % 7 * 0.25 if weighted else None
        built = gp.Graph.from_edgelist(*arrays(edges), weight, num_vertices=n, directed=True)
        way: dict[str, Any] = {"mode": mode, "max_supersteps": 6, "on_limit": "return"}
        if name == "everything":
            way["parameters"] = {"source": data.draw(st.integers(0, n - 1)), "double": data.draw(st.booleans())}
        found, expected = (gp.run(built, program, device=device, **way) for device in ("cpu", "python"))
        if name == "ranks":
            np.testing.assert_allclose(found.to_numpy(), expected.to_numpy(), rtol=1e-12)
        else:
            assert found.to_numpy().tobytes() == expected.to_numpy().tobytes()
            assert found.aggregated == expected.aggregated
        assert rows(found) == rows(expected)

    check()


@settings(max_examples=20)
@given(graph=edge_lists(), data=st.data())
def test_initial_values_and_a_frontier_replace_the_functions(graph: Any, data: Any) -> None:
    n, edges = graph
    built = gp.Graph.from_edgelist(*arrays(edges), num_vertices=n)
    values = np.array(data.draw(st.lists(st.integers(0, 99), min_size=n, max_size=n)), np.uint32)
    start: dict[str, Any] = {"initial": values, "frontier": data.draw(st.lists(st.integers(0, n - 1), max_size=5))}
    found, expected = (gp.run(built, LABELS, device=device, **start) for device in ("cpu", "python"))
    assert found.to_numpy().tolist() == expected.to_numpy().tolist()
    assert rows(found) == rows(expected)


def test_messages_are_numbers_of_python_rounded_to_their_dtype() -> None:
    seen: list[Any] = []

    def apply(value: Any, incoming: Any, ctx: Any) -> Any:
        seen.append((type(value), type(incoming), type(ctx.vertex), incoming))
        return incoming

    program = gp.VertexProgram(
        value=np.int8,
        init=lambda ctx: 1,
        message_type=np.float32,
        message=lambda value, ctx: 0.1,
        combine="max",
        apply=apply,
    )
    with pytest.raises(ProgramError, match="floats are not converted"):
        gp.run(gp.Graph.from_edgelist([0], [1]), program, device="python")
    assert seen == [(int, float, int, float(np.float32(0.1)))]


def test_an_aggregator_whose_dtype_cannot_be_found_must_declare_it() -> None:
    failing = gp.Aggregator("sum", lambda old, new, ctx: 1 // (new - old - 1))
    program = replace(SUMS, aggregators={"x": failing})
    with pytest.raises(ProgramError, match=r"aggregator 'x' needs dtype= on device 'python': .* ZeroDivisionError"):
        gp.run(gp.Graph.from_edgelist([0], [1]), program, device="python")
    declared = replace(SUMS, aggregators={"x": replace(failing, dtype=np.int64)})
    # Vertex 0 has the value 1 and gets 2, so that the aggregator divides by 0.
    with pytest.raises(VertexError, match="aggregator 'x' fails for vertex 0 in superstep 1"):
        gp.run(gp.Graph.from_edgelist([0], [1]), declared, device="python")


def test_the_runs_of_one_device_continue_on_the_other(tmp_path: Any) -> None:
    graph, program = gp.grid(8), replace(LABELS, message=lambda value, ctx: value + 0)
    expected = gp.run(graph, program, device="cpu")
    for first, second in (("python", "cpu"), ("cpu", "python")):
        early: dict[str, Any] = {"checkpoint": tmp_path / f"{first}.db", "device": first}
        gp.run(graph, program, **early, max_supersteps=3, on_limit="return")
        late = gp.run(graph, program, **{**early, "device": second}, resume=True)
        assert late.to_numpy().tolist() == expected.to_numpy().tolist()
        assert late.supersteps == expected.supersteps
