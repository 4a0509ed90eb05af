"""Counted memory traffic of CUDA kernels: connected components and supersteps stay within their limits."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

import gpu_pregel as gp

pytest.importorskip("numba_cuda")
ROOT = Path(__file__).resolve().parents[3]
if not (ROOT / "benchmarks" / "__main__.py").exists():
    pytest.skip("the benchmarks are part of a checkout, not of the package", allow_module_level=True)
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))

from benchmarks import operator_traffic, traffic  # noqa: E402
from benchmarks.__main__ import main  # noqa: E402


@pytest.fixture(scope="module")
def graph() -> gp.Graph:
    return traffic.add_weights(gp.kronecker(14))


def test_connected_components(graph: gp.Graph) -> None:
    counted = traffic.count_components(graph)
    assert counted.bytes <= traffic.CC_LIMIT * graph.num_vertices
    # Labels are not read back until the host needs them.
    assert counted.readbacks == 0
    assert counted.launches == 3


@pytest.mark.parametrize("case", traffic.CASES, ids=lambda case: f"{case.name}-{case.direction}")
def test_supersteps(graph: gp.Graph, case: traffic.Case) -> None:
    row, counted = traffic.count_case(graph, case)
    assert row["supersteps"] == case.supersteps - 1
    assert row["ratio"] <= case.limit
    assert row["launches"] <= 6
    assert row["readbacks"] <= 1
    assert counted.bytes == row["bytes"] > 0


@pytest.mark.parametrize("case", operator_traffic.CASES, ids=lambda case: case.name)
def test_operators(case: operator_traffic.OperatorCase) -> None:
    rows = operator_traffic.count_operators(traffic.add_weights(gp.kronecker(11)), case)
    # How many supersteps labels take depends on the order of threads.
    expected = {"dense"} if case.name == "label propagation" else {"sparse", "dense"}
    assert {row["phase"] for row in rows} >= expected
    assert not any(map(operator_traffic.is_above_limit, rows))
    for row in rows:
        assert row["readbacks"] == row["supersteps"]
        assert row["launches"] <= 3 * row["supersteps"]


def test_fewest_bytes_of_a_graph_counted_by_hand() -> None:
    # Two vertices and one edge, stored twice; both send, both apply.
    graph = gp.Graph.from_edgelist([0], [1])
    sending = {"active_vertices": 2}
    row = {"messages": 2, "applied": 2}
    pull = next(case for case in traffic.CASES if case.name == "label propagation" and case.direction == "pull")
    push = next(case for case in traffic.CASES if case.name == "label propagation" and case.direction == "push")
    # Row bounds 2 x 4, edges 2 x (4 + 32), values read and written 2 x 8, two bitmaps of 2 bits.
    assert traffic.fewest_bytes(graph, pull, sending, row) == 8 + 72 + 16 + 0.5
    # As above, plus the senders' values 2 x 4.
    assert traffic.fewest_bytes(graph, push, sending, row) == 8 + 8 + 72 + 16 + 0.5


def test_the_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["traffic", "--graph", "kron:8", "-o", str(tmp_path / "traffic.json")]) in (0, 1)
    printed = capsys.readouterr().out
    assert "connected components of kron:8" in printed
    assert printed.count("launches and") >= len(traffic.CASES) + len(operator_traffic.CASES)
    assert (tmp_path / "traffic.json").stat().st_size > 1000


def test_weights_are_the_same_in_both_directions() -> None:
    matrix = traffic.add_weights(gp.grid(5)).to_scipy()
    assert np.array_equal(matrix.toarray(), matrix.toarray().T)
