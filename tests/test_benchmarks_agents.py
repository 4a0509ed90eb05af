"""The agent benchmark as a program: its report without a peer and with one that returns a wrong result."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]
if not (ROOT / "benchmarks" / "__main__.py").exists():
    pytest.skip("the benchmarks are part of a checkout, not of the package", allow_module_level=True)
if str(ROOT) not in sys.path:
    sys.path.append(str(ROOT))

from benchmarks.__main__ import main  # noqa: E402
from benchmarks._many_vertices import _FIGURES, _measure  # noqa: E402
from benchmarks.peers.langgraph import LangGraph  # noqa: E402
from tests.devices import LONG  # noqa: E402


def run_agents(folder: Path) -> tuple[int, dict[str, Any]]:
    output = folder / "agents.json"
    sizes = [
        "--trials",
        "3",
        "--runs",
        "2",
        "--steps",
        "20",
        "--saved-steps",
        "5",
        "--fan-out",
        "10",
        "--vertices",
        "50",
        "--many-vertices",
        "0",
        "--messages",
        "20",
        "--seconds",
        "0.02",
    ]
    status = main(["agents", *sizes, "--folder", str(folder), "-o", str(output)])
    return status, json.loads(output.read_text())


def test_many_vertices_are_measured(tmp_path: Path) -> None:
    found = _measure(40, "SQLite", str(tmp_path))
    assert set(found) == set(_FIGURES)
    assert min(found["start"], found["past"], found["master_cpu"]) > 0
    assert found["workers"] > 2**24
    assert not list(tmp_path.iterdir())


@LONG
def test_report_without_peer(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LangGraph, "why_unavailable", lambda: "out of town")
    status, report = run_agents(tmp_path)
    assert (status, report["errors"], report["stepped_aside"]) == (0, [], {"langgraph": "out of town"})
    assert report["parameters"] == {
        "trials": 3,
        "runs": 2,
        "steps": 20,
        "saved_steps": 5,
        "fan_out": 10,
        "vertices": 50,
        "many_vertices": 0,
        "messages": [20],
        "seconds": 0.02,
    }
    names = [figure["name"] for figure in report["figures"]]
    assert names[1:4] == ["fan-out to 10, in process", "fan-out to 10, 2 workers", "50 vertices send, in process"]
    for figure in report["figures"]:
        assert len(figure["ours"]["trials"]) == (1 if figure["unit"] == "B" else 3)
        assert figure["ours"]["median"] == np.median(figure["ours"]["trials"]) > 0
        assert (figure["theirs"], figure["ratio"]) == ({}, None)
    printed = capsys.readouterr()
    assert "langgraph is skipped: out of town" in printed.err
    assert "start-up of 2 workers" in printed.out


@LONG
def test_wrong_result_of_peer_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    results = iter([list(range(1, 11))] * 3 + [[0]])

    def sends(count: int, seconds: float = 0.0) -> Callable[[], list[int]]:
        return lambda: list(range(1, count + 1)) if seconds else next(results)

    monkeypatch.setattr(LangGraph, "why_unavailable", lambda: None)
    monkeypatch.setattr(LangGraph, "loop", lambda steps: lambda: steps)
    monkeypatch.setattr(
        LangGraph, "chat", lambda history, message, steps: lambda: [*history, *map(message, range(steps))]
    )
    monkeypatch.setattr(LangGraph, "fan_out", sends)
    monkeypatch.setattr(LangGraph, "async_loop", lambda steps: lambda: steps)
    monkeypatch.setattr(LangGraph, "side_by_side", lambda runs, seconds: lambda: list(range(1, runs + 1)))
    status, report = run_agents(tmp_path)
    (error,) = report["errors"]
    assert status == 1
    assert error.startswith("fan-out to 10: theirs: WrongResultError: [0] instead of [1, 2, 3")
    loop, fan_out, *_ = report["figures"]
    assert loop["ratio"] == loop["ours"]["median"] / loop["theirs"]["median"]
    assert (fan_out["theirs"], fan_out["ratio"]) == ({}, None)
    assert f"ERROR {error}" in capsys.readouterr().out
