"""The cost of agents beside numeric vertices: none awake, twenty awake in a superstep, ten thousand at once.

The first figure compares a program with and without agents, superstep by superstep in turn. The second is the median
of the supersteps with twenty agents that do nothing, less that of the same program without any. The third divides the
agents of one superstep by what it takes beyond a superstep without agents, and beyond the superstep that wakes them.
"""

from __future__ import annotations

import argparse
from statistics import median
from typing import Any

import numpy as np

import gpu_pregel as gp
from benchmarks._graphs import generate
from benchmarks._measure import Summary, format_ratio, format_seconds, in_turn, machine, table, write_json
from benchmarks.programs import LABELS, PAGERANK

HELP = "the cost of agents beside numeric vertices"
MOST_WITHOUT, MOST_OF_TWENTY, LEAST_AGENTS = 1.02, 1e-3, 50_000
"""Asked: time with agents of which none is awake, over time without; seconds of twenty; agents per second."""
_SUPERSTEPS, _FIRST = 40, 3
"""Supersteps of the run with twenty agents; those before the first counted one warm up."""

STEPS = gp.VertexProgram(
    value=np.int64,
    init=lambda ctx: 0,
    message=lambda value, ctx: value,
    combine="max",
    apply=lambda value, incoming, ctx: value + 1,
    active="always",
)
"""Counts supersteps."""


def _look(ctx: Any) -> None:
    """Do nothing."""


def _decide(ctx: Any) -> Any:
    """Return a verdict."""
    return ctx.value + 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommand's options."""
    parser.add_argument("--graph", default="kron:20", help="kron:SCALE, uniform:SCALE or grid:SCALE (default: kron:20)")
    parser.add_argument("--trials", type=int, default=9, help="runs per figure (default: 9)")
    parser.add_argument("--workers", type=int, default=2, help="worker processes (default: 2)")


def run(arguments: argparse.Namespace) -> int:
    """Measure, print the table, write the report; return 1 if a figure misses what is asked."""
    graph = generate(arguments.graph)
    figures = {}
    for name, program, supersteps in (("PageRank", PAGERANK, 11), ("label propagation", LABELS, None)):
        ratio = _without_awake(graph, program, supersteps, arguments)
        figures[f"{name}, no vertex awake"] = (ratio, MOST_WITHOUT, format_ratio(ratio.median))
    twenty = _twenty(graph, arguments)
    figures["twenty awake, added to a superstep"] = (twenty, MOST_OF_TWENTY, format_seconds(twenty.median))
    many = _many(graph, arguments)
    figures["agents of one superstep per second"] = (many, LEAST_AGENTS, f"{many.median:,.0f}")
    rows, report = [], {}
    for name, (summary, asked, shown) in figures.items():
        is_rate = asked == LEAST_AGENTS
        holds = summary.median >= asked if is_rate else summary.median <= asked
        rows.append([name, shown, f"{100 * summary.spread:.0f}%", f"{asked:,g}", "yes" if holds else "no"])
        report[name] = {"median": summary.median, "trials": summary.trials, "asked": asked, "holds": holds}
    print(table(["", "median", "spread", "asked", "holds"], rows))
    parameters = {"graph": arguments.graph, "trials": arguments.trials, "workers": arguments.workers}
    write_json(
        arguments.output,
        {"benchmark": "mixed", "machine": machine(), "parameters": parameters, "figures": report},
    )
    return 0 if all(one["holds"] for one in report.values()) else 1


def _run(graph: gp.Graph, program: gp.VertexProgram, threads: int, **options: Any) -> Any:
    return gp.run(graph, program, device="cpu", threads=threads, on_limit="return", **options)


def _without_awake(
    graph: gp.Graph, program: gp.VertexProgram, supersteps: int | None, arguments: argparse.Namespace
) -> Summary:
    """Return the time of a program with agents, none of which wakes, over that without."""
    beside = {"agents": gp.Agents(_look, workers=arguments.workers), "wake": lambda old, new, ctx: new == -1}
    options: dict[str, dict[str, Any]] = {"without": {}, "with": beside}
    seconds: dict[str, list[float]] = {name: [] for name in options}

    def trial(name: str) -> None:
        found = _run(graph, program, arguments.threads, max_supersteps=supersteps, **options[name])
        seconds[name].append(found.stats["seconds"])

    in_turn(list(options), arguments.trials + 1, trial)
    return Summary.of(b / a for a, b in list(zip(seconds["without"], seconds["with"], strict=True))[1:])


def _twenty(graph: gp.Graph, arguments: argparse.Namespace) -> Summary:
    """Return the seconds that twenty agents which do nothing add to a superstep."""
    # Without edges a superstep takes a moment, and is as long in each trial.
    small = gp.Graph.from_edgelist([0], [1], num_vertices=min(graph.num_vertices, 1 << 16))
    chosen = {"twenty": lambda old, new, ctx: ctx.vertex < 20, "none": lambda old, new, ctx: ctx.vertex < 0}
    seconds: dict[str, list[float]] = {name: [] for name in chosen}

    def trial(name: str) -> None:
        agents = gp.Agents(_look, workers=arguments.workers)
        found = _run(small, STEPS, arguments.threads, agents=agents, wake=chosen[name], max_supersteps=_SUPERSTEPS)
        seconds[name].append(median(row["seconds"] for row in found.trace[_FIRST:]))

    in_turn(list(chosen), arguments.trials + 1, trial)
    return Summary.of(b - a for a, b in list(zip(seconds["none"], seconds["twenty"], strict=True))[1:])


def _many(graph: gp.Graph, arguments: argparse.Namespace) -> Summary:
    """Return how many agents are computed per second, if one vertex of a hundred wakes in superstep 4.

    The workers start before, when a single vertex has woken.
    """
    rates = []
    for _ in range(arguments.trials + 1):
        agents = gp.Agents(_decide, workers=arguments.workers)
        wake = lambda old, new, ctx: ctx.vertex == 7 if new == 1 else new == 4 and ctx.vertex % 100 == 0  # noqa: E731
        trace = _run(graph, STEPS, arguments.threads, agents=agents, wake=wake, max_supersteps=10).trace
        usual = median(row["seconds"] for row in trace[1:] if not row["computed"] and not row["woken"])
        (waking,) = [row for row in trace if row["woken"] > 1]
        (computing,) = [row for row in trace if row["computed"] > 1]
        more = max(0.0, waking["seconds"] - usual) + max(1e-9, computing["seconds"] - usual)
        rates.append(computing["computed"] / more)
    return Summary.of(rates[1:])
