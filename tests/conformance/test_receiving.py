"""A vertex applies if and only if it received a message, whatever the messages combine to."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpu_pregel as gp
from tests.devices import LONG, NAMES, RUN_NAMES, is_emulated, on

INF = np.inf
SIGNED, ONES = 2**63 - 1, 2**64 - 1


class Case(NamedTuple):
    """Messages to one vertex each, whose combination may equal the identity; none to the vertex after them."""

    kind: Any
    combine: Any
    messages: tuple[tuple[Any, ...], ...]
    combined: tuple[Any, ...]


CASES = {
    "sum": Case(np.int64, "sum", ((1, -1), (0,), (2,), (0, 0, 0)), (0, 0, 2, 0)),
    "sum of floats": Case(np.float64, "sum", ((1.5, -1.5), (0.0,), (-0.0,), (2.0, -1.0)), (0.0, 0.0, 0.0, 1.0)),
    "sum that wraps": Case(np.uint8, "sum", ((200, 56), (0,), (255, 1, 1)), (0, 0, 1)),
    "or": Case(np.bool_, "or", ((False,), (False, True), (False, False)), (False, True, False)),
    "and": Case(np.bool_, "and", ((True,), (False, True), (True, True)), (True, False, True)),
    "or of words": Case(np.uint32, "or", ((0,), (0, 4), (1, 2)), (0, 4, 3)),
    "and of words": Case(np.int64, "and", ((-1,), (6, 3)), (-1, 2)),
    "exclusive or": Case(np.int64, gp.Combiner(lambda a, b: a ^ b, 0), ((5, 5), (0,), (5, 6)), (0, 0, 3)),
    "product": Case(np.float64, gp.Combiner(lambda a, b: a * b, 1.0), ((1.0,), (2.0, 0.5), (3.0,)), (1.0, 1.0, 3.0)),
    "min": Case(np.float64, "min", ((INF,), (INF, 2.0), (INF, INF)), (INF, 2.0, INF)),
    "max": Case(np.uint32, "max", ((0,), (0, 3), (0, 0)), (0, 3, 0)),
    "min of bool": Case(np.bool_, "min", ((True,), (True, False)), (True, False)),
    "any": Case(np.int64, "any", ((SIGNED,), (7, 7), (SIGNED, SIGNED)), (SIGNED, 7, SIGNED)),
    "any of bool": Case(np.bool_, "any", ((True,), (False, False)), (True, False)),
    "tuples": Case((np.int64, np.float64), "sum", (((1, 2.0), (-1, -2.0)), ((0, 0.0),)), ((0, 0.0), (0, 0.0))),
}
FEW = ("sum", "exclusive or", "min of bool", "tuples")
"""The cases that the default runs on the CPU; interpreted, it runs all of them."""
LISTED = {name: case for name, case in CASES.items() if name in ("sum", "or", "exclusive or", "tuples")}
"""The cases for every seed of the emulated device, and for GPUs; the default has one half with each direction."""


def graph_of(case: Case) -> tuple[gp.Graph, list[Any]]:
    """Return a star for each receiver, and the value of each vertex: a sender's is its message."""
    nothing = case.messages[0][0]
    receivers = len(case.messages)
    values, src, dst = [nothing] * (receivers + 1), [], []
    for v, messages in enumerate(case.messages):
        for message in messages:
            src.append(len(values))
            dst.append(v)
            values.append(message)
    # An inactive neighbour sends nothing; the last of the receivers has no other.
    silent = len(values)
    src += [silent] * (receivers + 1)
    dst += range(receivers + 1)
    values.append(nothing)
    size = max(200, len(values))  # several words, for partitions
    values += [nothing] * (size - len(values))
    return gp.Graph.from_edgelist(src, dst, num_vertices=size, directed=True), values


def program_of(case: Case, *, per_edge: bool, selective: bool) -> gp.VertexProgram:
    """Return a program whose vertices count what they apply, and keep the message."""
    kinds = case.kind if isinstance(case.kind, tuple) else (case.kind,)
    count = len(kinds)
    if count == 1:
        parts: dict[str, Any] = {
            "value": (np.int64, *kinds),
            "message": (lambda value, weight, ctx: value[1]) if per_edge else (lambda value, ctx: value[1]),
            "apply": lambda value, incoming, ctx: (value[0] + 1, incoming),
            "message_type": case.kind,
        }
    else:
        parts = {
            "value": (np.int64, *kinds),
            "message": (lambda value, weight, ctx: (value[1], value[2]))
            if per_edge
            else (lambda value, ctx: (value[1], value[2])),
            "apply": lambda value, incoming, ctx: (value[0] + 1, incoming[0], incoming[1]),
            "message_type": case.kind,
        }
    if selective:
        parts["receives"] = lambda value, ctx: value[0] < 5
    return gp.VertexProgram(
        **parts,
        init=(lambda ctx: (0, 0)) if count == 1 else (lambda ctx: (0, 0, 0.0)),
        combine=case.combine,
        active=lambda old, new, ctx: False,
    )


def ways() -> list[Any]:
    found = []
    for device in RUN_NAMES:
        for name, case in (LISTED if is_emulated(device) or device == "cuda" else CASES).items():
            for mode in ("push", "pull"):
                if mode == "push" and isinstance(case.kind, tuple):
                    continue
                is_usual = device not in NAMES or (name in FEW if device == "cpu" else (name < "p") == (mode == "push"))
                for partitions in (1, 3) if device in NAMES else (1,):
                    # On the CPU, each direction and each number of partitions, but by default not all of both.
                    has_turn = device != "cpu" or (partitions == 1) == ((mode == "push") == (name < "p"))
                    marks = [] if is_usual and has_turn else [LONG]
                    found.append(on(device, mode, partitions, case, name=f"{name}-{mode}-{partitions}", marks=marks))
    return found


def check(case: Case, device: str, options: dict[str, Any], *, per_edge: bool, selective: bool) -> None:
    graph, values = graph_of(case)
    columns = list(zip(*values, strict=True)) if isinstance(case.kind, tuple) else [values]
    kinds = case.kind if isinstance(case.kind, tuple) else (case.kind,)
    initial = (
        np.zeros(len(values), np.int64),
        *(np.array(one, kind) for one, kind in zip(columns, kinds, strict=True)),
    )
    senders = np.arange(len(case.messages) + 1, len(case.messages) + 1 + sum(map(len, case.messages)))
    program = program_of(case, per_edge=per_edge, selective=selective)
    result = gp.run(graph, program, initial=initial, frontier=senders, device=device, **options)
    found = result.to_numpy()
    receivers = len(case.messages)
    assert found["value0"].tolist() == [1] * receivers + [0] * (len(values) - receivers)
    assert result.trace[1]["applied"] == receivers
    rows = zip(*(found[f"value{k}"][:receivers].tolist() for k in range(1, 1 + len(kinds))), strict=True)
    expected = [one if isinstance(one, tuple) else (one,) for one in case.combined]
    assert list(rows) == expected


@pytest.mark.parametrize(("device", "mode", "partitions", "case"), ways())
def test_exactly_the_receivers_apply(device: str, mode: Any, partitions: int, case: Case) -> None:
    options: dict[str, Any] = {"mode": mode, "partitions": partitions, "deterministic": False}
    check(case, device, options, per_edge=False, selective=False)


def kinds() -> list[Any]:
    """Return devices, directions, and whether messages are of edges and receivers selected: all, or some of each."""
    usual = {
        "cpu": {("push", True, True), ("pull", True, False), ("pull", False, True)},
        "emulated": {("push", True, True), ("pull", False, True)},
    }
    return [
        on(device, *kind, name="-".join(map(str, kind)), marks=[] if kind in usual[device] else [LONG])
        for device in usual
        for kind in product(("push", "pull"), (False, True), (False, True))
    ]


@pytest.mark.parametrize(("device", "mode", "per_edge", "selective"), kinds())
def test_per_edge_and_selectively(device: str, mode: Any, per_edge: bool, selective: bool) -> None:
    options: dict[str, Any] = {"mode": mode, "partitions": 1}
    check(CASES["sum"], device, options, per_edge=per_edge, selective=selective)


@pytest.mark.parametrize("device", [on("cpu"), on("emulated")])
@pytest.mark.parametrize("mode", ["push", "pull"])
def test_a_hub_that_receives_only_the_identity_applies(device: str, mode: Any) -> None:
    """Its row is read in pieces."""
    leaves = 70_000 if device == "cpu" else 1_100
    src = np.arange(1, leaves + 1)
    graph = gp.Graph.from_edgelist(src, np.zeros_like(src), directed=True)
    program = gp.VertexProgram(
        value=np.int64,
        init=lambda ctx: 0,
        message=lambda value, ctx: value,
        combine="sum",
        apply=lambda value, incoming, ctx: 1_000 + incoming,
        active=lambda old, new, ctx: False,
    )
    for values in (np.zeros(leaves + 1, np.int64), 1 - 2 * (np.arange(leaves + 1) % 2)):
        result = gp.run(graph, program, device=device, mode=mode, initial=values, frontier=src)
        assert result.to_numpy()[0] == 1_000
        assert result.trace[1]["applied"] == 1


def interpret(
    edges: list[tuple[int, int]], n: int, start: list[int], frontier: set[int], combine: Callable[[int, int], int]
) -> tuple[list[int], list[tuple[int, int]]]:
    """Plain Pregel: vertices send their value modulo 3 less 1, and add twice what they receive, plus 1."""
    values, active, rows = list(start), set(frontier), [(len(frontier), 0)]
    for _ in range(5):
        if not active:
            break
        inbox: dict[int, list[int]] = {}
        for u, v in edges:
            if u in active:
                inbox.setdefault(v, []).append(values[u] % 3 - 1)
        active = set()
        for v, messages in inbox.items():
            total = messages[0]
            for message in messages[1:]:
                total = combine(total, message)
            values[v] += 2 * total + 1
            if values[v] % 4:
                active.add(v)
        rows.append((len(active), len(inbox)))
    return values, rows


RANDOM: dict[str, tuple[Any, Callable[[int, int], int]]] = {
    "sum": ("sum", lambda a, b: a + b),
    "exclusive or": (gp.Combiner(lambda a, b: a ^ b, 0), lambda a, b: a ^ b),
    "or": ("or", lambda a, b: a | b),
    "and": ("and", lambda a, b: a & b),
    "max": ("max", max),
}
PROGRAMS = {
    name: gp.VertexProgram(
        value=np.int64,
        init=lambda ctx: 0,
        message=lambda value, ctx: value % 3 - 1,
        combine=combine,
        apply=lambda value, incoming, ctx: value + 2 * incoming + 1,
        active=lambda old, new, ctx: new % 4 != 0,
    )
    for name, (combine, _) in RANDOM.items()
}


@pytest.mark.parametrize(
    ("device", "name"),
    [
        on(device, name, name=name, marks=[] if device == "python" or name in usual else [LONG])
        for device, usual in (("cpu", ("exclusive or",)), ("python", ()), ("emulated", ("sum",)))
        for name in RANDOM
    ],
)
def test_random_graphs(device: str, name: str) -> None:
    @settings(max_examples=15 if is_emulated(device) else 60, deadline=None)
    @given(data=st.data())
    def check_one(data: st.DataObject) -> None:
        n = data.draw(st.integers(1, 140))
        vertex = st.integers(0, n - 1)
        edges = data.draw(st.lists(st.tuples(vertex, vertex), max_size=60))
        start = data.draw(st.lists(st.integers(-5, 5), min_size=n, max_size=n))
        frontier = data.draw(st.sets(vertex, max_size=12))
        mode: Any = data.draw(st.sampled_from(["push", "pull", "auto"]))
        partitions = data.draw(st.sampled_from([1, 2] if n > 64 else [1]))
        graph = gp.Graph.from_edgelist([u for u, _ in edges], [v for _, v in edges], num_vertices=n, directed=True)
        result = gp.run(
            graph,
            PROGRAMS[name],
            initial=np.array(start),
            frontier=sorted(frontier),
            device=device,
            mode=mode,
            partitions=partitions,
            max_supersteps=6,
            on_limit="return",
        )
        values, rows = interpret(edges, n, start, frontier, RANDOM[name][1])
        assert result.to_numpy().tolist() == values
        assert [(row["active_vertices"], row["applied"]) for row in result.trace] == rows

    check_one()


@pytest.mark.parametrize("device", [on("cpu"), on("emulated"), on("python")])
def test_a_resumed_run_applies_what_was_in_flight(device: str, tmp_path: Any) -> None:
    """Messages are computed from what a checkpoint holds: the values and the frontier."""
    graph = gp.Graph.from_edgelist([0, 1, 2, 3], [2, 2, 3, 4], directed=True)
    program = gp.VertexProgram(
        value=np.int64,
        init=lambda ctx: 1 - 2 * ctx.vertex if ctx.vertex < 2 else 0,
        initially_active=lambda ctx: ctx.vertex < 2,
        message=lambda value, ctx: value % 5 if ctx.vertex > 1 else value,
        combine="sum",
        apply=lambda value, incoming, ctx: value + incoming + 5,
    )
    whole = gp.run(graph, program, device=device)
    assert whole.to_numpy().tolist() == [1, -1, 5, 5, 5]
    file = tmp_path / "run.db"
    options: dict[str, Any] = {"device": device, "on_limit": "return"}
    gp.run(graph, program, checkpoint=gp.Checkpoint(file, every=1), max_supersteps=2, **options)
    resumed = gp.run(graph, program, checkpoint=gp.Checkpoint(file, every=1), resume=True, **options)
    assert resumed.to_numpy().tolist() == whole.to_numpy().tolist()
    assert [row["applied"] for row in resumed.trace] == [row["applied"] for row in whole.trace] == [0, 1, 1, 1, 0]
