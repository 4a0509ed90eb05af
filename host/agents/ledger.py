"""The ledger of a superstep: the status, attempts, input and result of each active vertex.

The master keeps it, so that a vertex can be computed again with the same input after its worker has died. A vertex that
completes at its first attempt, as most do, has only a record and no entry.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence

from gpu_pregel.host.agents.parts import LaterMessage, Part, Retry
from gpu_pregel.host.agents.records import FailedVertex, Failure, Id, Outcome, Record, TaskFields, VertexData
from gpu_pregel.host.superstep.journal import Answer


class Entry:
    """The progress of a vertex that has not completed at its first attempt.

    Attributes
    ----------
    messages : sequence of bytes
        Input, in order.
    status : str
        "pending", "in_progress", "completed", "failed" or "interrupted".
    attempts : int
        Number of attempts that count against the retry policy.
    answers : sequence of bytes
        Answers to interrupts.
    failure : Failure or None
    payload : bytes or None
        Payload of the interrupt that waits for an answer.
    asked : int
        Number of that interrupt, from 0.
    ready : float
        Earliest time of the next attempt, on the monotonic clock.
    suspect : bool
        Whether it was one of several running when a worker died, so that it has to run alone.
    """

    __slots__ = ("answers", "asked", "attempts", "failure", "messages", "payload", "ready", "status", "suspect")

    def __init__(self, messages: Sequence[bytes], status: str, attempts: int) -> None:
        self.messages, self.status, self.attempts = messages, status, attempts
        self.answers: Sequence[bytes] = ()
        self.failure: Failure | None = None
        self.payload: bytes | None = None
        self.asked = 0
        self.ready = 0.0
        self.suspect = False

    def failed(self, superstep: int, before: VertexData | None) -> FailedVertex:
        """Return the failure with the input; ``before`` is the vertex before the superstep."""
        assert self.failure is not None
        value = None if before is None else before.value
        return FailedVertex(superstep, self.failure, list(self.messages), self.attempts, value)


class Ledger:
    """The active vertices of one superstep, in order.

    Attributes
    ----------
    step : int
    vertices : list of Id
    records : dict of Id to Record
        Records of completed attempts, in the order of completion.
    sent : dict of Id to list of bytes
        Messages from outside for the next superstep.
    refused : set of Id
        Vertices whose records were dropped here.
    cancelled : list of Id
        Vertices that had not ended when the superstep was aborted.
    """

    def __init__(self, step: int, vertices: list[Id], inbox: dict[Id, list[bytes]]) -> None:
        self.step, self.vertices = step, vertices
        self.records: dict[Id, Record] = {}
        self.sent: dict[Id, list[bytes]] = {}
        self.refused: set[Id] = set()
        self.cancelled: list[Id] = []
        self._inbox = inbox
        self._entries: dict[Id, Entry] = {}
        self._generations: dict[Id, int] = {}
        self.has_begun = self.has_foreign = False
        """Whether attempts have started; whether some records were computed in another process."""

    def entry(self, vertex: Id) -> Entry:
        """Return the entry of a vertex, creating it if there is none."""
        entry = self._entries[vertex] = self.peek(vertex)
        return entry

    def peek(self, vertex: Id) -> Entry:
        """Return the entry of a vertex, or what it would be."""
        entry = self._entries.get(vertex)
        if entry is None:
            status = "completed" if vertex in self.records else self._usual_status
            entry = Entry(self._inbox.get(vertex, ()), status, int(self.has_begun))
        return entry

    def find_entry(self, vertex: Id) -> Entry | None:
        """Return the entry of a vertex, or None."""
        return self._entries.get(vertex)

    @property
    def _usual_status(self) -> str:
        """The status of vertices without an entry or a record."""
        return "in_progress" if self.has_begun else "pending"

    def is_complete(self) -> bool:
        """Whether all vertices have completed."""
        return len(self.records) == len(self.vertices)

    def with_status(self, status: str) -> list[Id]:
        """Return the vertices with a status, in order."""
        if status == "completed":
            return [vertex for vertex in self.vertices if vertex in self.records]
        if status != self._usual_status:
            return sorted([vertex for vertex, entry in self._entries.items() if entry.status == status])
        entries, records = self._entries, self.records
        return [
            vertex
            for vertex in self.vertices
            if (entries[vertex].status == status if vertex in entries else vertex not in records)
        ]

    def cancelled_only(self) -> bool:
        """Whether no vertex waits to be computed but cancelled ones, which wait for another to be tried again."""
        return set(self.cancelled).issuperset(self.with_status("pending"))

    def has_ended(self, vertex: Id) -> bool:
        """Whether a vertex has completed, failed for good or asked, or has been told to go on after one of these."""
        entry = self._entries.get(vertex)
        return vertex in self.records or (entry is not None and (entry.failure is None or entry.status == "failed"))

    def failures(self, states: Mapping[Id, VertexData], vertices: Iterable[Id] | None = None) -> dict[Id, FailedVertex]:
        """Return why each failed vertex, or each of those given, has failed, and its input.

        ``states`` has the vertices before the superstep.
        """
        failed = {}
        for vertex in self.with_status("failed") if vertices is None else vertices:
            entry = self._entries.get(vertex)
            if entry is not None and entry.failure is not None:
                failed[vertex] = entry.failed(self.step, states.get(vertex))
        return failed

    def interrupts(self) -> dict[Id, bytes]:
        """Return the payload of each vertex that waits for an answer."""
        entries = self._entries
        return {vertex: entries[vertex].payload or b"" for vertex in self.with_status("interrupted")}

    def begin(self, vertices: list[Id]) -> list[TaskFields]:
        """Start attempts and return their tasks."""
        inbox = self._inbox
        tasks: list[TaskFields] = []
        self.has_begun = True
        if not self._entries:
            return [(vertex, 1, inbox.get(vertex, ()), ()) for vertex in vertices]
        for vertex in vertices:
            entry = self._entries.get(vertex)
            if entry is None:
                tasks.append((vertex, 1, inbox.get(vertex, ()), ()))
            else:
                entry.status = "in_progress"
                entry.attempts += 1
                tasks.append((vertex, entry.attempts, entry.messages, entry.answers))
        return tasks

    def record_outcomes(self, outcomes: list[Outcome], generation: int) -> tuple[list[Outcome], list[Outcome]]:
        """Record outcomes, unless they are of completed vertices or earlier attempts.

        Returns those recorded, and those of them that have not completed.
        """
        entries, record, others, stale = self._entries, self.records.setdefault, [], []
        for outcome in outcomes:
            vertex, _, status, result = outcome
            if status == "completed" and vertex not in entries:
                record(vertex, result)
            elif not self._record_outcome(outcome):
                stale.append(outcome)
            elif status != "completed":
                others.append(outcome)
        if stale:
            outcomes = [outcome for outcome in outcomes if outcome not in stale]
        if generation:
            self._generations.update([(outcome.id, generation) for outcome in outcomes])
        return outcomes, others

    def _record_outcome(self, outcome: Outcome) -> bool:
        entry = self.entry(outcome.id)
        if entry.status != "in_progress" or outcome.attempt != entry.attempts:
            return False
        entry.status = outcome.status
        if outcome.status == "completed":
            self.records[outcome.id], entry.failure = outcome.result, None
        elif outcome.status == "failed":
            entry.failure = outcome.result
        else:
            entry.payload, entry.asked = outcome.result, len(entry.answers)
            entry.attempts -= 1  # an interrupted attempt does not count
        return True

    def refuse(self, vertex: Id, failure: Failure) -> Entry:
        """Drop the record of a completed vertex, which cannot be folded: its attempt has failed."""
        entry = self.entry(vertex)
        entry.status, entry.failure = "failed", failure
        del self.records[vertex]
        self.refused.add(vertex)
        return entry

    def take_back(self, vertices: Iterable[Id]) -> None:
        """Set attempts that have not begun back to pending."""
        for vertex in vertices:
            entry = self.entry(vertex)
            entry.status = "pending"
            entry.attempts -= 1

    def suspend(self) -> None:
        """Set attempts that were running in another process back to pending, without counting them."""
        self.has_begun = True
        self.take_back(self.with_status("in_progress"))

    def mark_foreign(self, vertex: Id) -> None:
        """Note that the record of a vertex is not in the worker of its partition."""
        self.has_foreign = True
        self._generations[vertex] = -1

    def generation(self, vertex: Id) -> int:
        """Return the generation of the worker that computed the record of a vertex."""
        return self._generations.get(vertex, 0)

    def receive(self, part: Part | Answer) -> None:
        """Apply a retry, an answer, or a message for the next superstep."""
        if isinstance(part, LaterMessage):
            self.sent.setdefault(part.target, []).append(part.message)
        elif isinstance(part, Retry):
            self.retry([part.vertex])
        elif isinstance(part, Answer):
            self.answer(part.vertex, part.data)

    def retry(self, vertices: Iterable[Id]) -> None:
        """Give failed vertices a new set of attempts, with the same input."""
        for vertex in vertices:
            entry = self.entry(vertex)
            entry.status, entry.attempts, entry.failure, entry.ready = "pending", 0, None, 0.0

    def answer(self, vertex: Id, answer: bytes) -> None:
        """Record an answer; if the vertex waits for it, it becomes pending."""
        entry = self.entry(vertex)
        entry.answers = [*entry.answers, answer]
        if entry.status == "interrupted" and len(entry.answers) > entry.asked:
            entry.status, entry.payload = "pending", None

    def answers(self) -> list[tuple[Id, bytes]]:
        """Return all answers to interrupts, in order for each vertex."""
        return [(vertex, one) for vertex, entry in sorted(self._entries.items()) for one in entry.answers]

    # Restoring a superstep that another process started.

    def run_status(self) -> str:
        """Return the status of the run."""
        if self.with_status("pending"):
            return "running"
        if self.with_status("failed"):
            return "failed"
        return "interrupted" if self.with_status("interrupted") else "running"

    def set_completed(self, records: Iterable[tuple[Id, Record]]) -> None:
        """Restore records, which no worker of this process has."""
        self.has_begun = self.has_foreign = True
        restored = dict(records)
        self.records.update(restored)
        self._generations.update(dict.fromkeys(restored, -1))
        for vertex in self._entries.keys() & restored.keys():
            self._entries[vertex].status, self._entries[vertex].failure = "completed", None

    def set_failed(self, vertex: Id, attempts: int, failure: Failure, *, again: bool) -> None:
        """Restore the number of failed attempts at a vertex, and whether there will be another."""
        entry = self.entry(vertex)
        self.records.pop(vertex, None)  # it could not be folded
        entry.status, entry.attempts, entry.failure = "pending" if again else "failed", attempts, failure

    def apply_attempts(self, most: Callable[[Id], int]) -> list[Id]:
        """Apply the maximum number of attempts of each vertex to restored failures; return those that now fail."""
        given_up = []
        for vertex, entry in self._entries.items():
            if entry.failure is not None and entry.status in ("failed", "pending"):
                is_final = not entry.failure.retryable or entry.attempts >= most(vertex)
                if is_final and entry.status == "pending":
                    given_up.append(vertex)
                entry.status = "failed" if is_final else "pending"
                left = None if is_final else entry.failure.seconds_left()
                entry.ready = time.monotonic() + left if left else 0.0
        return given_up

    def set_interrupted(self, vertex: Id, attempts: int, payload: bytes, asked: int) -> None:
        """Restore that a vertex waits for the answer of interrupt number ``asked``."""
        entry = self.entry(vertex)
        entry.status, entry.attempts, entry.failure = "interrupted", attempts, None
        entry.payload, entry.asked = payload, asked

    def completed_records(self) -> list[tuple[Id, Record]]:
        """Return records in the order of vertices."""
        records = self.records
        if len(records) == len(self.vertices):
            return [(vertex, records[vertex]) for vertex in self.vertices]
        return [(vertex, records[vertex]) for vertex in self.vertices if vertex in records]

    def retries(self) -> int:
        """Return the number of attempts beyond the first of each vertex."""
        entries = self._entries
        return sum([max(0, entry.attempts - 1) for entry in entries.values()]) if entries else 0
