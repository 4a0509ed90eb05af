"""Frames over the socket pair between the master and a worker, and the shared marks of attempts under way.

A frame is a length, a kind and content. Envelopes travel by ``marshal``, which takes plain built-in types only and
builds them in C; what users give (values, messages, other weights than numbers and text) is in them as codec bytes.
"""

from __future__ import annotations

import marshal
import mmap
import os
import struct
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import Any

from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.host.agents.records import Batch, Change, Failure, Id, Outcome, Record, Vertex

# Downward.
HELLO, LOAD, BATCH, COMMIT, END = range(5)
# Upward.
READY, OUTCOMES, REFUSED, LOG = range(16, 20)

header = struct.Struct("<QB")
PREFIX, END_OF_PREFIX = "\x1e", "\x1f"
"""Around the name of an attempt before each line that its Python code prints."""
PROGRAM = "\x1d"
"""Before the name of an attempt, as what its programs print comes from here on; before nothing when it has ended."""
_LONGEST = 1 << 40
_CHUNK = 1 << 18
_PLAIN = frozenset({int, float, str, bytes, bool, type(None)})


class BrokenFrameError(Exception):
    """What came is no frame."""


def pack(content: Any) -> bytes:
    """Plain built-in content as bytes."""
    return marshal.dumps(content)


def unpack(data: bytes | bytearray | memoryview) -> Any:
    """Back from bytes."""
    try:
        return marshal.loads(data)
    except (ValueError, EOFError, TypeError) as error:
        raise BrokenFrameError(str(error)) from None


class Frames:
    """Cuts a stream of bytes into frames; what is left of a torn one stays here."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._rest = b""
        self._large: bytearray | None = None
        self._kind = 0
        self._filled = 0
        self.closed = False
        self.empty = False
        """Whether the latest call found nothing to read."""

    def read(self) -> list[tuple[int, bytes | bytearray]]:
        """The frames that one call of the system completes; ``closed`` is set at the end of the stream."""
        self.empty = False
        if self._large is not None:
            return self._read_large(self._large)
        try:
            data = os.read(self._fd, _CHUNK)
        except BlockingIOError:
            self.empty = True
            return []
        except OSError:
            data = b""
        if not data:
            self.closed = True
            return []
        return list(self._cut(self._rest + data if self._rest else data))

    def _cut(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        start, end = 0, len(data)
        while end - start >= header.size:
            length, kind = header.unpack_from(data, start)
            if length > _LONGEST:
                raise BrokenFrameError(f"a frame of {length:,} bytes")
            stop = start + header.size + length
            if stop > end:
                if length > _CHUNK:
                    self._large, self._kind = bytearray(length), kind
                    self._filled = end - start - header.size
                    self._large[: self._filled] = data[start + header.size :]
                    self._rest = b""
                    return
                break
            yield kind, data[start + header.size : stop]
            start = stop
        self._rest = data[start:]

    def _read_large(self, large: bytearray) -> list[tuple[int, bytes | bytearray]]:
        """Fill a large frame where it is to be."""
        try:
            with memoryview(large) as view, view[self._filled :] as rest:
                n = os.readv(self._fd, [rest])
        except BlockingIOError:
            self.empty = True
            return []
        except OSError:
            n = 0
        if n == 0:
            self.closed = True
        self._filled += n
        if self._filled < len(large):
            return []
        self._large = None
        return [(self._kind, large)]


def write(fd: int, kind: int, content: bytes) -> None:
    """Write a frame to a blocking descriptor."""
    head = header.pack(len(content), kind)
    if len(content) < 1 << 16:
        rest = memoryview(head + content)
    else:
        _write_all(fd, memoryview(head))
        rest = memoryview(content)
    _write_all(fd, rest)


def _write_all(fd: int, rest: memoryview) -> None:
    while rest:
        rest = rest[os.write(fd, rest) :]


def describe(vertex: Any, attempt: int) -> str:
    """An attempt in words."""
    return f"vertex {vertex!r}, attempt {attempt}"


# Envelopes.


def pack_vertices(vertices: dict[Id, Vertex]) -> list[tuple[Any, ...]]:
    """Vertices as plain content."""
    return [(key, one.value, _pack_edges(one.edges), one.halted) for key, one in vertices.items()]


def unpack_vertices(content: list[tuple[Any, ...]]) -> dict[Id, Vertex]:
    """Back from plain content."""
    return {key: Vertex(value, _unpack_edges(edges), halted) for key, value, edges, halted in content}


def _pack_edges(edges: list[tuple[Id, Any]]) -> tuple[tuple[Id, Any], ...] | bytes:
    """Edges with plain weights as they are; else as codec bytes."""
    if all(type(weight) in _PLAIN for _, weight in edges):
        return tuple(edges)
    return encode([tuple(edge) for edge in edges])


def _unpack_edges(edges: tuple[tuple[Id, Any], ...] | bytes) -> list[tuple[Id, Any]]:
    return list(decode(edges) if isinstance(edges, bytes) else edges)


def pack_batch(batch: Batch) -> bytes:
    """A batch as bytes."""
    return pack((batch.step, batch.num_vertices, batch.function, batch.aggregates, batch.tasks))


def unpack_batch(data: bytes | bytearray) -> Batch:
    """Back from bytes."""
    return Batch(*unpack(data))


def pack_change(change: Change) -> bytes:
    """What a commit changes as bytes."""
    return pack((pack_vertices(change.set), change.halt, change.remove))


def unpack_change(data: bytes | bytearray) -> Change:
    """Back from bytes."""
    vertices, halt, remove = unpack(data)
    return Change(unpack_vertices(vertices), halt, remove)


def pack_outcomes(serials: Sequence[int], outcomes: list[Outcome]) -> bytes:
    """Outcomes and their serial numbers, those of completed attempts in columns: that takes least time for many."""
    others = [
        (serial, status, tuple(result) if status == "failed" else result)
        for serial, (_, _, status, result) in zip(serials, outcomes, strict=True)
        if status != "completed"
    ]
    if others:
        pairs = zip(serials, outcomes, strict=True)
        serials = [serial for serial, outcome in pairs if outcome.status == "completed"]
        outcomes = [outcome for outcome in outcomes if outcome.status == "completed"]
    records = [outcome.result for outcome in outcomes]
    values, halted, outboxes, aggregates, mutations = zip(*records, strict=True) if records else [()] * 5
    requests = [encode(one) if one else () for one in mutations] if any(mutations) else ()
    numbers = (serials[0], serials[-1]) if isinstance(serials, range) and serials else list(serials)
    return pack((numbers, values, halted, outboxes, aggregates, requests, others))


def unpack_outcomes(data: bytes | bytearray, tasks: list[tuple[Any, ...]], served: int) -> list[Outcome]:
    """Back from bytes; the task of the serial number ``served + 1`` is the first."""
    serials, values, halted, outboxes, aggregates, requests, others = unpack(data)
    if type(serials) is tuple:
        answered = tasks[serials[0] - served - 1 : serials[1] - served]
    else:
        answered = [tasks[serial - served - 1] for serial in serials]
    mutations = [decode(one) if one else () for one in requests] if requests else repeat(())
    records = map(_new_record, zip(values, halted, outboxes, aggregates, mutations, strict=False))
    outcomes = [
        _new_outcome((vertex, attempt, "completed", record))
        for (vertex, attempt, _, _), record in zip(answered, records, strict=True)
    ]
    for serial, status, result in others:
        vertex, attempt, *_ = tasks[serial - served - 1]
        outcomes.append(Outcome(vertex, attempt, status, Failure(*result) if status == "failed" else result))
    return outcomes


_new_record = partial(tuple.__new__, Record)
_new_outcome = partial(tuple.__new__, Outcome)


class Marks:
    """Which attempts are under way in a worker, in memory that outlives it.

    Each slot holds a serial number, from 1 and 0 for none, and when the attempt began by the monotonic clock; 0.0 says
    that it has ended, and its outcome is on its way.
    """

    def __init__(self, slots: int, fd: int | None = None) -> None:
        self.slots = slots
        self.fd = os.memfd_create("marks") if fd is None else fd
        if fd is None:
            os.ftruncate(self.fd, 16 * slots)
        self._map = mmap.mmap(self.fd, 16 * slots)
        view = memoryview(self._map)
        self._views = view, view[: 8 * slots].cast("q"), view[8 * slots :].cast("d")
        self.serials, self.begun = self._views[1:]

    def under_way(self) -> list[tuple[int, float]]:
        """(serial, begun) of every slot that is taken."""
        return [(serial, begun) for serial, begun in zip(self.serials, self.begun, strict=True) if serial]

    def close(self) -> None:
        """Give back the memory and the descriptor."""
        for view in reversed(self._views):
            view.release()
        self._map.close()
        os.close(self.fd)
