"""Connected components compared with peers: all contestants load the same file and run in turn."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks._contest import (
    add_contest,
    add_verification,
    choose_contestants,
    format_graph,
    measure_contestants,
    report_graph,
)
from benchmarks._device import format_device, set_device
from benchmarks._graphs import prepare
from benchmarks._measure import machine, progress, write_json
from benchmarks.peers import OURS, PEERS
from benchmarks.peers.ours import GpuPregel

HELP = "connected components compared with GAPBS, Gemini, NetworKit, SciPy and rustworkx"
DEFAULT_GRAPHS = "kron:20,uniform:20,grid:22"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommand's options."""
    parser.add_argument("--peers", default="all", help=f"all, none, or some of {','.join(PEERS)} (default: all)")
    add_contest(parser, graphs=DEFAULT_GRAPHS, runs=5, budget=300)
    add_verification(parser)
    parser.add_argument("--plot", type=Path, help="file for the chart, .svg or .png")


def run(arguments: argparse.Namespace) -> int:
    """Measure, print the table, write the report; return 1 if a contestant failed or disagrees."""
    device = set_device(arguments.device)
    GpuPregel.verifies = arguments.v
    peers, skipped = choose_contestants(arguments.peers, arguments.threads)
    contestants = [OURS, *peers]
    graphs = []
    for spec in arguments.graphs.split(","):
        files = prepare(spec, arguments.cache, {contestant.suffix for contestant in contestants})
        entries = measure_contestants(files, contestants, arguments)
        graphs.append(report_graph(files, entries))
        print(format_graph(graphs[-1], "components"))
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
            "verified": arguments.v,
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
