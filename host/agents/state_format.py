"""The format in which the state of a run of agents is stored: in slices, each encoded column by column."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, chain, islice
from typing import Any

from gpu_pregel.errors import CodecError
from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.host.agents.codec.differences import PiecedValue, joined
from gpu_pregel.host.agents.records import FailedVertex, Failure, Id, VertexData, flat_edges, new_vertex
from gpu_pregel.host.agents.state import Inbox, State
from gpu_pregel.host.agents.stored_shapes import check_columns, check_ids
from gpu_pregel.host.superstep.base_writer import Packing

_SLICE = 1 << 10
"""Maximum number of vertices in a slice."""


def pack_state(state: State) -> bytes:
    """Encode a state."""
    packing = begin_packing(state)
    while True:
        try:
            next(packing)
        except StopIteration as packed:
            return bytes(packed.value)


def begin_packing(state: State) -> Packing:
    """Encode a state, which must not change meanwhile, in slices of limited size: yields after each of them."""
    vertices, inbox = [], []
    items = iter(state.vertices.items())
    while part := list(islice(items, _SLICE)):
        vertices.append(_pack_vertices(part))
        yield
    messages = iter(state.inbox.items())
    while some := list(islice(messages, _SLICE)):
        texts = [text for _, received in some for text in received]
        inbox.append(encode(([target for target, _ in some], [len(received) for _, received in some], texts)))
        yield
    failed = [(vertex, *_failed_fields(one)) for vertex, one in state.failed.items()]
    return encode((vertices, inbox, state.aggregates, state.function, failed, state.options, state.timers))


def _pack_vertices(items: list[tuple[Id, VertexData]]) -> bytes:
    ones = [one for _, one in items]
    values, edges = [one.value for one in ones], [one.edges for one in ones]
    if PiecedValue in set(map(type, values)):
        values = list(map(joined, values))
    counts = list(map(len, edges))
    return encode(
        (
            [vertex for vertex, _ in items],
            values,
            bytes([one.halted for one in ones]),
            bytes(counts) if max(counts) < 256 else counts,
            list(chain.from_iterable(edges)),
        )
    )


def unpack_state(data: bytes) -> State:
    """Decode a state."""
    columns = read_columns(data, (7, 12, 13, 14), "a state")
    if len(columns) != 7:
        return _unpack_old_state(columns)
    packed, received, aggregates, function, failed, *rest = columns
    vertices: dict[Id, VertexData] = {}
    shared: dict[Id, Id] = {}
    for part in packed:
        _unpack_vertices(part, vertices, shared)
    check_ids(shared, "a state")
    inbox: Inbox = {}
    for part in received:
        receivers, lengths, messages = read_columns(part, (3,), "messages")
        inbox.update(zip(receivers, cut(messages, lengths), strict=True))
    return _checked(State(vertices, inbox, aggregates, function, _unpack_failures(failed), *rest))


def _unpack_vertices(data: bytes, vertices: dict[Id, VertexData], shared: dict[Id, Id]) -> None:
    """Add vertices; equal ids in ``shared`` are used instead of new ones."""
    ids, values, halted, counts, edges = read_columns(data, (5,), "vertices")
    share, equal = shared.setdefault, dict[bytes, bytes]().setdefault
    ids, targets = list(map(share, ids, ids)), edges[::2]
    edges[::2] = map(share, targets, targets)
    columns = map(equal, values, values), cut(tuple(edges), counts), map((1).__eq__, halted)
    before = len(vertices)
    vertices.update(zip(ids, map(new_vertex, zip(*columns, strict=True)), strict=True))
    _check_number(vertices, before + len(ids))


def _unpack_old_state(columns: tuple[Any, ...]) -> State:
    """Restore a state that version 3 or an older one has written."""
    ids, values, halted, counts, targets, weights, receivers, lengths, messages, *rest = columns
    aggregates, function, failed, *options = rest  # the oldest releases stored neither options nor timers
    edges = list(zip(targets, weights, strict=True))
    vertices = {
        vertex: VertexData(value, flat_edges(out), bool(flag))
        for vertex, value, flag, out in zip(ids, values, halted, cut(edges, counts), strict=True)
    }
    _check_number(vertices, len(ids))
    check_ids({*ids, *targets}, "a state")
    inbox = dict(zip(receivers, cut(messages, lengths), strict=True))
    return _checked(State(vertices, inbox, aggregates, function, _unpack_failures(failed), *options))


def _check_number(vertices: dict[Id, VertexData], expected: int) -> None:
    """Raise ``CodecError`` if some vertices have the same id."""
    if len(vertices) != expected:
        raise CodecError("is damaged: several vertices have the same id", "a state")


def _checked(state: State) -> State:
    """Return a state; raise ``CodecError`` if vertices with messages or timers do not exist, or failed ones cannot."""
    check_ids(state.failed, "a state")
    for named in (state.inbox.keys(), state.timers.keys()):
        if not named <= state.vertices.keys():
            missing = min(named - state.vertices.keys())
            raise CodecError(f"is damaged: vertex {decode(missing)!r:.80} does not exist", "a state")
    return state


def _failed_fields(failed: FailedVertex) -> tuple[Any, ...]:
    superstep, failure, messages, attempts, value = failed
    return superstep, failure_fields(failure), messages, attempts, None if value is None else bytes(value)


def _unpack_failures(failed: Iterable[tuple[Any, ...]]) -> dict[Id, FailedVertex]:
    """Restore failures; earlier releases stored neither attempts nor values."""
    return {vertex: FailedVertex(step, Failure(*failure), *rest) for vertex, step, failure, *rest in failed}


def failure_fields(failure: Failure) -> tuple[Any, ...]:
    """Return the fields of a failure, the last one only if it is set."""
    return tuple(failure) if failure.not_before is not None else tuple(failure[:5])


def read_columns(data: bytes, counts: tuple[int, ...], what: str) -> tuple[Any, ...]:
    """Decode columns, of which there are as many as one of ``counts`` says."""
    content = decode(data, name=what)
    if not isinstance(content, tuple) or len(content) not in counts:
        raise CodecError(f"has the wrong structure: it must have {counts[0]} parts", what)
    check_columns(content, what)
    return content


def cut(items: Sequence[Any], counts: Sequence[int]) -> Iterable[Any]:
    """Return consecutive pieces with the given numbers of items."""
    if sum(counts) != len(items) or min(counts, default=0) < 0:
        raise CodecError(f"has counts of {sum(counts)} items, but {len(items)} items", "a column")
    return [items[end - count : end] for count, end in zip(counts, accumulate(counts), strict=True)]
