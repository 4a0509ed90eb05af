"""The keys of a shared state as aggregates of a run: how the updates of a superstep are folded into each.

An aggregate is a tuple of the key's value, or empty before the first update; a contribution is a tuple of an update.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpu_pregel.errors import AgentError, ArgumentError, CodecError
from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.host.agents.combiners import ContributionsError, SuperstepFold
from gpu_pregel.host.agents.records import Id
from gpu_pregel.workflows.schemas import Key
from gpu_pregel.workflows.tasks import writer_order

_START = encode((None,))[:-1]
"""The bytes with which a tuple of one value begins, before those of the value; the version is the first of them."""
_VERSION, _LENGTH = _START[:1], len(_START)
EMPTY = encode(())


def packed_update(update: Any, name: str = "value") -> bytes:
    """Return the encoded tuple of an update, in half the time; errors begin with ``name``."""
    return _START + encode(update, name=name)[1:]


def unpacked_value(aggregate: bytes) -> Any:
    """Return the value in an encoded aggregate that is not ``EMPTY``, in half the time."""
    return decode(_VERSION + aggregate[_LENGTH:]) if aggregate.startswith(_START) else decode(aggregate)[0]


class KeyFold(SuperstepFold):
    """The fold of a key.

    Updates are taken in the order of their writers: nodes by name, then what was sent by ``Send`` in the order of
    sending.
    """

    def __init__(self, key: Key) -> None:
        self.key = key

    def fold(self, before: bytes, contributions: Sequence[tuple[Id, bytes]]) -> bytes:
        """Return the aggregate after a superstep."""
        if self.key.reducer is None:
            if len(contributions) > 1:
                self._refuse_conflict(contributions)
            return contributions[0][1]
        if len(contributions) > 1:
            contributions = sorted(contributions, key=lambda one: writer_order(decode(one[0])))
        value, reasons = decode(before), {}
        for vertex, data in contributions:
            try:
                value = self.take(value, decode(data)[0])
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # the program would end by a SystemExit, and an event loop cancel the run
                reasons[vertex] = reducer_failure(self.key.name, error)
        if reasons:
            raise ContributionsError(reasons)
        try:
            return packed_update(value[0], f"the value of key {self.key.name!r}")
        except CodecError as error:
            raise ContributionsError(dict.fromkeys((vertex for vertex, _ in contributions), error)) from None

    def _refuse_conflict(self, contributions: Sequence[tuple[Id, bytes]]) -> None:
        error = conflict(self.key.name, [decode(vertex) for vertex, _ in contributions])
        raise ContributionsError(dict.fromkeys((vertex for vertex, _ in contributions), error))

    def take_input(self, before: tuple[Any, ...], update: Any) -> tuple[Any, ...]:
        """Return the aggregate after an update by the caller."""
        try:
            return self.take(before, update)
        except Exception as error:
            raise AgentError(f"the input: {reducer_failure(self.key.name, error)}") from error

    def take(self, before: tuple[Any, ...], update: Any) -> tuple[Any, ...]:
        """Return the aggregate after one update."""
        reducer = self.key.reducer
        return (update,) if reducer is None or not before else (reducer(before[0], update),)


class FirstUpdate(SuperstepFold):
    """The fold of an aggregate that keeps the first contribution."""

    def fold(self, before: bytes, contributions: Sequence[tuple[Id, bytes]]) -> bytes:
        """Return the first contribution, or what was there before."""
        return before if decode(before) else contributions[0][1]


def reducer_failure(key: str, error: BaseException) -> AgentError:
    """Return the error for a reducer that has raised."""
    text = f"the reducer of key {key!r} failed: {type(error).__name__}: {error}"
    return AgentError(text).with_traceback(error.__traceback__)


def conflict(key: str, tasks: Sequence[str]) -> ArgumentError:
    """Return the error for several updates of a key that has no reducer, given the tasks that made them."""
    writers = sorted(set(tasks), key=writer_order)
    how = "in the same superstep" if len(writers) > 1 else "twice"
    names = " and ".join(map(repr, writers))
    return ArgumentError(
        f"node{'s' * (len(writers) > 1)} {names} wrote key {key!r} {how}, and it has no reducer: declare one, as in "
        f"Annotated[list, append], or write it once"
    )
