"""``gpu-pregel runs STORE watch``: follow a run in the terminal, as plain lines elsewhere, or as lines of JSON."""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any, TextIO

from gpu_pregel.cli._common import printable

if TYPE_CHECKING:
    from gpu_pregel.host.stores.store import Store
    from gpu_pregel.workflows.run_watcher import Happening

_POLL_SECONDS = 0.2
_SUCCEEDED = ("completed", "halted")
_FAILED = 1
_COLOURS = {"failure": 31, "death": 31, "lost": 31, "undeliverable": 31, "retry": 33, "attempt": 33, "question": 35}
_COLOURS |= {"emit": 36, "hold": 35, "commit": 32}
_ROW = {
    "computed": "computed",
    "active_vertices": "active",
    "messages": "sent",
    "failed": "failed",
    "retries": "tried again",
}


def watch(store: Store, options: argparse.Namespace) -> int:
    """Follow a run until it is over; return the exit status."""
    from gpu_pregel.workflows.run_watcher import RunWatcher

    watcher = RunWatcher(store, options.run_id, from_start=options.all)
    printer = Printer(sys.stdout, as_json=options.json)
    printer.start(watcher.row)
    while True:
        for happening in watcher.look():
            printer.show(happening)
        if watcher.is_over:
            break
        printer.wait(watcher.row.head + 1)
        time.sleep(_POLL_SECONDS)
    time.sleep(_POLL_SECONDS)  # the last events are written just after the run's status
    for happening in watcher.finish():
        printer.show(happening)
    printer.end(watcher.row)
    return 0 if watcher.row.status in _SUCCEEDED else _FAILED


class Printer:
    """Prints what happens in a run. In a terminal, texts of an attempt continue their line, and the last line says what
    is awaited.

    Parameters
    ----------
    out : file
    as_json : bool
    """

    def __init__(self, out: TextIO, *, as_json: bool) -> None:
        self._out, self._as_json = out, as_json
        self._is_terminal = not as_json and out.isatty()
        self._has_colours = self._is_terminal and "NO_COLOR" not in os.environ
        self._open: tuple[Any, ...] | None = None
        """The attempt whose text the current line of the terminal has."""
        self._is_waiting = False
        self._superstep, self._begun = -1, time.monotonic()

    def start(self, row: Any) -> None:
        """Print where the run stands."""
        if self._as_json:
            self._print_json(
                {"kind": "run", "run": row.id, "runs": row.kind, "status": row.status, "superstep": row.head}
            )
        else:
            self._line(f"run {row.id} ({row.kind}): {row.status}, {row.head + 1:,} supersteps committed")

    def show(self, happening: Happening) -> None:
        """Print something that happened."""
        if self._as_json:
            record = {"kind": happening.kind, "superstep": happening.superstep}
            names = {"vertex": happening.vertex, "attempt": happening.attempt}
            record |= {name: value for name, value in names.items() if value is not None}
            self._print_json(record | {name: fact for name, fact in happening.facts.items() if name not in record})
        elif happening.kind == "emit" and self._is_terminal:
            self._continue(happening)
        elif text := sentence(happening):
            self._line(text, _COLOURS.get(happening.kind))

    def wait(self, superstep: int) -> None:
        """Say in a terminal what is awaited."""
        if superstep != self._superstep:
            self._superstep, self._begun = superstep, time.monotonic()
        seconds = int(time.monotonic() - self._begun)
        if self._is_terminal and self._open is None and seconds:
            self._out.write(f"\r\x1b[K… superstep {superstep:,}, {seconds:,} s")
            self._out.flush()
            self._is_waiting = True

    def end(self, row: Any) -> None:
        """Print how the run has ended."""
        if self._as_json:
            self._print_json({"kind": "end", "run": row.id, "status": row.status, "superstep": row.head})
        else:
            self._line(f"run {row.id}: {row.status} after {row.head + 1:,} supersteps")

    def _continue(self, happening: Happening) -> None:
        """Add a text to the line of its attempt."""
        attempt = happening.superstep, happening.vertex, happening.attempt
        if attempt != self._open:
            self._clear()
            self._out.write(self._coloured(f"{printable(happening.vertex)} │ ", _COLOURS["emit"]))
            self._open = attempt
        lines = happening.facts["text"].split("\n")
        self._out.write("\n    ".join(map(printable, lines)))
        self._out.flush()

    def _line(self, text: str, colour: int | None = None) -> None:
        self._clear()
        self._out.write(self._coloured(printable(text), colour) + "\n")
        self._out.flush()

    def _clear(self) -> None:
        """Begin a new line."""
        if self._is_waiting:
            self._out.write("\r\x1b[K")
        elif self._open is not None:
            self._out.write("\n")
        self._is_waiting, self._open = False, None

    def _coloured(self, text: str, colour: int | None) -> str:
        return f"\x1b[{colour}m{text}\x1b[0m" if self._has_colours and colour is not None else text

    def _print_json(self, record: dict[str, Any]) -> None:
        print(json.dumps(record, default=str), file=self._out, flush=True)


def sentence(happening: Happening) -> str:
    """Return a line for people; empty for what is not worth one."""
    kind, step, vertex, attempt, facts = happening
    who = f"superstep {step:,}: {vertex}" + ("" if attempt is None else f", attempt {attempt}")
    problem = ": ".join(str(facts[name]) for name in ("type", "text") if facts.get(name))
    if kind == "commit":
        return f"superstep {step:,}: {_row(facts)}"
    known = {
        "superstep": lambda: f"superstep {step:,}: {_count(facts.get('active'))}",
        "emit": lambda: f"{who} emits: {facts['text']}",
        "retry": lambda: f"{who} failed and is tried again{_after(facts)}: {problem}",
        "failure": lambda: f"{who} failed: {problem}",
        "question": lambda: f"{who} asks {facts['text']}",
        "death": lambda: f"superstep {step:,}: worker {facts.get('partition')} died: {facts.get('reason')}",
        "undeliverable": lambda: f"superstep {step:,}: a message to {vertex} was dropped: {facts.get('text')}",
        "hold": lambda: f"superstep {step:,} is held: {facts['status']}",
        "lost": lambda: f"superstep {step:,}: no program has the run any more; resume it",
    }
    return known[kind]() if kind in known else ""


def _row(row: dict[str, Any]) -> str:
    """Return a row of the trace as text."""
    counts = [f"{row[name]:,} {text}" for name, text in _ROW.items() if row.get(name)]
    direction = [str(row["direction"])] if "direction" in row else []
    times = [f"{1000 * row['seconds']:,.1f} ms"] if "seconds" in row else []
    return ", ".join(["committed", *direction, *counts, *times])


def _count(number: Any) -> str:
    if number == 1:
        return "1 vertex begins"
    return f"{number:,} vertices begin" if isinstance(number, int) else "all vertices begin"


def _after(facts: dict[str, Any]) -> str:
    return f" in {facts['seconds']:g} s" if facts.get("seconds") else ""
