"""The ledger of a superstep: for each active vertex its status, attempts, input and, once it has one, its result.

It is the master's, so that a vertex can be computed again with the same input whatever became of its worker; an Erlang
framework's design calls it ``superstep_state``. Most vertices complete at their first attempt, and many may do so in a
millisecond: of those there is only the record.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from gpu_pregel.host.agents.records import Failure, Id, Outcome, Record, TaskFields


class Entry:
    """A vertex in a superstep that did not, or has not yet, just complete at its first attempt.

    Attributes
    ----------
    messages : sequence of bytes
        Its input, in order.
    status : str
        "pending", "in_progress", "completed", "failed" or "interrupted".
    attempts : int
        Made so far, and charged.
    answers : sequence of bytes
        To its interrupts.
    failure : Failure or None
    payload : bytes or None
        What an interrupt asks.
    asked : int
        Number of that question, from 0: it waits for the answer of this number.
    ready : float
        When its next attempt may begin, by the monotonic clock.
    suspect : bool
        Whether it was under way, with others, in a worker that died: it runs alone.
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


class Ledger:
    """The active vertices of one superstep, in order.

    Attributes
    ----------
    step : int
    vertices : list of Id
    records : dict of Id to Record
        Of completed attempts, as they came.
    sent : dict of Id to list of bytes
        Messages from outside that came meanwhile, for the next superstep.
    """

    def __init__(self, step: int, vertices: list[Id], inbox: dict[Id, list[bytes]]) -> None:
        self.step, self.vertices = step, vertices
        self.records: dict[Id, Record] = {}
        self.sent: dict[Id, list[bytes]] = {}
        self._inbox = inbox
        self._entries: dict[Id, Entry] = {}
        self._generations: dict[Id, int] = {}
        self.has_begun = self.has_foreign = False
        """Whether attempts were begun; whether there are records that no worker of this run has made."""

    def entry(self, vertex: Id) -> Entry:
        """All about one vertex."""
        entry = self._entries.get(vertex)
        if entry is None:
            status = "completed" if vertex in self.records else self._usual_status
            entry = Entry(self._inbox.get(vertex, ()), status, int(self.has_begun))
            self._entries[vertex] = entry
        return entry

    def known(self, vertex: Id) -> Entry | None:
        """What there is to say of a vertex beside its record, if anything."""
        return self._entries.get(vertex)

    @property
    def _usual_status(self) -> str:
        """Of a vertex with neither an entry nor a record."""
        return "in_progress" if self.has_begun else "pending"

    def is_complete(self) -> bool:
        """Whether all have completed, which is all that there is to say of most supersteps."""
        return len(self.records) == len(self.vertices)

    def of_status(self, status: str) -> list[Id]:
        """Vertices of a status, in order."""
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

    def failures(self) -> dict[Id, tuple[int, Failure, list[bytes]]]:
        """The superstep, the failure and the input of each vertex that failed."""
        failed = {}
        for vertex in self.of_status("failed"):
            entry = self._entries[vertex]
            if entry.failure is not None:
                failed[vertex] = (self.step, entry.failure, list(entry.messages))
        return failed

    def interrupts(self) -> dict[Id, bytes]:
        """The vertices that wait for an answer, and what they ask."""
        entries = self._entries
        return {vertex: entries[vertex].payload or b"" for vertex in self.of_status("interrupted")}

    def begin(self, vertices: list[Id]) -> list[TaskFields]:
        """Tasks of attempts that begin now; the first call of all begins with every vertex."""
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

    def record_outcomes(self, outcomes: list[Outcome], generation: int) -> list[Outcome]:
        """Take in how attempts ended; those left out are of vertices that have completed, or of earlier attempts."""
        entries, record, stale = self._entries, self.records.setdefault, []
        for outcome in outcomes:
            vertex, _, status, result = outcome
            if status == "completed" and vertex not in entries:
                record(vertex, result)
            elif not self._record_outcome(outcome):
                stale.append(outcome)
        if stale:
            outcomes = [outcome for outcome in outcomes if outcome not in stale]
        if generation:
            self._generations.update([(outcome.id, generation) for outcome in outcomes])
        return outcomes

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
            entry.attempts -= 1  # waiting for an answer is not charged
        return True

    def suspend(self) -> None:
        """Let all that was in progress elsewhere wait, uncharged, as nobody will tell how it ends."""
        for vertex in self.of_status("in_progress"):
            entry = self.entry(vertex)
            entry.status = "pending"
            entry.attempts -= 1

    def generation(self, vertex: Id) -> int:
        """Of the worker that computed its record."""
        return self._generations.get(vertex, 0)

    def retry(self, vertices: Iterable[Id]) -> None:
        """Give failed vertices a fresh set of attempts, with the input they had."""
        for vertex in vertices:
            entry = self.entry(vertex)
            entry.status, entry.attempts, entry.failure, entry.ready = "pending", 0, None, 0.0

    def answer(self, vertex: Id, answer: bytes) -> None:
        """Record an answer to an interrupt; if it is the one waited for, the vertex runs again from its start."""
        entry = self.entry(vertex)
        entry.answers = [*entry.answers, answer]
        if entry.status == "interrupted" and len(entry.answers) > entry.asked:
            entry.status, entry.payload = "pending", None

    def answers(self) -> list[tuple[Id, bytes]]:
        """All answers to interrupts, each vertex's in order."""
        return [(vertex, one) for vertex, entry in sorted(self._entries.items()) for one in entry.answers]

    # What is known from elsewhere.

    def set_completed(self, records: Iterable[tuple[Id, Record]]) -> None:
        """Take over records of attempts that were made elsewhere; the state of no worker has them."""
        self.has_begun = self.has_foreign = True
        for vertex, record in records:
            self.records[vertex] = record
            self._generations[vertex] = -1
            if vertex in self._entries:
                self._entries[vertex].status, self._entries[vertex].failure = "completed", None

    def set_failed(self, vertex: Id, attempts: int, failure: Failure, *, again: bool) -> None:
        """Take over that so many attempts at a vertex failed, and whether there is to be another."""
        entry = self.entry(vertex)
        entry.status, entry.attempts, entry.failure = "pending" if again else "failed", attempts, failure

    def judge_again(self, most: int) -> None:
        """Let those that failed elsewhere have as many attempts as is said here."""
        for entry in self._entries.values():
            if entry.failure is not None and entry.status in ("failed", "pending"):
                is_over = not entry.failure.retryable or entry.attempts >= most
                entry.status = "failed" if is_over else "pending"

    def set_interrupted(self, vertex: Id, attempts: int, payload: bytes, asked: int) -> None:
        """Take over that a vertex waits for the answer of a number."""
        entry = self.entry(vertex)
        entry.status, entry.attempts, entry.failure = "interrupted", attempts, None
        entry.payload, entry.asked = payload, asked

    def completed(self) -> list[tuple[Id, Record]]:
        """Records in the order of their vertices."""
        records = self.records
        if len(records) == len(self.vertices):
            return [(vertex, records[vertex]) for vertex in self.vertices]
        return [(vertex, records[vertex]) for vertex in self.vertices if vertex in records]

    def retries(self) -> int:
        """Attempts beyond each vertex's first."""
        entries = self._entries
        return sum([max(0, entry.attempts - 1) for entry in entries.values()]) if entries else 0
