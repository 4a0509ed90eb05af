"""Vertex programs compared with C++ (labels, PageRank, breadth-first search), costs of supersteps and compilation."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from typing import Any

import numpy as np

import gpu_pregel as gp
from benchmarks._contest import add_contest, measure_contestants, report_graph
from benchmarks._device import format_device, set_device
from benchmarks._graphs import choose_sources, prepare
from benchmarks._measure import (
    Summary,
    format_ratio,
    format_seconds,
    in_turn,
    machine,
    progress,
    table,
    timed,
    write_json,
)
from benchmarks.peers._contestant import Contestant
from benchmarks.peers.gapbs import GapbsPageRank, GapbsSearch
from benchmarks.peers.gemini import Gemini
from benchmarks.peers.ours import GpuPregel
from gpu_pregel.examples import bfs

HELP = "vertex programs: label propagation, PageRank, breadth-first search, cost of a superstep, compile time"
ITERATIONS = 20
SOURCES = 4
"""Breadth-first searches start from this many vertices that have edges."""

LABELS = gp.VertexProgram(
    value=np.uint32,
    init=lambda ctx: ctx.vertex,
    message=lambda value, ctx: value,
    combine="min",
    apply=lambda value, incoming, ctx: min(value, incoming),
)
PAGERANK = gp.VertexProgram(
    value=np.float32,
    init=lambda ctx: np.float32(1) / np.float32(ctx.num_vertices),
    message=lambda value, ctx: value / np.float32(ctx.out_degree),
    combine="sum",
    apply=lambda value, incoming, ctx: np.float32(0.15) / np.float32(ctx.num_vertices) + np.float32(0.85) * incoming,
    active="always",
    aggregators={"error": gp.Aggregator("sum", lambda old, new, ctx: abs(new - old))},
)
HOPS = gp.VertexProgram(
    value=np.int32,
    init=lambda ctx: 0 if ctx.vertex == 0 else 2**31 - 1,
    initially_active=lambda ctx: ctx.vertex == 0,
    message=lambda value, ctx: value + 1,
    combine="min",
    apply=lambda value, incoming, ctx: min(value, incoming),
)

SEARCH = bfs.hops


class LabelPropagation(GpuPregel):
    """Minimum-label propagation, Gemini's algorithm, as a vertex program."""

    name = "gpu_pregel program"

    def compute(self, graph: gp.Graph, threads: int) -> Any:
        """Label the components."""
        return gp.run(graph, LABELS, **self.device_options(threads))

    def answer(self, result: Any) -> Any:
        """Return the number of components."""
        return int((result.to_numpy() == np.arange(result.graph.num_vertices)).sum())


class PageRank(GpuPregel):
    """PageRank in float32 that sums the change of each iteration, as GAPBS does."""

    name = "gpu_pregel program"
    algorithm = "pagerank"

    def compute(self, graph: gp.Graph, threads: int) -> Any:
        """Run all iterations."""
        return gp.run(graph, PAGERANK, max_supersteps=ITERATIONS + 1, **self.device_options(threads))

    def answer(self, result: Any) -> Any:
        """Return the vertex with the highest score, on which both must agree."""
        return int(result.to_numpy().argmax())


class Search(GpuPregel):
    """Hops from each source, one search after the other, as a vertex program like ``examples/bfs.py:hops``."""

    name = "gpu_pregel program"
    algorithm = "bfs"

    def compute(self, graph: gp.Graph, threads: int) -> Any:
        """Run all searches."""
        where = self.device_options(threads)
        return [gp.run(graph, SEARCH, parameters={"source": source}, **where) for source in self.sources]

    def answer(self, result: Any) -> Any:
        """Return the number of vertices that each search reaches."""
        return [int((one.to_numpy() >= 0).sum()) for one in result]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommand's options."""
    add_contest(parser, graphs="kron:20,uniform:20", runs=3, budget=120)


def run(arguments: argparse.Namespace) -> int:
    """Measure all parts, print tables, write the report; return 1 if a contestant failed or disagrees."""
    report: dict[str, Any] = {"benchmark": "programs", "machine": machine(), "errors": []}
    report["device"] = set_device(arguments.device)
    report["parameters"] = {
        "graphs": arguments.graphs.split(","),
        "trials": arguments.trials,
        "threads": arguments.threads,
    }
    for title, contestants, iterations in (
        ("label propagation", [LabelPropagation, Gemini], 1),
        ("PageRank, one iteration", [PageRank, GapbsPageRank], ITERATIONS),
        ("breadth-first search, mean of four sources", [Search, GapbsSearch], SOURCES),
    ):
        report[title] = [
            _compare(title, spec, contestants, iterations, arguments) for spec in arguments.graphs.split(",")
        ]
        report["errors"] += [error for graph in report[title] for error in graph["errors"]]
    report["superstep"] = _measure_supersteps(arguments)
    report["compile"] = _measure_compilation()
    for error in report["errors"]:
        print(f"ERROR {error}")
    write_json(arguments.output, report)
    return 1 if report["errors"] else 0


def _compare(
    title: str, spec: str, contestants: list[type[Contestant]], iterations: int, arguments: argparse.Namespace
) -> dict[str, Any]:
    present = []
    for one in contestants:
        if (reason := one.why_unavailable(arguments.threads)) is None:
            present.append(one)
        else:
            progress(f"{one.name} is skipped: {reason}")
    files = prepare(spec, arguments.cache, {one.suffix for one in present})
    sources = choose_sources(files.paths[".sg"], SOURCES) if contestants[0].algorithm == "bfs" else []
    graph = report_graph(files, measure_contestants(files, present, arguments, sources, ITERATIONS))
    rows = []
    for entry in graph["contestants"]:
        for figure in ("median", "minimum"):
            entry[figure] = None if entry[figure] is None else entry[figure] / iterations
        spread = Summary.of(entry["trials"]).spread if entry["trials"] else 0
        cells = [format_seconds(entry["median"]), format_ratio(entry["ratio"]), f"{100 * spread:.0f}%"]
        rows.append([entry["name"], *cells])
    print(f"{title}, {graph['title']}\n{table(['', 'median', 'ours/theirs', 'spread'], rows)}", flush=True)
    print(format_device(graph), flush=True)
    return graph


def _measure_supersteps(arguments: argparse.Namespace) -> dict[str, float]:
    """Return the seconds of 3,000 supersteps: without work, and along a path."""
    pair = gp.Graph.from_edgelist([0], [1])
    path = gp.Graph.from_edgelist(np.arange(2999), np.arange(1, 3000))
    where = GpuPregel.device_options(arguments.threads)
    runs: dict[str, Callable[[], Any]] = {
        "idle": lambda: gp.run(pair, PAGERANK, max_supersteps=3000, **where),
        "path, hops": lambda: gp.run(path, HOPS, **where),
        "path, labels": lambda: gp.run(path, LABELS, **where),
    }
    trials: dict[str, list[float]] = {name: [] for name in runs}
    for one in runs.values():
        one()
    in_turn(list(runs), arguments.trials, lambda name: trials[name].append(timed(runs[name])[1]))
    medians = {name: Summary.of(figures).median for name, figures in trials.items()}
    rows = [[name, format_seconds(median), format_seconds(median / 3000)] for name, median in medians.items()]
    print(f"supersteps\n{table(['3,000 supersteps', 'median', 'each'], rows)}\n", flush=True)
    return medians


_COMPILE = """
import time, sys
import numpy as np
import gpu_pregel as gp
graph = gp.Graph.from_edgelist(np.array([0, 3], np.uint32), np.array([1, 4], np.uint32))
program = gp.VertexProgram(
    value=np.uint32, init=lambda ctx: ctx.vertex, message=lambda value, ctx: value, combine="min",
    apply=lambda value, incoming, ctx: min(value, incoming))
begin = time.perf_counter()
gp.run(graph, program, mode=sys.argv[1])
print(time.perf_counter() - begin)
"""


def _measure_compilation() -> dict[str, float]:
    """Return the seconds to compile a new program in each direction, and to load it in the next process."""
    seconds = {}
    for mode in ("push", "pull"):
        with tempfile.TemporaryDirectory() as folder:
            for attempt in ("compiled", "from the cache"):
                environment = {**os.environ, "NUMBA_CACHE_DIR": folder}
                command = [sys.executable, "-c", _COMPILE, mode]
                done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=300)
                seconds[f"{mode}, {attempt}"] = float(done.stdout)
    rows = [[name, format_seconds(figure)] for name, figure in seconds.items()]
    print(f"a new program\n{table(['', 'first run'], rows)}", flush=True)
    return seconds
