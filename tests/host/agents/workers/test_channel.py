"""The master's end of a connection: frames that are made while the other end reads."""

from __future__ import annotations

import selectors
import socket
from collections.abc import Iterator

import pytest

from gpu_pregel.host.agents.workers import pipes
from gpu_pregel.host.agents.workers.channel import Channel

SIZE = 1 << 18


@pytest.fixture
def ends() -> Iterator[tuple[Channel, socket.socket, selectors.BaseSelector]]:
    ours, theirs = socket.socketpair()
    selector = selectors.DefaultSelector()
    yield Channel(ours, selector, "ours"), theirs, selector
    selector.close()
    ours.close()
    theirs.close()


def test_frames_are_made_as_the_other_end_reads(ends: tuple[Channel, socket.socket, selectors.BaseSelector]) -> None:
    channel, theirs, selector = ends
    made: list[int] = []

    def contents() -> Iterator[bytes]:
        for k in range(50):
            made.append(k)
            yield bytes((k,)) * SIZE

    channel.send(pipes.HELLO, b"first")
    channel.send_each(pipes.LOAD, contents())
    assert 0 < len(made) < 10  # no more than the connection accepts
    channel.send(pipes.BATCH, b"after")
    channel.send_each(pipes.LOAD, iter([b"", b"last"]))
    theirs.setblocking(False)
    reader = pipes.FrameReader(theirs.fileno())
    found: list[tuple[int, bytes]] = []
    while len(found) < 54:
        assert channel.has_unsent or len(made) == 50
        assert len(made) - len(found) < 10
        found += [(kind, bytes(content)) for kind, content in reader.read()]
        for _, mask in selector.select(0):
            assert mask == selectors.EVENT_WRITE
            channel.send_rest()
    assert found == [
        (pipes.HELLO, b"first"),
        *[(pipes.LOAD, bytes((k,)) * SIZE) for k in range(50)],
        (pipes.BATCH, b"after"),
        (pipes.LOAD, b""),
        (pipes.LOAD, b"last"),
    ]
    assert not channel.has_unsent
    assert not selector.select(0)  # it waits for writing no longer
    channel.send(pipes.END, b"")
    assert [kind for kind, _ in reader.read()] == [pipes.END]


def test_frames_for_a_process_that_has_ended_are_not_made(
    ends: tuple[Channel, socket.socket, selectors.BaseSelector],
) -> None:
    channel, theirs, _ = ends
    theirs.close()
    made: list[int] = []

    def contents() -> Iterator[bytes]:
        for k in range(50):
            made.append(k)
            yield bytes(SIZE)

    channel.send_each(pipes.LOAD, contents())
    assert len(made) <= 1
    assert not channel.has_unsent
    channel.ignore()
    channel.send_each(pipes.LOAD, contents())
    channel.send(pipes.END, b"")
    assert len(made) <= 1
    assert not channel.has_unsent


def test_held_frames_are_sent_with_the_next_one(
    ends: tuple[Channel, socket.socket, selectors.BaseSelector],
) -> None:
    channel, theirs, _ = ends
    theirs.setblocking(False)
    reader = pipes.FrameReader(theirs.fileno())
    channel.hold(pipes.COMMIT, b"one")
    channel.hold(pipes.COMMIT, b"two")
    assert reader.read() == []
    channel.send(pipes.BATCH, b"three")
    assert reader.read() == [(pipes.COMMIT, b"one"), (pipes.COMMIT, b"two"), (pipes.BATCH, b"three")]
    for number in range(100):
        channel.hold(pipes.COMMIT, bytes([number]))
    assert [content[0] for _, content in reader.read()] == list(range(65))
    channel.send_each(pipes.LOAD, iter([b"last"]))
    assert [content[0] for _, content in reader.read()] == [*range(65, 100), ord("l")]
    assert not channel.has_unsent
