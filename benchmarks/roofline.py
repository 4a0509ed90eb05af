"""Times predicted by a roofline model for H100, A100 and L4 from accesses and launches counted on the emulated device.

A kernel that launches ``l`` times takes at least ``l`` times the cost of a launch, and no less than each of its parts:

- memory: bytes of the sectors that warps touch, divided by a bandwidth. At best, what exceeds the kernel's footprint is
  served by the L2 cache; at worst, nothing is. A footprint that fits the L2 cache is served by it altogether.
- instructions: accesses of threads times ``INSTRUCTIONS_PER_ACCESS``, divided by the number of lanes and the clock.
- atomic operations: one per L2 slice and clock.

Parts overlap, kernels do not, and each readback adds the round trip to the host. Nothing here was measured on a GPU:
this is a model, which ``python -m benchmarks gpu`` is meant to refute.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass
from typing import Any

import gpu_pregel as gp
from benchmarks._counts import KernelCounts, count_run
from benchmarks._measure import format_seconds, machine, progress, table, write_json
from benchmarks.simulate import ALGORITHMS, SimulatedRun, add_runs

HELP = "times predicted by a model from counted accesses and launches"

RUNS = ("components:kron:14", "bfs:kron:14", "pagerank:kron:14", "sssp:kron:12", "bfs:grid:12")
SCALES = (14, 20, 24)

LAUNCH_SECONDS = 3e-6
"""Between the starts of two kernels in a stream; an assumption."""
READBACK_SECONDS = 15e-6
"""Synchronisation and copy of a few bytes to the host; an assumption."""
DRAM_EFFICIENCY, L2_EFFICIENCY = 0.9, 0.6
"""Shares of the data sheet's bandwidth that a kernel reaches at best; assumptions."""
INSTRUCTIONS_PER_ACCESS = {"components": 13, "bfs": 30, "pagerank": 53, "sssp": 87}
"""Further instructions of threads per further access from one Kronecker graph to a larger one, counted on GPGPU-Sim:
from scale 11 to 14, 8 to 10, 7 to 8 and 6 to 8."""
LANES = 128
"""Instructions of threads per multiprocessor and clock."""


@dataclass(frozen=True)
class Gpu:
    """A GPU by its data sheet.

    Attributes
    ----------
    name, source : str
    multiprocessors : int
    clock : float
        Boost clock in Hz.
    bandwidth : float
        Bytes per second of memory.
    l2_bytes : int
        Size of the L2 cache.
    l2_slices : int
        Slices of the L2 cache, each of which serves 64 bytes and one atomic operation per clock.
    """

    name: str
    source: str
    multiprocessors: int
    clock: float
    bandwidth: float
    l2_bytes: int
    l2_slices: int


GPUS = (
    Gpu(
        "H100",
        "NVIDIA H100 data sheet, SXM5, with the clock that gives 67 TFLOPS; slices assumed as in the A100",
        *(132, 1.98e9, 3.35e12, 50 << 20, 80),
    ),
    Gpu(
        "A100",
        "NVIDIA A100 data sheet, 80 GB SXM4; A100 white paper: 5,120 bytes of L2 per clock",
        *(108, 1.41e9, 2.039e12, 40 << 20, 80),
    ),
    Gpu(
        "L4",
        "NVIDIA L4 data sheet, with the clock that gives 30.3 TFLOPS; slices assumed: 4 per 32-bit channel",
        *(58, 2.04e9, 0.3e12, 48 << 20, 24),
    ),
)


@dataclass(frozen=True)
class Prediction:
    """Seconds of a run at best and at worst, and the seconds of the best case that are launches and readbacks."""

    best: float
    worst: float
    overhead: float


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    add_runs(parser, RUNS)


def run(arguments: argparse.Namespace) -> int:
    """Count, predict, print and write the report."""
    runs = [SimulatedRun.parse(text) for text in arguments.runs]
    report: dict[str, Any] = {
        "benchmark": "roofline",
        "model": True,
        "machine": machine(),
        "gpus": [asdict(gpu) for gpu in GPUS],
        "runs": [],
    }
    print("Predicted by a model, not measured: at best to at worst")
    for one in runs:
        progress(f"counting {one.algorithm} on {one.graph}")
        report["runs"].append(_predict_run(one))
        write_json(arguments.output, report)
    rows = [
        [f"{each['algorithm']}, {size['graph']}", *(_format(size["predictions"][gpu.name]) for gpu in GPUS)]
        for each in report["runs"]
        for size in each["sizes"]
    ]
    print(table(["model", *(gpu.name for gpu in GPUS)], rows))
    return 0


def _format(prediction: dict[str, float]) -> str:
    return f"{format_seconds(prediction['best'])} to {format_seconds(prediction['worst'])}"


def _predict_run(one: SimulatedRun) -> dict[str, Any]:
    graph = one.build()
    counts = count_run(lambda: ALGORITHMS[one.algorithm](graph, one, "emulated"))
    kind, _, counted = one.graph.partition(":")
    instructions = INSTRUCTIONS_PER_ACCESS[one.algorithm]
    sizes = []
    for scale in sorted({int(counted), *SCALES}) if kind == "kron" else [int(counted)]:
        # A Kronecker graph's supersteps hardly depend on its size, so that launches and readbacks stay the same.
        factor = 2.0 ** (scale - int(counted))
        predictions = {gpu.name: asdict(predict(counts, graph, gpu, instructions, factor)) for gpu in GPUS}
        sizes.append({"graph": f"{kind}:{scale}", "factor": factor, "predictions": predictions})
    return {
        **asdict(one),
        "launches": counts.launches,
        "readbacks": counts.readbacks,
        "bytes": counts.bytes,
        "kernels": counts.kernels,
        "sizes": sizes,
    }


def predict(counts: KernelCounts, graph: gp.Graph, gpu: Gpu, instructions: float, factor: float = 1.0) -> Prediction:
    """Predict the time of counted kernels, with so many ``instructions`` per access, ``factor`` times as large."""
    footprint = factor * footprint_of(graph)
    best = worst = 0.0
    for row in counts.kernels:
        low, high = _kernel_seconds(row, footprint, gpu, instructions, factor)
        best, worst = best + low, worst + high
    readbacks = counts.readbacks * READBACK_SECONDS
    overhead = readbacks + sum(row["launches"] for row in counts.kernels) * LAUNCH_SECONDS
    return Prediction(best + readbacks, worst + readbacks, overhead)


def footprint_of(graph: gp.Graph) -> int:
    """Return the bytes of the CSR with offsets of 4 bytes, of its weights, and of 12 bytes per vertex for values."""
    edge = 4 if graph.weights is None else 8
    return 16 * graph.num_vertices + edge * int(graph.indptr[-1])


def _kernel_seconds(
    row: dict[str, Any], footprint: float, gpu: Gpu, instructions: float, factor: float
) -> tuple[float, float]:
    """Return the least and the most seconds of all launches of a kernel."""
    moved = factor * row["bytes"]
    cache = L2_EFFICIENCY * 64 * gpu.l2_slices * gpu.clock
    memory = DRAM_EFFICIENCY * gpu.bandwidth
    accesses = factor * (row["loads"] + row["stores"] + row["atomics"] + row["shared"])
    others = max(
        row["launches"] * LAUNCH_SECONDS,
        accesses * instructions / (gpu.multiprocessors * LANES * gpu.clock),
        factor * row["atomics"] / (gpu.l2_slices * gpu.clock),
    )
    if footprint <= gpu.l2_bytes:
        return max(others, moved / cache), max(others, moved / cache)
    fetched = min(moved, row["launches"] * footprint)
    return max(others, fetched / memory, moved / cache), max(others, moved / memory, moved / cache)
