"""Runs step by step: checkpoint data, messages from outside, and exceptions of observers."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.agents import Vertex
from gpu_pregel.errors import AgentError, ArgumentError
from gpu_pregel.host.agents.codec import encode
from gpu_pregel.host.agents.parts import EarlyMessage
from tests.agents import FEW, ONCE

pytestmark = pytest.mark.usefixtures("interrupts")

RING = [Vertex(k, [], [(k + 1) % 4]) for k in range(4)]


def ring(ctx: Any) -> None:
    ctx.value = [*ctx.value, [ctx.superstep, ctx.messages, ctx.random.random(), ctx.aggregated("total")]]
    ctx.aggregate("total", ctx.superstep)
    if ctx.superstep < 6:
        ctx.send_to_neighbors([ctx.vertex_id, ctx.superstep])
    if ctx.superstep == 2 and ctx.vertex_id == 1:
        ctx.add_vertex("new", [], [0])
        ctx.add_edge(1, "new", 2.5)
    ctx.vote_to_halt()


def content(result: Any) -> list[Any]:
    return [
        (one.id, one.value, [tuple(edge) for edge in one.edges], one.halted)
        for one in sorted(result.vertices.values(), key=lambda one: str(one.id))
    ]


TOTAL = {"total": gp.agents.Aggregator("sum", persistent=True)}


@FEW
def test_checkpoint_data_continue_a_run(workers: int) -> None:
    whole = gp.agents.run(RING, ring, aggregators=TOTAL, run_id="one")
    data: Any = RING
    for _ in range(20):
        with gp.agents.start(data, ring, aggregators=TOTAL, run_id="one", workers=workers) as agents:
            agents.step()
            agents.step()
            data, status, result = agents.checkpoint_data(), agents.status, agents.result()
        if status != "running":
            break
    assert status == "completed"
    assert content(result) == content(whole)
    assert result.aggregates == whole.aggregates
    assert result.superstep == whole.superstep == 7


def fail_and_ask(ctx: Any) -> None:
    with open(ctx.value, "a") as log:
        log.write(f"{ctx.vertex_id}\n")
    if ctx.superstep == 0:
        if ctx.vertex_id == "fails" and not os.path.exists(ctx.value + ".mended"):
            raise ValueError("broken")
        if ctx.vertex_id == "asks":
            ctx.aggregate("answers", ctx.interrupt("which?") + ctx.interrupt("really?"))
        if ctx.vertex_id == "good":
            ctx.send("asks", "from good")
    elif ctx.messages:
        ctx.aggregate("answers", ctx.messages[0])
    ctx.vote_to_halt()


@FEW
def test_checkpoint_data_of_a_held_superstep_compute_only_the_rest(workers: int, tmp_path: Path) -> None:
    log = str(tmp_path / "log")
    options: Any = {"aggregators": {"answers": "list"}, "retry": ONCE, "workers": workers}

    def seen() -> dict[str, int]:
        return Counter(Path(log).read_text().split())

    with gp.agents.start([Vertex(name, log) for name in ("asks", "fails", "good")], fail_and_ask, **options) as agents:
        assert not agents.step()
        assert agents.status == "failed"
        first = agents.checkpoint_data()
    with gp.agents.start(first, fail_and_ask, **options) as agents:
        held = agents.result()
        assert held.failed["fails"].text == "broken"
        assert held.interrupts == {"asks": "which?"}
        assert not agents.step()
        assert agents.status == "failed"
        assert seen() == {"asks": 1, "fails": 1, "good": 1}
        Path(log + ".mended").touch()
        agents.retry()
        agents.answer("asks", "this ")
        assert not agents.step()
        assert agents.result().interrupts == {"asks": "really?"}
        second = agents.checkpoint_data()
    with gp.agents.start(second, fail_and_ask, **options) as agents:
        agents.answer("asks", "yes")
        assert agents.step()
        assert agents.result().aggregates == {"answers": ["this yes"]}
        assert not agents.step()
        assert agents.result().aggregates == {"answers": ["from good"]}
    assert agents.status == "completed"
    assert seen() == {"asks": 4, "fails": 2, "good": 1}


def test_attempts_before_a_checkpoint_count(tmp_path: Path) -> None:
    made: list[int] = []

    def compute(ctx: Any) -> None:
        made.append(ctx.attempt)
        if len(made) == 2:
            raise KeyboardInterrupt
        raise ValueError

    retry = gp.agents.RetryPolicy(attempts=3, wait=0)
    with gp.agents.start([Vertex("a")], compute, retry=retry) as agents:
        with pytest.raises(KeyboardInterrupt):
            agents.step()
        data = agents.checkpoint_data()
    with gp.agents.start(data, compute, retry=retry) as agents:
        agents.step()
        assert agents.status == "failed"
    assert made == [1, 2, 2, 3]


def test_a_checkpoint_needs_its_compute_function() -> None:
    data = gp.agents.start([Vertex(1)], functions={"first": ring}).checkpoint_data()
    with pytest.raises(ArgumentError, match="'first', which was not passed; available: 'compute'"):
        gp.agents.start(data, ring)


def echo(ctx: Any) -> None:
    ctx.value = [*(ctx.value or []), *ctx.messages]
    if ctx.messages and ctx.vertex_id == "a":
        ctx.send("b", f"re {ctx.messages[-1]}")
    ctx.vote_to_halt()


@FEW
def test_messages_from_outside_come_last_and_continue_a_completed_run(workers: int) -> None:
    with gp.agents.start([Vertex("a"), Vertex("b")], echo, workers=workers) as agents:
        agents.send("a", "early")
        while agents.step():
            pass
        assert agents.status == "completed"
        agents.send("a", "late")
        agents.send("b", "last")
        assert agents.status == "running"
        while agents.step():
            pass
        assert agents.status == "completed"
        assert agents.result().values == {"a": ["early", "late"], "b": ["re early", "last", "re late"]}
        with pytest.raises(ArgumentError, match="no vertex 'c'"):
            agents.send("c", 1)


def test_messages_from_outside_during_a_hold_arrive_in_the_next_superstep() -> None:
    def compute(ctx: Any) -> None:
        if ctx.superstep == 0 and ctx.vertex_id == "a":
            ctx.interrupt()
        if ctx.superstep == 0:
            ctx.send("a", f"from {ctx.vertex_id}")
        ctx.value = ctx.messages
        ctx.vote_to_halt()

    with gp.agents.start([Vertex("a"), Vertex("b")], compute) as agents:
        agents.step()
        agents.send("a", "from outside")
        data = agents.checkpoint_data()
    with gp.agents.start(data, compute) as agents:
        agents.answer("a", None)
        while agents.step():
            pass
        assert agents.result().values["a"] == ["from a", "from b", "from outside"]


def test_a_stopped_run_refuses_messages() -> None:
    with gp.agents.start([Vertex("a")], echo) as agents:
        agents.stop()
        with pytest.raises(ArgumentError, match="ended \\(stopped\\)"):
            agents.send("a", 1)
        assert not agents.step()


@FEW
def test_an_exception_of_an_observer_loses_nothing(workers: int) -> None:
    raised: set[str] = set()

    def observe(event: Any) -> None:
        if event.kind not in raised:
            raised.add(event.kind)
            raise OSError(event.kind)

    with gp.agents.start(RING, ring, aggregators=TOTAL, run_id="one", workers=workers, observer=observe) as agents:
        for _ in range(20):
            try:
                if not agents.step():
                    break
            except OSError:
                pass
        assert raised == {"superstep", "attempt", "commit", "end"}
        assert agents.status == "completed"
        assert content(agents.result()) == content(gp.agents.run(RING, ring, aggregators=TOTAL, run_id="one"))


@FEW
def test_a_run_cannot_continue_after_its_with_block(workers: int) -> None:
    def compute(ctx: Any) -> None:
        ctx.value += 1

    with gp.agents.start([Vertex(k, 0) for k in range(3)], compute, workers=workers) as agents:
        assert agents.step()
    for _ in range(2):
        with pytest.raises(AgentError, match="the run has ended: its workers are gone"):
            agents.step()
    assert agents.result().values == {0: 1, 1: 1, 2: 1}
    agents.stop()
    assert not agents.step()


def test_a_failure_of_an_unregistered_type_is_reported() -> None:
    unknown = encode("x")[:1] + b"\xc8\x00"
    with gp.agents.start([Vertex("a")], echo, retry=ONCE) as agents:
        agents._master.receive(EarlyMessage(encode("a"), unknown))
        agents.step()
        assert agents.status == "failed"
        assert agents.result().failed["a"].messages == [unknown]
