"""Cycles and instructions of our CUDA kernels on GPGPU-Sim, a simulator of NVIDIA's chips with a timing model.

``GPU_PREGEL_GPGPUSIM`` names the folder of a built simulator (github.com/accel-sim/gpgpu-sim_distribution), and
``CUDA_INSTALL_PATH`` the CUDA toolkit with which it was built. Every result is compared with the CPU's. Cycles exclude
launch latency; they are meant for comparisons of two versions of a kernel on one configuration.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

import gpu_pregel as gp
from benchmarks._graphs import generate, is_spec, transform
from benchmarks._measure import machine, progress, table, timed, write_json
from benchmarks.simulator.device import LaunchRecord, SimulatedDevice, simulated
from benchmarks.simulator.process import CONFIGURATIONS, why_unavailable

HELP = "cycles per kernel on a simulated GPU"

RUNS = (
    "components:kron:11",
    "components:kron:14",
    "components:kron:13:directed",
    "bfs:kron:10",
    "bfs:path:10000:30",
    "pagerank:kron:8",
    "sssp:kron:8",
)
"""The default runs. 30 is the number of hops after which the search along the path ends."""


@dataclass(frozen=True)
class SimulatedRun:
    """An algorithm on a graph; ``hops`` limits a breadth-first search."""

    algorithm: str
    graph: str
    directed: bool = False
    hops: int | None = None

    @classmethod
    def parse(cls, text: str) -> SimulatedRun:
        """Read ``ALGORITHM:KIND:SIZE``, where ``:directed`` or, for a search, a number of hops may follow."""
        algorithm, kind, size, option, *rest = [*text.split(":"), "", "", ""]
        graph = f"{kind}:{size}"
        is_graph = size.isdecimal() and (kind == "path" or is_spec(graph))
        is_option = option in ("", "directed") or (option.isdecimal() and algorithm == "bfs")
        if algorithm not in ALGORITHMS or not is_graph or not is_option or any(rest):
            raise ValueError(
                f"{text!r} is not a run: give ALGORITHM:GRAPH, with one of {', '.join(ALGORITHMS)} and kron:SCALE, "
                f"uniform:SCALE, grid:SCALE or path:VERTICES, then ':directed' or, for bfs, a number of hops"
            )
        return cls(algorithm, graph, option == "directed", int(option) if option.isdecimal() else None)

    def build(self) -> gp.Graph:
        """Generate the graph, with weights for shortest paths."""
        kind, _, size = self.graph.partition(":")
        if kind == "path":
            ids = np.arange(int(size))
            graph = gp.Graph.from_edgelist(ids[:-1], ids[1:], num_vertices=int(size))
        else:
            graph = generate(self.graph)
        return transform(graph, orient=self.directed, weighted=self.algorithm == "sssp")


ALGORITHMS: dict[str, Callable[[gp.Graph, SimulatedRun, str], Any]] = {
    "components": lambda graph, run, device: gp.connected_components(graph, device=device),
    "bfs": lambda graph, run, device: gp.bfs(graph, _source(graph), max_hops=run.hops, device=device),
    "pagerank": lambda graph, run, device: gp.pagerank(graph, max_iterations=5, tolerance=0, device=device),
    "sssp": lambda graph, run, device: gp.sssp(graph, _source(graph), device=device),
}
"""PageRank ends after five supersteps."""


def _source(graph: gp.Graph) -> int:
    """Return the first vertex with an edge."""
    return int(np.flatnonzero(np.diff(graph.indptr))[0])


def add_runs(parser: argparse.ArgumentParser, default: tuple[str, ...]) -> None:
    """Declare the runs; ``SimulatedRun.parse`` reads them."""
    parser.add_argument(
        "runs",
        nargs="*",
        metavar="ALGORITHM:GRAPH",
        default=default,
        help=f"runs, of {', '.join(ALGORITHMS)} (default: {' '.join(default)})",
    )


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_runs(parser, RUNS)
    parser.add_argument(
        "--configuration", choices=CONFIGURATIONS, default="QV100", help="the modelled GPU (default: QV100)"
    )


def run(arguments: argparse.Namespace) -> int:
    """Simulate the runs, print their kernels, and write the report after each; return 1 if a result is wrong."""
    runs = [SimulatedRun.parse(text) for text in arguments.runs]
    reason = why_unavailable()
    if reason is not None:
        raise ValueError(reason)
    report: dict[str, Any] = {
        "benchmark": "simulate",
        "machine": machine(),
        "simulator": "GPGPU-Sim",
        "configuration": arguments.configuration,
        "runs": [],
    }
    for one in runs:
        progress(f"{one.algorithm} on {one.graph}")
        with simulated(arguments.configuration) as device:
            report["runs"].append(_simulate(one, device))
        _print(report["runs"][-1])
        write_json(arguments.output, report)
    return int(not all(each["correct"] for each in report["runs"]))


def _simulate(run: SimulatedRun, device: SimulatedDevice) -> dict[str, Any]:
    graph, work = run.build(), ALGORITHMS[run.algorithm]
    result, seconds = timed(work, graph, run, device.name)
    found, expected = result.to_numpy(), work(graph, run, "cpu").to_numpy()
    equal = np.allclose(found, expected, rtol=1e-4) if found.dtype.kind == "f" else np.array_equal(found, expected)
    return {
        **asdict(run),
        "vertices": graph.num_vertices,
        "stored_edges": int(graph.indptr[-1]),
        "correct": bool(equal),
        "supersteps": len(result.trace),
        "readbacks": device.memory.readbacks,
        "launches": device.launches,
        "cycles": sum(record.cycles for record in device.records),
        "instructions": sum(record.instructions for record in device.records),
        "seconds": seconds,
        "kernels": by_kernel(device.records),
    }


def by_kernel(records: list[LaunchRecord]) -> list[dict[str, Any]]:
    """Return launches, cycles and instructions of each kernel, in order of first launch."""
    found: dict[str, dict[str, Any]] = {}
    for record in records:
        row = found.setdefault(record.kernel, {"kernel": record.kernel, "launches": 0, "cycles": 0, "instructions": 0})
        row["launches"] += 1
        row["cycles"] += record.cycles
        row["instructions"] += record.instructions
    return list(found.values())


def _print(result: dict[str, Any]) -> None:
    rows = [
        [row["kernel"], *(f"{row[key]:,}" for key in ("launches", "cycles", "instructions"))]
        for row in [*result["kernels"], {"kernel": "all", **result}]
    ]
    verdict = "as on the CPU" if result["correct"] else "WRONG RESULT"
    print(f"\n{result['algorithm']} on {result['graph']}, {result['supersteps']} supersteps: {verdict}")
    print(table(["kernel", "launches", "cycles", "instructions"], rows))
