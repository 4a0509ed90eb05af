"""The recorded events of a run on its page: the times of attempts, what they emitted, and what else happened."""

from __future__ import annotations

import json
from collections import Counter
from typing import TYPE_CHECKING, Any

from gpu_pregel.host.agents.observers.timeline import OMITTED, RecordedEvent, read_events
from gpu_pregel.host.agents.previews import cut
from gpu_pregel.workflows.page.labels import Labels

if TYPE_CHECKING:
    from gpu_pregel.host.stores.store import Store

_MAX_ATTEMPTS, _MAX_EMISSIONS, _MAX_OTHERS = 6_000, 4_000, 1_000
_MAX_CHARACTERS = 800_000
"""Characters of everything that attempts emitted."""


class EventSummary:
    """Collects what a page shows of recorded events; of too many the newest.

    Attributes
    ----------
    is_recorded : bool
        Whether any were recorded.
    attempts : list
        Superstep, vertex, attempt, status, when it began and its seconds.
    emissions : list
        Superstep, vertex, attempt, time, and a text or a tree.
    others : list
        Time, superstep, kind, vertex or None, attempt or None, and a text.
    began : dict of int to float
        When each superstep began.
    held : dict of int to float
        When it was last held.
    omitted : Counter
        Events that were counted only, by kind.
    """

    def __init__(self, labels: Labels) -> None:
        self.is_recorded = False
        self.attempts: list[list[Any]] = []
        self.emissions: list[list[Any]] = []
        self.others: list[list[Any]] = []
        self.began: dict[int, float] = {}
        self.held: dict[int, float] = {}
        self.omitted: Counter[str] = Counter()
        self._labels = labels

    def read(self, store: Store, run_id: str, first: int) -> None:
        """Read the events from superstep ``first``."""
        for _, events in read_events(store, run_id):
            self.is_recorded = True
            for event in events:
                if event.superstep >= first:
                    self._add(event)
        characters = 0
        for number in range(len(self.emissions) - 1, -1, -1):
            shown = self.emissions[number][-1]
            characters += len(json.dumps(shown, ensure_ascii=False))
            if characters > _MAX_CHARACTERS:
                self.omitted["emit"] += number + 1
                del self.emissions[: number + 1]
                break

    def _add(self, event: RecordedEvent) -> None:
        kind, facts = event.kind, event.facts
        vertex = None if event.vertex is None else self._labels.number_of(event.vertex)
        if kind == "superstep":
            self.began.setdefault(event.superstep, event.time)
        elif kind == "attempt":
            if "began" in facts:
                times = facts["began"], facts["seconds"]
                self.attempts.append([event.superstep, vertex, event.attempt, facts["status"], *times])
                self._trim(self.attempts, _MAX_ATTEMPTS, "attempt")
        elif kind == "emit":
            shown = facts["text"] if "text" in facts else facts.get("payload")
            self.emissions.append([event.superstep, vertex, event.attempt, event.time, shown])
            self._trim(self.emissions, _MAX_EMISSIONS, "emit")
        elif kind == OMITTED:
            self.omitted.update({name: int(count) for name, count in facts.items()})
        elif kind != "commit":
            if kind == "hold":
                self.held[event.superstep] = event.time
            text = ", ".join(f"{name} {cut(str(fact), 200)}" for name, fact in facts.items())
            self.others.append([event.time, event.superstep, kind, vertex, event.attempt, text])
            self._trim(self.others, _MAX_OTHERS, "other")

    def _trim(self, events: list[list[Any]], most: int, kind: str) -> None:
        """Drop the older half of what was not kept for its own sake, now and then."""
        if len(events) >= 2 * most:
            self.omitted[kind] += most
            del events[:most]
