"""Everything that the page of a run shows, as data that JSON can hold and whose size is bounded."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable
from itertools import islice
from typing import TYPE_CHECKING, Any

from gpu_pregel.errors import ArgumentError, StoreError
from gpu_pregel.host.agents.ledger import Ledger
from gpu_pregel.host.agents.previews import cut
from gpu_pregel.host.agents.records import Id
from gpu_pregel.host.agents.recovery import RecoveredRun, check_readable, read_run, read_values
from gpu_pregel.host.agents.state import State
from gpu_pregel.host.agents.state_format import read_columns
from gpu_pregel.host.agents.workers.garbage_collection import relaxed_gc
from gpu_pregel.host.stores.leases import is_gone
from gpu_pregel.workflows.page.bounded_reader import BoundedReader
from gpu_pregel.workflows.page.events import EventSummary
from gpu_pregel.workflows.page.graph import draw_graph
from gpu_pregel.workflows.page.labels import Labels
from gpu_pregel.workflows.page.numeric import describe_array, describe_numeric, numeric_rows
from gpu_pregel.workflows.page.page_size import limit_size
from gpu_pregel.workflows.page.state_keys import state_keys, unwrap_tree
from gpu_pregel.workflows.page.supersteps import Replay, Superstep

if TYPE_CHECKING:
    from gpu_pregel.host.stores.rows import CommitRow, RunRow
    from gpu_pregel.host.stores.store import Store

_DETAILED, _LISTED = 300, 3_000
"""Numbers of newest supersteps of which the page shows what happened, and of which it shows the row of the trace."""
_DETAIL_BYTES, _LEAST_BYTES, _MOST_BYTES = 2_400_000, 3_000, 200_000
"""Bytes of the details of all supersteps, and the fewest and most of one."""
_SHOWN_VALUES = 100
_MAX_READS = 5
"""Maximum number of times that a run is read again while its program changes it."""


def read_page_data(store: Store, run_id: str) -> dict[str, Any]:
    """Return what the page of a run shows; see ``page.js`` for its fields."""
    for attempt in range(_MAX_READS):
        row = store.run(run_id)
        try:
            return limit_size(_read(store, row))
        except StoreError:  # perhaps it was pruned meanwhile
            if attempt + 1 == _MAX_READS or store.run(run_id) == row:
                raise
    raise AssertionError


def _read(store: Store, row: RunRow) -> dict[str, Any]:
    data: dict[str, Any] = {"run": _describe_run(store, row), "labels": [], "steps": [], "notes": []}
    if row.kind == "numeric":
        data |= describe_numeric(store, row, _LISTED)
    else:
        check_readable(store, row)
        with relaxed_gc(beside_users_code=False):
            data |= _describe_agents(store, row)
    return data


def is_live(row: RunRow) -> bool:
    """Whether a program has a run."""
    return row.lease > time.time() and not is_gone(row.owner)


def _describe_run(store: Store, row: RunRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "kind": row.kind,
        "status": row.status,
        "head": row.head,
        "owner": row.owner if is_live(row) else None,
        "created": row.created,
        "changed": row.changed,
        "parent": None if row.parent is None else list(row.parent),
        "store": cut(store.name, 300),
        "read": time.time(),
    }


def _describe_agents(store: Store, row: RunRow) -> dict[str, Any]:
    labels = Labels()
    reader = BoundedReader()
    replay = Replay(labels, reader)
    history = store.history(row.id)
    first = _first_detailed(store, row, history)
    events = EventSummary(labels)
    events.read(store, row.id, max(0, row.head - _LISTED))
    found = read_run(store, row.id)
    steps = _older_rows(store, row.id, history, first)
    if first <= row.head:
        room = max(_LEAST_BYTES, min(_MOST_BYTES, _DETAIL_BYTES // (row.head - first + 2)))
        steps += replay.committed(store, row.id, first, room)
    if found.blobs:
        steps = _merge_rows(steps, numeric_rows(found.blobs.get("trace", b"")))
    ledger = found.ledger()
    current = _current_step(store, found, row.changed, replay, ledger, events)
    steps += current
    for step in steps:
        if step["superstep"] in events.began:
            began = step["began"] = events.began[step["superstep"]]
            if step["status"] == "committed":
                step.setdefault("ended", began + step["row"].get("seconds", 0.0))
    notable = [*ledger.with_status("failed"), *ledger.with_status("interrupted"), *found.state.failed]
    graph = draw_graph(found.state.vertices, replay.routes, labels, notable)
    return {
        "labels": labels.texts,
        "steps": steps,
        "graph": graph,
        "attempts": events.attempts,
        "emissions": events.emissions,
        "events": events.others,
        "recorded": events.is_recorded,
        "notes": _notes(row, history, first, events),
        "arrays": [describe_array(name, array) for name, array in read_values(store, found).items()],
        **_describe_state(found, ledger, labels, notable, reader),
    }


def _first_detailed(store: Store, row: RunRow, history: list[CommitRow]) -> int:
    """Return the first superstep that is replayed: one whose predecessor can be loaded."""
    if not history:
        return row.head + 1
    first = max(history[0].step, row.head - _DETAILED + 1)
    try:
        store.load(row.id, first - 1)
    except ArgumentError:  # it was pruned, or was not committed on its own
        first = next((commit.step for commit in history if commit.base and commit.step >= first), row.head) + 1
    return first


def _older_rows(store: Store, run_id: str, history: list[CommitRow], first: int) -> list[dict[str, Any]]:
    """Return the rows of the trace of supersteps before those with details."""
    low = max(history[0].step, first - _LISTED) if history else first
    steps: list[dict[str, Any]] = []
    if low >= first:
        return steps
    for commit in store.commits(run_id, low - 1):
        if commit.step >= first:
            break
        row = read_columns(commit.data, (7, 8, 9), "a commit")[5]
        times = {"began": commit.time - row.get("seconds", 0.0), "ended": commit.time}
        steps.append({"superstep": commit.step, "status": "committed", "row": row, **times})
    return steps


def _merge_rows(steps: Iterable[dict[str, Any]], rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Add the supersteps that were committed together with later ones."""
    known = {step["superstep"]: step for step in steps}
    for row in rows:
        known.setdefault(row["superstep"], {"superstep": row["superstep"], "status": "committed", "row": row})
    return [known[number] for number in sorted(known)][-_LISTED:]


def _current_step(
    store: Store, found: RecoveredRun, changed: float, replay: Replay, ledger: Ledger, events: EventSummary
) -> list[dict[str, Any]]:
    """Describe the superstep that is running or held, if there is one."""
    number = found.superstep
    is_running = number in events.began and found.status == "running"
    if not found.begun.segments and not is_running:
        return []
    answers = store.answers(found.run_id, number)
    held = Superstep(number, found.begun.segments, found.state.aggregates, found.state, answers=answers)
    status = found.status if found.status in ("failed", "interrupted") else "running"
    ended = None if status == "running" else events.held.get(number, changed)
    times = {"began": events.began.get(number), "ended": ended}
    shown = replay.describe(held, _MOST_BYTES)
    row = {"computed": shown["computed"], "failed": len(ledger.with_status("failed")), "retries": ledger.retries()}
    return [{"superstep": number, "status": status, "row": row, **times, **shown}]


def _describe_state(
    found: RecoveredRun, ledger: Ledger, labels: Labels, notable: Collection[Id], reader: BoundedReader
) -> dict[str, Any]:
    """Describe the state after the last commit: aggregates, values, failed vertices, open questions, timers."""
    state = found.state
    chosen = dict.fromkeys([*(one for one in notable if one in state.vertices), *islice(state.vertices, _SHOWN_VALUES)])
    budget = (40, 1_000) if len(chosen) <= 20 else (20, 200)
    values = [
        [
            labels.number(one),
            reader.tree(bytes(state.vertices[one].value), *budget),
            state.vertices[one].halted,
        ]
        for one in islice(chosen, _SHOWN_VALUES)
    ]
    failed = {**state.failed, **ledger.failures(state.vertices)}
    return {
        "aggregates": _describe_aggregates(state, reader),
        "values": values,
        "failed": [
            [
                labels.number(vertex),
                one.superstep,
                one.failure.kind,
                one.failure.type,
                cut(one.failure.text, 2_000),
                cut(one.failure.traceback, 10_000),
                [reader.tree(message, 20, 400) for message in one.messages[:10]],
            ]
            for vertex, one in islice(failed.items(), 50)
        ],
        "failedCount": len(failed),
        "asking": [
            [labels.number(vertex), reader.tree(payload, 60, 2_000)]
            for vertex, payload in islice(ledger.interrupts().items(), 50)
        ],
        "askingCount": len(ledger.with_status("interrupted")),
        "timers": [[labels.number(vertex), when] for vertex, when in islice(state.timers.items(), 100)],
    }


def _describe_aggregates(state: State, reader: BoundedReader) -> list[list[Any]]:
    """Return the name and tree of each aggregate that is shown: not what identifies the run of a vertex program."""
    shown, keys = list(state.aggregates.items()), state_keys(state)
    if any(" " in name for name in state.aggregates):  # as its name has
        from gpu_pregel.host.mixed.identity import IDENTITY  # imports Numba

        shown = [(name, value) for name, value in shown if name != IDENTITY]
    trees = [(name, reader.tree(value)) for name, value in shown[:200]]
    unwrapped = [(name, unwrap_tree(tree) if name in keys else tree) for name, tree in trees]
    return [[name, tree] for name, tree in unwrapped if tree is not None]


def _notes(row: RunRow, history: list[CommitRow], first: int, events: EventSummary) -> list[str]:
    """Say what the page lacks."""
    notes = []
    if not events.is_recorded:
        notes.append(
            "Pass observer=gp.agents.Timeline(store) to a run to see the times of its attempts and what they emit, too."
        )
    if history and first > history[0].step:
        notes.append(f"What happened before superstep {first:,} is not shown, except for the trace.")
    elif history and history[0].step > 0 and row.parent is None:
        notes.append(f"Supersteps before {history[0].step:,} were pruned.")
    if events.omitted:
        counts = ", ".join(f"{count:,} × {name}" for name, count in events.omitted.items())
        notes.append(f"Not shown, as there were very many: {counts}.")
    return notes
