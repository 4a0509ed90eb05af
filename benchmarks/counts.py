"""What costs time on a GPU, of each algorithm of the registry, counted on the emulated device.

Counted are launches, readbacks, bytes copied between host and device beside the result, rounds, accesses to global
memory of the longest lane (thread) and of the mean one, and sectors over the fewest that hold what was accessed. Each
algorithm is called twice and the second call is counted, so that the graph is on the device as it is after the first
use on a GPU. Nothing is timed, so the figures are the same on every machine.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import fields
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np

import gpu_pregel as gp
from benchmarks._counts import KernelCounts, count_run
from benchmarks._graphs import generate, transform
from benchmarks._measure import commit, machine, progress, table, version_of, write_json
from benchmarks._tasks import TASKS
from gpu_pregel.algorithms import _levels
from gpu_pregel.algorithms._entry import Algorithm, Option
from gpu_pregel.algorithms.registry import ALGORITHMS, algorithm
from gpu_pregel.host.graphs.results import Result
from gpu_pregel.host.programs.direction_costs import SECTOR

HELP = "launches, transfers and accesses of each algorithm, counted on the emulated device"

GRAPHS = ("kron:10", "uniform:10", "grid:10")
COMPARED = ("launches", "readbacks", "host_bytes", "rounds", "longest_lane")
"""Figures that ``--compare`` compares; smaller is better."""
_TOLERANCE = 0.02
_SOURCES = 4
"""Number of sources of algorithms that otherwise search from every vertex."""
_VERTICES = 64
"""Number of vertices passed to algorithms that take several, so that more than one warp has work."""
_SERIAL_EDGES = 1 << 9
"""Louvain and Leiden search levels of up to this number of stored edges on the CPU. By default it is so high that they
would use no other device on these graphs."""

_COMPILERS = ("numba-cuda", "llvmlite")
"""Packages of which another version may compile other accesses."""

_NAMES = [entry.name for entry in ALGORITHMS]
Report = dict[str, dict[str, dict[str, Any]]]
"""Rows by algorithm and graph."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "--only", nargs="+", metavar="ALGORITHM", choices=_NAMES, default=_NAMES, help="algorithms (default: all)"
    )
    parser.add_argument(
        "--compare", type=Path, metavar="FILE", help="an earlier report: fail if a figure is more than 2%% above its"
    )


def run(arguments: argparse.Namespace) -> int:
    """Count, print the table, write the report; return 1 if a figure is above that of an earlier report."""
    before = None if arguments.compare is None else _read(arguments.compare)
    versions = {name: version_of(name) for name in _COMPILERS}
    report: dict[str, Any] = {"benchmark": "counts", "machine": machine(), "packages": versions, "commit": commit()}
    names = [name for name in _NAMES if name in arguments.only]
    found: Report = {}
    for name, rows in zip(names, _count_all(names, min(arguments.threads, len(names))), strict=True):
        found[name] = rows
        progress(f"{name}: {', '.join(rows)}")
    print(_format(found), *_on_cpu(found), sep="\n")
    write_json(arguments.output, report | {"algorithms": found})
    return 0 if before is None else int(_report_changes(before, found))


def _read(path: Path) -> Report:
    report = json.loads(path.read_text())
    if report.get("benchmark") != "counts":
        raise ValueError(f"{path} is not a report of python -m benchmarks counts")
    rows: Report = report["algorithms"]
    return rows


def _count_all(names: list[str], processes: int) -> Iterator[dict[str, dict[str, Any]]]:
    if processes == 1:
        yield from map(count_algorithm, names)
        return
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        yield from pool.map(count_algorithm, names)


def count_algorithm(name: str) -> dict[str, dict[str, Any]]:
    """Count an algorithm on each graph; return the rows by graph."""
    return {spec: _count_on(algorithm(name), spec) for spec in GRAPHS}


def _count_on(entry: Algorithm, spec: str) -> dict[str, Any]:
    graph, function = make_graph(entry, spec), entry.load()
    spread = spread_vertices(graph)
    arguments = make_arguments(entry, spread)
    results: list[Result] = []
    with patch.object(_levels, "SERIAL_EDGES", _SERIAL_EDGES):
        function(graph, device="emulated", **arguments)
        counts = count_run(lambda: results.append(function(graph, device="emulated", **arguments)))
    (result,) = results
    edges = [word for word, has in (("directed", graph.is_directed), ("weighted", graph.weights is not None)) if has]
    where: dict[str, Any] = {key: result.stats[key] for key in ("device", "on_cpu") if key in result.stats}
    passed = {key: f"{len(value)} vertices" if value == spread else value for key, value in arguments.items()}
    return {**_figures(counts, result), **where, "edges": edges, "arguments": passed, "kernels": _kernels(counts)}


def make_graph(entry: Algorithm, spec: str) -> gp.Graph:
    """Generate a graph with the directions and the weights with which the algorithm is measured elsewhere."""
    graph = generate(spec)
    if "acyclic" in entry.requires:
        sources = np.repeat(np.arange(graph.num_vertices), np.diff(graph.indptr))
        kept = sources < graph.indices
        n = graph.num_vertices
        return gp.Graph.from_edgelist(sources[kept], graph.indices[kept], num_vertices=n, directed=True)
    task = next((task for task in TASKS if task.name == entry.name), None)
    return graph if task is None else transform(graph, orient=task.directed, weighted=task.weighted)


def spread_vertices(graph: gp.Graph) -> list[int]:
    """Return vertices of the largest component, at equal distances in it."""
    labels = gp.connected_components(graph, device="cpu").to_numpy()
    largest = np.flatnonzero(labels == np.bincount(labels).argmax())
    vertices: list[int] = largest[:: max(len(largest) // _VERTICES, 1)][:_VERTICES].tolist()
    return vertices


def make_arguments(entry: Algorithm, vertices: list[int]) -> dict[str, Any]:
    """Return the required arguments, with one or all of some vertices, and a small number of sources."""

    def value(option: Option) -> Any:
        return {"vertex": vertices[0], "vertices": vertices}.get(option.kind, option.sample)

    arguments = {option.argument: value(option) for option in entry.options if option.required}
    return arguments | ({"sources": _SOURCES} if entry.is_per_source else {})


def _figures(counts: KernelCounts, result: Result) -> dict[str, Any]:
    downloaded = counts.downloaded - own_bytes(counts.downloads, result)
    figures = {
        "launches": counts.launches,
        "readbacks": counts.readbacks,
        "host_bytes": counts.uploaded + downloaded,
        "uploaded": counts.uploaded,
        "downloaded": downloaded,
        "rounds": len(result.trace),
    }
    worst = _worst(counts.kernels)
    if worst is None:
        return {**figures, "longest_lane": 0, "mean_lane": 0, "sectors_over_floor": 0, "worst_kernel": None}
    asked = sum(kernel["asked"] for kernel in counts.kernels)
    lanes = _lanes(worst)
    return {**figures, **lanes, "sectors_over_floor": round(counts.bytes / asked, 3), "worst_kernel": worst["kernel"]}


def own_bytes(downloads: Iterable[np.ndarray[Any, Any]], result: Result) -> int:
    """Return the bytes of downloads that are the result.

    For each array of the result in host memory that is the last download with the same number of elements, unless
    another array of the result has taken it: dtypes may differ.
    """
    left = list(downloads)
    own = 0
    for size in _host_sizes(getattr(result, field.name) for field in fields(result)):
        place = next((place for place in reversed(range(len(left))) if left[place].size == size), None)
        own += 0 if place is None else left.pop(place).nbytes
    return own


def _host_sizes(values: Iterable[Any]) -> Iterator[int]:
    """Yield the number of elements of each array of NumPy, also of those in tuples."""
    for value in values:
        if isinstance(value, np.ndarray):
            yield value.size
        elif isinstance(value, tuple):
            yield from _host_sizes(value)


def _worst(kernels: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the kernel with the highest ratio of the longest lane to the mean, times its share of all accesses."""
    used = [kernel for kernel in kernels if kernel["lanes"]]
    return max(used, key=lambda kernel: kernel["longest_lane"] * kernel["lanes"], default=None)


def _lanes(kernel: dict[str, Any]) -> dict[str, Any]:
    mean = kernel["lane_accesses"] / kernel["lanes"] if kernel["lanes"] else 0
    return {"longest_lane": kernel["longest_lane"], "mean_lane": round(mean, 3)}


def _kernels(counts: KernelCounts) -> dict[str, dict[str, Any]]:
    return {
        kernel["kernel"]: {
            "launches": kernel["launches"],
            **_lanes(kernel),
            "accesses": kernel["lane_accesses"],
            "sectors": kernel["bytes"] // SECTOR,
            "sectors_over_floor": round(kernel["bytes"] / kernel["asked"], 3) if kernel["asked"] else 0,
        }
        for kernel in counts.kernels
    }


def compare(before: Report, after: Report) -> tuple[list[str], list[str]]:
    """Return lines that say which figures of ``after`` are larger than those of ``before``, and which are smaller."""
    larger: list[str] = []
    smaller: list[str] = []
    common = [(name, spec) for name in after for spec in after[name] if spec in before.get(name, {})]
    for name, spec in common:
        old, new = before[name][spec], after[name][spec]
        for figure in COMPARED:
            line = f"{name}, {spec}: {figure} {old[figure]:,} before, {new[figure]:,} after"
            if figure == "longest_lane":
                line += f" ({old['worst_kernel']}, {new['worst_kernel']})"
            if new[figure] > old[figure] * (1 + _TOLERANCE):
                larger.append(line)
            elif new[figure] < old[figure] * (1 - _TOLERANCE):
                smaller.append(line)
    return larger, smaller


def _report_changes(before: Report, after: Report) -> bool:
    """Print what has changed; return whether a figure is larger."""
    larger, smaller = compare(before, after)
    if new := [name for name in after if name not in before]:
        print(f"\nnot in the earlier report: {', '.join(new)}")
    for heading, lines in (("smaller", smaller), ("LARGER", larger)):
        print(f"\n{heading}: {len(lines)} figures", *lines, sep="\n  ")
    return bool(larger)


def _on_cpu(found: Report) -> Iterator[str]:
    """Yield a line for each row of which something ran on the CPU although the emulated device was passed."""
    for name, rows in found.items():
        for spec, row in rows.items():
            if row["device"] != "emulated" or "on_cpu" in row:
                yield f"{name} on {spec}: {row.get('on_cpu', 'everything')} on the CPU"


def _format(found: Report) -> str:
    heading = ["algorithm", "graph", "launches", "readbacks", "host bytes", "rounds", "longest lane", "mean lane"]
    rows = [
        [
            *(name, spec, *(f"{row[key]:,}" for key in COMPARED)),
            *(f"{row['mean_lane']:,.1f}", f"{row['sectors_over_floor']:.2f}", str(row["worst_kernel"])),
        ]
        for name, graphs in found.items()
        for spec, row in graphs.items()
    ]
    return table([*heading, "sectors/floor", "worst kernel"], rows)
