"""Tests of the roofline model: small figures worked out by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from benchmarks.__main__ import main
from benchmarks._counts import KernelCounts, count_run
from benchmarks.roofline import Gpu, footprint_of, predict

SMALL = Gpu("small", "invented", multiprocessors=1, clock=1e6, bandwidth=1e6, l2_bytes=0, l2_slices=1)
"""0.9 MB/s of memory, 38.4 MB/s of L2 cache, 128 million instructions and a million atomic operations a second."""
GRAPH = gp.Graph.from_edgelist(np.arange(99), np.arange(1, 100), num_vertices=100)


def row(**figures: int) -> dict[str, Any]:
    none = dict.fromkeys(("bytes", "loads", "stores", "atomics", "shared"), 0)
    return {"kernel": "one", "launches": 1, **none, **figures}


def times(*rows: dict[str, Any], readbacks: int = 0, gpu: Gpu = SMALL, factor: float = 1.0) -> list[float]:
    found = predict(KernelCounts(list(rows), len(rows), readbacks), GRAPH, gpu, 8, factor)
    return [found.best, found.worst, found.overhead]


def test_footprint() -> None:
    assert footprint_of(GRAPH) == 100 * 16 + 198 * 4
    weighted = gp.Graph.from_edgelist([0, 1], [1, 2], np.ones(2, np.float32), num_vertices=3)
    assert footprint_of(weighted) == 3 * 16 + 4 * 8


def test_memory() -> None:
    """A kernel fetches at most its sectors, and at best its footprint of 2,392 bytes per launch."""
    assert times(row(bytes=900)) == pytest.approx([1e-3, 1e-3, 3e-6])
    assert times(row(bytes=9000)) == pytest.approx([2392 / 0.9e6, 1e-2, 3e-6])
    assert times(row(bytes=9000, launches=2)) == pytest.approx([4784 / 0.9e6, 1e-2, 6e-6])
    cached = Gpu("cached", "invented", 1, 1e6, 1e6, 2392, 1)
    assert times(row(bytes=9000), gpu=cached) == pytest.approx([9000 / 38.4e6, 9000 / 38.4e6, 3e-6])
    assert times(row(bytes=9000), gpu=cached, factor=2) == pytest.approx([4784 / 0.9e6, 2e-2, 3e-6])


def test_the_largest_part_counts() -> None:
    assert times(row(loads=100_000, shared=28_000)) == pytest.approx([128_000 * 8 / 128e6] * 2 + [3e-6])
    assert times(row(atomics=2000, bytes=9)) == pytest.approx([2e-3, 2e-3, 3e-6])
    assert times(row(), row(launches=9), readbacks=2) == pytest.approx([6e-5, 6e-5, 6e-5])
    assert times(row(bytes=900), row(atomics=1000)) == pytest.approx([2e-3, 2e-3, 6e-6])


def test_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("numba_cuda")
    output = tmp_path / "roofline.json"
    assert main(["roofline", "components:kron:6", "-o", str(output)]) == 0
    report = json.loads(output.read_text())
    assert report["model"] is True
    assert [gpu["name"] for gpu in report["gpus"]] == ["H100", "A100", "L4"]
    (run,) = report["runs"]
    assert run["launches"] == sum(kernel["launches"] for kernel in run["kernels"]) > 0
    assert [size["graph"] for size in run["sizes"]] == ["kron:6", "kron:14", "kron:20", "kron:24"]
    large = run["sizes"][-1]["predictions"]
    assert 0 < large["H100"]["best"] <= large["A100"]["best"] <= large["L4"]["best"]
    assert "Predicted by a model, not measured" in capsys.readouterr().out


@pytest.mark.parametrize(
    "name", ["core_number", "diameter", "minimum_spanning_forest", "strongly_connected_components"]
)
def test_kernels_of_one_name_are_counted_together(name: str) -> None:
    pytest.importorskip("numba_cuda")
    graph = gp.kronecker(6)
    if name == "strongly_connected_components":
        graph = gp.Graph.from_edgelist(*graph.to_edgelist()[:2], directed=True)
    found = count_run(lambda: getattr(gp, name)(graph, device="emulated"))
    names = [kernel["kernel"] for kernel in found.kernels]
    assert len(set(names)) == len(names) > 1
    assert sum(kernel["launches"] for kernel in found.kernels) == found.launches
    assert all(kernel["bytes"] > 0 for kernel in found.kernels)


def test_malformed_run(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["roofline", "components:kron"]) == 2
    assert "'components:kron' is not a run" in capsys.readouterr().err
