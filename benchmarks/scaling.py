"""Time per stored edge, or per unit of work, of algorithms on Kronecker graphs of increasing size."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import gpu_pregel as gp
from benchmarks._graphs import choose_from, generate
from benchmarks._measure import Summary, format_seconds, in_turn, machine, progress, table, timed, write_json
from benchmarks._tasks import TASKS, Task, contestant
from benchmarks.peers.ours import GpuPregel

HELP = "time per stored edge of algorithms on growing graphs"
DEFAULT_ALGORITHMS = "connected_components,bfs,pagerank,triangle_count"
_EDGES_AT_ONCE = 1 << 23


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommand's options."""
    parser.add_argument(
        "--graphs", default=",".join(f"kron:{scale}" for scale in range(16, 23)), help="graphs, smallest first"
    )
    parser.add_argument("--algorithms", default=DEFAULT_ALGORITHMS, help="names of the registry, with commas")
    parser.add_argument("--trials", type=int, default=9, help="runs per graph (default: 9)")


def run(arguments: argparse.Namespace) -> int:
    """Measure, print the tables, write the report; return 0."""
    graphs: dict[str, gp.Graph] = {}
    for spec in arguments.graphs.split(","):
        progress(f"{spec}: generating")
        graphs[spec] = generate(spec)
    known = {task.name: task for task in TASKS if not (task.directed or task.weighted)}
    names = arguments.algorithms.split(",")
    if unknown := [name for name in names if name not in known]:
        raise ValueError(f"unknown algorithm: {', '.join(unknown)}; available algorithms: {', '.join(known)}")
    report: dict[str, Any] = {
        "benchmark": "scaling",
        "machine": machine(),
        "parameters": {"graphs": list(graphs), "trials": arguments.trials, "threads": arguments.threads},
        "algorithms": {name: _measure(known[name], graphs, arguments) for name in names},
    }
    write_json(arguments.output, report)
    return 0


def _measure(task: Task, graphs: dict[str, gp.Graph], arguments: argparse.Namespace) -> dict[str, Any]:
    """Measure one algorithm on all graphs in turn, and print its table."""
    runners: dict[str, GpuPregel] = {}
    trials: dict[str, list[float]] = {spec: [] for spec in graphs}
    for spec, graph in graphs.items():
        runners[spec] = contestant(task)()
        runners[spec].sources = choose_from(graph.indptr, task.sources)
        runners[spec].compute(graph, arguments.threads)

    def trial(spec: str) -> None:
        seconds = timed(runners[spec].compute, graphs[spec], arguments.threads)[1]
        trials[spec].append(seconds / task.divisor)

    progress(task.name)
    in_turn(list(graphs), arguments.trials, trial)
    rows = [_row(task, spec, graph, Summary.of(trials[spec])) for spec, graph in graphs.items()]
    costs = [row["ns_per_unit"] for row in rows]
    unit = "comparison" if task.name == "triangle_count" else "edge"
    found = {
        "unit": unit,
        "graphs": rows,
        "last_to_first": costs[-1] / costs[0],
        "dearest_to_cheapest": max(costs) / min(costs),
    }
    heading = [task.name.replace("_", " "), "stored edges", "median", "spread", f"ns per {unit}"]
    print(table(heading, [_cells(row) for row in rows]))
    print(f"per {unit}, last graph / first graph: {found['last_to_first']:.2f}")
    print(f"per {unit}, most expensive / cheapest: {found['dearest_to_cheapest']:.2f}\n", flush=True)
    return found


def _row(task: Task, spec: str, graph: gp.Graph, summary: Summary) -> dict[str, Any]:
    units = count_comparisons(graph) if task.name == "triangle_count" else graph.num_stored_edges
    return {
        "spec": spec,
        "vertices": graph.num_vertices,
        "stored_edges": graph.num_stored_edges,
        "trials": summary.trials,
        "median": summary.median,
        "minimum": summary.minimum,
        "quartiles": summary.quartiles,
        "units": units,
        "ns_per_unit": 1e9 * summary.median / units,
    }


def count_comparisons(graph: gp.Graph) -> int:
    """Return the comparisons of counting triangles by merging sorted rows, each edge kept from its lower degree.

    Triangles are not proportional to edges: on Kronecker graphs the work per edge grows with the scale.
    """
    degrees, indptr = graph.out_degrees, graph.indptr
    ranks = np.empty(graph.num_vertices, np.int64)
    ranks[np.argsort(degrees, kind="stable")] = np.arange(graph.num_vertices)
    kept = np.zeros(graph.num_vertices, np.int64)
    for is_second in (False, True):
        comparisons, first = 0, 0
        while first < graph.num_vertices:
            last = max(first + 1, int(np.searchsorted(indptr, indptr[first] + _EDGES_AT_ONCE, "right")) - 1)
            src = np.repeat(np.arange(first, last), np.diff(indptr[first : last + 1]))
            dst = graph.indices[indptr[first] : indptr[last]]
            up = ranks[src] < ranks[dst]
            if is_second:
                comparisons += int(kept[src[up]].sum() + kept[dst[up]].sum())
            else:
                kept[first:last] = np.bincount(src[up] - first, minlength=last - first)
            first = last
    return comparisons


def _cells(row: dict[str, Any]) -> list[str]:
    spread = (row["quartiles"][1] - row["quartiles"][0]) / row["median"]
    median = format_seconds(row["median"])
    return [row["spec"], f"{row['stored_edges']:,}", median, f"{100 * spread:.0f}%", f"{row['ns_per_unit']:.3f}"]
