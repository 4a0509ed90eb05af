"""Frames over the socket pair between the master and a worker.

A frame has four fixed bytes, a length, a kind and content. Envelopes are serialized by ``marshal``, which is fast and
supports plain built-in types; user data (values, messages, weights other than numbers and text) are inside them as
codec bytes.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # signal.pthread_sigmask takes 30 times as long
import marshal
import os
import struct
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import chain, islice, repeat
from typing import Any

from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.host.agents.records import (
    Batch,
    Change,
    Edges,
    Failure,
    Id,
    Outcome,
    VertexData,
    new_record,
    new_vertex,
)

# Sent by the master.
HELLO, LOAD, BATCH, COMMIT, END = range(5)
# Sent by the worker.
READY, OUTCOMES, REFUSED, LOG, RETURNED, EMITTED = range(16, 22)

_HEADER = struct.Struct("<IQB")
_MAGIC = 0xF6A7E55D
"""Begins each frame, so that bytes which other code has written to the descriptor are never taken for a length."""
PREFIX, END_OF_PREFIX = "\x1e", "\x1f"
"""Delimiters of the name of an attempt, before each line that its Python code prints."""
PROGRAM = "\x1d"
"""Precedes the name of an attempt whose subprocesses write the following output; no name follows after its end."""
_MAX_FRAME = 1 << 40
_CHUNK = 1 << 18
LARGE = 1 << 16
_LOADED = 1 << 13
"""Maximum number of vertices in a frame that loads them."""
_SIGNALS = _signal.valid_signals()
_PLAIN = frozenset({int, float, str, bytes, bool, type(None)})


class BrokenFrameError(Exception):
    """The data received are not a frame."""


def pack(content: Any) -> bytes:
    """Serialize plain built-in content."""
    return marshal.dumps(content)


def unpack(data: bytes | bytearray | memoryview) -> Any:
    """Restore content from ``pack``."""
    try:
        return marshal.loads(data)
    except (ValueError, EOFError, TypeError) as error:
        raise BrokenFrameError(str(error)) from None


class FrameReader:
    """Reads frames from a descriptor, and keeps incomplete ones until the rest arrives."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._buffer = memoryview(bytearray(_CHUNK))
        """Kept, as the C library returns so large a piece of memory to the system, and each page then faults again."""
        self._rest = b""
        self._large: bytearray | None = None
        self._kind = 0
        self._filled = 0
        self.closed = False
        self.empty = False
        """Whether the last call found nothing to read."""

    def read(self) -> list[tuple[int, bytes | bytearray]]:
        """Return the frames that one system call completes; set ``closed`` at the end of the stream."""
        self.empty = False
        if self._large is not None:
            return self._read_large(self._large)
        try:
            data = bytes(self._buffer[: os.readv(self._fd, [self._buffer])])
        except BlockingIOError:
            self.empty = True
            return []
        except OSError:
            data = b""
        if not data:
            self.closed = True
            return []
        return list(self._split(self._rest + data if self._rest else data))

    def _split(self, data: bytes) -> Iterator[tuple[int, bytes]]:
        start, end = 0, len(data)
        while end - start >= _HEADER.size:
            magic, length, kind = _HEADER.unpack_from(data, start)
            if magic != _MAGIC or length > _MAX_FRAME:
                raise BrokenFrameError(f"it begins with {data[start : start + _HEADER.size].hex(' ')}")
            stop = start + _HEADER.size + length
            if stop > end:
                if length > _CHUNK:
                    self._large, self._kind = bytearray(length), kind
                    self._filled = end - start - _HEADER.size
                    self._large[: self._filled] = data[start + _HEADER.size :]
                    self._rest = b""
                    return
                break
            yield kind, data[start + _HEADER.size : stop]
            start = stop
        self._rest = data[start:]

    def _read_large(self, large: bytearray) -> list[tuple[int, bytes | bytearray]]:
        """Read a large frame into its own buffer."""
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


def header(length: int, kind: int) -> bytes:
    """Return the bytes before the content of a frame."""
    return _HEADER.pack(_MAGIC, length, kind)


def write(fd: int, kind: int, content: bytes) -> None:
    """Write a frame to a blocking descriptor, with one system call unless a signal handler interrupts it."""
    head = header(len(content), kind)
    if len(content) < LARGE:
        rest = memoryview(head + content)
        rest = rest[os.write(fd, rest) :]
    else:
        rest = memoryview(content)[os.writev(fd, (head, content)) - len(head) :]
    while rest:
        rest = rest[os.write(fd, rest) :]


def write_whole(fd: int, kind: int, content: bytes) -> None:
    """Write a frame while code of a user runs, whose signal handlers may raise: only before or after it."""
    blocked = _signal.pthread_sigmask(_signal.SIG_BLOCK, _SIGNALS)
    try:
        write(fd, kind, content)
    finally:
        _signal.pthread_sigmask(_signal.SIG_SETMASK, blocked)


def describe(vertex: Any, attempt: int) -> str:
    """Return the name of an attempt for output and logs."""
    return f"vertex {vertex!r}, attempt {attempt}"


# Envelopes.


def pack_vertices(vertices: dict[Id, VertexData]) -> tuple[Any, ...]:
    """Convert vertices to plain content, in columns."""
    if not vertices:
        return [], [], [], b""
    ones = vertices.values()
    values = [bytes(one.value) for one in ones]
    edges: list[Edges | bytes] = [one.edges for one in ones]
    if not _PLAIN.issuperset(map(type, chain.from_iterable(edges))):
        edges = [_pack_edges(one.edges) for one in ones]
    return list(vertices), values, edges, [one.halted for one in ones]


def unpack_vertices(content: tuple[Any, ...]) -> dict[Id, VertexData]:
    """Restore vertices from plain content."""
    keys, values, edges, halted = content
    if bytes in set(map(type, edges)):
        edges = [one if type(one) is tuple else tuple(decode(one)) for one in edges]
    return dict(zip(keys, map(new_vertex, zip(values, edges, halted, strict=True)), strict=True))


def _pack_edges(edges: Edges) -> Edges | bytes:
    """Return edges as they are if all weights are plain; otherwise as codec bytes."""
    return edges if _PLAIN.issuperset(map(type, edges)) else encode(list(edges))


def pack_load(generation: int, step: int | None, vertices: dict[Id, VertexData]) -> Iterator[bytes]:
    """Serialize the vertices of a generation of a worker before a superstep, in frames of limited size."""
    items, left = iter(vertices.items()), len(vertices)
    while True:
        part = dict(islice(items, _LOADED))
        left -= len(part)
        yield pack((generation, step, left == 0, pack_vertices(part)))
        if not left:
            return


def unpack_load(data: bytes | bytearray) -> tuple[int, int | None, bool, dict[Id, VertexData]]:
    """Restore generation, superstep, whether this is the last frame, and its vertices."""
    generation, step, is_last, vertices = unpack(data)
    return generation, step, is_last, unpack_vertices(vertices)


def pack_batch(generation: int, batch: Batch) -> bytes:
    """Serialize a batch for a generation of a worker."""
    fields = batch.step, batch.num_vertices, batch.function, batch.aggregates, batch.tasks
    return pack((generation, *fields, pack_vertices(batch.guests)))


def unpack_batch(data: bytes | bytearray) -> tuple[int, Batch]:
    """Restore generation and batch."""
    generation, step, count, function, aggregates, tasks, guests = unpack(data)
    return generation, Batch(step, count, function, aggregates, tasks, unpack_vertices(guests))


def pack_change(step: int, change: Change) -> bytes:
    """Serialize the commit of a superstep."""
    return pack((step, pack_vertices(change.set), change.halt, change.remove))


def unpack_change(data: bytes | bytearray) -> tuple[int, Change]:
    """Restore superstep and change."""
    step, vertices, halt, remove = unpack(data)
    return step, Change(unpack_vertices(vertices), halt, remove)


def pack_outcomes(serials: Sequence[int], outcomes: list[Outcome]) -> bytes:
    """Serialize outcomes and their serial numbers; records are in columns, which is fastest for many."""
    others: list[tuple[int, str, Any]] = []
    if any(outcome.status != "completed" for outcome in outcomes):
        serials, outcomes, others = _separate(serials, outcomes)
    records = [outcome.result for outcome in outcomes]
    values, halted, outboxes, aggregates, mutations = zip(*records, strict=True) if records else [()] * 5
    requests = [encode(one) if one else () for one in mutations] if any(mutations) else ()
    numbers = (serials[0], serials[-1]) if isinstance(serials, range) and serials else list(serials)
    return pack((numbers, values, halted, outboxes, aggregates, requests, others))


def _separate(
    serials: Sequence[int], outcomes: list[Outcome]
) -> tuple[list[int], list[Outcome], list[tuple[int, str, Any]]]:
    """Return completed outcomes with their serial numbers, and the others as plain content."""
    pairs = list(zip(serials, outcomes, strict=True))
    completed = [(serial, outcome) for serial, outcome in pairs if outcome.status == "completed"]
    others = [
        (serial, outcome.status, tuple(outcome.result) if outcome.status == "failed" else outcome.result)
        for serial, outcome in pairs
        if outcome.status != "completed"
    ]
    return [serial for serial, _ in completed], [outcome for _, outcome in completed], others


def unpack_outcomes(data: bytes | bytearray, tasks: list[tuple[Any, ...]], served: int) -> list[Outcome]:
    """Restore outcomes; the first of ``tasks`` has the serial number ``served + 1``."""
    serials, values, halted, outboxes, aggregates, requests, others = unpack(data)
    if type(serials) is tuple:
        answered = tasks[serials[0] - served - 1 : serials[1] - served]
    else:
        answered = [tasks[serial - served - 1] for serial in serials]
    mutations = [decode(one) if one else () for one in requests] if requests else repeat(())
    records = map(new_record, zip(values, halted, outboxes, aggregates, mutations, strict=False))
    outcomes = [
        _new_outcome((vertex, attempt, "completed", record))
        for (vertex, attempt, _, _), record in zip(answered, records, strict=True)
    ]
    for serial, status, result in others:
        vertex, attempt, *_ = tasks[serial - served - 1]
        outcomes.append(Outcome(vertex, attempt, status, Failure(*result) if status == "failed" else result))
    return outcomes


_new_outcome = partial(tuple.__new__, Outcome)
