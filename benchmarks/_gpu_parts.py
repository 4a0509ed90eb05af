"""The parts of the report about a GPU: each runs in a process of its own and saves what it has found after each step.

``python -m benchmarks._gpu_parts NAME OUTPUT SETTINGS`` runs a part; ``benchmarks.gpu`` starts it with a time limit.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import gpu_pregel as gp
from benchmarks._counts import count_run
from benchmarks._graphs import choose_from, generate, transform
from benchmarks._measure import in_turn, machine, timed, version_of, write_json
from gpu_pregel.host.devices import get_device
from gpu_pregel.host.devices.cuda import CudaDevice
from gpu_pregel.host.programs.direction_costs import SECTOR

PACKAGES = ("cupy-cuda12x", "cupy-cuda13x", "numba-cuda", "cuda-core", "cuda-bindings", "cugraph-cu12", "cugraph-cu13")
_LINES = 400
"""Lines of the tests' output that are kept."""
METRICS = (
    *(f"l1tex__t_sectors_pipe_lsu_mem_global_op_{kind}.sum" for kind in ("ld", "st", "atom", "red")),
    "lts__t_sectors_srcunit_tex.sum",
    "dram__sectors.sum",
)
"""Sectors of 32 bytes: of the warps' accesses, which the emulated device counts, then in L2 and in memory."""
_NO_PERMISSION = "ERR_NVGPUCTRPERM"
"""Nsight Compute's error where only administrators may read performance counters."""
_MOST_WORKERS = 16
"""Processes for the tests; each compiles kernels and has a context of some hundred MB on the GPU."""
_TESTS_SECONDS = 330.0
"""The tests compile about 250 kernels if none is cached."""
_REPORT_SECONDS = 15.0
"""Time in which pytest, once interrupted, ends its processes and prints its failures."""
_TESTED = (
    "tests/conformance",
    "tests/kernels",
    "tests/host",
    "tests/gpu_pregel/algorithms",
    "tests/gpu_pregel/networkx",
)
"""Folders of the tests that need a GPU: each process imports all tests of its folders."""


@dataclass(frozen=True)
class Settings:
    """Sizes of the report.

    Attributes
    ----------
    device : str
    graphs : tuple of str
    trials : int
    copied : int
        Bytes of the copy whose bandwidth is measured.
    counted : str
        The graph of the short run, under the profiler and under compute-sanitizer.
    verified, weighted : int
        The most vertices of graphs on which results are compared with the CPU's, and to which weights are added.
    tests : tuple of str
        Arguments of pytest.
    limit : float
        Seconds for a part; pytest is interrupted somewhat earlier, so that it prints the failures until then.
    """

    device: str = "cuda"
    graphs: tuple[str, ...] = ("kron:20", "grid:22", "kron:22", "kron:24", "kron:26")
    trials: int = 5
    copied: int = 1 << 28
    counted: str = "kron:14"
    verified: int = 1 << 22
    weighted: int = 1 << 22
    tests: tuple[str, ...] = ("--gpu", "real", "-m", "gpu", "--continue-on-collection-errors", *_TESTED)
    limit: float = _TESTS_SECONDS


Save = Callable[[dict[str, Any]], None]


def describe(settings: Settings, save: Save) -> None:
    """Describe the GPU, the packages and the tools, and measure the copy bandwidth."""
    device = _device(settings)
    found = {
        "machine": machine(),
        "gpu": asdict(device.gpu),
        "packages": {name: version_of(name) for name in PACKAGES},
        "tools": {name: shutil.which(name) for name in ("compute-sanitizer", "ncu", "nvidia-smi")},
        "driver": _driver(),
    }
    save(found)
    save({**found, "copy_bytes_per_second": device.copy_bandwidth(settings.copied)})


def _device(settings: Settings) -> CudaDevice:
    device = get_device(settings.device)
    if not isinstance(device, CudaDevice):
        raise ValueError(f"device {settings.device!r} is not a GPU")
    return device


def _driver() -> str:
    if shutil.which("nvidia-smi") is None:
        return "unknown"
    command = ["nvidia-smi", "--query-gpu=name,driver_version,clocks.max.sm,power.limit", "--format=csv,noheader"]
    return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False).stdout.strip()


def run_tests(settings: Settings, save: Save) -> None:
    """Run the tests that need a GPU."""
    if find_spec("pytest") is None:
        return save({"skipped": "pytest is not installed: pip install gpu-pregel[test]"})
    root = Path(__file__).resolve().parents[1]
    workers = str(min(_MOST_WORKERS, os.cpu_count() or 1))
    # Where pytest-benchmark is installed, it warns of several processes, and warnings are errors.
    command = [sys.executable, "-m", "pytest", "-q", "-n", workers, "-p", "no:benchmark", "--tb=short", "--maxfail=20"]
    command += settings.tests
    lines: list[str] = []
    with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        timer = threading.Timer(max(settings.limit - _REPORT_SECONDS, 0), process.send_signal, [signal.SIGINT])
        timer.daemon = True
        timer.start()
        for line in process.stdout:
            lines.append(line.rstrip())
            save({"running": True, "output": lines[-_LINES:]})
        timer.cancel()
    return save({"status": process.returncode, "summary": (lines or ["no output"])[-1], "output": lines[-_LINES:]})


def short_run(settings: Settings, save: Save) -> None:
    """Run a component search and a breadth-first search once, for the tools that observe a process."""
    graph = generate(settings.counted)
    for work in _short_works(graph):
        work(settings.device)
    save({"done": True})


def _short_works(graph: gp.Graph) -> list[Callable[[str], Any]]:
    source = choose_from(graph.indptr, 1)[0]
    return [
        lambda device: gp.connected_components(graph, device=device).to_numpy(),
        lambda device: gp.bfs(graph, source, device=device).to_numpy(),
    ]


def sanitize(settings: Settings, save: Save) -> None:
    """Run a short run under compute-sanitizer, with the check of memory and that of races."""
    tool = shutil.which("compute-sanitizer")
    if tool is None:
        return save({"skipped": "compute-sanitizer is not on the search path; it is part of the CUDA toolkit"})
    small = Settings(**{**asdict(settings), "counted": "kron:8"})
    found: dict[str, Any] = {}
    for check in ("memcheck", "racecheck"):
        # cuda-bindings asks the driver for functions that it may not have, which is no error of ours.
        done = _observed([tool, "--tool", check, "--report-api-errors", "no", "--error-exitcode", "9"], small)
        found[check] = {"status": done.returncode, "output": (done.stdout + done.stderr).splitlines()[-12:]}
        save(found)
    return None


def _observed(tool: list[str], settings: Settings) -> subprocess.CompletedProcess[str]:
    """Run the short run under a tool."""
    command = [*tool, sys.executable, "-m", "benchmarks._gpu_parts", "short", os.devnull, json.dumps(asdict(settings))]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def count_bytes(settings: Settings, save: Save) -> None:
    """Profile a short run with Nsight Compute, and put its sectors beside those counted on the emulated device."""
    tool = shutil.which("ncu")
    if tool is None:
        return save({"skipped": "ncu (Nsight Compute) is not on the search path; it is part of the CUDA toolkit"})
    graph = generate(settings.counted)
    rows = count_run(lambda: [work("emulated") for work in _short_works(graph)]).kernels
    counted = {row["kernel"]: row for row in rows}
    save({"counted": list(counted.values())})
    # Bytes do not depend on the clocks, which by default it would set for all who use the GPU.
    done = _observed(
        [tool, "--clock-control", "none", "--csv", "--page", "raw", "--metrics", ",".join(METRICS)], settings
    )
    printed = done.stdout + done.stderr
    if _NO_PERMISSION in printed:
        note = f"ncu may not read performance counters ({_NO_PERMISSION}): run as root, or let the driver allow it"
        return save({"skipped": note, "counted": list(counted.values())})
    if done.returncode:
        return save({"error": printed.splitlines()[-5:], "counted": list(counted.values())})
    return save({"kernels": compare_bytes(done.stdout, counted)})


def compare_bytes(text: str, counted: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Sum the sectors in Nsight Compute's table by kernel; return them in bytes beside the counted ones."""
    lines = text.splitlines()
    first = next((number for number, line in enumerate(lines) if line.startswith('"ID"')), None)
    if first is None:
        raise ValueError("ncu printed no table of metrics")
    found: dict[str, dict[str, Any]] = {}
    for row in csv.DictReader(lines[first:]):
        # Numba-CUDA's names contain that of the function; the row of units has no name.
        parts = re.findall(r"\w+", row["Kernel Name"])
        name = next((one for one in sorted(counted, key=len, reverse=True) if _names(parts, one)), None)
        if name is None:
            continue
        none = {"kernel": name, "launches": 0, **dict.fromkeys(("warps", "l2", "memory"), 0)}
        total = found.setdefault(name, {**none, "counted": counted[name]["bytes"]})
        sectors = [int(float(row.get(metric, "0").replace(",", "") or 0)) for metric in METRICS]
        total["launches"] += 1
        for key, amount in zip(("warps", "l2", "memory"), (sum(sectors[:4]), *sectors[4:]), strict=True):
            total[key] += SECTOR * amount
    return list(found.values())


def _names(parts: list[str], kernel: str) -> bool:
    """Whether the words of a name, as Numba-CUDA makes it or as Nsight Compute demangles that, name a kernel."""
    return kernel in parts or any(f"{len(kernel)}{kernel}" in part for part in parts)


@dataclass
class GraphPart:
    """The algorithms on one graph."""

    spec: str
    results: dict[str, Any] = field(default_factory=dict)

    def __call__(self, settings: Settings, save: Save) -> None:
        """Measure each algorithm, on a device that already has the graph; an error does not affect the others."""
        graph, seconds = timed(generate, self.spec)
        device = _device(settings)
        bandwidth = device.copy_bandwidth(settings.copied)
        n, m = graph.num_vertices, int(graph.indptr[-1])
        self.results = {"graph": self.spec, "vertices": n, "stored_edges": m, "generated_in": seconds, "algorithms": {}}
        for name, weighted, work, floor in _works(graph):
            if weighted and n > settings.weighted:
                self.results["algorithms"][name] = {"skipped": "adding weights takes too long"}
            else:
                measured = _measure(name, work, floor(n, m), graph, settings, device)
                if "median" in measured:
                    measured["copy_share"] = measured["bytes"] / measured["median"] / bandwidth
                self.results["algorithms"][name] = measured
            save(self.results)


Work = Callable[[gp.Graph, str], Any]
PAGERANK_ITERATIONS = 10


def _pagerank(graph: gp.Graph, device: str) -> Any:
    return gp.pagerank(graph, max_iterations=PAGERANK_ITERATIONS, tolerance=0, dtype=np.float32, device=device)


def _works(graph: gp.Graph) -> list[tuple[str, bool, Work, Callable[[int, int], float]]]:
    """Return name, need of weights, call, and the bytes that one pass over the graph and the results moves at least."""
    source = choose_from(graph.indptr, 1)[0]
    return [
        ("components", False, lambda g, d: gp.connected_components(g, device=d), lambda n, m: 8.0 * n + 4 * m),
        ("bfs", False, lambda g, d: gp.bfs(g, source, device=d), lambda n, m: 8.0 * n + 4 * m),
        (
            "pagerank",
            False,
            _pagerank,
            lambda n, m: PAGERANK_ITERATIONS * (12.0 * n + 4 * m),
        ),
        ("sssp", True, lambda g, d: gp.sssp(g, source, device=d), lambda n, m: 8.0 * n + 8 * m),
        ("triangles", False, lambda g, d: gp.triangle_count(g, device=d), lambda n, m: 8.0 * n + 4 * m),
    ]


def _measure(
    name: str, work: Work, floor: float, graph: gp.Graph, settings: Settings, device: CudaDevice
) -> dict[str, Any]:
    graph = transform(graph, orient=False, weighted=True) if name == "sssp" else graph

    def once() -> Any:
        result = work(graph, settings.device)
        device.synchronize()
        return result

    try:
        result, first = timed(once)
        seconds = [timed(once)[1] for _ in range(settings.trials)]
        found: dict[str, Any] = {"first": first, "trials": seconds, "median": median(seconds), "bytes": floor}
        found["edges_per_second"] = int(graph.indptr[-1]) / found["median"]
        found["supersteps"] = len(result.trace)
        if graph.num_vertices <= settings.verified:
            found["correct"] = _agree(result.to_numpy(), work(graph, "cpu").to_numpy())
    except Exception as error:
        return {"error": f"{type(error).__name__}: {error}"}
    return found


def _agree(found: np.ndarray[Any, Any], expected: np.ndarray[Any, Any]) -> bool:
    if found.dtype.kind == "f":
        return bool(np.allclose(found, expected, rtol=1e-3, atol=1e-7))
    return bool(np.array_equal(found, expected))


def compare_cugraph(settings: Settings, save: Save) -> None:
    """Measure cuGraph and this package in turn on the first graph; both have it in the GPU's memory."""
    if find_spec("cugraph") is None:
        return save({"skipped": "cugraph is not installed: see https://docs.rapids.ai/install"})
    import cugraph

    from benchmarks.peers.cugraph import CuGraph

    graph = generate(settings.graphs[0])
    device, theirs = _device(settings), CuGraph().convert((graph.indptr, graph.indices, None), 1)
    source = choose_from(graph.indptr, 1)[0]
    pairs: dict[str, dict[str, Callable[[], Any]]] = {
        "components": {
            "ours": lambda: gp.connected_components(graph, device=settings.device),
            "cugraph": lambda: cugraph.weakly_connected_components(theirs),
        },
        "bfs": {
            "ours": lambda: gp.bfs(graph, source, device=settings.device),
            "cugraph": lambda: cugraph.bfs(theirs, source),
        },
        "pagerank": {
            "ours": lambda: _pagerank(graph, settings.device),
            "cugraph": lambda: cugraph.pagerank(
                theirs, max_iter=PAGERANK_ITERATIONS, tol=1e-30, fail_on_nonconvergence=False
            ),
        },
    }
    found: dict[str, Any] = {"graph": settings.graphs[0]}
    for name, contestants in pairs.items():
        found[name] = _in_turn(contestants, settings.trials, device)
        save(found)
    return None


def _in_turn(contestants: dict[str, Callable[[], Any]], trials: int, device: CudaDevice) -> dict[str, Any]:
    import cupy

    seconds: dict[str, list[float]] = {name: [] for name in contestants}

    def trial(name: str) -> None:
        def once() -> None:
            contestants[name]()
            device.synchronize()
            cupy.cuda.Device().synchronize()

        seconds[name].append(timed(once)[1])

    in_turn(list(contestants), trials + 1, trial)
    return {name: {"first": times[0], "median": median(times[1:])} for name, times in seconds.items()}


def parts_of(settings: Settings) -> dict[str, tuple[Callable[[Settings, Save], None], float]]:
    """Return the parts of the report in order: what runs each, and its time limit in seconds."""
    graphs = {f"algorithms {spec}": (GraphPart(spec), 150.0) for spec in settings.graphs}
    return {
        "device": (describe, 60.0),
        "tests": (run_tests, _TESTS_SECONDS),
        **dict(list(graphs.items())[:1]),
        "bytes": (count_bytes, 120.0),
        "cugraph": (compare_cugraph, 90.0),
        "sanitizer": (sanitize, 90.0),
        **dict(list(graphs.items())[1:]),
    }


def run_part(name: str, settings: Settings, save: Save) -> None:
    """Run a part."""
    (parts_of(settings)[name][0] if name != "short" else short_run)(settings, save)


def main(name: str, output: str, settings: str) -> None:
    """Run a part, and save its findings to a file."""
    values: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in json.loads(settings).items()
    }
    path = None if output == os.devnull else Path(output)
    run_part(name, Settings(**values), lambda found: write_json(path, found))


if __name__ == "__main__":
    main(*sys.argv[1:])
