"""Reads text edge lists: of numbers, in MB (10^6 bytes) per second, and tables with names, in turn with pandas."""

from __future__ import annotations

import argparse
import csv
import tempfile
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

import gpu_pregel as gp
from benchmarks._graphs import DEFAULT_CACHE, prepare
from benchmarks._measure import (
    Summary,
    format_ratio,
    format_seconds,
    in_turn,
    machine,
    table,
    timed,
    version_of,
    write_json,
)

HELP = "reading text edge lists: numbers in MB/s, names compared with pandas"

_SEED = 0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommand's options."""
    parser.add_argument("--graph", default="kron:20", help="graph to read (default: kron:20)")
    parser.add_argument("--trials", type=int, default=5, help="number of reads (default: 5)")
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of the tables with names (default: 1000000)")
    parser.add_argument("--names", type=int, default=200_000, help="number of names (default: 200000)")
    parser.add_argument("--cache", type=Path, default=DEFAULT_CACHE, help="folder for graph files")


def run(arguments: argparse.Namespace) -> int:
    """Measure, print the tables, write the report; return 1 if the edges read differ from those written."""
    errors: list[str] = []
    report: dict[str, Any] = {
        "benchmark": "read",
        "machine": {**machine(), "pandas": version_of("pandas"), "pyarrow": version_of("pyarrow")},
        "parameters": {name: getattr(arguments, name) for name in ("graph", "trials", "threads", "rows", "names")},
        "errors": errors,
    }
    report |= _measure_numbers(arguments, errors)
    with tempfile.TemporaryDirectory() as folder:
        report["tables"] = [
            _measure_table(arguments, Path(folder) / f"{kind}.csv", quoting, errors)
            for kind, quoting in (("unquoted", csv.QUOTE_MINIMAL), ("quoted", csv.QUOTE_NONNUMERIC))
        ]
    heading = ["table with names", "MB", "ours", "pandas", "pandas, pyarrow", "ours / pandas", "spread"]
    print(table(heading, map(_cells, report["tables"])))
    for error in errors:
        print(f"ERROR {error}")
    write_json(arguments.output, report)
    return 1 if errors else 0


def _measure_numbers(arguments: argparse.Namespace, errors: list[str]) -> dict[str, Any]:
    """Measure a file of numbers and print its table."""
    files = prepare(arguments.graph, arguments.cache, {".el"})
    path = files.paths[".el"]
    megabytes = path.stat().st_size / 1e6
    seconds: list[float] = []

    def trial(name: str) -> None:
        graph, duration = timed(gp.read_graph, path, threads=arguments.threads)
        seconds.append(duration)
        if graph.num_stored_edges != files.stored_edges:
            errors.append(f"{name}: {graph.num_stored_edges:,} stored edges instead of {files.stored_edges:,}")

    gp.read_graph(path, threads=arguments.threads)  # compiles, and fills the page cache
    in_turn(["read_graph"], arguments.trials, trial)
    summary = Summary.of(megabytes / duration for duration in seconds)
    heading = ["", "MB", "MB/s", "spread"]
    print(table(heading, [[path.name, f"{megabytes:.0f}", f"{summary.median:.0f}", f"{100 * summary.spread:.0f}%"]]))
    return {
        "megabytes": megabytes,
        "stored_edges": files.stored_edges,
        "seconds": seconds,
        "megabytes_per_second": summary.trials,
        "median": summary.median,
        "quartiles": summary.quartiles,
    }


def _measure_table(arguments: argparse.Namespace, path: Path, quoting: Any, errors: list[str]) -> dict[str, Any]:
    """Measure a table of two columns of names and one of weights, in turn with pandas, which builds no graph."""
    import pandas

    random = np.random.default_rng(_SEED)
    names = np.array([f"person {k}" for k in range(arguments.names)], object)
    ends = names[random.integers(0, len(names), (2, arguments.rows))]
    frame = pandas.DataFrame({"source": ends[0], "target": ends[1], "weight": random.random(arguments.rows).round(4)})
    frame.to_csv(path, index=False, quoting=quoting)
    readers: dict[str, Callable[[], Any]] = {
        "ours": lambda: gp.read_graph(path, directed=True, threads=arguments.threads),
        "pandas": lambda: pandas.read_csv(path),
        "pandas, pyarrow": lambda: pandas.read_csv(path, engine="pyarrow"),
    }
    seconds: dict[str, list[float]] = {name: [] for name in readers}

    def trial(name: str) -> None:
        result, duration = timed(readers[name])
        seconds[name].append(duration)
        rows = result.num_stored_edges if name == "ours" else len(result)
        if rows != arguments.rows:
            errors.append(f"{path.name}: {name}: {rows:,} rows instead of {arguments.rows:,}")

    for read in readers.values():
        read()
    in_turn(list(readers), arguments.trials, trial)
    summaries = {name: Summary.of(figures) for name, figures in seconds.items()}
    return {
        "table": path.stem,
        "megabytes": path.stat().st_size / 1e6,
        "seconds": {name: {**asdict(summary), "spread": summary.spread} for name, summary in summaries.items()},
        "ratio": summaries["ours"].median / summaries["pandas"].median,
    }


def _cells(row: dict[str, Any]) -> list[str]:
    medians = [format_seconds(summary["median"]) for summary in row["seconds"].values()]
    spreads = ", ".join(f"{100 * summary['spread']:.0f}%" for summary in row["seconds"].values())
    return [row["table"], f"{row['megabytes']:.0f}", *medians, format_ratio(row["ratio"]), spreads]
