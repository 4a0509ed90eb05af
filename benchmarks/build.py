"""Builds the CSR of random edges in memory: time compared with GAPBS's builder, and peak memory."""

from __future__ import annotations

import argparse
import multiprocessing
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import gpu_pregel as gp
from benchmarks._measure import (
    Summary,
    format_ratio,
    format_seconds,
    in_turn,
    machine,
    progress,
    run_program,
    table,
    timed,
    write_json,
)
from benchmarks.peers.gapbs import Gapbs
from gpu_pregel.host.devices.memory import format_bytes

HELP = "building the CSR of random edges, compared with GAPBS; peak memory"
EDGE_FACTOR = 16
_SPARSE_STEP = np.int64(1_000_003)
_BUILD_TIME = re.compile(r"^Build Time:\s*([\d.]+)", re.MULTILINE)

Array = np.ndarray[Any, Any]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommand's options."""
    parser.add_argument("--scale", type=int, default=20, help="2^SCALE vertices with 16 edges each (default: 20)")
    parser.add_argument("--trials", type=int, default=9, help="turns per contestant (default: 9)")


def run(arguments: argparse.Namespace) -> int:
    """Measure, print the table, write the report; return 0."""
    threads, scale = arguments.threads, arguments.scale
    memory = measure_memory(scale, threads)
    src, dst = random_edges(scale)
    gaps = 2 * src, 2 * dst
    sparse = src * _SPARSE_STEP, dst * _SPARSE_STEP
    ours: dict[str, Callable[[], gp.Graph]] = {
        "gpu_pregel": lambda: build(src, dst, scale, threads),
        "gpu_pregel, ids found": lambda: gp.Graph.from_edgelist(src, dst, threads=threads),
        "gpu_pregel, ids with gaps": lambda: gp.Graph.from_edgelist(*gaps, threads=threads),
        "gpu_pregel, sparse ids": lambda: gp.Graph.from_edgelist(*sparse, threads=threads),
    }
    trials: dict[str, list[float]] = {name: [] for name in ours}
    program = Gapbs.program()
    if program is None:
        progress(f"gapbs is skipped: {Gapbs.why_unavailable(threads)}")
    else:
        trials["gapbs"] = []
    for make in ours.values():
        make()  # compiles

    def trial(name: str) -> None:
        if name in ours:
            trials[name].append(timed(ours[name])[1])
        else:
            assert program is not None
            output = run_program([program, "-u", str(scale), "-k", str(EDGE_FACTOR), "-n", "1"], threads=threads)
            trials[name].append(float(_BUILD_TIME.findall(output)[0]))

    in_turn(list(trials), arguments.trials, trial)
    summaries = {name: Summary.of(seconds) for name, seconds in trials.items()}
    known = summaries["gpu_pregel"].median
    report = {
        "benchmark": "build",
        "machine": machine(),
        "parameters": {"scale": scale, "edges": len(src), "trials": arguments.trials, "threads": threads},
        "contestants": [
            {
                "name": name,
                "trials": each.trials,
                "median": each.median,
                "minimum": each.minimum,
                "quartiles": each.quartiles,
                "ratio": known / each.median,
            }
            for name, each in summaries.items()
        ],
        "memory": memory,
    }
    rows = [
        [name, format_seconds(each.median), format_ratio(known / each.median), f"{100 * each.spread:.0f}%"]
        for name, each in summaries.items()
    ]
    print(table(["", "median", "ours/theirs", "spread"], rows))
    if memory is not None:
        print(format_memory(memory))
    write_json(arguments.output, report)
    return 0


def random_edges(scale: int) -> tuple[Array, Array]:
    """Return sources and destinations, uint32[16 * 2^scale] each."""
    n = 1 << scale
    random = np.random.default_rng(1)
    return tuple(random.integers(0, n, EDGE_FACTOR * n, dtype=np.uint32) for _ in range(2))  # type: ignore[return-value]


def build(src: Array, dst: Array, scale: int, threads: int) -> gp.Graph:
    """Do the work that GAPBS's build time covers: store both directions, keep duplicates and self-loops."""
    return gp.Graph.from_edgelist(src, dst, num_vertices=1 << scale, threads=threads)


def measure_memory(scale: int, threads: int) -> dict[str, int] | None:
    """Return the peak memory of a build in a fresh process and its parts, in bytes; None unless on Linux."""
    if not Path("/proc/self/clear_refs").exists():
        progress("peak memory is skipped: it is measured on Linux only")
        return None
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_memory_of_building, (scale, threads))


def format_memory(memory: dict[str, int]) -> str:
    """Format one line for the table."""
    return (
        f"peak memory {format_bytes(memory['peak'])} "
        f"(input {format_bytes(memory['input'])}, CSR {format_bytes(memory['csr'])}); "
        f"input + CSR + one scratch copy: {format_bytes(memory['allowance'])}"
    )


def _memory_of_building(scale: int, threads: int) -> dict[str, int]:
    build(*random_edges(4), 4, threads)  # loads the code, whose memory is not the graph's
    src, dst = random_edges(scale)
    before = _reset_peak()
    graph = build(src, dst, scale, threads)
    extra = _peak() - before
    given = src.nbytes + dst.nbytes
    # One scratch copy: two 4-byte integers per stored edge.
    allowance = given + graph.nbytes + 8 * graph.num_stored_edges
    return {"input": given, "csr": graph.nbytes, "peak": given + extra, "allowance": allowance}


def _reset_peak() -> int:
    """Reset the peak memory of this process and return its current memory.

    ``ru_maxrss`` is unsuitable, as a process inherits it from its parent.
    """
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def _peak() -> int:
    return _status("VmHWM")


def _status(field: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) * 1024
    raise RuntimeError(f"/proc/self/status has no {field}")
