"""The semantics of vertex programs, rule by rule, on every device and in every direction."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, ProgramError, SuperstepLimitError
from gpu_pregel.host.programs.run import ProgramResult
from tests.devices import LONG, PROGRAM_DEVICES, RUN_DEVICES, RUN_NAMES, is_slow, on, threads_of
from tests.programs import DISTANCES, RANKS

MODES = pytest.mark.parametrize(
    ("device", "mode"),
    [
        on(device, mode, name=mode, marks=[LONG] if is_slow(device) and mode == "push" else [])
        for device in RUN_NAMES
        for mode in ("push", "pull", "auto")
    ],
)
"""The few active vertices of these programs push by themselves on emulated devices."""


def path(n: int, **options: Any) -> gp.Graph:
    return gp.Graph.from_edgelist(np.arange(n - 1), np.arange(1, n), **options)


def first(value: Any = np.int64, **changes: Any) -> gp.VertexProgram:
    """Return a program that passes a token on from vertex 0; each vertex records when it was sent and received."""
    parts: dict[str, Any] = {
        "value": value,
        "init": lambda ctx: 0 if ctx.vertex == 0 else -1,
        "initially_active": lambda ctx: ctx.vertex == 0,
        "message": lambda value, ctx: ctx.superstep,
        "combine": "max",
        "apply": lambda value, incoming, ctx: incoming * 10 + ctx.superstep if value < 0 else value,
    }
    return gp.VertexProgram(**{**parts, **changes})


@MODES
def test_messages_of_a_superstep_are_applied_in_the_next(device: str, mode: Any) -> None:
    result = gp.run(path(5, directed=True), first(), device=device, mode=mode)
    # ``message`` sees the sender's superstep, ``apply`` the receiver's.
    assert result.to_numpy().tolist() == [0, 1, 12, 23, 34]
    # Superstep 5 delivers nothing: vertex 4 is active in superstep 4 but has no out-edges.
    assert [row["superstep"] for row in result.trace] == list(range(result.supersteps))
    assert result.supersteps == 6
    assert [row["active_vertices"] for row in result.trace] == [1, 1, 1, 1, 1, 0]
    assert result.status == "completed"


@MODES
def test_a_combined_message_equal_to_the_identity_is_applied(device: str, mode: Any) -> None:
    graph = gp.Graph.from_edgelist([0, 1, 2], [3, 3, 4], num_vertices=5, directed=True)
    program = gp.VertexProgram(
        value=np.int32,
        init=lambda ctx: (1, -1, 2, 0, 0)[ctx.vertex],
        message=lambda value, ctx: value,
        combine="sum",
        apply=lambda value, incoming, ctx: 100 + incoming,
        active=lambda old, new, ctx: False,
    )
    result = gp.run(graph, program, device=device, mode=mode)
    assert result.to_numpy().tolist() == [1, -1, 2, 100, 102]
    assert result.trace[1]["applied"] == 2


@pytest.mark.parametrize(
    ("device", "mode"),
    [
        on(name, mode, name=mode)
        for mode in ("push", "pull")
        for name in RUN_NAMES
        if mode == "push" or not is_slow(name)
    ],
)
def test_active_always_applies_everywhere_until_the_limit(device: str, mode: Any) -> None:
    program = gp.VertexProgram(
        value=np.int64,
        init=lambda ctx: 0,
        message=lambda value, ctx: 1,
        combine="sum",
        apply=lambda value, incoming, ctx: value + 10 + incoming,
        active="always",
    )
    result = gp.run(path(3), program, device=device, mode=mode, max_supersteps=3)
    assert result.to_numpy().tolist() == [22, 24, 22]
    assert (result.supersteps, result.status) == (3, "max_supersteps")


@RUN_DEVICES
def test_reaching_the_limit_raises_an_error_with_the_partial_result(device: str) -> None:
    with pytest.raises(SuperstepLimitError, match="max_supersteps=3") as caught:
        gp.run(path(9, directed=True), first(), device=device, max_supersteps=3)
    partial = caught.value.result
    assert isinstance(partial, ProgramResult)
    assert partial.to_numpy().tolist() == [0, 1, 12, -1, -1, -1, -1, -1, -1]
    assert partial.supersteps == 3
    returned = gp.run(path(9, directed=True), first(), device=device, max_supersteps=3, on_limit="return")
    assert returned.status == "max_supersteps"
    assert returned.to_numpy().tolist() == partial.to_numpy().tolist()
    assert gp.run(path(3, directed=True), first(), device=device, max_supersteps=9).status == "completed"


@MODES
def test_ctx_has_degrees_and_number_of_vertices(device: str, mode: Any) -> None:
    graph = gp.Graph.from_edgelist([0, 0, 1], [1, 2, 2], directed=True, num_vertices=4)
    program = gp.VertexProgram(
        value=(np.int64, np.int64, np.int64),
        init=lambda ctx: (ctx.out_degree, ctx.in_degree, ctx.num_vertices),
        message_type=np.int64,
        message=lambda value, ctx: ctx.out_degree * 10 + ctx.in_degree,
        combine="sum",
        apply=lambda value, incoming, ctx: (incoming, value[1], ctx.vertex),
        active=lambda old, new, ctx: False,
    )
    result = gp.run(graph, program, device=device, mode=mode)
    assert result.to_numpy()["value0"].tolist() == [2, 20, 20 + 11, 0]
    assert result.to_numpy()["value1"].tolist() == [0, 1, 2, 0]
    assert result.to_numpy()["value2"].tolist() == [4, 1, 2, 4]


@MODES
def test_aggregates_are_those_of_the_last_superstep_and_start_as_the_identity(device: str, mode: Any) -> None:
    program = gp.VertexProgram(
        value=np.int64,
        init=lambda ctx: 0,
        message=lambda value, ctx: ctx.aggregated.applied,
        combine="max",
        apply=lambda value, incoming, ctx: 1000 * incoming + ctx.aggregated.applied,
        active="always",
        aggregators={
            "applied": gp.Aggregator("sum", lambda old, new, ctx: 1),
            "largest": gp.Aggregator("max", lambda old, new, ctx: new * 1.0),
        },
        halt=lambda aggregated: aggregated.largest >= 5003,
    )
    result = gp.run(path(5), program, device=device, mode=mode, max_supersteps=50)
    # Before superstep 1 nothing is aggregated; in 2 apply sees 5, but the senders of 1 saw 0; in 3 both see 5.
    assert result.to_numpy().tolist() == [5005] * 5
    assert result.supersteps == 4
    assert result.status == "halted"


@pytest.mark.parametrize("partitions", [1, 3])
@RUN_DEVICES
def test_aggregates_fold_over_all_blocks_and_partitions(device: str, partitions: int) -> None:
    n = 2_000 if device in ("python", "agents") else 20_000
    seen: list[tuple[int, ...]] = []

    def record(aggregated: Any) -> bool:
        seen.append(tuple(int(figure) for figure in aggregated))
        return True

    program = gp.VertexProgram(
        value=np.int64,
        init=lambda ctx: ctx.vertex,
        message=lambda value, ctx: 0,
        combine="min",
        apply=lambda value, incoming, ctx: value,
        active="always",
        aggregators={
            "total": gp.Aggregator("sum", lambda old, new, ctx: new),
            "low": gp.Aggregator("min", lambda old, new, ctx: new),
            "any": gp.Aggregator("or", lambda old, new, ctx: new == n - 1),
            "all": gp.Aggregator("and", lambda old, new, ctx: new >= 0, dtype=np.bool_),
            "product": gp.Aggregator(gp.Combiner(lambda a, b: a * b % 10007, 1), lambda old, new, ctx: new % 7 + 1),
        },
        halt=record,
    )
    gp.run(gp.Graph.from_edgelist([], [], num_vertices=n), program, device=device, partitions=partitions)
    product = 1
    for v in range(n):
        product = product * (v % 7 + 1) % 10007
    assert seen == [(n * (n - 1) // 2, 0, 1, 1, product)]


@MODES
def test_the_default_weight_is_one(device: str, mode: Any) -> None:
    assert gp.run(path(4), DISTANCES, device=device, mode=mode).to_numpy().tolist() == [0, 1, 2, 3]
    weighted = path(4, weight=np.array([2.0, 0.5, 6]))
    assert gp.run(weighted, DISTANCES, device=device, mode=mode).to_numpy().tolist() == [0, 2, 2.5, 8.5]


@pytest.mark.parametrize(
    ("device", "dtype"), [on("cpu", np.int32), on("cpu", np.uint64), on("emulated:1", np.int32), on("cuda", np.uint64)]
)
def test_weights_can_be_integers(device: str, dtype: Any) -> None:
    largest = np.iinfo(dtype).max // 2**12 * 2**12
    found = gp.run(path(3, weight=np.array([1, largest], dtype)), DISTANCES, device=device, mode="pull").to_numpy()
    assert found.tolist() == [0, 1, 1 + np.float64(largest)]


@RUN_DEVICES
def test_values_are_compared_by_their_bits(device: str) -> None:
    program = gp.VertexProgram(
        value=np.float64,
        init=lambda ctx: np.nan if ctx.vertex else 0.0,
        message=lambda value, ctx: 1,
        message_type=np.int32,
        combine="max",
        apply=lambda value, incoming, ctx: value if ctx.vertex else -0.0,
    )
    result = gp.run(path(3), program, device=device, mode="push")
    # NaN is unchanged; 0 becomes -0 once, which has other bits.
    assert [row["active_vertices"] for row in result.trace] == [3, 1, 0]
    assert np.signbit(result.to_numpy()[0])


@RUN_DEVICES
def test_floating_point_sums_are_equal_to_the_bit_for_any_number_of_threads(device: str) -> None:
    graph = gp.kronecker(8 if device in ("python", "agents") else 11, 8)
    options = [threads_of(device, threads) for threads in (1, 2, 5)]
    values = [gp.run(graph, RANKS, device=device, max_supersteps=9, **one).to_numpy() for one in options]
    assert values[0].tobytes() == values[1].tobytes() == values[2].tobytes()
    cut = gp.run(graph, RANKS, device=device, partitions=3, max_supersteps=9).to_numpy()
    np.testing.assert_allclose(cut, values[0], rtol=1e-12)


@PROGRAM_DEVICES
def test_an_impossible_push_is_rejected(device: str) -> None:
    sums = first(value=np.float32, init=lambda ctx: 0.0, combine="sum", message=lambda value, ctx: value)
    with pytest.raises(ArgumentError, match="mode='push' is not possible: floating-point messages"):
        gp.run(path(3), sums, device=device, mode="push")
    wide = gp.VertexProgram(
        value=(np.float64, np.float64),
        init=lambda ctx: (0.0, 0.0),
        message=lambda value, ctx: value,
        combine="min",
        apply=lambda value, incoming, ctx: value,
    )
    with pytest.raises(ArgumentError, match="mode='push' is not possible: messages are tuples"):
        gp.run(path(3), wide, device=device, mode="push")


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"mode": "sideways"}, ArgumentError, "mode must be 'auto', 'push' or 'pull'"),
        ({"on_limit": "ignore"}, ArgumentError, "on_limit must be 'raise' or 'return'"),
        ({"max_supersteps": 0}, ArgumentError, "max_supersteps must be from 1"),
        ({"partitions": 0}, ArgumentError, "partitions must be from 1"),
        ({"partitions": 2}, ArgumentError, "partitions must be from 1 to 1, as each has at least 64 vertices"),
    ],
)
@RUN_DEVICES
def test_invalid_arguments_are_rejected(
    device: str, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        gp.run(path(3), first(), device=device, **options)


@pytest.mark.parametrize("device", [on("emulated"), on("cuda")])
def test_functions_that_compile_only_for_the_cpu_are_rejected(device: str) -> None:
    listing = first(init=lambda ctx: [0, -1, -1][ctx.vertex])
    assert gp.run(path(3), listing, device="cpu").to_numpy().tolist() == [0, 1, 12]
    here = rf"for device '{device}(:0)?' \(.*{Path(__file__).name}, line \d+\): .*\n.*no lists"
    with pytest.raises(ProgramError, match=here):
        gp.run(path(3), listing, device=device)


@RUN_DEVICES
def test_graph_and_program_must_be_of_their_classes(device: str) -> None:
    with pytest.raises(ArgumentTypeError, match=r"program must be a gp\.VertexProgram, not function"):
        gp.run(path(3), lambda: None, device=device)  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="graph must be a gpu_pregel Graph"):
        gp.run([], first(), device=device)  # type: ignore[arg-type]


@MODES
def test_graphs_with_at_most_one_vertex(device: str, mode: Any) -> None:
    assert gp.run(gp.Graph.from_edgelist([], []), first(), device=device, mode=mode).supersteps == 1
    one = gp.run(gp.Graph.from_edgelist([], [], num_vertices=1), first(), device=device, mode=mode)
    assert one.to_numpy().tolist() == [0]
    loop = gp.run(gp.Graph.from_edgelist([0], [0]), first(), device=device, mode=mode)
    assert loop.to_numpy().tolist() == [0]


@pytest.mark.parametrize("device", [on("cpu"), on("python"), on("emulated"), on("cuda")])
@pytest.mark.parametrize("message", [lambda value, weight, ctx: value + weight, lambda value, weight, ctx: weight])
def test_messages_have_the_type_of_the_weights(device: str, message: Any) -> None:
    exact = 2**53 + 1
    graph = gp.Graph.from_edgelist([0], [1], np.array([exact]), directed=True)
    heaviest = gp.VertexProgram(
        value=np.int64,
        init=lambda ctx: 0,
        message=message,
        combine="max",
        apply=lambda value, incoming, ctx: max(value, incoming),
    )
    assert gp.run(graph, heaviest, device=device).to_numpy().tolist() == [0, exact]
    if device == "cpu":
        rounded = gp.Graph.from_edgelist([0], [1], [1.7], directed=True)
        with pytest.raises(ProgramError, match="message returns float64, but int64 is declared"):
            gp.run(rounded, heaviest, device=device)
