"""The event loop of a worker: batches that arrive at any moment."""

from __future__ import annotations

import asyncio
import os
import select
from collections.abc import Iterator
from typing import Any

import pytest

from gpu_pregel.host.agents.codec import encode
from gpu_pregel.host.agents.options import make_options
from gpu_pregel.host.agents.records import Batch, VertexData
from gpu_pregel.host.agents.workers.attempt_loop import AttemptLoop
from gpu_pregel.host.agents.workers.attempt_marks import AttemptMarks
from gpu_pregel.host.agents.workers.executor import Executor
from gpu_pregel.host.agents.workers.outcome_sender import OutcomeSender


@pytest.mark.parametrize("attempts", [1, 2, 3])
def test_a_batch_that_arrives_when_the_last_attempt_ends_is_computed(attempts: int) -> None:
    """It must not begin on a loop that is about to stop, where it would never end."""
    reader, writer = os.pipe()
    ended: list[int] = []

    async def compute(ctx: Any) -> None:
        await asyncio.sleep(0)

    def batch(attempt: int) -> Batch:
        return Batch(0, 1, "compute", {}, [(vertex, attempt, (), ())])

    def on_end(task: Any) -> None:
        ended.append(task.attempt)
        if len(ended) < attempts:
            os.write(writer, b"x")

    def more() -> Iterator[Batch]:
        os.read(reader, 1)
        yield batch(len(ended) + 1)

    vertex = encode("a")
    executor = Executor(make_options("run", compute, {}).for_partitions("one"))
    executor.load({vertex: VertexData(encode(None), ())})
    marks = AttemptMarks(4)
    loop = AttemptLoop(executor, marks, OutcomeSender(lambda kind, content: None, marks), on_end, None)
    loop.run(batch(1), reader, more)
    while select.select([reader], [], [], 0)[0]:  # as a worker does between two calls
        for late in more():
            loop.run(late, reader, more)
    assert ended == list(range(1, attempts + 1))
    assert marks.running() == []
    loop._loop.close()
    for end in (reader, writer):
        os.close(end)
