"""Contexts take messages in encoded form until their attempt ends."""

from __future__ import annotations

from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.agents import Vertex
from gpu_pregel.host.agents.attempt_end import CLOSED
from gpu_pregel.host.agents.codec import encode, id_key
from gpu_pregel.host.agents.encoded_context import send_all_encoded, send_encoded


def test_encoded_messages_arrive_in_order_and_not_after_the_attempt() -> None:
    contexts: list[Any] = []
    several = tuple((id_key("b"), encode(number)) for number in range(3))

    def compute(ctx: Any) -> None:
        ctx.vote_to_halt()
        ctx.value = ctx.messages
        if ctx.vertex_id == "a" and not ctx.superstep:
            contexts.append(ctx)
            send_all_encoded(ctx, ())
            send_all_encoded(ctx, several)
            send_encoded(ctx, id_key("b"), encode("last"))

    result = gp.agents.run([Vertex("a"), Vertex("b")], compute)
    assert result.values == {"a": [], "b": [0, 1, 2, "last"]}
    with pytest.raises(RuntimeError, match="the attempt has ended"):
        send_all_encoded(contexts[0], several)
    with pytest.raises(RuntimeError, match="the attempt has ended"):
        send_encoded(contexts[0], *several[0])
    assert not CLOSED
