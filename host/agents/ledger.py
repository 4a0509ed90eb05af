"""The ledger of a superstep: for each active vertex its status, attempts, input and, once it has one, its result.

It is the master's, so that a vertex can be computed again with the same input whatever became of its worker; an Erlang
framework's design calls it ``superstep_state``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from gpu_pregel.host.agents.records import Failure, Id, Outcome, Record


@dataclass(slots=True)
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
    answers : list of bytes
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

    messages: list[bytes]
    status: str = "pending"
    attempts: int = 0
    answers: list[bytes] = field(default_factory=list)
    record: Record | None = None
    failure: Failure | None = None
    payload: bytes | None = None
    generation: int = 0
    ready: float = 0.0
    suspect: bool = False


class Ledger:
    """The entries of one superstep, in the order of their vertices."""

    def __init__(self, step: int, inputs: dict[Id, list[bytes]]) -> None:
        self.step = step
        self.entries = {vertex: Entry(messages) for vertex, messages in inputs.items()}

    def of_status(self, status: str) -> list[Id]:
        """Vertices of a status, in order."""
        return [vertex for vertex, entry in self.entries.items() if entry.status == status]

    def record_outcome(self, outcome: Outcome, generation: int) -> Entry | None:
        """Take in how an attempt ended; None if it is of a vertex that has completed, or of an earlier attempt."""
        entry = self.entries.get(outcome.id)
        if entry is None or entry.status == "completed" or outcome.attempt != entry.attempts:
            return None
        entry.status = outcome.status
        if outcome.status == "completed":
            result = outcome.result
            entry.record = result if isinstance(result, Record) else Record.unpack(result)
            entry.generation, entry.failure = generation, None
        elif outcome.status == "failed":
            entry.failure = outcome.result
        else:
            entry.payload = outcome.result
            entry.attempts -= 1  # waiting for an answer is not charged
        return entry

    def retry(self, vertices: list[Id]) -> None:
        """Give failed vertices a fresh set of attempts, with the input they had."""
        for vertex in vertices:
            entry = self.entries[vertex]
            entry.status, entry.attempts, entry.failure, entry.ready = "pending", 0, None, 0.0

    def answer(self, vertex: Id, answer: bytes) -> None:
        """Record an answer to an interrupt; the vertex runs again from its start."""
        entry = self.entries[vertex]
        entry.answers.append(answer)
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
