"""The scan for calls that are slower with priorities set, on a small graph. Nothing here tests speed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import networkx as nx
import pytest

ROOT = Path(__file__).resolve().parents[1]
if not (ROOT / "benchmarks" / "__main__.py").exists():
    pytest.skip("the benchmarks are part of a checkout, not of the package", allow_module_level=True)
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))

from benchmarks import _hand_over_scan  # noqa: E402
from benchmarks.__main__ import main  # noqa: E402
from gpu_pregel.networkx import FUNCTIONS  # noqa: E402
from gpu_pregel.networkx.backend import backend  # noqa: E402
from gpu_pregel.networkx.sizes import SIZES  # noqa: E402


@pytest.fixture
def report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return the report of a scan in which one function is slower, without a conversion."""
    times = _hand_over_scan._times

    def slow(name: str, *rest: Any) -> dict[str, float]:
        found = times(name, *rest)
        assert all(seconds > 0 for seconds in found.values())
        first = 1.5e-4 if name == "is_tree" else 1.1e-4
        return {
            "networkx": 1e-4,
            "refused": 1.25e-4 if name == "bfs_edges" else 1.1e-4,
            "first": first,
            "converted": 0.5e-4,
        }

    monkeypatch.setattr(_hand_over_scan, "_times", slow)
    monkeypatch.setattr(_hand_over_scan, "_GRAPHS", {"path": lambda: nx.path_graph(6)})
    monkeypatch.setitem(SIZES, "is_tree", ((9, 90),) * 3 + (1,))
    names = ("bfs_edges", "is_tree", "pagerank")
    monkeypatch.setattr(_hand_over_scan, "FUNCTIONS", {name: FUNCTIONS[name] for name in names})
    path = tmp_path / "scan.json"
    assert main(["networkx", "--scan", "-o", str(path)]) == 0
    return json.loads(path.read_text())


def test_scan_reports_what_is_slower_and_why(report: Any) -> None:
    none = {"taken": 0, "left": 0}
    counts: dict[str, Any] = {"refused by 20 us": 1, "refused by 60 us": 0}
    counts |= {"first by 20 us": {"taken": 0, "left": 1}, "first by 60 us": none}
    assert report["counts"] == {"calls": 3, **counts, "converted by 20 us": none, "converted by 60 us": none}
    assert list(report["slower"]) == ["path"]
    assert list(report["slower"]["path"]) == ["bfs_edges 0", "is_tree 0"]
    times, first, converted = report["slower"]["path"]["is_tree 0"].split("; ")
    assert times == "100.0 110.0 150.0 50.0"
    assert first == "the graph's size of 16 is below 90"
    assert converted == "taken"


def test_a_backend_that_refuses_at_once_is_asked_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr(type(backend), "can_run", staticmethod(lambda name, *_: asked.append(name)))
    monkeypatch.setattr(nx.config.backend_priority, "algos", ["gpu_pregel"])
    with _hand_over_scan._refusing():
        assert nx.is_tree(nx.path_graph(9))
    assert not asked
    nx.is_tree(nx.path_graph(9))
    assert asked[0] == "is_tree"


def test_scan_leaves_no_priorities(report: Any) -> None:
    assert nx.config.backend_priority.algos == nx.config.backend_priority.generators == []
