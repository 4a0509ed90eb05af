"""Reads a text edge list; reports MB (10^6 bytes) per second."""

from __future__ import annotations

import argparse
from pathlib import Path

import gpu_pregel as gp
from benchmarks._graphs import DEFAULT_CACHE, prepare
from benchmarks._measure import Summary, in_turn, machine, table, timed, write_json

HELP = "reading a text edge list in MB/s"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommand's options."""
    parser.add_argument("--graph", default="kron:20", help="graph to read (default: kron:20)")
    parser.add_argument("--trials", type=int, default=5, help="number of reads (default: 5)")
    parser.add_argument("--cache", type=Path, default=DEFAULT_CACHE, help="folder for graph files")


def run(arguments: argparse.Namespace) -> int:
    """Measure, print the table, write the report; return 1 if the edges read differ from those written."""
    files = prepare(arguments.graph, arguments.cache, {".el"})
    path = files.paths[".el"]
    megabytes = path.stat().st_size / 1e6
    seconds: list[float] = []
    mismatches: list[str] = []

    def trial(name: str) -> None:
        graph, duration = timed(gp.read_graph, path, threads=arguments.threads)
        seconds.append(duration)
        if graph.num_edges != files.stored_edges:
            mismatches.append(f"{name}: {graph.num_edges:,} stored edges instead of {files.stored_edges:,}")

    gp.read_graph(path, threads=arguments.threads)  # compiles, and fills the page cache
    in_turn(["read_graph"], arguments.trials, trial)
    summary = Summary.of(megabytes / duration for duration in seconds)
    report = {
        "benchmark": "read",
        "machine": machine(),
        "parameters": {"graph": arguments.graph, "trials": arguments.trials, "threads": arguments.threads},
        "megabytes": megabytes,
        "stored_edges": files.stored_edges,
        "seconds": seconds,
        "megabytes_per_second": summary.trials,
        "median": summary.median,
        "quartiles": summary.quartiles,
        "errors": mismatches,
    }
    heading = ["", "MB", "MB/s", "spread"]
    print(table(heading, [[path.name, f"{megabytes:.0f}", f"{summary.median:.0f}", f"{100 * summary.spread:.0f}%"]]))
    for error in mismatches:
        print(f"ERROR {error}")
    write_json(arguments.output, report)
    return 1 if mismatches else 0
