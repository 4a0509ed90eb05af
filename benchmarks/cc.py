"""Connected components compared with peers: all contestants load the same file and run in turn."""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks._device import add_device, format_device, set_device
from benchmarks._graphs import DEFAULT_CACHE, GraphFiles, prepare
from benchmarks._measure import Summary, format_ratio, format_seconds, in_turn, machine, progress, table, write_json
from benchmarks.peers import OURS, PEERS
from benchmarks.peers._contestant import Contestant, Loading
from gpu_pregel.algorithms.registry import algorithm

ALGORITHM = algorithm("connected_components")
HELP = "connected components compared with GAPBS, Gemini, NetworKit, SciPy and rustworkx"
DEFAULT_GRAPHS = "kron:20,uniform:20,grid:22"


@dataclass
class Entry:
    """Results of one contestant on one graph, as stored in the report."""

    name: str
    version: str
    load: float | None = None
    convert: float | None = None
    first: float | None = None
    components: int | None = None
    median: float | None = None
    minimum: float | None = None
    quartiles: tuple[float, float] | None = None
    ratio: float | None = None
    trials: list[float] = field(default_factory=list)
    runs: list[list[float]] = field(default_factory=list)
    error: str | None = None

    def add_loading(self, loading: Loading) -> None:
        """Store what ``open`` returned."""
        self.load, self.convert, self.first = loading.load, loading.convert, loading.first
        self.components = loading.components

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


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommand's options."""
    parser.add_argument("--peers", default="all", help=f"all, none, or some of {','.join(PEERS)} (default: all)")
    add_contest(parser, graphs=DEFAULT_GRAPHS, runs=5, budget=300)
    parser.add_argument("--plot", type=Path, help="file for the chart, .svg or .png")


def run(arguments: argparse.Namespace) -> int:
    """Measure, print the table, write the report; return 1 if a contestant failed or disagrees."""
    device = set_device(arguments.device)
    contestants, skipped = choose_contestants(arguments.peers, arguments.threads)
    graphs = []
    for spec in arguments.graphs.split(","):
        files = prepare(spec, arguments.cache, {contestant.suffix for contestant in contestants})
        entries = measure_contestants(files, contestants, arguments)
        graphs.append(report_graph(files, entries))
        print(format_graph(graphs[-1]))
        print(format_device(graphs[-1]), flush=True)
    errors = [f"{graph['spec']}: {error}" for graph in graphs for error in graph["errors"]]
    report = {
        "benchmark": "cc",
        "machine": machine(),
        "device": device,
        "parameters": {
            "graphs": arguments.graphs.split(","),
            "trials": arguments.trials,
            "runs": arguments.runs,
            "budget": arguments.budget,
            "threads": arguments.threads,
        },
        "stepped_aside": skipped,
        "graphs": graphs,
        "errors": errors,
    }
    for error in errors:
        print(f"ERROR {error}")
    write_json(arguments.output, report)
    if arguments.plot:
        from benchmarks.plot import draw

        draw(report, arguments.plot)
        progress(f"wrote {arguments.plot}")
    return 1 if errors else 0


def choose_contestants(peers: str, threads: int) -> tuple[list[type[Contestant]], dict[str, str]]:
    """Return gpu_pregel and the available peers, and why the others are skipped."""
    names = list(ALGORITHM.peers) if peers == "all" else [] if peers == "none" else peers.split(",")
    if unknown := [name for name in names if name not in PEERS]:
        raise ValueError(f"unknown peer: {', '.join(unknown)}; available peers: {', '.join(PEERS)}")
    contestants = [OURS]
    skipped = {}
    for name in names:
        reason = PEERS[name][0].why_unavailable(threads)
        if reason is None:
            contestants += PEERS[name]
        else:
            skipped[name] = reason
            progress(f"{name} is skipped: {reason}")
    return contestants, skipped


def measure_contestants(
    files: GraphFiles, contestants: list[type[Contestant]], arguments: argparse.Namespace
) -> list[Entry]:
    """Load the graph in every contestant, then let them take turns."""
    entries = {contestant.name: Entry(contestant.name, contestant.version()) for contestant in contestants}
    running: dict[str, Contestant] = {}
    for contestant in contestants:
        progress(f"{files.spec}: {contestant.name} loads and runs once")
        try:
            one = contestant()
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
        if result.components != entry.components:
            entry.error = f"found {entry.components:,} components at first and {result.components:,} later"

    progress(files.spec)
    in_turn(list(running), arguments.trials, trial, arguments.budget)
    for entry in entries.values():
        entry.summarise()
    return list(entries.values())


def report_graph(files: GraphFiles, entries: list[Entry]) -> dict[str, Any]:
    """Return the report of one graph: ratios of the medians, and errors of contestants that disagree."""
    ours = entries[0]
    errors = []
    for entry in entries:
        if entry.error is None and ours.error is None and entry.components != ours.components:
            entry.error = f"{entry.components:,} components, but {ours.name} finds {ours.components:,}"
        if entry.error is not None:
            errors.append(f"{entry.name}: {entry.error}")
        elif entry.median and ours.median:
            entry.ratio = ours.median / entry.median
    return {
        "spec": files.spec,
        "title": files.title,
        "vertices": files.vertices,
        "stored_edges": files.stored_edges,
        "components": ours.components,
        "contestants": [asdict(entry) for entry in entries],
        "errors": errors,
    }


def format_graph(graph: dict[str, Any]) -> str:
    """Format the contestants as a table; ratio is our median over theirs, spread the interquartile range in percent."""
    rows = []
    for entry in graph["contestants"]:
        if entry["median"] is None:
            rows.append([entry["name"], "failed", *["-"] * 7])
            continue
        lower, upper = entry["quartiles"]
        rows.append(
            [
                entry["name"],
                format_seconds(entry["median"]),
                format_ratio(entry["ratio"]),
                f"{100 * (upper - lower) / entry['median']:.0f}%",
                format_seconds(entry["minimum"]),
                format_seconds(entry["first"]),
                format_seconds(entry["load"]),
                format_seconds(entry["convert"] or None),
                f"{entry['components']:,}" + (" !" if entry["error"] else ""),
            ]
        )
    heading = ["", "median", "ours/theirs", "spread", "minimum", "first", "load", "convert", "components"]
    title = f"{graph['title']}: {graph['vertices']:,} vertices, {graph['stored_edges']:,} stored edges"
    return f"{title}\n{table(heading, rows)}"
