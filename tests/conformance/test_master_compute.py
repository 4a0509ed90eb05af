"""Master compute: ``master`` reads aggregates, sets parameters and halts between supersteps, on every device."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, CheckpointError, SuperstepLimitError
from tests.devices import EXHAUSTIVE, PROGRAM_DEVICES, RUN_DEVICES, is_slow, ways


def schedule(step: Any) -> None:
    """Change both parameters by what the superstep has left, and halt when few vertices have changed."""
    if step.superstep == 0:
        assert step.aggregated.changed == 0
        step.set(gain=step.parameters.gain + step.active_vertices, limit=95)
    elif step.superstep % 3 == 0:
        step.set(gain=step.parameters.gain + step.aggregated.changed)
    elif step.active_vertices > step.num_vertices // 2:
        step.set(limit=step.parameters.limit - 5, gain=step.parameters.gain * 2)
    if step.superstep > 5 and step.aggregated.changed < 40:
        step.halt()


# Every function reads the parameters, so that each must see those of its superstep.
PROGRAM = gp.VertexProgram(
    value=np.int64,
    parameters={"gain": 3, "limit": np.int32},
    init=lambda ctx: ctx.vertex + ctx.parameters.gain,
    initially_active=lambda ctx: ctx.vertex % 3 < 2,
    message=lambda value, ctx: value % 1009 + ctx.parameters.gain,
    combine="min",
    receives=lambda value, ctx: (value + ctx.parameters.gain) % 7 > 0,
    apply=lambda value, incoming, ctx: (value * 3 + incoming + ctx.parameters.gain) % 100_003,
    active=lambda old, new, ctx: (old + new) % 100 < ctx.parameters.limit,
    aggregators={"changed": gp.Aggregator("sum", lambda old, new, ctx: old % 5 != new % 5)},
    master=schedule,
)
START = {"limit": 90}


def expected(graph: gp.Graph, program: gp.VertexProgram = PROGRAM) -> tuple[list[int], list[tuple[int, int]], str]:
    """The values, numbers of active and applying vertices of each superstep, and the status, in plain Python."""
    n, (src, dst, _) = graph.num_vertices, graph.to_edgelist()
    pairs = list(zip(src.tolist(), dst.tolist(), strict=True))
    if not graph.is_directed:
        pairs += [(v, u) for u, v in pairs if u != v]
    gain, limit = 3, 90
    values = [v + gain for v in range(n)]
    active = {v for v in range(n) if v % 3 < 2}
    rows, superstep, sent_gain = [(len(active), 0)], 0, gain
    gain, limit = gain + len(active), 95
    while active:
        superstep += 1
        inbox: dict[int, int] = {}
        for u, v in pairs:
            if u in active and (values[v] + gain) % 7 > 0:
                message = values[u] % 1009 + sent_gain
                inbox[v] = min(inbox.get(v, message), message)
        changed, active, old = 0, set(), dict(enumerate(values))
        for v, message in inbox.items():
            values[v] = (old[v] * 3 + message + gain) % 100_003
            changed += old[v] % 5 != values[v] % 5
            if (old[v] + values[v]) % 100 < limit:
                active.add(v)
        rows.append((len(active), len(inbox)))
        sent_gain = gain
        if superstep % 3 == 0:
            gain += changed
        elif len(active) > n // 2:
            gain, limit = gain * 2, limit - 5
        if superstep > 5 and changed < 40:
            return values, rows, "halted"
    return values, rows, "completed"


def rows_of(result: Any) -> list[tuple[int, int]]:
    return [(row["active_vertices"], row["applied"]) for row in result.trace]


@pytest.fixture(scope="module")
def graph() -> gp.Graph:
    """Three words of vertices, for three partitions."""
    random = np.random.default_rng(3)
    return gp.Graph.from_edgelist(*random.integers(0, 140, (2, 420)), num_vertices=140)


@ways(partitions=[1, 3], mode=["push", "pull", "auto"], threads=[1, 2])
def test_every_function_sees_what_the_master_has_set(graph: gp.Graph, device: str, way: dict[str, Any]) -> None:
    values, rows, status = expected(graph)
    assert status == "halted"
    assert len(rows) > 8
    result = gp.run(graph, PROGRAM, parameters=START, device=device, **way)
    assert (result.to_numpy().tolist(), rows_of(result), result.status) == (values, rows, status)


def test_agents_see_what_the_master_has_set(graph: gp.Graph) -> None:
    values, rows, status = expected(graph)
    result = gp.run(graph, PROGRAM, parameters=START, device="agents")
    assert (result.to_numpy().tolist(), rows_of(result), result.status) == (values, rows, status)


def test_checked_kernels_see_what_the_master_has_set(graph: gp.Graph) -> None:
    result = gp.run(graph, PROGRAM, parameters=START, device="cpu", check=True)
    assert result.to_numpy().tolist() == expected(graph)[0]


COUNTS = gp.VertexProgram(
    value=np.int64,
    parameters={"step": np.uint8, "scale": np.float32, "is_on": False},
    init=lambda ctx: 0,
    message=lambda value, ctx: 1,
    combine="max",
    apply=lambda value, incoming, ctx: value + ctx.parameters.step if ctx.parameters.is_on else value,
    active="always",
    master=lambda step: None,
)
"""Counts by a step that a master may change."""
VALUES = {"step": 1, "scale": 0.5}


def watch(seen: list[Any], **changes: Any) -> gp.VertexProgram:
    """``COUNTS`` with a master that records what it sees and makes changes after each superstep."""

    def master(step: Any) -> None:
        seen.append((step.superstep, step.active_vertices, step.num_vertices, step.parameters))
        step.set(**changes)
        if step.superstep == 3:
            step.halt()

    return replace(COUNTS, master=master)


@RUN_DEVICES
def test_a_master_runs_after_each_superstep(device: str) -> None:
    """A push runs many supersteps in a launch where no master decides between them."""
    seen: list[Any] = []
    path = gp.Graph.from_edgelist([0, 1], [1, 2])
    program = watch(seen, is_on=True, step=np.int64(5))
    result = gp.run(path, program, parameters=VALUES, device=device, max_supersteps=50)
    assert (result.status, result.supersteps) == ("halted", 4)
    assert [one[:3] for one in seen] == [(0, 3, 3), (1, 3, 3), (2, 3, 3), (3, 3, 3)]
    assert [tuple(one[3]) for one in seen] == [(1, 0.5, False), *[(5, 0.5, True)] * 3]
    assert [type(one) for one in seen[0][3]] == [int, float, bool]
    assert result.to_numpy().tolist() == [15, 15, 15]


@PROGRAM_DEVICES
@pytest.mark.parametrize(
    ("changes", "error", "match"),
    [
        ({"stride": 1}, ArgumentError, "unknown parameter 'stride'; parameters of the program: step"),
        ({"step": 256}, ArgumentError, "parameter 'step' must be .* 255"),
        ({"step": 0.5}, ArgumentTypeError, "parameter 'step' must be"),
        ({"scale": 1e300}, ArgumentError, "parameter 'scale' must be representable as float32"),
        ({"is_on": 1}, ArgumentTypeError, "parameter 'is_on' must be"),
    ],
)
def test_what_a_parameter_cannot_be_is_refused(
    device: str, changes: dict[str, Any], error: type[Exception], match: str
) -> None:
    if is_slow(device) and "stride" not in changes:
        pytest.skip("refused on the host, as on the other devices")
    with pytest.raises(error, match=match) as caught:
        gp.run(gp.grid(2, holes=0), watch([], **changes), parameters=VALUES, device=device)
    (note,) = caught.value.__notes__
    assert note.startswith("raised by master after superstep 0 (")
    assert f"{Path(__file__).name}, line " in note
    assert note.endswith(": step.set(**changes))")


@RUN_DEVICES
def test_an_exception_names_superstep_and_line(device: str) -> None:
    def master(step: Any) -> None:
        if step.superstep == 2:
            raise RuntimeError("no more")

    with pytest.raises(RuntimeError, match="no more") as caught:
        gp.run(gp.grid(2, holes=0), replace(COUNTS, master=master), parameters=VALUES, device=device, max_supersteps=9)
    notes = "\n".join(caught.value.__notes__)
    assert "raised by master after superstep 2 (" in notes
    assert "test_master_compute.py, line " in notes
    assert 'raise RuntimeError("no more")' in notes


def test_an_exception_of_halt_names_superstep_and_line() -> None:
    program = replace(COUNTS, master=None, halt=lambda aggregated: aggregated.missing)
    with pytest.raises(AttributeError) as caught:
        gp.run(gp.grid(2, holes=0), program, parameters=VALUES)
    assert any("raised by halt after superstep 1 (" in note for note in caught.value.__notes__)


def test_an_assignment_to_a_parameter_says_how_it_is_set() -> None:
    def master(step: Any) -> None:
        step.parameters.step = 4

    with pytest.raises(AttributeError, match=r"parameters are set by a call: step.set\(step=4\)"):
        gp.run(gp.grid(2, holes=0), replace(COUNTS, master=master), parameters=VALUES)


def assign(step: Any) -> None:
    step.step = 4


@pytest.mark.parametrize(
    ("master", "error", "match"),
    [
        (assign, AttributeError, r"step.step cannot be assigned: .* step.set\(step=4\), .* step.halt\(\)"),
        (lambda step: True, ArgumentTypeError, r"master returns True, but must return None: .*step.set.*step.halt\(\)"),
        (lambda step: {"step": 4}, ArgumentTypeError, r"master returns {'step': 4}, but must return None"),
    ],
)
@pytest.mark.parametrize("device", ["cpu", "agents"])
def test_what_has_no_effect_is_refused_with_the_remedy(device: str, master: Any, error: Any, match: str) -> None:
    with pytest.raises(error, match=match) as caught:
        gp.run(gp.grid(2, holes=0), replace(COUNTS, master=master), parameters=VALUES, device=device)
    assert any("raised by master after superstep 0 (" in note for note in caught.value.__notes__)


@RUN_DEVICES
def test_a_master_may_halt_after_superstep_0(device: str) -> None:
    program = replace(COUNTS, master=lambda step: step.halt())
    result = gp.run(gp.grid(2, holes=0), program, parameters=VALUES, device=device)
    assert (result.status, result.supersteps) == ("halted", 1)


def print_both(step: Any, more: Any) -> None:
    print(step, more)


def test_halt_and_master_are_not_given_together() -> None:
    with pytest.raises(ArgumentError, match=r"halt= and master= cannot be given together: let master call step.halt"):
        replace(COUNTS, halt=lambda aggregated: True)
    with pytest.raises(ArgumentTypeError, match=r"master takes 2 arguments, but must take \(step\)"):
        replace(COUNTS, master=print_both)  # type: ignore[arg-type]


@RUN_DEVICES
@pytest.mark.parametrize("stop", [1, 3, 4, 5])
def test_a_resumed_run_has_the_parameters_that_were_set(
    graph: gp.Graph, tmp_path: Path, device: str, stop: int
) -> None:
    """The messages of the last superstep before the stop are sent after it, with the parameters of before."""
    if stop != 4 and (is_slow(device) or device in ("python", "agents")) and not EXHAUSTIVE:
        pytest.skip("runs with GPU_PREGEL_TESTS=all")
    expected_values, rows, status = expected(graph)
    checkpoint = gp.Checkpoint(tmp_path / "runs.db", every=1)
    options: dict[str, Any] = {"parameters": START, "device": device, "checkpoint": checkpoint}
    with pytest.raises(SuperstepLimitError):
        gp.run(graph, PROGRAM, max_supersteps=stop, **options)
    calls: list[int] = []

    def master(step: Any) -> None:
        calls.append(step.superstep)
        schedule(step)

    result = gp.run(graph, replace(PROGRAM, master=master), resume=True, **options)
    assert (result.to_numpy().tolist(), rows_of(result), result.status) == (expected_values, rows, status)
    assert calls == list(range(stop, len(rows)))
    again = gp.run(graph, replace(PROGRAM, master=master), resume=True, **options)
    assert (again.to_numpy().tolist(), again.status) == (expected_values, status)
    assert calls == list(range(stop, len(rows)))


def test_a_run_with_a_master_is_not_resumed_without_one(graph: gp.Graph, tmp_path: Path) -> None:
    options: dict[str, Any] = {"parameters": START, "checkpoint": tmp_path / "runs.db"}
    gp.run(graph, PROGRAM, **options)
    with pytest.raises(CheckpointError, match="belongs to another program"):
        gp.run(graph, replace(PROGRAM, master=None), resume=True, **options)


def collect(ctx: gp.AgentContext) -> Any:
    """Raise the value of the vertex, and remember it."""
    ctx.state = [*(ctx.state or []), ctx.value]
    return ctx.value + 1000


def advance(step: Any) -> None:
    step.set(gain=step.parameters.gain + step.superstep)
    if step.superstep == 6:
        step.halt()


def mixed(device: str, **options: Any) -> Any:
    """A run in which the master decides by when vertices wake agents."""
    cycle = gp.Graph.from_edgelist([0, 1, 2, 3], [1, 2, 3, 0], directed=True)
    program = gp.VertexProgram(
        value=np.int64,
        parameters={"gain": 1},
        init=lambda ctx: ctx.vertex,
        message=lambda value, ctx: value % 10 + ctx.parameters.gain,
        combine="max",
        apply=lambda value, incoming, ctx: value + incoming * ctx.parameters.gain,
        active="always",
        aggregators={"top": gp.Aggregator("max", lambda old, new, ctx: new)},
        master=advance,
    )
    return gp.run(
        *(cycle, program),
        device=device,
        agents=gp.Agents(collect),
        wake=lambda old, new, ctx: new // 50 > old // 50 and new < 900,
        **options,
    )


@PROGRAM_DEVICES
def test_a_master_beside_agents(device: str, tmp_path: Path) -> None:
    oracle = mixed("python")
    assert (oracle.status, oracle.supersteps) == ("halted", 7)
    assert oracle.agents.values
    found = mixed(device)
    assert (found.to_numpy().tolist(), found.agents.values) == (oracle.to_numpy().tolist(), oracle.agents.values)
    checkpoint = gp.Checkpoint(tmp_path / "runs.db")
    assert mixed(device, checkpoint=checkpoint, max_supersteps=4).status == "max_supersteps"
    resumed = mixed(device, checkpoint=checkpoint, resume=True)
    assert (resumed.to_numpy().tolist(), resumed.agents.values) == (oracle.to_numpy().tolist(), oracle.agents.values)
    assert mixed(device, checkpoint=checkpoint, resume=True).status == "halted"


def test_agents_of_a_run_with_a_master_are_not_late() -> None:
    graph = gp.Graph.from_edgelist([0], [1])
    agents = gp.Agents(collect, workers=1, max_lag=2)
    with pytest.raises(ArgumentError, match="max_lag= must be 0 for a program with master="):
        gp.run(graph, COUNTS, parameters=VALUES, agents=agents, wake=lambda old, new, ctx: True)
