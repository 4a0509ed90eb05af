"""A vertex whose value is a long history, to which each superstep appends a message: time and size of the store."""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import gpu_pregel as gp
from benchmarks._figures import Figure, Measure, expect, run_trials
from benchmarks._measure import progress, timed
from benchmarks.peers.langgraph import LangGraph

_TEXT = "x" * 390
_WARM = 2
"""Supersteps that are not timed: the first ones decode the value and prepare it for being kept."""


def message(number: int) -> dict[str, str]:
    """Return a message, which takes about 420 bytes."""
    return {"role": "user", "content": f"{number:06}{_TEXT}"}


def measure_chat(arguments: argparse.Namespace, peer: type[LangGraph] | None, errors: list[str]) -> list[Figure]:
    """Measure seconds per superstep in process and in a SQLite file, and the size of a file after many supersteps."""
    steps: int = arguments.saved_steps
    names = itertools.count()
    figures = []
    for count in arguments.messages:
        title = f"chat of {count:,} messages of 420 B"
        with TemporaryDirectory(dir=arguments.folder) as folder, gp.SQLiteStore(Path(folder) / "ours.db") as store:
            measures: dict[str, Measure] = {
                "memory": partial(_ours, count, steps),
                "machine": lambda count=count, store=store: _ours(  # type: ignore[misc]
                    count, steps, store=store, run_id=str(next(names))
                ),
            }
            if peer is not None:
                history = [message(number) for number in range(count)]
                measures["their memory"] = _theirs(peer.chat(history, message, steps), count, steps)
                reason = LangGraph.why_saver_unavailable()
                if reason is None:
                    saved = peer.saved_chat(history, message, steps, str(Path(folder) / "theirs.db"))
                    measures["their store"] = _theirs(saved, count, steps)
                else:
                    progress(f"{LangGraph.name}'s store is skipped: {reason}")
            trials = run_trials(title, measures, arguments.trials, errors)
        figures += [
            Figure.of(f"{title}, in process", "s", 1.0, "ratio", trials["memory"], trials.get("their memory")),
            Figure.of(f"{title}, in SQLite", "s", 0.5, "ratio", trials["machine"], trials.get("their store")),
        ]
    return [*figures, _size(arguments, errors)]


def _compute(ctx: gp.agents.Context) -> None:
    ctx.value["messages"].append(message(ctx.value["count"]))
    ctx.value["count"] += 1


def _ours(count: int, steps: int, **options: Any) -> float:
    history = [message(number) for number in range(count)]
    vertices = [gp.agents.Vertex("chat", {"messages": history, "count": 0})]
    with gp.agents.start(vertices, _compute, max_supersteps=steps + _WARM + 1, **options) as agents:
        for _ in range(_WARM):
            agents.step()
        seconds = timed(lambda: [agents.step() for _ in range(steps)])[1]
        value = agents.result().values["chat"]
    expect((len(value["messages"]), value["messages"][-1]), (count + steps + _WARM, message(steps + _WARM - 1)))
    return seconds / steps


def _theirs(run: Callable[[], list[Any]], count: int, steps: int) -> Measure:
    def measure() -> float:
        result, seconds = timed(run)
        expect((len(result), result[-1]), (count + steps, message(steps - 1)))
        return seconds / steps

    return measure


def _size(arguments: argparse.Namespace, errors: list[str]) -> Figure:
    """Measure bytes of a SQLite file and its log after supersteps that each append a message to an empty history."""
    steps: int = arguments.steps
    title = f"chat that grows to {steps:,} messages"
    with TemporaryDirectory(dir=arguments.folder) as folder, gp.SQLiteStore(Path(folder) / "ours.db") as store:
        result = gp.agents.run(
            [gp.agents.Vertex("chat", {"messages": [], "count": 0})],
            _compute,
            store=store,
            max_supersteps=steps,
            on_limit="return",
            durability="process",
        )
        size = float(sum(file.stat().st_size for file in Path(folder).iterdir()))
    if result.values["chat"]["count"] != steps:
        errors.append(f"{title}: {result.values['chat']['count']} messages")
    return Figure.of(title, "B", 10e6, "ours", [size])
