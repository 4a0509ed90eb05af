"""Requests to a run in a store by its id, from any program: answer, send, retry, cancel."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, NamedTuple

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, ClaimedError, CodecError
from gpu_pregel.host.agents.codec import decode, encode, id_key
from gpu_pregel.host.agents.formats import Segment
from gpu_pregel.host.agents.ledger import Ledger
from gpu_pregel.host.agents.options import check_store
from gpu_pregel.host.agents.parts import Retry
from gpu_pregel.host.agents.records import Id
from gpu_pregel.host.agents.recovery import check_readable, read_held
from gpu_pregel.host.stores.leases import claim_run, is_gone
from gpu_pregel.host.superstep.journal import Answer

if TYPE_CHECKING:
    from gpu_pregel.host.stores.rows import RunRow
    from gpu_pregel.host.stores.store import Store

POLL_SECONDS = 0.1
"""A run looks for requests at most this often, and whenever it is held or ends."""
_SEND, _CANCEL = "send", "cancel"
_OVER = ("completed", "partial", "halted", "max_supersteps")


class Requests(NamedTuple):
    """What other programs ask of a run: messages, the end of the run, and the numbers of these requests."""

    messages: list[tuple[Id, bytes]]
    is_cancelled: bool
    numbers: list[int]


class RequestReader:
    """Reads the requests to a run that this program has claimed."""

    def __init__(self, store: Store, run_id: str) -> None:
        self._store, self._run_id = store, run_id
        self._next = 0.0

    def is_due(self) -> bool:
        """Whether it is time to look again."""
        return time.monotonic() >= self._next

    def read(self) -> Requests:
        """Return all requests that have not been removed."""
        stored = self._store.requests.list(self._run_id)
        self._next = time.monotonic() + POLL_SECONDS
        asked = [decode(one.data, name="a request") for one in stored]
        if any(not isinstance(one, tuple) or one[:1] not in ((_SEND,), (_CANCEL,)) for one in asked):
            raise CodecError("is unknown: use the release that wrote it, or a newer one", "a request")
        messages = [(one[1], one[2]) for one in asked if one[0] == _SEND]
        return Requests(messages, any(one[0] == _CANCEL for one in asked), [one.number for one in stored])

    def answers(self, superstep: int) -> list[Answer]:
        """Return the stored answers to interrupts of the held superstep."""
        return [Answer(one.vertex, one.number, one.data) for one in self._store.answers(self._run_id, superstep)]


def send(store: Store, run_id: str, target: Any, message: Any) -> bool:
    """Send a message to a vertex of a run in a store, from any program.

    The message is durable when this returns. The program that has the run delivers it in its next superstep, after the
    messages of vertices, and a completed run continues; if no program has the run, :func:`resume` delivers it.

    Parameters
    ----------
    store : SQLiteStore, PostgresStore or MemoryStore
    run_id : str
    target : id
        If there is no such vertex when the message is delivered, the message is dropped, and observers receive an
        event "undeliverable".
    message : data

    Returns
    -------
    bool
        Whether a program has the run.

    Raises
    ------
    ArgumentError
        There is no such run, or master compute has ended it, or it was cancelled.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> def add(ctx):
    ...     ctx.value += sum(ctx.messages)
    ...     ctx.vote_to_halt()
    >>> store = gp.MemoryStore()
    >>> gp.agents.run([gp.agents.Vertex("a", 1)], add, store=store, run_id="tuesday").values
    {'a': 1}
    >>> gp.agents.send(store, "tuesday", "a", 41)
    False
    >>> gp.agents.resume(store, "tuesday", add).values
    {'a': 42}
    """
    vertex, data = id_key(target, name="target"), encode(message, name="message")
    run = _find(store, run_id)
    if run.status in ("halted", "cancelled") and not _is_owned(run):  # a resumed run keeps its status until it commits
        raise ArgumentError(
            f"run {run_id!r} has ended ({run.status}), so the message cannot be delivered: resume it first"
        )
    store.requests.add(run_id, encode((_SEND, vertex, data)))
    return _is_owned(store.run(run_id))


def answer(store: Store, run_id: str, vertex: Any, answer: Any) -> bool:
    """Answer a vertex's interrupt of a run in a store, from any program.

    The answer is durable when this returns. The program that has the run takes it up once the superstep is held; if no
    program has the run, :func:`resume` takes it up. Repeating a vertex's last answer has no effect.

    Parameters
    ----------
    store : SQLiteStore, PostgresStore or MemoryStore
    run_id : str
    vertex : id
    answer : data

    Returns
    -------
    bool
        Whether a program has the run.

    Raises
    ------
    ArgumentError
        There is no such run, or the vertex is not waiting for an answer.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> def ask(ctx):
    ...     ctx.value = ctx.interrupt("how much?")
    ...     ctx.vote_to_halt()
    >>> store = gp.MemoryStore()
    >>> gp.agents.run([gp.agents.Vertex("a")], ask, store=store, run_id="tuesday").status
    'interrupted'
    >>> gp.agents.answer(store, "tuesday", "a", 42)
    False
    >>> gp.agents.resume(store, "tuesday", ask).values
    {'a': 42}
    """
    key, data = id_key(vertex), encode(answer, name="answer")
    _find(store, run_id)
    ledger = read_held(store, run_id)
    entry = ledger.find_entry(key)
    if entry is not None and entry.status == "interrupted":
        store.answer(run_id, ledger.step, key, len(entry.answers), data)
    elif (last := store.last_answer(run_id, key)) is None or last.data != data:
        waiting = list(map(decode, ledger.interrupts()))
        raise ArgumentError(
            f"vertex {vertex!r} of run {run_id!r} is not waiting for an answer; waiting vertices: {waiting}"
        )
    return _is_owned(store.run(run_id))


def cancel(store: Store, run_id: str) -> bool:
    """Cancel a run in a store, from any program; its status becomes "cancelled", and :func:`resume` continues it.

    The request is durable when this returns. The program that has the run ends it after the current superstep; if no
    program has the run, it is cancelled at once.

    Parameters
    ----------
    store : SQLiteStore, PostgresStore or MemoryStore
    run_id : str

    Returns
    -------
    bool
        Whether a program has the run.

    Raises
    ------
    ArgumentError
        There is no such run, or it has ended.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> def ask(ctx):
    ...     ctx.value = ctx.interrupt("how much?")
    >>> store = gp.MemoryStore()
    >>> gp.agents.run([gp.agents.Vertex("a")], ask, store=store, run_id="tuesday").status
    'interrupted'
    >>> gp.agents.cancel(store, "tuesday")
    False
    >>> store.run("tuesday").status
    'cancelled'
    """
    run = _find(store, run_id)
    if run.status in _OVER and not _is_owned(run):
        raise ArgumentError(f"run {run_id!r} has ended ({run.status}): there is nothing to cancel")
    try:
        claim = claim_run(store, run_id, lease_seconds=60.0, durability="machine", takeover=False)
    except ClaimedError:
        store.requests.add(run_id, encode((_CANCEL,)))
        return True
    store.release(claim, "cancelled")
    return False


def retry(store: Store, run_id: str, vertices: Iterable[Any] | None = None) -> list[Any]:
    """Give failed vertices of a held run in a store new attempts with the same input, which :func:`resume` computes.

    Parameters
    ----------
    store : SQLiteStore, PostgresStore or MemoryStore
    run_id : str
    vertices : iterable of id, optional
        Default: all failed vertices.

    Returns
    -------
    list of id
        These vertices.

    Raises
    ------
    ClaimedError
        A program has the run: it can call :meth:`AgentRun.retry`.
    ArgumentError
        There is no such run, or the vertices have not failed in a held superstep.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> def fail(ctx):
    ...     raise OSError("no such place")
    >>> def work(ctx):
    ...     ctx.vote_to_halt()
    >>> store = gp.MemoryStore()
    >>> try:
    ...     gp.agents.run([gp.agents.Vertex("a")], fail, store=store, run_id="tuesday")
    ... except gp.errors.AgentsFailedError:
    ...     gp.agents.retry(store, "tuesday")
    ['a']
    >>> gp.agents.resume(store, "tuesday", work).status
    'completed'
    """
    _find(store, run_id)
    claim = claim_run(store, run_id, lease_seconds=60.0, durability="machine", takeover=False)
    try:
        ledger = read_held(store, run_id)
        chosen = chosen_failures(ledger, vertices)
        if not chosen:
            raise ArgumentError(f"run {run_id!r} has no failed vertices in a held superstep: there is nothing to retry")
        store.flush(claim, ledger.step, Segment.of_parts(map(Retry, chosen)).pack())
    finally:
        store.release(claim)
    return list(map(decode, chosen))


def chosen_failures(ledger: Ledger | None, vertices: Iterable[Any] | None) -> list[Id]:
    """Return the failed vertices of a held superstep with the given ids, by default all; refuse other ids."""
    failed = [] if ledger is None else ledger.with_status("failed")
    if vertices is None:
        return failed
    if isinstance(vertices, (str, bytes)) or not isinstance(vertices, Iterable):
        raise ArgumentTypeError(f"retry takes a list of ids, not {vertices!r}")
    chosen = [id_key(vertex) for vertex in vertices]
    for vertex in chosen:
        if vertex not in failed:
            known = list(map(decode, failed))
            raise ArgumentError(
                f"vertex {decode(vertex)!r} has not failed in a held superstep; failed vertices: {known}"
            )
    return chosen


def _find(store: Store, run_id: str) -> RunRow:
    """Return a run of agents that this release can read."""
    run = check_store(store).run(run_id)
    check_readable(store, run)
    return run


def _is_owned(run: RunRow) -> bool:
    """Whether a program has a run, as far as that can be known."""
    return run.lease > time.time() and not is_gone(run.owner)
