"""Bytes moved by CUDA kernels, counted on the emulated device and compared with the minimum.

A GPU moves global memory in sectors of 32 bytes, so the count is the number of distinct sectors that each warp
instruction touches. The minimum streams each array once and adds one sector per random access and one bit per edge
where the frontier is tested. Nothing is timed, so the figures are the same on every machine.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

import gpu_pregel as gp
from benchmarks import operator_traffic
from benchmarks._counts import KernelCounts, count_run
from benchmarks._graphs import generate
from benchmarks._measure import machine, table, write_json
from benchmarks.programs import HOPS, LABELS, PAGERANK
from gpu_pregel.host.devices.gpus import H100
from gpu_pregel.host.programs.compiler import compile_program
from gpu_pregel.host.programs.direction_costs import SECTOR, direction_costs

HELP = "bytes moved by CUDA kernels, compared with the minimum"
CC_LIMIT, PULL_LIMIT, PUSH_LIMIT = 140, 1.5, 2.0
"""Limits: bytes per vertex of connected components on kron:14, and multiples of a superstep's minimum."""
PARTIAL_PULL_LIMIT = 2.2
"""Higher: a weighted pull from some vertices fetches a sector per frontier bit, where the minimum counts one bit."""

DISTANCES = gp.VertexProgram(
    value=np.float32,
    init=lambda ctx: 0.0 if ctx.vertex == 0 else np.inf,
    initially_active=lambda ctx: ctx.vertex == 0,
    message=lambda value, weight, ctx: value + weight,
    combine="min",
    apply=lambda value, incoming, ctx: min(value, incoming),
)


@dataclass(frozen=True)
class Case:
    """A program to run in one direction for some supersteps."""

    name: str
    program: gp.VertexProgram
    direction: Literal["push", "pull"]
    supersteps: int
    limit: float


CASES = [
    Case("PageRank", PAGERANK, "pull", 3, PULL_LIMIT),
    Case("label propagation", LABELS, "pull", 3, PULL_LIMIT),
    Case("label propagation", LABELS, "push", 3, PUSH_LIMIT),
    Case("hops", HOPS, "push", 4, PUSH_LIMIT),
    Case("weighted distances", DISTANCES, "push", 4, PUSH_LIMIT),
    Case("weighted distances", DISTANCES, "pull", 6, PARTIAL_PULL_LIMIT),
]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommand's options."""
    parser.add_argument("--graph", default="kron:14", help="kron:SCALE, uniform:SCALE or grid:SCALE (default: kron:14)")


def run(arguments: argparse.Namespace) -> int:
    """Count, print the tables, write the report; return 1 if a figure exceeds its limit."""
    graph = add_weights(generate(arguments.graph))
    components = count_components(graph)
    per_vertex = components.bytes / graph.num_vertices
    print(f"connected components of {arguments.graph}: {per_vertex:.0f} bytes per vertex (at most {CC_LIMIT})")
    print(_format_kernels(components, graph), end="\n\n")
    rows, above = [], per_vertex > CC_LIMIT
    for case in CASES:
        row, counts = count_case(graph, case)
        rows.append(row)
        above |= row["ratio"] > case.limit
        print(f"{case.name}, {case.direction}: {row['ratio']:.2f} times the minimum (at most {case.limit})")
        print(f"{row['launches']:.1f} launches and {row['readbacks']:.2f} readbacks per superstep")
        print(_format_kernels(counts, graph), end="\n\n", flush=True)
    operators = [row for case in operator_traffic.CASES for row in operator_traffic.count_operators(graph, case)]
    for row in operators:
        above |= operator_traffic.is_above_limit(row)
        limit = operator_traffic.LIMITS[row["phase"]]
        steps = row["supersteps"]
        print(f"{row['program']} by operators, {row['phase']}: {row['ratio']:.2f} times the minimum (at most {limit})")
        print(
            f"{row['launches'] / steps:.1f} launches and {row['readbacks'] / steps:.2f} readbacks in {steps} supersteps"
        )
    report = {
        "benchmark": "traffic",
        "machine": machine(),
        "graph": {"spec": arguments.graph, "vertices": graph.num_vertices, "stored_edges": graph.num_stored_edges},
        "connected_components": {"bytes_per_vertex": per_vertex, "kernels": components.kernels},
        "programs": rows,
        "operators": operators,
    }
    write_json(arguments.output, report)
    return int(above)


def add_weights(graph: gp.Graph) -> gp.Graph:
    """Add weights from 1 to 97 to the edges, equal in both directions."""
    indptr, indices, _ = graph.to_csr()
    sources = np.repeat(np.arange(graph.num_vertices), np.diff(indptr))
    low, high = np.minimum(sources, indices), np.maximum(sources, indices)
    weights = (low * 7919 + high * 104729) % 97 + 1
    return gp.Graph.from_csr(indptr, indices, weights.astype(np.float32))


def count_components(graph: gp.Graph) -> KernelCounts:
    """Count a component search."""
    return count_run(lambda: gp.connected_components(graph, device="emulated"))


def count_case(graph: gp.Graph, case: Case) -> tuple[dict[str, Any], KernelCounts]:
    """Count the supersteps of a program after superstep 0, and compare them with the minimum."""
    results = []

    def work() -> None:
        results.append(
            gp.run(
                *(graph, case.program),
                device="emulated",
                mode=case.direction,
                max_supersteps=case.supersteps,
                on_limit="return",
            )
        )

    found = count_run(work)
    found.kernels = [kernel for kernel in found.kernels if kernel["kernel"] != "initialise"]
    trace = list(results[0].trace)
    fewest = sum(fewest_bytes(graph, case, before, row) for before, row in pairwise(trace))
    steps = len(trace) - 1
    row = {
        "program": case.name,
        "direction": case.direction,
        "supersteps": steps,
        "messages": sum(one["messages"] for one in trace[1:]),
        "bytes": found.bytes,
        "fewest": fewest,
        "ratio": found.bytes / fewest,
        "launches": (found.launches - 1) / steps,
        "readbacks": (found.readbacks - 1) / steps,
        "kernels": found.kernels,
    }
    return row, found


def fewest_bytes(graph: gp.Graph, case: Case, before: dict[str, Any], row: dict[str, Any]) -> float:
    """Return the minimum of bytes of a superstep; ``before`` is the trace row of the superstep that sent."""
    compiled = compile_program(case.program, weight=None if graph.weights is None else graph.weights.dtype)
    sizes = direction_costs(H100, compiled, graph)
    assert sizes is not None
    n, m, value, edge = sizes.vertices, sizes.edges, sizes.value, sizes.edge
    senders, messages, applied = int(before["active_vertices"]), int(row["messages"]), int(row["applied"])
    # Values are streamed or fetched at random, whichever moves less, and written where applied.
    values = min(n * value, applied * SECTOR) * 2
    bitmaps = 2 * n / 8
    if case.direction == "push":
        rows = min(4 * n, 2 * SECTOR * senders)
        sources = min(n * value, senders * SECTOR)
        return rows + sources + messages * (edge + SECTOR) + values + bitmaps
    if senders == n:
        return 4 * n + m * (edge + SECTOR) + values + bitmaps
    # With a partial frontier every edge tests a bit, and only edges from active vertices read further.
    random = messages * (SECTOR + edge - 4) if case.program.sends_per_edge else m * SECTOR
    return 4 * n + 4 * m + m / 8 + random + values + bitmaps


def _format_kernels(found: KernelCounts, graph: gp.Graph) -> str:
    rows = [
        [
            kernel["kernel"],
            str(kernel["launches"]),
            f"{kernel['bytes'] / kernel['launches'] / graph.num_vertices:.1f}",
            f"{kernel['bytes'] / kernel['launches'] / graph.num_stored_edges:.2f}",
        ]
        for kernel in found.kernels
    ]
    return table(["kernel", "launches", "bytes per vertex", "bytes per edge"], rows)
