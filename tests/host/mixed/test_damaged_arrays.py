"""Arrays in a store that fit their checksums but no run are refused; kernels do not check vertices."""

from __future__ import annotations

import marshal
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import CheckpointError, StoreError
from gpu_pregel.host.agents import recovery
from gpu_pregel.host.agents.codec import encode
from gpu_pregel.host.mixed.agent_context import AgentInput
from gpu_pregel.host.mixed.stored_inputs import decode_arrived, decode_inputs, encode_inputs

Blobs = dict[str, bytearray]
LIMIT = 3


def send(ctx: Any) -> None:
    """Send two messages in each superstep."""
    ctx.stay_awake()
    ctx.send(1, 3)
    ctx.send(4, 3)


def run(store: Any, *, resume: bool, limit: int = LIMIT) -> Any:
    graph = gp.Graph.from_edgelist([0, 1, 2, 3], [1, 2, 3, 0], num_vertices=5)
    program = gp.VertexProgram(
        value=np.int64,
        init=lambda ctx: ctx.vertex + 1,
        message=lambda value, ctx: value,
        combine="sum",
        apply=lambda value, incoming, ctx: value + incoming,
        active="always",
    )
    checkpoint, agents = gp.Checkpoint(store, every=1), gp.Agents(send, vertices=[2])
    options: dict[str, Any] = {"max_supersteps": limit, "on_limit": "return", "resume": resume}
    return gp.run(graph, program, device="python", agents=agents, checkpoint=checkpoint, **options)


def put(name: str, *numbers: int) -> Callable[[Blobs], None]:
    """Return a function that sets an array of int64."""
    return lambda blobs: blobs.update({name: bytearray(np.array(numbers, np.int64).tobytes())})


DAMAGE = {
    "a message far away": put("posted", 1, 10**12),
    "a message to a negative vertex": put("posted", -(10**9), 1),
    "vertices that are not in order": put("posted", 4, 1),
    "a message twice": put("posted", 1, 1),
    "more vertices than messages": put("posted", 1, 2, 4),
    "fewer messages than vertices": put("posted0", 3),
    "an agent far away is woken": put("woken", 10**12),
    "messages to an agent far away": lambda blobs: blobs.update(arrived=bytearray(encode([(10**12, [(0, (1,))])]))),
    "no messages to agents": lambda blobs: blobs.update(arrived=bytearray(b"\1")),
    "negative activity": put("activity", -5, 3),
    "half an activity": put("activity", 5),
    "another trace": lambda blobs: blobs.update(trace=bytearray(b"1\n2\n3\n")),
    "a shorter trace": lambda blobs: blobs.update(trace=blobs["trace"][: blobs["trace"].index(b"\n") + 1]),
    "agents that begin later": put("begun", 10**9),
    "agents that begin twice": put("begun", 1, 2),
    "no values": lambda blobs: blobs.update(value0=bytearray()),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_arrays_of_no_run(damage: Callable[[Blobs], None], monkeypatch: pytest.MonkeyPatch) -> None:
    store = gp.MemoryStore()
    run(store, resume=False)
    whole = recovery._read

    def read(*arguments: Any) -> Any:
        found = whole(*arguments)
        found.blobs["inputs"] = bytearray(encode([]))
        damage(found.blobs)
        return found

    monkeypatch.setattr(recovery, "_read", read)
    with pytest.raises(CheckpointError, match="superstep 2: has no valid arrays"):
        run(store, resume=True, limit=LIMIT + 1)
    monkeypatch.undo()
    assert run(store, resume=True, limit=LIMIT + 1).values[2] == 3


@pytest.mark.parametrize("header", [b"", b"[]", b"{}", b'{"arrays": {"value0": "O"}}', b'{"arrays": {}, "fields": 3}'])
def test_past_states_without_valid_arrays(header: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    store = gp.MemoryStore()
    run(store, resume=False)
    whole = recovery._read

    def read(*arguments: Any) -> Any:
        found = whole(*arguments)
        found.blobs["header"] = bytearray(header)
        return found

    monkeypatch.setattr(recovery, "_read", read)
    with pytest.raises(StoreError, match=r"superstep 2.* holds data that cannot be read"):
        gp.agents.state_at(store, "run")


def test_stored_inputs_are_data() -> None:
    """They are decoded, never unmarshalled."""
    given = AgentInput(True, (1, 2.5), 3, b"12345678", [b"1"], [(("a", 1), (0.5,))], ["b"], ()).pack()
    decoded = decode_inputs(encode_inputs({b"one": given}))
    assert {key: marshal.loads(data) for key, data in decoded.items()} == {b"one": marshal.loads(given)}
    cases: list[Any] = [[(b"one", given)], [("one", (1,) * 8)], [(b"one", (True, (), 1, 5, [], [], [], ()))]]
    for damaged in cases:
        with pytest.raises(ValueError, match="damaged"):
            decode_inputs(encode(damaged))
    with pytest.raises(ValueError, match="damaged"):
        decode_arrived(encode([("a", [])]))
