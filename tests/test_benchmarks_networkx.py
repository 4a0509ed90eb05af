"""The scan for calls that are slower with priorities set, and sizes from measured times. Nothing here tests speed."""

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
from benchmarks._hand_over_sizes import described, sizes_of  # noqa: E402
from gpu_pregel.networkx import FUNCTIONS  # noqa: E402
from gpu_pregel.networkx import sizes as sizes_module  # noqa: E402
from gpu_pregel.networkx.backend import backend  # noqa: E402
from gpu_pregel.networkx.sizes import NEVER, sizes  # noqa: E402


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
    monkeypatch.setitem(sizes(), "is_tree", ((9, 90),) * 3 + (1,))
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
    assert report["slower by any time"] == {"path": {"calls": 3, "refused": 1, "first": 1, "converted": 0}}
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


def _measured(edges: float, *rows: tuple[int, float, float | None, float | None], refused: bool = False) -> Any:
    """Return rows of sizes, and microseconds of NetworkX, of a converted graph, and with the conversion."""
    sides = ("networkx", "cached", "first")
    found = [
        {"size": float(size), "edges": edges}
        | {side: us / 1e6 for side, us in zip(sides, times, strict=True) if us is not None}
        for size, *times in rows
    ]
    if refused:
        found[-1]["refused"] = 1.0
    return found


_FASTER = _measured(8.0, (16, 10, 20, 30), (32, 20, 20, 30), (64, 40, 20, 30), (128, 80, 20, 30))
_NEARLY = _measured(2.0, (16, 10, 12, 30), (32, 20, 21, 40), (64, 40, 39, 50))
_DISTURBED = _measured(8.0, (16, 10, 90, None), (32, 20, 10, None), (64, 40, 20, None))


@pytest.mark.parametrize(
    ("shapes", "sparse", "others"),
    [
        # From 64 on by half and by three quarters; without a conversion the graph must be larger by half.
        ({"undirected": _FASTER}, (64, 96), (64, 96)),
        # Never clearly faster, but no slower than 1.1 from 32 on; with the conversion always slower.
        ({"tree": _NEARLY}, (32, NEVER), (32, NEVER)),
        # Each kind has its own shapes, of which the slowest counts.
        ({"undirected": _FASTER, "tree": _NEARLY}, (32, NEVER), (64, 96)),
        ({"undirected": _FASTER, "grid": _DISTURBED}, (64, 96), (64, 96)),
        # What a larger graph takes, a smaller one takes at most.
        ({"grid": _DISTURBED}, (32, NEVER), (32, NEVER)),
        # A shape that NetworkX refuses from the third size on tells of no other.
        (
            {"undirected": _FASTER, "tree": _measured(2.0, (16, 10, 1, 1), (32, 20, 1, 1), refused=True)},
            (64, 96),
            (64, 96),
        ),
        (
            {"undirected": _measured(8.0, (16, 10, 9, 30), (32, 20, 19, 30), (48, 30, 29, 31), refused=True)},
            (49, 73),
            (49, 73),
        ),
    ],
)
def test_the_size_from_which_on_the_backend_is_faster(
    shapes: Any, sparse: tuple[int, int], others: tuple[int, int]
) -> None:
    entry = sizes_of(shapes)
    assert entry[:2] == (sparse, others)


def test_sizes_are_written_from_the_reports_of_all_machines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes_module, "FILE", tmp_path / "sizes.json")
    reports = {
        "one": {"is_tree": {"undirected": _FASTER, "empty": []}, "pagerank": {"tree": _NEARLY}},
        "other": {"is_tree": {"tree": _NEARLY, "grid": _DISTURBED}},
    }
    paths = []
    for name, shapes in reports.items():
        paths.append(tmp_path / f"{name}.json")
        paths[-1].write_text(json.dumps(described(shapes)))
    assert main(["networkx", "--sizes", *map(str, paths)]) == 0
    lines = sizes_module.FILE.read_text().splitlines()
    assert [line.split(":")[0] for line in lines] == ["{", '  "is_tree"', '  "pagerank"', "}"]
    # NetworkX takes a second for 1,600,000 nodes and edges.
    assert sizes.__wrapped__() == {
        "is_tree": ((64, NEVER), (64, NEVER), (64, NEVER), 1_600_000),
        "pagerank": ((32, NEVER), (32, NEVER), (32, NEVER), 1_600_000),
    }
