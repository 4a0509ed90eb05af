"""Stored rows of the right checksum with parts of a wrong type are refused with the place, or harmless.

``GPU_PREGEL_TESTS=all`` plants every value everywhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import GpuPregelError, StoreError
from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.host.agents.formats import SCHEMA, Segment
from gpu_pregel.host.agents.options import make_options
from gpu_pregel.host.agents.parts import (
    ChangedOptions,
    EarlyMessage,
    FailedAttempts,
    LaterMessage,
    Part,
    Question,
    Retry,
    WakeUp,
)
from gpu_pregel.host.agents.records import FailedVertex, Failure, Record, VertexData
from gpu_pregel.host.agents.state import State
from gpu_pregel.host.agents.state_format import pack_state
from gpu_pregel.host.agents.stored_options import describe_options
from gpu_pregel.host.stores.store import Store
from tests.devices import EXHAUSTIVE

A, B, C, NOBODY = map(encode, ("a", "b", "c", "nobody"))
FAILURE = Failure("exception", "ValueError", "text", "traceback", True)
VALUES: tuple[Any, ...] = (
    None,
    True,
    -1,
    7,
    1.5,
    "x",
    b"",
    b"\xff",
    A,
    NOBODY,
    [],
    (),
    {},
    [1],
    ("x",),
    {"x": 1},
    {b"x": 2.0},
)


def compute(ctx: Any) -> None:
    ctx.value = [ctx.value, ctx.messages, [edge.weight for edge in ctx.edges]]
    ctx.aggregate("total", 1)
    if ctx.superstep > 1:
        ctx.vote_to_halt()


OPTIONS: dict[str, Any] = {
    "aggregators": {
        "total": gp.agents.Aggregator("sum", initial=0, persistent=True),
        "most": gp.agents.Aggregator(gp.agents.TopK(2), initial=[]),
    },
    "combiner": None,
    "max_supersteps": 4,
    "on_limit": "return",
    "on_failure": "continue",
    "on_waiting": "return",
    "retry": gp.agents.RetryPolicy(attempts=2, wait=0.0),
}


def parts() -> dict[str, Any]:
    """The decoded rows of a run: its state before superstep 0, a commit with a segment, and a superstep that is held.

    The slices of the state are decoded, too.
    """
    options = describe_options(make_options("run", compute, OPTIONS))
    state = State(
        {A: VertexData(encode(0), (B, 1, C, 2.5)), B: VertexData(encode("text"), ()), C: VertexData(encode(1), ())},
        {A: [encode("hello")]},
        {"total": encode(0), "most": encode([])},
        "compute",
        {C: FailedVertex(0, FAILURE, [encode(1)], 3, encode(2))},
        options,
        {B: 0.0},
    )
    vertices, messages, *rest = decode(pack_state(state))
    requests = [
        ("add_vertex", encode("new"), VertexData(encode(1), ()).pack()),
        ("remove_edge", A, B),
        ("add_edge", A, C, 1),
        ("wake_at", 5.0),
    ]
    first = [
        (A, Record(encode(1), False, [(B, encode("hi")), (C, encode("hi"))], [("total", encode(1))], requests)),
        (B, Record(None, True, (), (), ())),
    ]
    others: list[Part] = [
        EarlyMessage(A, encode(1)),
        WakeUp(B),
        ChangedOptions(encode(options)),
        FailedAttempts(B, 1, FAILURE, False),
        Retry(B),
        Question(C, 1, encode("why?"), 0),
        LaterMessage(C, encode("later")),
    ]
    mutated = [(encode("new"), encode(1), [(A, 2)], False)]
    aggregates, row = {"total": encode(1), "most": encode([])}, {"superstep": 0, "active": 2}
    inside = Segment([(B, Record(encode(2), False, [(A, encode(2))], (), ()))]).columns()
    return {
        "base": (list(map(decode, vertices)), list(map(decode, messages)), *rest),
        "commit": (aggregates, "compute", [C], mutated, [], row, inside),
        "segment": Segment(first, [FailedAttempts(C, 2, FAILURE, False), LaterMessage(A, encode(3))]).columns(),
        "held": Segment([(A, Record(encode(5), False, [(B, encode(7))], [("most", encode(3))], ()))], others).columns(),
    }


def damaged(tree: Any) -> Iterator[Any]:
    """Yield copies of plain data in which one part is replaced, or lacks an item."""
    for value in VALUES:
        if type(value) is not type(tree) or value != tree:
            yield value
    if isinstance(tree, dict):
        for key, item in tree.items():
            for other in damaged(key):
                if type(other) not in (list, dict):
                    yield {(other if one == key else one): tree[one] for one in tree}
            yield from ({**tree, key: other} for other in damaged(item))
    elif isinstance(tree, (list, tuple)):
        for place, item in enumerate(tree):
            yield type(tree)([*tree[:place], *tree[place + 1 :]])
            yield from (type(tree)([*tree[:place], other, *tree[place + 1 :]]) for other in damaged(item))


def store_of(rows: dict[str, Any], store: Store | None = None, run: str = "run") -> Store:
    store, base = gp.MemoryStore() if store is None else store, rows["base"]
    if isinstance(base, tuple) and len(base) == 7 and all(isinstance(column, list) for column in base[:2]):
        base = ([encode(one) for one in base[0]], [encode(one) for one in base[1]], *base[2:])
    claim = store.create(run, "agents", encode(base), owner="somebody", schema=SCHEMA)
    store.commit(claim, 0, encode(rows["commit"]), [encode(Segment().columns()), encode(rows["segment"])])
    store.flush(claim, 1, [encode(Segment().columns()), encode(rows["held"])])
    store.release(claim)
    return store


def read_and_resume(store: Store) -> gp.agents.AgentResult:
    """Read all of a run, and continue it."""
    options = {name: option for name, option in OPTIONS.items() if name not in ("combiner", "retry")}
    for step in (-1, 0, None):
        result = gp.agents.state_at(store, "run", step)
        repr((result.vertices, result.values, result.failed, result.interrupts, result.timers, result.aggregates))
    with gp.agents.reopen(store, "run", compute, **options) as agents:
        while agents.step():
            pass
        result = agents.result()
    repr((result.values, result.failed, result.interrupts))
    return result


def test_the_rows_themselves_can_be_read() -> None:
    result = read_and_resume(store_of(parts()))
    assert result.interrupts == {"c": "why?"}
    assert result.values == {"a": 1, "b": 2, "c": 1, "new": 1}


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("base", {("run", -1, None), ("run", 0, None)}),  # the latter if a vertex is missing
        ("commit", {("run", 0, None)}),
        ("segment", {("run", 0, 1), ("run", 0, None)}),  # without a segment if it contradicts other rows
        ("held", {("run", 1, 1), ("run", 1, None)}),
    ],
)
def test_rows_with_parts_of_a_wrong_type_are_refused_or_harmless(row: str, expected: set[Any]) -> None:
    rows, places = parts(), []
    cases = list(damaged(rows[row]))
    assert len(cases) > 500
    for number, planted in enumerate(cases):
        if not EXHAUSTIVE and number % 7:
            continue
        try:
            read_and_resume(store_of({**rows, row: planted}))
        except StoreError as error:
            places.append((error.run, error.step, error.segment))
        except GpuPregelError:
            pass  # of a value that a vertex, or the program, cannot use
        except BaseException as error:
            raise AssertionError(f"{row} {number}: {planted!r}") from error
    assert len(places) > 20
    assert expected.issuperset(places)


FORGED = (*(encode(one) for one in ([1], {"x": 1}, 1.5, True, None, ("a", [1]), 1 << 8192)), b"", b"\xff", A[:-1])
"""Of a wrong type, some of which cannot be hashed, and data that cannot be decoded."""


def with_id(rows: dict[str, Any], place: str, forged: bytes) -> dict[str, Any]:
    """Return rows in which another id stands for one vertex of the base or of the commit."""
    (ids, values, halted, counts, edges), *slices = rows["base"][0]
    if place == "vertex":
        ids = [*ids[:2], forged]
    elif place == "target":
        edges = [forged, *edges[1:]]
    elif place == "failed":
        [[_, *failure]] = rows["base"][4]
        base = (*rows["base"][:4], [(forged, *failure)], *rows["base"][5:])
        return {**rows, "base": base}
    else:
        [[_, value, _, halted]] = rows["commit"][3]
        added = (forged, value, [(A, 2)], halted) if place == "added" else (encode("new"), value, [(forged, 2)], halted)
        return {**rows, "commit": (*rows["commit"][:3], [added], *rows["commit"][4:])}
    return {**rows, "base": ([(ids, values, halted, counts, edges), *slices], *rows["base"][1:])}


@pytest.mark.parametrize(
    ("place", "step"), [("vertex", -1), ("target", -1), ("failed", -1), ("added", 0), ("target of added", 0)]
)
def test_forged_ids_are_errors_of_the_store(place: str, step: int, store: Store) -> None:
    rows = parts()
    for number, forged in enumerate(FORGED):
        store_of(with_id(rows, place, forged), store, f"run {number}")
        with pytest.raises(StoreError, match="names a vertex by invalid data: id") as caught:
            gp.agents.state_at(store, f"run {number}")
        assert (caught.value.run, caught.value.step) == (f"run {number}", step)


def test_vertices_with_the_same_id_are_an_error_of_the_store(store: Store) -> None:
    store_of(with_id(parts(), "vertex", A), store)
    with pytest.raises(StoreError, match="several vertices have the same id") as caught:
        gp.agents.state_at(store, "run")
    assert (caught.value.run, caught.value.step) == ("run", -1)
