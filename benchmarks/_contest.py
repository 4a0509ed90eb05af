"""A comparison with peers: all contestants load the same file and run in turn; the report and its table."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks._device import add_device
from benchmarks._graphs import DEFAULT_CACHE, GraphFiles
from benchmarks._measure import Summary, format_ratio, format_seconds, in_turn, progress, table
from benchmarks.peers import PEERS
from benchmarks.peers._contestant import Contestant, Loading


@dataclass
class Entry:
    """Results of one contestant on one graph, as stored in the report."""

    name: str
    version: str
    load: float | None = None
    convert: float | None = None
    first: float | None = None
    answer: Any = None
    median: float | None = None
    minimum: float | None = None
    quartiles: tuple[float, float] | None = None
    ratio: float | None = None
    ratio_of_minima: float | None = None
    trials: list[float] = field(default_factory=list)
    runs: list[list[float]] = field(default_factory=list)
    error: str | None = None

    def add_loading(self, loading: Loading) -> None:
        """Store what ``open`` returned."""
        self.load, self.convert, self.first = loading.load, loading.convert, loading.first
        self.answer = loading.answer

    def summarise(self) -> None:
        """Summarise the trials."""
        if self.trials and self.error is None:
            summary = Summary.of(self.trials)
            self.median, self.minimum, self.quartiles = summary.median, summary.minimum, summary.quartiles


def add_contest(parser: argparse.ArgumentParser, *, graphs: str, runs: int, budget: int) -> None:
    """Declare the options of a comparison with peers, with these defaults."""
    parser.add_argument("--graphs", default=graphs, help="kron:SCALE, uniform:SCALE, grid:SCALE or files")
    parser.add_argument("--trials", type=int, default=9, help="turns per contestant (default: 9)")
    parser.add_argument("--runs", type=int, default=runs, help=f"runs per turn; their median counts (default: {runs})")
    parser.add_argument(
        "--budget",
        type=float,
        default=budget,
        help=f"seconds after which a contestant takes no further turn (default: {budget})",
    )
    parser.add_argument("--cache", type=Path, default=DEFAULT_CACHE, help="folder for graph files")
    add_device(parser)


def add_verification(parser: argparse.ArgumentParser) -> None:
    """Declare ``-v``, the letter of the command line."""
    parser.add_argument(
        "-v", action="store_true", help="verify our first result with its checker (minutes on large graphs)"
    )


def choose_contestants(
    peers: str, threads: int, algorithm: str = "connected_components"
) -> tuple[list[type[Contestant]], dict[str, str]]:
    """Return the available peers that have an algorithm, and why the others are skipped."""
    names = list(PEERS) if peers == "all" else [] if peers == "none" else peers.split(",")
    if unknown := [name for name in names if name not in PEERS]:
        raise ValueError(f"unknown peer: {', '.join(unknown)}; available peers: {', '.join(PEERS)}")
    contestants: list[type[Contestant]] = []
    skipped = {}
    for name in names:
        present = [peer for peer in PEERS[name] if peer.algorithm == algorithm]
        reason = present[0].why_unavailable(threads) if present else None
        if reason is None:
            contestants += present
        else:
            skipped[name] = reason
            progress(f"{name} is skipped: {reason}")
    return contestants, skipped


def measure_contestants(
    files: GraphFiles,
    contestants: list[type[Contestant]],
    arguments: argparse.Namespace,
    sources: Sequence[int] = (),
    iterations: int = 1,
    tolerance: float | None = 0.0,
) -> list[Entry]:
    """Load the graph in every contestant, then let them take turns; answers may differ by ``tolerance``."""
    entries = {contestant.name: Entry(contestant.name, contestant.version()) for contestant in contestants}
    running: dict[str, Contestant] = {}
    for contestant in contestants:
        progress(f"{files.spec}: {contestant.name} loads and runs once")
        try:
            one = contestant()
            one.sources, one.iterations = sources, iterations
            entries[contestant.name].add_loading(
                one.open(files.paths[contestant.suffix], files.vertices, arguments.threads)
            )
            running[contestant.name] = one
        except Exception as error:
            entries[contestant.name].error = f"{type(error).__name__}: {error}"

    def trial(name: str) -> None:
        entry = entries[name]
        if entry.error is not None:
            return
        try:
            result = running[name].trial(arguments.runs)
        except Exception as error:
            entry.error = f"{type(error).__name__}: {error}"
            return
        entry.runs.append(result.runs)
        entry.trials.append(median(result.runs))
        if not agree(result.answer, entry.answer, tolerance):
            entry.error = f"found {format_answer(entry.answer)} at first and {format_answer(result.answer)} later"

    progress(files.spec)
    in_turn(list(running), arguments.trials, trial, arguments.budget)
    for entry in entries.values():
        entry.summarise()
    return list(entries.values())


def report_graph(files: GraphFiles, entries: list[Entry], tolerance: float | None = 0.0) -> dict[str, Any]:
    """Return the report of one graph: ratios of the medians, and errors of contestants that disagree.

    Answers may differ by a relative ``tolerance``; with None they are not compared.
    """
    ours = entries[0]
    errors = []
    for entry in entries:
        if entry.error is None and ours.error is None and not agree(entry.answer, ours.answer, tolerance):
            entry.error = f"{format_answer(entry.answer)}, but {ours.name} finds {format_answer(ours.answer)}"
        if entry.error is not None:
            errors.append(f"{entry.name}: {entry.error}")
        elif entry.median and ours.median:
            entry.ratio = ours.median / entry.median
            entry.ratio_of_minima = (ours.minimum or 0) / entry.minimum if entry.minimum else None
    return {
        "spec": files.spec,
        "title": files.title,
        "vertices": files.vertices,
        "stored_edges": files.stored_edges,
        "answer": ours.answer,
        "contestants": [asdict(entry) for entry in entries],
        "errors": errors,
    }


def agree(theirs: Any, ours: Any, tolerance: float | None) -> bool:
    """Return whether two answers agree; None is no answer."""
    if theirs is None or tolerance is None:
        return True
    if isinstance(theirs, list):
        return all(agree(one, other, tolerance) for one, other in zip(theirs, ours, strict=True))
    return bool(abs(theirs - ours) <= tolerance * abs(ours))


def format_answer(answer: Any) -> str:
    """Format an answer, or the first of several."""
    if isinstance(answer, list):
        return f"{format_answer(answer[0])}, …" if answer else "-"
    return "-" if answer is None else f"{answer:,}" if isinstance(answer, int) else f"{answer:.6g}"


def format_graph(graph: dict[str, Any], answer: str) -> str:
    """Format the contestants as a table; ratio is our median over theirs, spread the interquartile range in percent."""
    rows = []
    for entry in graph["contestants"]:
        if entry["median"] is None:
            rows.append([entry["name"], "failed", *["-"] * 8])
            continue
        lower, upper = entry["quartiles"]
        rows.append(
            [
                entry["name"],
                format_seconds(entry["median"]),
                format_ratio(entry["ratio"]),
                f"{100 * (upper - lower) / entry['median']:.0f}%",
                format_seconds(entry["minimum"]),
                format_ratio(entry["ratio_of_minima"]),
                format_seconds(entry["first"]),
                format_seconds(entry["load"]),
                format_seconds(entry["convert"] or None),
                format_answer(entry["answer"]) + (" !" if entry["error"] else ""),
            ]
        )
    heading = ["", "median", "ours/theirs", "spread", "minimum", "ratio", "first", "load", "convert", answer]
    title = f"{graph['title']}: {graph['vertices']:,} vertices, {graph['stored_edges']:,} stored edges"
    return f"{title}\n{table(heading, rows)}"
