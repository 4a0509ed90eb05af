"""Requests to runs by their ids, from any program: answer, send, retry, cancel."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.agents import Event, Vertex
from gpu_pregel.errors import AgentsFailedError, ArgumentError, ArgumentTypeError, ClaimedError, FencedError, StoreError
from gpu_pregel.host.agents import requests
from gpu_pregel.host.stores.store import Store
from tests.agents import ONCE
from tests.conformance.agent_programs import COUNTING
from tests.stores import Open, execute


def adding(ctx: Any) -> None:
    ctx.value += sum(ctx.messages)
    ctx.vote_to_halt()


def asking(ctx: Any) -> None:
    ctx.value = [ctx.interrupt("first?"), ctx.interrupt("second?")]
    ctx.vote_to_halt()


@pytest.fixture(autouse=True)
def _polls_always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "POLL_SECONDS", 0.0)


# Send


def test_a_message_to_a_run_that_nobody_has_is_delivered_once_on_resume(opened: Open) -> None:
    gp.agents.run([Vertex("a", 1)], adding, store=opened(), run_id="run")
    assert [gp.agents.send(opened(), "run", "a", one) for one in (10, 100)] == [False, False]
    result = gp.agents.resume(opened(), "run", adding)
    assert (result.status, result.values, result.superstep) == ("completed", {"a": 111}, 2)
    assert opened().requests.list("run") == []
    assert gp.agents.resume(opened(), "run", adding).values == {"a": 111}


def test_messages_to_a_running_run_arrive_in_order_in_its_next_superstep(opened: Open) -> None:
    def keep(ctx: Any) -> None:
        ctx.value.append(list(ctx.messages))

    with gp.agents.start([Vertex("a", [])], keep, store=opened(), run_id="run") as agents:
        agents.step()
        assert [gp.agents.send(opened(), "run", "a", one) for one in (1, 2)] == [True, True]
        agents.send("a", 0)  # at once
        agents.step()
        agents.step()
        assert agents.result().values == {"a": [[], [0, 1, 2], []]}


def test_a_message_that_is_sent_in_the_last_superstep_continues_the_run(opened: Open) -> None:
    def sending(ctx: Any) -> None:
        adding(ctx)
        if ctx.superstep == 0:
            gp.agents.send(opened(), "run", "a", 5)

    result = gp.agents.run([Vertex("a", 1)], sending, store=opened(), run_id="run")
    assert (result.values, result.superstep, opened().run("run").status) == ({"a": 6}, 2, "completed")


def test_a_request_that_is_inserted_after_one_with_a_higher_number_is_not_lost(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow, quick = opened(), opened()
    query, now = slow._database.query, quick._database.now
    last_request = slow._database.statements.last_request
    # The slow sender has chosen its number when the other one stores a request, which the run reads and removes.
    monkeypatch.setattr(slow._database, "query", lambda sql, keys: [(0,)] if sql == last_request else query(sql, keys))
    monkeypatch.setattr(quick._database, "now", lambda: now() + 1000)
    gp.agents.run([Vertex("a", 1)], adding, store=opened(), run_id="run")
    with gp.agents.reopen(opened(), "run", adding) as agents:
        reader = agents._requests
        assert reader is not None
        read = reader.read

        def read_before_the_slow_one() -> requests.Requests:
            monkeypatch.setattr(reader, "read", read)
            found = read()
            gp.agents.send(slow, "run", "a", 100)
            return found

        monkeypatch.setattr(reader, "read", read_before_the_slow_one)
        gp.agents.send(quick, "run", "a", 10)
        while agents.step():
            pass
        assert agents.result().values == {"a": 111}


@pytest.mark.parametrize("is_reopened", [False, True])
def test_a_message_to_a_held_run_arrives_in_the_superstep_after_the_held_one(opened: Open, is_reopened: bool) -> None:
    def compute(ctx: Any) -> None:
        if ctx.superstep == 0:
            ctx.interrupt()
        ctx.value = [*ctx.value, (ctx.superstep, ctx.messages)]
        ctx.vote_to_halt()

    agents = gp.agents.start([Vertex("a", [])], compute, store=opened(), run_id="run")
    agents.step()
    gp.agents.send(opened(), "run", "a", "while held")
    if is_reopened:
        agents.stop()
        agents = gp.agents.reopen(opened(), "run", compute)
    with agents:
        agents.answer("a", None)
        while agents.step():
            pass
        assert agents.result().values == {"a": [(0, []), (1, ["while held"])]}


def test_a_message_to_an_unknown_vertex_is_dropped_and_observed(store: Store) -> None:
    seen: list[Event] = []
    gp.agents.run([Vertex("a", 1)], adding, store=store, run_id="run")
    gp.agents.send(store, "run", "b", 5)
    result = gp.agents.resume(store, "run", adding, observer=seen.append)
    assert (result.status, result.superstep, store.requests.list("run")) == ("completed", 1, [])
    assert [(one.vertex, one.facts) for one in seen if one.kind == "undeliverable"] == [
        ("b", {"text": "there is no such vertex"})
    ]


def test_a_message_is_neither_lost_nor_doubled_if_it_cannot_be_stored_at_first(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise StoreError(store.name, "is full")

    with gp.agents.start([Vertex("a", 1)], adding, store=store, run_id="run") as agents:
        gp.agents.send(store, "run", "a", 5)
        with monkeypatch.context() as patch:
            patch.setattr(store, "flush", fail)
            with pytest.raises(StoreError, match="is full"):
                agents.step()
        while agents.step():
            pass
        assert agents.result().values == {"a": 6}


def test_only_the_newest_owner_takes_a_message_up(opened: Open) -> None:
    first = gp.agents.start([Vertex("a", 1)], adding, store=opened(), run_id="run")
    second = gp.agents.reopen(opened(), "run", adding, takeover=True)
    gp.agents.send(opened(), "run", "a", 5)
    with first, pytest.raises(FencedError):
        first.step()
    assert len(opened().requests.list("run")) == 1
    with second:
        while second.step():
            pass
        assert second.result().values == {"a": 6}


def test_requests_are_looked_for_at_intervals(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(requests, "POLL_SECONDS", 1000.0)
    with gp.agents.start([Vertex("a", 0)], **COUNTING, store=store, run_id="run") as agents:
        agents.step()
        gp.agents.send(store, "run", "a", 1)
        for _ in range(8):
            agents.step()
        assert len(store.requests.list("run")) == 1
        assert agents.step()  # completed, which is when it looks again
        assert (agents.status, store.requests.list("run")) == ("running", [])


# Answer


def test_answers_by_id_are_taken_up_on_resume(opened: Open) -> None:
    gp.agents.run([Vertex("a"), Vertex("b")], asking, store=opened(), run_id="run")
    assert gp.agents.answer(opened(), "run", "a", 1) is False
    assert gp.agents.answer(opened(), "run", "a", 1) is False  # again
    with pytest.raises(ArgumentError, match=r"vertex 'a' of run 'run' is not waiting .* waiting vertices: \['b'\]"):
        gp.agents.answer(opened(), "run", "a", 2)
    result = gp.agents.resume(opened(), "run", asking)
    assert result.interrupts == {"a": "second?", "b": "first?"}
    for vertex, answer in [("a", 2), ("b", 3)]:
        gp.agents.answer(opened(), "run", vertex, answer)
    assert gp.agents.resume(opened(), "run", asking).interrupts == {"b": "second?"}
    gp.agents.answer(opened(), "run", "b", 4)
    assert gp.agents.resume(opened(), "run", asking).values == {"a": [1, 2], "b": [3, 4]}


def test_an_owner_that_holds_a_superstep_takes_an_answer_up(opened: Open) -> None:
    with gp.agents.start([Vertex("a")], asking, store=opened(), run_id="run") as agents:
        assert not agents.step()
        assert gp.agents.answer(opened(), "run", "a", 1) is True
        assert (agents.step(), agents.result().interrupts) == (False, {"a": "second?"})
        agents.answer("a", 2)
        agents.step()
        assert agents.result().values == {"a": [1, 2]}


def test_an_answer_during_the_superstep_spares_the_hold(opened: Open) -> None:
    def compute(ctx: Any) -> None:
        if ctx.vertex_id == "a":
            ctx.value = ctx.interrupt("how much?")
        else:
            deadline = time.monotonic() + 200
            while time.monotonic() < deadline:
                try:
                    gp.agents.answer(opened(), "run", "a", 42)
                    break
                except ArgumentError:  # its question is not stored yet
                    time.sleep(0.01)
        ctx.vote_to_halt()

    result = gp.agents.run([Vertex("a"), Vertex("b")], compute, store=opened(), run_id="run")
    assert (result.status, result.values, result.superstep) == ("completed", {"a": 42, "b": None}, 1)


# Retry


def test_failed_vertices_are_retried_by_id(opened: Open) -> None:
    fails, attempts = True, []

    def compute(ctx: Any) -> None:
        attempts.append((ctx.vertex_id, ctx.attempt))
        if fails and ctx.vertex_id != "c":
            raise OSError("no such place")
        ctx.value = ctx.messages
        ctx.vote_to_halt()

    vertices = [Vertex(name) for name in "abc"]
    with pytest.raises(AgentsFailedError):
        gp.agents.run(vertices, compute, store=opened(), run_id="run", retry=ONCE)
    for chosen, problem in [
        (["a", "c"], r"vertex 'c' has not failed in a held superstep; failed vertices: \['a', 'b'\]"),
        ("ab", "retry takes a list of ids, not 'ab'"),
        ([], "run 'run' has no failed vertices in a held superstep: there is nothing to retry"),
    ]:
        with pytest.raises((ArgumentError, ArgumentTypeError), match=problem):
            gp.agents.retry(opened(), "run", chosen)
    assert gp.agents.retry(opened(), "run", ["b"]) == ["b"]
    with pytest.raises(AgentsFailedError, match="vertex 'a'"):
        gp.agents.resume(opened(), "run", compute)
    assert gp.agents.retry(opened(), "run") == ["a", "b"]
    fails = False
    assert gp.agents.resume(opened(), "run", compute).status == "completed"
    assert attempts == [(name, 1) for name in "abcbab"]
    with pytest.raises(ArgumentError, match="nothing to retry"):
        gp.agents.retry(opened(), "run")
    assert opened().run("run").lease == 0


def test_a_run_that_a_program_has_is_not_retried_by_id(opened: Open) -> None:
    with gp.agents.start([Vertex("a")], asking, store=opened(), run_id="run"), pytest.raises(ClaimedError):
        gp.agents.retry(opened(), "run")


# Cancel


def test_a_run_that_nobody_has_is_cancelled_at_once_and_can_be_resumed(opened: Open) -> None:
    gp.agents.run([Vertex("a")], asking, store=opened(), run_id="run")
    assert gp.agents.cancel(opened(), "run") is False
    assert (opened().run("run").status, opened().run("run").lease) == ("cancelled", 0)
    assert gp.agents.cancel(opened(), "run") is False
    with pytest.raises(ArgumentError, match=r"run 'run' has ended \(cancelled\).*resume it first"):
        gp.agents.send(opened(), "run", "a", 1)
    assert gp.agents.resume(opened(), "run", asking).interrupts == {"a": "first?"}


def test_the_owner_ends_a_cancelled_run_after_its_superstep(opened: Open) -> None:
    def count(ctx: Any) -> None:
        ctx.value += 1
        if ctx.value == 3 and ctx.superstep == 2:
            assert gp.agents.cancel(opened(), "run") is True
        if ctx.value == 5:
            ctx.vote_to_halt()

    result = gp.agents.run([Vertex("a", 0)], count, store=opened(), run_id="run")
    assert (result.status, result.values) == ("cancelled", {"a": 3})
    row = opened().run("run")
    assert (row.status, row.head, row.lease, opened().requests.list("run")) == ("cancelled", 2, 0, [])
    assert gp.agents.resume(opened(), "run", count).values == {"a": 5}
    with pytest.raises(ArgumentError, match=r"run 'run' has ended \(completed\): there is nothing to cancel"):
        gp.agents.cancel(opened(), "run")


def test_a_request_to_cancel_that_came_too_late_has_no_effect(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run ends between the check of :func:`cancel` and its request."""
    read, late = requests.RequestReader.read, iter([True])

    def read_just_before(reader: Any) -> Any:
        found = read(reader)
        if opened().run("run").status == "completed" and next(late, False):
            assert gp.agents.cancel(opened(), "run") is True
        return found

    monkeypatch.setattr(requests.RequestReader, "read", read_just_before)
    assert gp.agents.run([Vertex("a", 1)], adding, store=opened(), run_id="run").status == "completed"
    assert len(opened().requests.list("run")) == 1
    gp.agents.send(opened(), "run", "a", 5)
    result = gp.agents.resume(opened(), "run", adding)
    assert (result.status, result.values, opened().requests.list("run")) == ("completed", {"a": 6}, [])


def test_a_message_beside_a_cancellation_is_kept(opened: Open) -> None:
    with gp.agents.start([Vertex("a", 1)], adding, store=opened(), run_id="run") as agents:
        gp.agents.cancel(opened(), "run")
        gp.agents.send(opened(), "run", "a", 5)
        assert (agents.step(), agents.status) == (False, "cancelled")
    assert gp.agents.resume(opened(), "run", adding).values == {"a": 6}


def test_a_run_on_an_event_loop_takes_requests_up(store: Store) -> None:
    async def compute(ctx: Any) -> None:
        ctx.value += sum(ctx.messages)
        if ctx.superstep == 0:
            gp.agents.send(store, "run", "a", 5)
            ctx.vote_to_halt()
        elif ctx.superstep == 1:
            gp.agents.cancel(store, "run")

    result = asyncio.run(gp.agents.arun([Vertex("a", 1)], compute, store=store, run_id="run"))
    assert (result.status, result.values, result.superstep) == ("cancelled", {"a": 6}, 2)


# Refusals


def test_requests_to_unknown_and_numeric_runs_are_refused(store: Store) -> None:
    with pytest.raises(ArgumentError, match="no run 'other'"):
        gp.agents.send(store, "other", "a", 1)
    store.create("numbers", "numeric", b"", owner="nobody")
    with pytest.raises(ArgumentError, match="run 'numbers' has numeric vertices"):
        gp.agents.cancel(store, "numbers")
    with pytest.raises(ArgumentError, match="run 'numbers' has numeric vertices"):
        gp.agents.answer(store, "numbers", "a", 1)


def test_a_damaged_request_is_an_error(store: Store) -> None:
    gp.agents.run([Vertex("a", 1)], adding, store=store, run_id="run")
    gp.agents.send(store, "run", "a", 5)
    execute(store, "UPDATE @requests SET number = number + 1")
    with pytest.raises(StoreError, match=r"run 'run'.*request"):
        gp.agents.resume(store, "run", adding)
