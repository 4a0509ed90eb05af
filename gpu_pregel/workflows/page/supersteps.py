"""What happened in each superstep of a run of agents, replayed from its commits: changes, messages, failures."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from gpu_pregel.errors import ArgumentError
from gpu_pregel.host.agents.aggregate_changes import changed_aggregates
from gpu_pregel.host.agents.codec.differences import changed_value
from gpu_pregel.host.agents.codec.format import DIFFERENCE
from gpu_pregel.host.agents.formats import SavedSuperstep, Segment
from gpu_pregel.host.agents.parts import EarlyMessage, FailedAttempts, LaterMessage, Question
from gpu_pregel.host.agents.previews import cut
from gpu_pregel.host.agents.records import Id, Record
from gpu_pregel.host.agents.state import State
from gpu_pregel.host.agents.state_format import unpack_state
from gpu_pregel.workflows.page.bounded_reader import BoundedReader
from gpu_pregel.workflows.page.labels import Labels
from gpu_pregel.workflows.page.state_keys import state_keys, unwrap_differences

if TYPE_CHECKING:
    from gpu_pregel.host.stores.rows import StoredAnswer
    from gpu_pregel.host.stores.saved_run import SavedRun
    from gpu_pregel.host.stores.store import Store

_LIMITS = (40, 12, 4, 0)
"""How many vertices and messages of a superstep are shown; the next number is tried if they take too many bytes."""
_CHARACTERS = 1_000
_MAX_ACTIVE = 1_000
_MAX_LABELS, _MAX_ROUTES = 10_000, 20_000
OUTSIDE = -1
"""The number of the sender of messages from outside."""


@dataclass
class Superstep:
    """A superstep of agents before it is described; ``state`` is that before it, and may be lacking.

    Attributes
    ----------
    number : int
    segments : list of Segment
    aggregates : dict of str to bytes
        Those after it.
    mutated, removed
        As in ``SavedSuperstep``.
    answers : list of StoredAnswer
    """

    number: int
    segments: Sequence[Segment]
    aggregates: Mapping[str, bytes]
    state: State
    mutated: Sequence[tuple[Any, ...]] = ()
    removed: Sequence[Id] = ()
    answers: Sequence[StoredAnswer] = ()

    @property
    def records(self) -> list[tuple[Id, Record]]:
        """The last record of each vertex, in order."""
        return sorted({vertex: record for segment in self.segments for vertex, record in segment.records}.items())

    def parts(self, kind: type[Any]) -> list[Any]:
        """Return the parts of a kind, in order."""
        return [part for segment in self.segments for part in segment.others if isinstance(part, kind)]


@dataclass
class Replay:
    """The supersteps of a run, described one after the other.

    Attributes
    ----------
    labels : Labels
    reader : BoundedReader
    routes : Counter
        How many messages went from one vertex to another.
    """

    labels: Labels
    reader: BoundedReader
    routes: Counter[tuple[Id, Id]] = field(default_factory=Counter)

    def committed(self, store: Store, run_id: str, first: int, most_bytes: int) -> Iterator[dict[str, Any]]:
        """Yield the description of each commit from superstep ``first``; it may take at most ``most_bytes``."""
        saved = _load_before(store, run_id, first)
        state = unpack_state(saved.base())
        carried: list[Segment] = []
        for commit in store.commits(run_id, saved.base_step):
            read = SavedSuperstep.unpack(commit.step, commit.segments(), commit.data)
            shown: dict[str, Any] = {}
            if read.begun is None:
                read.segments, carried = carried + read.segments, []
                if commit.step >= first:
                    answers = store.answers(run_id, commit.step)
                    extra = read.mutated, read.removed, answers
                    aggregates = changed_aggregates(state.aggregates, read.aggregates)
                    step = Superstep(commit.step, read.segments, aggregates, state, *extra)
                    shown = self.describe(step, most_bytes)
                read.apply(state)  # without its messages, as the inputs of failed vertices are not looked at
            else:
                carried += read.segments
            if commit.step >= first:
                seconds = read.row.get("seconds", 0.0)
                times = {"began": commit.time - seconds, "ended": commit.time}
                yield {"superstep": commit.step, "status": "committed", "row": read.row, **times, **shown}

    def describe(self, step: Superstep, most_bytes: int) -> dict[str, Any]:
        """Return what happened in a superstep, of which less is shown if it would take more bytes."""
        records = step.records
        self._count_routes(records)
        active = [] if len(self.labels.texts) > _MAX_LABELS else records[:_MAX_ACTIVE]
        for most in _LIMITS:
            shown = {
                "active": [self.labels.number(vertex) for vertex, _ in active],
                "computed": len(records),
                **self._aggregates(step),
                **self._vertices(step, records, most),
                **self._messages(step, records, most),
                **self._failures(step, most),
                **self._questions(step, most),
            }
            if len(json.dumps(shown)) <= most_bytes:
                return shown
        return {"active": [], "computed": len(records), "cut": True}

    def _count_routes(self, records: Iterable[tuple[Id, Record]]) -> None:
        routes = self.routes
        for vertex, record in records:
            for target, _ in record.outbox:
                if len(routes) < _MAX_ROUTES:
                    routes[vertex, target] += 1

    def _aggregates(self, step: Superstep) -> dict[str, Any]:
        before, changes, keys = step.state.aggregates, [], state_keys(step.state)
        for name, after in step.aggregates.items():
            if name not in before:
                changes.append([name, [[[], "added", None, self.reader.tree(after)]], 0])
            elif before[name] != after:
                found, more = self.reader.differences(before[name], after)
                changes.append([name, unwrap_differences(found) if name in keys else found, more])
        return {"aggregates": changes}

    def _vertices(self, step: Superstep, records: list[tuple[Id, Record]], most: int) -> dict[str, Any]:
        """Describe the vertices that a superstep changes, adds and removes."""
        vertices, found = step.state.vertices, []
        changed = [(vertex, record.value) for vertex, record in records if record.value is not None]
        added = [(vertex, value) for vertex, value, *_ in step.mutated if vertex not in vertices]
        for vertex, value in changed[:most]:
            old = bytes(vertices[vertex].value) if vertex in vertices else b""
            new = bytes(changed_value(old, value)) if value[0] == DIFFERENCE else value
            found.append([self.labels.number(vertex), "changed", *self.reader.differences(old, new)])
        for vertex, value in added[:most]:
            whole = [[], "added", None, self.reader.tree(value, 60, _CHARACTERS)]
            found.append([self.labels.number(vertex), "added", [whole], 0])
        found += [[self.labels.number(vertex), "removed", [], 0] for vertex in step.removed[:most]]
        count = len(changed) + len(added) + len(step.removed)
        return {"vertices": found, "verticesMore": count - len(found)}

    def _messages(self, step: Superstep, records: list[tuple[Id, Record]], most: int) -> dict[str, Any]:
        number = self.labels.number
        found: list[list[Any]] = []
        count = 0
        for vertex, record in records:
            for target, message in record.outbox:
                count += 1
                if count <= most:
                    found.append([number(vertex), number(target), self.reader.tree(message, 40, _CHARACTERS)])
        given = [*step.parts(EarlyMessage), *step.parts(LaterMessage)]
        for part in given[:most]:
            found.append([OUTSIDE, number(part.target), self.reader.tree(part.message, 40, _CHARACTERS)])
        return {"messages": found, "messagesMore": count + len(given) - len(found)}

    def _failures(self, step: Superstep, most: int) -> dict[str, Any]:
        failed: list[FailedAttempts] = step.parts(FailedAttempts)
        found = [
            [
                self.labels.number(part.vertex),
                part.attempts,
                part.failure.type,
                cut(part.failure.text, 2 * _CHARACTERS),
                _cut_middle(part.failure.traceback, 6 * _CHARACTERS),
                part.again,
            ]
            for part in failed[: most + 10]
        ]
        return {"failures": found, "failuresMore": len(failed) - len(found)}

    def _questions(self, step: Superstep, most: int) -> dict[str, Any]:
        answers = {(one.vertex, one.number): one.data for one in step.answers}
        questions = {(part.vertex, part.number): part.payload for part in step.parts(Question)}
        found = []
        for (vertex, which), payload in list(questions.items())[: most + 10]:
            answer = answers.get((vertex, which))
            told = None if answer is None else self.reader.tree(answer, 60, _CHARACTERS)
            found.append([self.labels.number(vertex), self.reader.tree(payload, 60, _CHARACTERS), told])
        return {"questions": found, "questionsMore": len(questions) - len(found)}


def _load_before(store: Store, run_id: str, first: int) -> SavedRun:
    """Return the run at the newest base from which superstep ``first`` can be reached."""
    try:
        return store.load(run_id, first - 1)
    except ArgumentError:  # it was pruned meanwhile, or was not committed on its own
        return store.load(run_id)


def _cut_middle(text: str, limit: int) -> str:
    """Return a traceback without its middle, as the last lines say most."""
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n… [{len(text) - 2 * half:,} characters left out]\n{text[-half:]}"
