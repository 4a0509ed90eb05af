"""Parts of the worker transport: frames, marks, envelopes, the queue of attempts."""

from __future__ import annotations

import gc
import os
import threading
from typing import Any

import pytest

from gpu_pregel.host.agents.codec import encode
from gpu_pregel.host.agents.ready_queue import ReadyQueue
from gpu_pregel.host.agents.records import Batch, Change, Failure, Outcome, Record, VertexData
from gpu_pregel.host.agents.workers import garbage_collection, pipes
from gpu_pregel.host.agents.workers.attempt_marks import AttemptMarks

A, B, C, D = (encode(name) for name in "abcd")


@pytest.fixture
def ends() -> Any:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    yield reading, writing
    for end in (reading, writing):
        os.close(end)


def read_all(frames: pipes.FrameReader) -> list[tuple[int, bytes]]:
    found = []
    while True:
        found += [(kind, bytes(content)) for kind, content in frames.read()]
        if frames.empty or frames.closed:
            return found


@pytest.mark.parametrize("size", [0, 1, 100, 65_535, 65_536, 300_000, 3_000_000])
def test_frames_of_all_sizes_arrive_in_order(ends: tuple[int, int], size: int) -> None:
    reading, writing = ends
    sent = [(pipes.LOAD, b"first"), (pipes.BATCH, os.urandom(size)), (pipes.END, b""), (pipes.LOG, b"last")]

    def send() -> None:
        for kind, content in sent:
            pipes.write(writing, kind, content)

    thread = threading.Thread(target=send)
    thread.start()
    frames = pipes.FrameReader(reading)
    found: list[tuple[int, bytes]] = []
    while len(found) < len(sent):
        found += read_all(frames)
    thread.join()
    assert found == sent


def test_frames_that_arrive_byte_by_byte_or_incompletely(ends: tuple[int, int]) -> None:
    reading, writing = ends
    frames = pipes.FrameReader(reading)
    whole = pipes.header(3, pipes.LOG) + b"abc"
    for k in range(len(whole)):
        os.write(writing, whole[k : k + 1])
        assert read_all(frames) == ([] if k < len(whole) - 1 else [(pipes.LOG, b"abc")])
    os.write(writing, whole[:-1])
    assert read_all(frames) == []
    assert frames.empty
    assert not frames.closed


@pytest.mark.parametrize("data", [b"\xff" * 13, b"\xff" * 300, bytes(3) + pipes.header(3, pipes.LOG) + b"abc"])
def test_invalid_frames_are_refused(ends: tuple[int, int], data: bytes) -> None:
    reading, writing = ends
    os.write(writing, data)
    with pytest.raises(pipes.BrokenFrameError):
        pipes.FrameReader(reading).read()
    with pytest.raises(pipes.BrokenFrameError):
        pipes.unpack(data)


def test_envelopes_round_trip() -> None:
    vertices = {
        A: VertexData(encode(1), (B, 1, C, 0.5, D, "x")),
        B: VertexData(encode([]), (A, (1, 2), C, {"k": [1]}), True),
        C: VertexData(encode(None), ()),
    }
    assert list(map(pipes.unpack_load, pipes.pack_load(2, 7, vertices))) == [(2, 7, True, vertices)]
    assert list(map(pipes.unpack_load, pipes.pack_load(2, None, {}))) == [(2, None, True, {})]
    many = {encode(k): VertexData(encode(k), (A, k)) for k in range(10_000)}
    frames = list(map(pipes.unpack_load, pipes.pack_load(2, 7, many)))
    assert [is_last for *_, is_last, _ in frames] == [False] * (len(frames) - 1) + [True]
    assert len(frames) > 1
    assert {key: one for *_, part in frames for key, one in part.items()} == many
    change = Change(vertices, [A], [B, D])
    assert pipes.unpack_change(pipes.pack_change(4, change)) == (4, change)
    batch = Batch(3, 100, "f", {"sum": encode(2.5)}, [(A, 1, [b"1", b"2"], ()), (B, 2, (), [b"3"])])
    assert pipes.unpack_batch(pipes.pack_batch(5, batch)) == (5, batch)


def test_outcomes_round_trip() -> None:
    quiet = Record(None, True, (), (), ())
    loud = Record(encode(1), False, [(B, b"m"), (C, b"n")], [("sum", b"1")], [("add_edge", A, B, {"w": (1,)})])
    tasks: list[tuple[Any, ...]] = [
        (vertex, attempt, [b"1"], ()) for vertex, attempt in ((A, 1), (B, 2), (C, 1), (D, 1))
    ]
    completed = [Outcome(vertex, attempt, "completed", record) for (vertex, attempt, _, _), record in
                 zip(tasks, (quiet, loud, quiet, loud), strict=True)]  # fmt: skip
    packed = pipes.pack_outcomes(range(8, 12), completed)
    assert pipes.unpack_outcomes(packed, tasks, 7) == completed
    packed = pipes.pack_outcomes([10, 8], [completed[2], completed[0]])
    assert pipes.unpack_outcomes(packed, tasks, 7) == [completed[2], completed[0]]
    failed = Outcome(B, 2, "failed", Failure("exception", "ValueError", "x", "", True))
    asking = Outcome(D, 1, "interrupted", encode("?"))
    packed = pipes.pack_outcomes(range(8, 12), [completed[0], failed, completed[2], asking])
    assert pipes.unpack_outcomes(packed, tasks, 7) == [completed[0], completed[2], failed, asking]
    assert pipes.unpack_outcomes(pipes.pack_outcomes([9], [failed]), tasks, 7) == [failed]


def test_marks_outlive_their_writer() -> None:
    marks = AttemptMarks(3)
    theirs = AttemptMarks(3, os.dup(marks.fd))
    theirs.serials[1], theirs.begun[1] = 7, 0.5
    theirs.serials[2] = 9
    theirs.close()
    assert marks.running() == [(7, 0.5), (9, 0.0)]
    marks.close()


def test_the_queue_delays_vertices() -> None:
    queue = ReadyQueue(2)
    for vertex, partition in ((A, 0), (B, 1), (C, 0)):
        queue.add(vertex, partition)
    queue.add(D, 0, ready=5.0)
    assert list(queue.take(0.0)) == [(0, [A, C]), (1, [B])]
    assert list(queue.take(0.0)) == []
    assert queue.next_time() == 5.0
    queue.finish(1, 1)
    queue.finish(0, 2)
    assert not queue.is_empty()
    assert list(queue.take(5.0)) == [(0, [D])]
    queue.finish(0, 1)
    assert queue.is_empty()


def test_a_suspect_runs_alone() -> None:
    queue = ReadyQueue(1)
    for vertex in (A, B):
        queue.add(vertex, 0, suspect=True)
    queue.add(C, 0)
    assert list(queue.take(0.0)) == [(0, [C])]
    assert list(queue.take(0.0)) == []
    queue.finish(0, 1)
    assert list(queue.take(0.0)) == [(0, [A])]
    queue.add(D, 0)
    assert list(queue.take(0.0)) == []
    queue.reset(0)
    assert list(queue.take(0.0)) == [(0, [D])]
    queue.finish(0, 1)
    assert list(queue.take(0.0)) == [(0, [B])]
    queue.finish(0, 1)
    assert queue.is_empty()


def test_relaxed_gc_restores_the_thresholds() -> None:
    before = gc.get_threshold()
    with garbage_collection.relaxed_gc():
        inside = gc.get_threshold()
        with garbage_collection.relaxed_gc():
            assert gc.get_threshold() == inside
        assert gc.get_threshold() == inside
    assert gc.get_threshold() == before
    assert inside[0] >= before[0]
