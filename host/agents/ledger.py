"""The ledger of a superstep: for each active vertex its status, attempts, input and, once it has one, its result.

It is the master's, so that a vertex can be computed again with the same input whatever became of its worker; an Erlang
framework's design calls it ``superstep_state``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from gpu_pregel.host.agents.records import Failure, Id, Outcome, Record


class Entry:
    """A vertex in a superstep.

    Attributes
    ----------
    status : str
        "pending", "in_progress", "completed", "failed" or "interrupted".
    attempts : int
        Made so far, and charged.
    messages : list of bytes
        Its input, in order.
    answers : sequence of bytes
        To its interrupts.
    record : Record or None
    failure : Failure or None
    payload : bytes or None
        What an interrupt asks.
    generation : int
        Of the worker that computed the record.
    ready : float
        When its next attempt may begin, by the monotonic clock.
    suspect : bool
        Whether it was under way, with others, in a worker that died: it runs alone.
    """

    status: str = "pending"
    attempts: int = 0
    answers: Sequence[bytes] = ()
    record: Record | None = None
    failure: Failure | None = None
    payload: bytes | None = None
    generation: int = 0
    ready: float = 0.0
    suspect: bool = False

    def __init__(self, messages: list[bytes]) -> None:
        self.messages = messages  # the rest is the class's until it changes


class Ledger:
    """The entries of one superstep, in the order of their vertices."""

    def __init__(self, step: int, vertices: list[Id], inbox: dict[Id, list[bytes]]) -> None:
        self.step = step
        nothing: list[bytes] = []
        self.entries = {vertex: Entry(inbox.get(vertex, nothing)) for vertex in vertices}
        self._open = len(self.entries)

    def of_status(self, status: str) -> list[Id]:
        """Vertices of a status, in order."""
        if not self._open and status != "completed":
            return []
        return [vertex for vertex, entry in self.entries.items() if entry.status == status]

    def record_outcomes(self, outcomes: Iterable[Outcome], generation: int) -> list[Outcome]:
        """Take in how attempts ended; those left out are of vertices that have completed, or of earlier attempts."""
        entries, accepted = self.entries, []
        for outcome in outcomes:
            vertex, attempt, status, result = outcome
            entry = entries.get(vertex)
            if entry is None or entry.record is not None or attempt != entry.attempts:
                continue
            accepted.append(outcome)
            entry.status = status
            if status == "completed":
                entry.record, entry.generation, entry.failure = result, generation, None
                self._open -= 1
            elif status == "failed":
                entry.failure = result
            else:
                entry.payload = result
                entry.attempts -= 1  # waiting for an answer is not charged
        return accepted

    def retry(self, vertices: list[Id]) -> None:
        """Give failed vertices a fresh set of attempts, with the input they had."""
        for vertex in vertices:
            entry = self.entries[vertex]
            entry.status, entry.attempts, entry.failure, entry.ready = "pending", 0, None, 0.0

    def answer(self, vertex: Id, answer: bytes) -> None:
        """Record an answer to an interrupt; the vertex runs again from its start."""
        entry = self.entries[vertex]
        entry.answers = [*entry.answers, answer]
        entry.status, entry.payload = "pending", None

    def completed(self) -> list[tuple[Id, Record]]:
        """Records in the order of their vertices."""
        return [(vertex, entry.record) for vertex, entry in self.entries.items() if entry.record is not None]

    def figures(self) -> dict[str, Any]:
        """How many of each status."""
        counts: dict[str, Any] = dict.fromkeys(("pending", "in_progress", "completed", "failed", "interrupted"), 0)
        for entry in self.entries.values():
            counts[entry.status] += 1
        return counts
