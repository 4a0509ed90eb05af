"""Every algorithm of the registry that has peers: all contestants load the same files and run in turn."""

from __future__ import annotations

import argparse
from typing import Any

from benchmarks._contest import (
    add_contest,
    add_verification,
    choose_contestants,
    format_graph,
    measure_contestants,
    report_graph,
)
from benchmarks._device import format_device, set_device
from benchmarks._graphs import choose_sources, prepare
from benchmarks._measure import machine, progress, write_json
from benchmarks._tasks import TASKS, Task, contestant
from benchmarks.peers import PEERS
from benchmarks.peers.ours import GpuPregel
from gpu_pregel.algorithms.registry import ALGORITHMS

HELP = "all algorithms compared with GAPBS, GBBS, GVE, NetworKit, SciPy and rustworkx"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommand's options."""
    parser.add_argument("--algorithms", default="all", help="all, or some of the registry's names, with commas")
    parser.add_argument("--peers", default="all", help=f"all, none, or some of {','.join(PEERS)} (default: all)")
    add_contest(parser, graphs="", runs=3, budget=120)
    add_verification(parser)


def run(arguments: argparse.Namespace) -> int:
    """Measure, print a table for each algorithm and graph, write the report; return 1 if contestants disagree."""
    device = set_device(arguments.device)
    GpuPregel.verifies = arguments.v
    report: dict[str, Any] = {
        "benchmark": "all",
        "machine": machine(),
        "device": device,
        "parameters": {
            "trials": arguments.trials,
            "runs": arguments.runs,
            "budget": arguments.budget,
            "threads": arguments.threads,
            "verified": arguments.v,
        },
        "algorithms": {},
        "errors": [],
    }
    print(f"{report['machine']['cpu']}, {arguments.threads} threads\n")
    for task in choose_tasks(arguments.algorithms):
        graphs, skipped = measure_task(task, arguments)
        report["algorithms"][task.name] = {"stepped_aside": skipped, "graphs": graphs}
        report["errors"] += [f"{task.name}, {graph['spec']}: {error}" for graph in graphs for error in graph["errors"]]
        # A report of what is finished survives an interruption.
        write_json(arguments.output, report)
    for error in report["errors"]:
        print(f"ERROR {error}")
    return 1 if report["errors"] else 0


def choose_tasks(names: str) -> list[Task]:
    """Return the tasks with these names whose algorithms are in the registry."""
    known = {task.name: task for task in TASKS}
    present = [entry.name for entry in ALGORITHMS if entry.name in known]
    chosen = present if names == "all" else names.split(",")
    if unknown := [name for name in chosen if name not in present]:
        raise ValueError(f"unknown algorithm: {', '.join(unknown)}; algorithms with peers: {', '.join(present)}")
    return [known[name] for name in chosen]


def measure_task(task: Task, arguments: argparse.Namespace) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """Measure one algorithm on its graphs; return the reports and why peers are skipped."""
    peers, skipped = choose_contestants(arguments.peers, arguments.threads, task.name)
    contestants = [contestant(task), *(contestant(task, name) for name in task.variants), *peers]
    graphs = []
    for spec in (arguments.graphs or task.graphs).split(","):
        progress(f"{task.name}, {spec}")
        suffixes = {one.suffix for one in contestants}
        files = prepare(spec, arguments.cache, suffixes, directed=task.directed, weighted=task.weighted)
        sources = choose_sources(files.paths[".wsg" if task.weighted else ".sg"], task.sources)
        entries = measure_contestants(files, contestants, arguments, sources, task.iterations, task.tolerance)
        graph = report_graph(files, entries, task.tolerance)
        graphs.append(_per_run(graph, task.divisor))
        name = task.name.replace("_", " ")
        print(f"{name}{', per run' if task.divisor > 1 else ''}: {format_graph(graph, task.answer_name)}")
        print(format_device(graph), flush=True)
    return graphs, skipped


def _per_run(graph: dict[str, Any], divisor: int) -> dict[str, Any]:
    """Divide the times of a report; ``best_ratio`` is ours divided by the fastest peer's."""
    for entry in graph["contestants"]:
        for name in ("median", "minimum"):
            entry[name] = None if entry[name] is None else entry[name] / divisor
        if entry["quartiles"] is not None:
            entry["quartiles"] = [quartile / divisor for quartile in entry["quartiles"]]
    ratios = [entry["ratio"] for entry in graph["contestants"][1:] if entry["ratio"] is not None]
    graph["best_ratio"] = max(ratios, default=None)
    return graph
