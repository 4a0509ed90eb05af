"""The state of a superstep that runs or is held, and what is kept of its failures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.agents import AgentRun, Edge, Event, SuperstepState, Vertex, VertexProgress
from gpu_pregel.errors import ArgumentError, AttemptError
from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.host.agents.records import FailedVertex, Failure, VertexData
from gpu_pregel.host.agents.state import State
from gpu_pregel.host.agents.state_format import pack_state, unpack_state
from tests.agents import FEW, WITHOUT_WAIT


def state_of(agents: AgentRun) -> SuperstepState:
    """Return the state of the held superstep."""
    state = agents.superstep_state
    assert state is not None
    return state


def flaky(ctx: Any) -> None:
    """Vertices 1 and 2 fail in superstep 1, the latter for good."""
    if ctx.superstep == 0:
        ctx.send_to_neighbors(("from", ctx.vertex_id))
    elif ctx.vertex_id == 1:
        raise ValueError("again")
    elif ctx.vertex_id == 2:
        raise AttemptError("never", retryable=False)
    elif ctx.vertex_id == 3:
        ctx.interrupt("which?")
    else:
        ctx.value = "new"
        ctx.send(1, "one")
        ctx.send(3, ["three"])
    if ctx.superstep == 1:
        ctx.vote_to_halt()


RING = [Vertex(k, {"number": k}, [Edge((k + 1) % 4, 0.5)]) for k in range(4)]


@FEW
def test_a_held_superstep_shows_its_vertices(workers: int) -> None:
    with gp.agents.start(RING, flaky, workers=workers, retry=WITHOUT_WAIT) as agents:
        assert agents.superstep_state is None
        assert agents.step()
        assert agents.superstep_state is None
        assert not agents.step()
        state = state_of(agents)
    assert (state.superstep, list(state), len(state)) == (1, [0, 1, 2, 3], 4)
    assert {one: (state[one].status, state[one].attempts) for one in state} == {
        0: ("completed", 1),
        1: ("failed", 3),
        2: ("failed", 1),
        3: ("interrupted", 0),
    }
    assert [one.messages for one in state.values()] == [[("from", (k - 1) % 4)] for k in range(4)]
    assert [one.vertex for one in state.values()] == RING
    assert [one.outbox for one in state.values()] == [[(1, "one"), (3, ["three"])], [], [], []]
    assert [one.payload for one in state.values()] == [None, None, None, "which?"]
    assert [one.computed for one in state.values()] == [
        Vertex(0, "new", [Edge(1, 0.5)], halted=True),
        None,
        None,
        None,
    ]
    assert state.failed_vertices() == [1, 2]
    assert (state.retryable, state.retryable_vertices(3), state.retryable_vertices(4)) == ([], [], [1])
    computed, outbox = state.completed_results()
    assert computed == {0: Vertex(0, "new", [Edge(1, 0.5)], halted=True)}
    assert outbox == [(1, "one"), (3, ["three"])]
    assert {one: (why.text, why.attempts, why.value, why.messages) for one, why in state.failures.items()} == {
        1: ("again", 3, {"number": 1}, [("from", 0)]),
        2: ("never", 1, {"number": 2}, [("from", 1)]),
    }
    assert [one.failure for one in state.values()] == [None, state.failures[1], state.failures[2], None]
    assert repr(state) == "<superstep 1: 4 vertices, 2 failed>"
    with pytest.raises(KeyError):
        state[4]


def test_a_computed_vertex_whose_value_has_changed_in_part_or_not_at_all() -> None:
    def grow(ctx: Any) -> None:
        if ctx.vertex_id == "grows":
            ctx.value["texts"].append("new")
        elif ctx.vertex_id == "fails":
            raise ValueError("held")

    texts = [f"text {number} " * 9 for number in range(300)]
    vertices = [Vertex("fails"), Vertex("grows", {"texts": texts}), Vertex("rests", 7)]
    with gp.agents.start(vertices, grow, retry=WITHOUT_WAIT) as agents:
        agents.step()
        state = state_of(agents)
    grown = state["grows"].computed
    assert grown is not None
    assert grown.value == {"texts": [*texts, "new"]}
    assert state["grows"].vertex.value == {"texts": texts}
    assert state["rests"].computed == Vertex("rests", 7, [])


def test_a_state_does_not_change_with_the_run() -> None:
    with gp.agents.start(RING, flaky, retry=WITHOUT_WAIT, on_failure="continue") as agents:
        agents.step()
        agents.step()
        before = state_of(agents)
        agents.answer(3, "this")
        assert (before[3].status, state_of(agents)[3].status) == ("interrupted", "pending")
        agents.step()
        assert agents.superstep_state is None
        assert (before[3].status, before[0].vertex.value) == ("interrupted", {"number": 0})


def test_observers_see_a_running_superstep() -> None:
    seen: list[list[str]] = []

    def observe(event: Event) -> None:
        if event.kind == "superstep":
            assert state_of(agents)[2].status == "pending"
        elif event.kind == "attempt":
            seen.append([one.status for one in state_of(agents).values()])

    def compute(ctx: Any) -> None:
        ctx.vote_to_halt()

    with gp.agents.start([Vertex(k) for k in range(3)], compute, observer=observe) as agents:
        agents.step()
    assert seen == [["completed"] * 3] * 3


def test_a_bad_number_of_attempts_is_refused() -> None:
    with gp.agents.start(RING, flaky, retry=WITHOUT_WAIT) as agents:
        agents.step(), agents.step()
        with pytest.raises(ArgumentError, match="max_retries"):
            state_of(agents).retryable_vertices(-1)


def test_a_resumed_superstep_shows_what_is_stored(tmp_path: Path) -> None:
    def details(state: SuperstepState) -> list[VertexProgress]:
        return list(state.values())

    with gp.SQLiteStore(tmp_path / "runs.db") as store:
        options: dict[str, Any] = {"store": store, "run_id": "one", "retry": WITHOUT_WAIT}
        with gp.agents.start(RING, flaky, **options) as agents:
            agents.step()
            agents.step()
            before = state_of(agents)
        with gp.agents.reopen(store, "one", flaky) as agents:
            assert details(state_of(agents)) == details(before)
            assert state_of(agents).failures == before.failures


# What is kept of failures


def fail_once(ctx: Any) -> None:
    """Vertex 1 fails in superstep 0, and counts afterwards."""
    if ctx.vertex_id == 1 and ctx.superstep == 0:
        raise ValueError("no")
    ctx.value = (ctx.value or 0) + 1
    ctx.send(1, ctx.value)
    if ctx.superstep == 2:
        ctx.vote_to_halt()


@pytest.mark.parametrize("base_every", [1, 50])
def test_failures_keep_the_attempts_and_the_value(base_every: int) -> None:
    store = gp.MemoryStore()
    result = gp.agents.run(
        [Vertex(0), Vertex(1, 7)],
        fail_once,
        retry=WITHOUT_WAIT,
        on_failure="continue",
        store=store,
        base_every=base_every,
        run_id="one",
        max_supersteps=4,
        on_limit="return",
    )
    assert result.values[1] > 7
    for one in (result, gp.agents.state_at(store, "one")):
        why = one.failed[1]
        assert (why.superstep, why.attempts, why.value, why.messages) == (0, 3, 7, [])


def test_states_of_earlier_releases_have_neither() -> None:
    failed = FailedVertex(3, Failure("exception", "ValueError", "no", "", False), [encode("in")], 2, encode(5))
    state = State({encode("b"): VertexData(encode(0), ())}, {}, {}, "compute", {encode("a"): failed})
    packed = pack_state(state)
    assert unpack_state(packed).failed == state.failed
    columns = list(decode(packed))
    assert len(columns[4][0]) == 6
    columns[4] = [row[:4] for row in columns[4]]
    found = unpack_state(encode(tuple(columns))).failed[encode("a")]
    assert found == failed._replace(attempts=None, value=None)
