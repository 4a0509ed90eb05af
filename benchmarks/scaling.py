"""Time per stored edge of connected components on Kronecker graphs of increasing size."""

from __future__ import annotations

import argparse
from typing import Any

import gpu_pregel as gp
from benchmarks._graphs import generate
from benchmarks._measure import Summary, format_seconds, in_turn, machine, progress, table, timed, write_json

HELP = "time per stored edge of connected components on growing graphs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommand's options."""
    parser.add_argument(
        "--graphs", default=",".join(f"kron:{scale}" for scale in range(16, 23)), help="graphs, smallest first"
    )
    parser.add_argument("--trials", type=int, default=9, help="runs per graph (default: 9)")


def run(arguments: argparse.Namespace) -> int:
    """Measure, print the table, write the report; return 0."""
    graphs: dict[str, gp.Graph] = {}
    trials: dict[str, list[float]] = {}
    for spec in arguments.graphs.split(","):
        progress(f"{spec}: generating")
        graphs[spec] = generate(spec)
        trials[spec] = []
        gp.connected_components(graphs[spec], threads=arguments.threads)

    def trial(spec: str) -> None:
        trials[spec].append(timed(gp.connected_components, graphs[spec], threads=arguments.threads)[1])

    in_turn(list(graphs), arguments.trials, trial)
    rows = [_row(spec, graphs[spec], Summary.of(trials[spec])) for spec in graphs]
    costs = [row["ns_per_edge"] for row in rows]
    report = {
        "benchmark": "scaling",
        "machine": machine(),
        "parameters": {"graphs": list(graphs), "trials": arguments.trials, "threads": arguments.threads},
        "graphs": rows,
        "last_to_first": costs[-1] / costs[0],
        "dearest_to_cheapest": max(costs) / min(costs),
    }
    heading = ["", "stored edges", "median", "spread", "ns per edge"]
    print(table(heading, [_cells(row) for row in rows]))
    print(f"per edge, last graph / first graph: {report['last_to_first']:.2f}")
    print(f"per edge, most expensive / cheapest: {report['dearest_to_cheapest']:.2f}")
    write_json(arguments.output, report)
    return 0


def _row(spec: str, graph: gp.Graph, summary: Summary) -> dict[str, Any]:
    return {
        "spec": spec,
        "vertices": graph.num_vertices,
        "stored_edges": graph.num_edges,
        "trials": summary.trials,
        "median": summary.median,
        "minimum": summary.minimum,
        "quartiles": summary.quartiles,
        "ns_per_edge": 1e9 * summary.median / graph.num_edges,
    }


def _cells(row: dict[str, Any]) -> list[str]:
    spread = (row["quartiles"][1] - row["quartiles"][0]) / row["median"]
    median = format_seconds(row["median"])
    return [row["spec"], f"{row['stored_edges']:,}", median, f"{100 * spread:.0f}%", f"{row['ns_per_edge']:.3f}"]
