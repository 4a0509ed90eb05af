"""What a run tells of its supersteps: aggregates in the trace, a notice of long runs, and values that NumPy reads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from tests.devices import NAMES, on

COUNTING = gp.VertexProgram(
    value=np.int64,
    init=lambda ctx: ctx.vertex,
    message=lambda value, ctx: value,
    combine="sum",
    apply=lambda value, incoming, ctx: value + 1,
    active="always",
    aggregators={
        # The name of another column.
        "seconds": gp.Aggregator("sum", lambda old, new, ctx: new),
        "largest": gp.Aggregator("max", lambda old, new, ctx: new * 0.5),
    },
)
ENDLESS = gp.VertexProgram(
    value=np.int64,
    init=lambda ctx: 0,
    message=lambda value, ctx: value,
    combine="sum",
    apply=lambda value, incoming, ctx: value + 1,
    active=lambda old, new, ctx: new < ctx.parameters.last,
    parameters={"last": np.int64},
)


def pair() -> gp.Graph:
    return gp.Graph.from_edgelist([0], [1])


@pytest.mark.parametrize("device", [on(name) for name in (*NAMES, "python", "agents")])
def test_aggregates_are_columns_of_the_trace(device: str) -> None:
    trace = gp.run(pair(), COUNTING, device=device, max_supersteps=3).trace
    found = [(row["aggregated.seconds"], row["aggregated.largest"]) for row in trace]
    assert found == [(0, None), (3, 1.0), (5, 1.5)]
    assert all(isinstance(row["seconds"], float) for row in trace)
    table = trace.to_pandas()
    assert table["aggregated.seconds"].tolist() == [0, 3, 5]
    assert trace.to_text().splitlines()[0].endswith("MB  seconds  largest")


@pytest.mark.parametrize("device", [on(name) for name in ("cpu", "python", "agents")])
def test_the_largest_and_smallest_of_nothing_are_missing(device: str) -> None:
    big = 2**53 + 1
    aggregators = {
        how: gp.Aggregator(how, lambda old, new, ctx: big + new, dtype=np.int64) for how in ("min", "max", "sum")
    }
    trace = gp.run(pair(), replace(COUNTING, aggregators=aggregators), device=device, max_supersteps=2).trace
    assert [row["aggregated.max"] for row in trace] == [None, big + 2]
    assert [row["aggregated.min"] for row in trace] == [None, big + 1]
    assert [row["aggregated.sum"] for row in trace] == [0, 2 * big + 3]
    table = trace.to_pandas()
    assert [str(table[f"aggregated.{how}"].dtype) for how in aggregators] == ["Int64", "Int64", "int64"]
    assert (table["aggregated.max"].isna().tolist(), int(table["aggregated.max"][1])) == ([True, False], big + 2)
    assert f"{big + 2:,}" in trace.to_text()
    assert "None" not in trace.to_text()


@pytest.mark.parametrize("device", ["cpu", "agents"])
def test_a_resumed_run_keeps_them(tmp_path: Path, device: str) -> None:
    graph, file = pair(), tmp_path / "run.db"
    gp.run(graph, COUNTING, device=device, max_supersteps=2, checkpoint=gp.Checkpoint(file, every=1))
    trace = gp.run(graph, COUNTING, device=device, max_supersteps=4, checkpoint=file, resume=True).trace
    assert [row["aggregated.seconds"] for row in trace] == [0, 3, 5, 7]


def test_agents_have_those_of_a_superstep_in_which_no_vertex_applies() -> None:
    program = gp.VertexProgram(
        value=np.int64,
        init=lambda ctx: 0,
        message=lambda value, ctx: value,
        combine="sum",
        apply=lambda value, incoming, ctx: value,
        receives=lambda value, ctx: False,
        aggregators={"applied": gp.Aggregator("sum", lambda old, new, ctx: 1)},
    )
    traces = [gp.run(pair(), program, device=device).trace for device in ("cpu", "agents")]
    columns = [[(row["applied"], row["aggregated.applied"]) for row in trace] for trace in traces]
    assert columns == [[(0, 0), (0, 0)]] * 2
    nobody = gp.Graph.from_edgelist([], [], num_vertices=0)
    assert [row["aggregated.applied"] for row in gp.run(nobody, program, device="agents").trace] == [0]


@pytest.mark.parametrize("mixed", [False, True])
def test_a_long_run_without_a_limit_says_how_to_stop_it(
    mixed: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("gpu_pregel.host.superstep.master.LONG_RUN", 20)
    options: dict[str, Any] = {"parameters": {"last": 60}, "device": "cpu"}
    if mixed:
        options |= {"agents": gp.Agents(lambda ctx: None, workers=0), "wake": lambda old, new, ctx: False}
    gp.run(pair(), ENDLESS, **options)
    notice = capsys.readouterr().err
    assert notice == (
        "the run has passed 20 supersteps and has no limit: Ctrl-C stops it, max_supersteps=N limits it\n"
    )
    gp.run(pair(), ENDLESS, **options, max_supersteps=1000)
    gp.run(pair(), ENDLESS, **{**options, "parameters": {"last": 15}})
    assert capsys.readouterr().err == ""


def test_ten_thousand_supersteps(capsys: pytest.CaptureFixture[str]) -> None:
    assert gp.run(pair(), ENDLESS, parameters={"last": 10_050}, device="cpu").supersteps > 10_001
    assert capsys.readouterr().err.count("10,000 supersteps") == 1


@pytest.mark.parametrize("device", [on("cpu"), on("python"), on("emulated")])
def test_numpy_reads_the_values(device: str) -> None:
    values = gp.run(pair(), ENDLESS, parameters={"last": 3}, device=device).values
    assert np.asarray(values).tolist() == [3, 3]
    assert np.asarray(values, np.float32).dtype == np.float32
