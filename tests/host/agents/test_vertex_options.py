"""Retry policies and timeouts that differ between vertices."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.agents import RetryPolicy, Vertex
from gpu_pregel.errors import AgentsFailedError, ArgumentError, ArgumentTypeError, CheckpointError
from gpu_pregel.host.agents.ledger import Ledger
from gpu_pregel.host.agents.records import Failure
from tests.agents import FEW, ONCE, WITHOUT_WAIT

SHORT = 0.5
"""A timeout; longer than a busy machine interrupts a thread."""


def vertices(count: int) -> list[Vertex]:
    return [Vertex(k) for k in range(count)]


@FEW
def test_each_vertex_has_its_number_of_attempts(workers: int) -> None:
    def attempts_of(vertex: Any) -> Any:
        return RetryPolicy(attempts=vertex, wait=0) if vertex else None

    def compute(ctx: Any) -> None:
        raise ValueError(ctx.attempt)

    options: dict[str, Any] = {"workers": workers, "on_failure": "continue"}
    failed = gp.agents.run(vertices(5), compute, retry=attempts_of, **options).failed
    assert {one: (why.attempts, why.text) for one, why in failed.items()} == {
        0: (3, "3"),
        1: (1, "1"),
        2: (2, "2"),
        3: (3, "3"),
        4: (4, "4"),
    }


@FEW
def test_each_vertex_has_its_exceptions(workers: int) -> None:
    def retry(vertex: Any) -> RetryPolicy:
        return RetryPolicy(attempts=2, wait=0, exceptions=(KeyError if vertex else ValueError,))

    def compute(ctx: Any) -> None:
        raise ValueError

    failed = gp.agents.run(vertices(2), compute, retry=retry, workers=workers, on_failure="continue").failed
    assert {one: why.attempts for one, why in failed.items()} == {0: 2, 1: 1}


def test_refused_requests_are_retried_as_their_vertices_say() -> None:
    def retry(vertex: Any) -> RetryPolicy:
        return RetryPolicy(attempts=vertex + 1, wait=0)

    def compute(ctx: Any) -> None:
        ctx.send("nobody", 1)

    failed = gp.agents.run(vertices(3), compute, retry=retry, on_failure="continue").failed
    assert {one: (why.kind, why.attempts) for one, why in failed.items()} == {k: ("request", k + 1) for k in range(3)}


def limit(vertex: Any) -> float | None:
    """Return the timeout of odd vertices."""
    return SHORT if vertex % 2 else None


LIMITED: dict[str, Any] = {"timeout": limit, "retry": ONCE, "on_failure": "continue"}


@pytest.mark.parametrize("options", [{"workers": 1}, {"threads": 1}, {"threads": 4}], ids=str)
def test_each_vertex_has_its_timeout(options: dict[str, Any]) -> None:
    """The first vertex has none, and those after it have."""

    def compute(ctx: Any) -> None:
        import time

        if ctx.vertex_id == 0:
            time.sleep(0.7)
        elif ctx.vertex_id == 1:
            time.sleep(20)
        ctx.value = "done"
        ctx.vote_to_halt()

    result = gp.agents.run(vertices(4), compute, timeout=limits_of(0.5), retry=ONCE, on_failure="continue", **options)
    assert {one: why.kind for one, why in result.failed.items()} == {1: "timeout"}
    assert "took more than 0.5 s" in result.failed[1].text
    assert result.values == {0: "done", 1: None, 2: "done", 3: "done"}


def limits_of(seconds: float) -> Any:
    """Return the timeouts of odd vertices, as a function that is pickled by value."""

    def found(vertex: Any) -> float | None:
        return seconds if vertex % 2 else None

    return found


def test_each_vertex_of_an_async_function_has_its_timeout() -> None:
    async def compute(ctx: Any) -> None:
        await asyncio.sleep(0.7 if ctx.vertex_id == 0 else 20 if ctx.vertex_id == 1 else 0)
        ctx.value = "done"
        ctx.vote_to_halt()

    for result in (
        gp.agents.run(vertices(3), compute, **LIMITED),
        asyncio.run(gp.agents.arun(vertices(3), compute, threads=2, **LIMITED)),
    ):
        assert {one: why.kind for one, why in result.failed.items()} == {1: "timeout"}
        assert result.values == {0: "done", 1: None, 2: "done"}


def test_a_single_vertex_with_a_timeout_is_computed_on_another_thread() -> None:
    def compute(ctx: Any) -> None:
        ctx.value = threading.get_ident()
        ctx.vote_to_halt()

    idents = [gp.agents.run([Vertex(k)], compute, threads=1, timeout=limit).values[k] for k in (0, 1)]
    assert [one == threading.get_ident() for one in idents] == [True, False]


def fail(vertex: Any) -> Any:
    raise KeyError(vertex)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"retry": lambda vertex: 3}, r"retry\(1\) must return a RetryPolicy or None, not 3"),
    ({"retry": fail}, r"retry\(1\) raised KeyError: 1: it must return a value for each vertex"),
    ({"timeout": lambda vertex: "3", "threads": 1}, r"timeout\(1\) must be a number, not '3'"),
    ({"timeout": lambda vertex: 0, "threads": 1}, r"timeout\(1\) must be a finite number of seconds above 0, not 0"),
    ({"timeout": fail, "threads": 1}, r"timeout\(1\) raised KeyError: 1"),
    ({"timeout": lambda vertex: 5}, r"timeout\(1\)=5.0 cannot be enforced with workers=0, because function 'compute'"),
]


@pytest.mark.parametrize(("options", "text"), BAD)
def test_invalid_options_of_a_vertex_are_refused_before_any_work(options: dict[str, Any], text: str) -> None:
    computed: list[int] = []
    with pytest.raises((ArgumentError, ArgumentTypeError), match=text):
        gp.agents.run([Vertex(1)], lambda ctx: computed.append(1), **options)
    assert not computed


def of_new_vertex(function: Any) -> Any:
    """Return a function that returns None for vertex 0."""
    return lambda vertex: function(vertex) if vertex else None


@pytest.mark.parametrize(("options", "text"), BAD)
@pytest.mark.parametrize("asynchronous", [False, True])
def test_invalid_options_of_a_new_vertex_fail_it(options: dict[str, Any], text: str, asynchronous: bool) -> None:
    computed: list[int] = []

    def compute(ctx: Any) -> None:
        computed.append(ctx.vertex_id)
        if ctx.vertex_id == 0:
            ctx.add_vertex(1)
        ctx.vote_to_halt()

    async def compute_on_loop(ctx: Any) -> None:
        compute(ctx)

    later = {name: of_new_vertex(one) if callable(one) else one for name, one in options.items()}
    function = compute_on_loop if asynchronous else compute
    result = gp.agents.run([Vertex(0)], function, on_failure="continue", **later)
    if asynchronous and "cannot be enforced" in text:
        assert (computed, result.failed) == ([0, 1], {})
    else:
        assert computed == [0]
        assert list(result.failed) == [1]
        assert result.failed[1].attempts == 1
        with pytest.raises(AssertionError, match=text):
            raise AssertionError(result.failed[1].text)


def test_neither_a_policy_nor_a_function_is_refused() -> None:
    options: dict[str, Any] = {"retry": 3}
    with pytest.raises(ArgumentTypeError, match="retry must be a RetryPolicy, or a function of a vertex's id, not 3"):
        gp.agents.run([], lambda ctx: None, **options)


# Stored runs


def once(vertex: Any) -> RetryPolicy:
    return ONCE


def twice(vertex: Any) -> RetryPolicy:
    return RetryPolicy(attempts=2, wait=0)


def test_a_stored_run_keeps_its_function() -> None:
    def compute(ctx: Any) -> None:
        ctx.vote_to_halt()
        if not fixed:
            raise ValueError

    store, fixed = gp.MemoryStore(), list[int]()
    with pytest.raises(AgentsFailedError):
        gp.agents.run(vertices(2), compute, store=store, run_id="one", retry=once)
    for options, text in (
        ({}, "was started with retry=once, but functions and exceptions are not stored: pass retry again"),
        ({"retry": twice}, "was started with retry=once, but retry=twice was passed"),
        ({"retry": ONCE}, "was started with retry=once, but retry=RetryPolicy"),
    ):
        with pytest.raises(CheckpointError, match=text):
            gp.agents.resume(store, "one", compute, **options)
    fixed.append(1)
    assert gp.agents.resume(store, "one", compute, retry=once, retry_failed=True).status == "completed"


def test_a_function_replaces_a_stored_policy_only_by_override() -> None:
    def compute(ctx: Any) -> None:
        ctx.vote_to_halt()
        if ctx.attempt < 2:
            raise ValueError

    store = gp.MemoryStore()
    with pytest.raises(AgentsFailedError):
        gp.agents.run(vertices(2), compute, store=store, run_id="one", retry=ONCE)
    with pytest.raises(CheckpointError, match=r"was started with retry=RetryPolicy\(attempts=1.* but retry=twice"):
        gp.agents.resume(store, "one", compute, retry=twice)
    assert gp.agents.resume(store, "one", compute, retry=twice, override="retry").status == "completed"


def test_restored_failures_count_against_the_policy_of_their_vertex() -> None:
    ledger = Ledger(0, [b"a", b"b"], {})
    for vertex in ledger.vertices:
        ledger.set_failed(vertex, 2, Failure("exception", "ValueError", "", "", True), again=True)
    assert ledger.apply_attempts(lambda vertex: 2 if vertex == b"a" else 3) == [b"a"]
    assert [ledger.entry(vertex).status for vertex in ledger.vertices] == ["failed", "pending"]


def test_plain_policies_are_restored_from_the_store() -> None:
    def compute(ctx: Any) -> None:
        raise ValueError

    store = gp.MemoryStore()
    with pytest.raises(AgentsFailedError):
        gp.agents.run(vertices(1), compute, store=store, run_id="one", retry=WITHOUT_WAIT)
    with pytest.raises(AgentsFailedError) as caught:
        gp.agents.resume(store, "one", compute)
    assert caught.value.result.failed[0].attempts == 3
