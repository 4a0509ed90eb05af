"""Supersteps that one launch runs: results, where it ends, and how little it reads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.host.devices import get_device
from gpu_pregel.host.devices.emulated import EmulatedDevice
from gpu_pregel.host.programs.cuda_state import CHAIN
from tests.devices import CUDA_DEVICES, EMULATED
from tests.host.programs.test_cuda_state import Recording, begin, path
from tests.programs import DISTANCES, HOPS

MODULE = "gpu_pregel.host.programs.cuda_state"
FIGURES = ("direction", "active_vertices", "active_edges", "messages", "applied")
# Each function depends on all that a context has, and about half of the vertices are active.
CHANGING = gp.VertexProgram(
    value=np.int64,
    parameters={"step": 1},
    init=lambda ctx: ctx.vertex % 5,
    initially_active=lambda ctx: ctx.vertex % 3 == 0,
    message=lambda value, ctx: value + ctx.vertex + ctx.superstep * ctx.parameters.step,
    combine="sum",
    receives=lambda value, ctx: (value + ctx.superstep + ctx.in_degree + 2 * ctx.out_degree + ctx.vertex) % 3 != 0,
    apply=lambda value, incoming, ctx: (value + incoming + ctx.superstep + ctx.num_vertices) % 1000,
    active=lambda old, new, ctx: (new + ctx.superstep) % 4 < 2,
)


def figures(result: Any) -> list[tuple[Any, ...]]:
    return [tuple(row[name] for name in FIGURES) for row in result.trace]


def same_as_on_the_cpu(graph: gp.Graph, program: gp.VertexProgram, device: Any, **options: Any) -> None:
    expected = gp.run(graph, program, device="cpu", mode="push", on_limit="return", **options)
    found = gp.run(graph, program, device=device, mode="push", on_limit="return", **options)
    assert np.asarray(found).tolist() == np.asarray(expected).tolist()
    assert figures(found) == figures(expected)
    assert (found.status, found.supersteps) == (expected.status, expected.supersteps)


@pytest.mark.parametrize("alone", [0, 150, 1 << 9, 1 << 20])
@CUDA_DEVICES
def test_results_and_figures_equal_those_of_the_cpu(device: str, alone: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether one block runs all supersteps, several do, or they take turns."""
    monkeypatch.setattr(f"{MODULE}._ALONE_EDGES", alone)
    rng = np.random.default_rng(3)
    u, v = rng.integers(0, 200, (2, 700))
    weights = rng.integers(1, 9, 700).astype(np.float64)
    graph = gp.Graph.from_edgelist(u, v, weights, num_vertices=210, directed=True)
    same_as_on_the_cpu(graph, CHANGING, device, max_supersteps=25, parameters={"step": 3})
    same_as_on_the_cpu(graph, DISTANCES, device)
    same_as_on_the_cpu(gp.grid(13), DISTANCES, device)


@EMULATED
@pytest.mark.parametrize("rows", [1, 4, CHAIN])
def test_a_launch_ends_after_its_rows_and_leaves_the_frontier(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{MODULE}.CHAIN", rows)
    device, graph = Recording(), path(12)
    runs = [begin(graph, HOPS, one) for one in (device, get_device("cpu", threads=1))]
    activity, _ = (run.initialise() for run in runs)
    device.taken()
    steps, superstep = [], 1
    while activity.active_vertices:
        found = runs[0].execute("push", superstep, activity, (), 7)
        assert len(found) <= min(rows, 7)
        for _ in found:
            (step,) = runs[1].execute("push", superstep, activity, (), 1)
            steps.append(step)
            activity, superstep = step.activity, superstep + 1
        assert found == steps[-len(found) :]
        for name, array in runs[0].snapshot().items():
            assert array.tobytes() == runs[1].snapshot()[name].tobytes()
    assert superstep == 13
    # The queue is made once.
    assert device.taken() == ["list_frontier"] + ["chain"] * -(-12 // min(rows, 7))


@EMULATED
def test_a_launch_ends_before_a_large_frontier(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then the frontier is a bitmap again, until it is half as large as a queue can be."""
    monkeypatch.setattr(f"{MODULE}._BATCH_EDGES", 20)
    device = Recording()
    monkeypatch.setattr(
        "gpu_pregel.host.programs.run.get_device", lambda name, **_: device if name == "x" else get_device(name)
    )
    same_as_on_the_cpu(gp.grid(9), HOPS, "x")
    names = device.taken()
    assert names[:3] == ["initialise", "list_frontier", "chain"]
    assert names[-2:] == ["list_frontier", "chain"]
    assert 5 < names.count("push") < 12


@EMULATED
def test_a_hub_sends_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of a run and, after a restart, at its beginning; one warp would take long to send alone."""
    device = Recording()
    monkeypatch.setattr(
        "gpu_pregel.host.programs.run.get_device", lambda name, **_: device if name == "x" else get_device(name)
    )
    u = np.concatenate([np.arange(4), np.full(1_100, 4), np.arange(60, 65)])
    v = np.concatenate([np.arange(1, 5), np.arange(5, 1_105), np.arange(2_000, 2_005)])
    graph = gp.Graph.from_edgelist(u, v, num_vertices=2_005)
    same_as_on_the_cpu(graph, HOPS, "x")
    assert device.taken() == [
        *("initialise", "list_frontier", "chain"),
        *("chain", "push", "apply_messages"),
        *("list_frontier", "chain"),
    ]


@EMULATED
def test_supersteps_cost_the_same_on_any_graph() -> None:
    """No kernel reads a bitmap or the figures of all blocks; each launch and readback serves ``CHAIN`` supersteps."""
    accesses = []
    for n in (1_500, 100_000):
        device: Any = EmulatedDevice()
        run = begin(path(n), HOPS, device)
        activity = run.initialise()
        run.execute("push", 1, activity, (), 1)
        readbacks, launches = device.memory.readbacks, device.launches
        device.counts = {}
        steps = run.execute("push", 2, activity, (), 10_000)
        assert len(steps) == CHAIN >= 1_000
        assert (device.memory.readbacks - readbacks, device.launches - launches) == (1, 1)
        ((compiled, counts),) = device.counts.values()
        own = [k for k, site in enumerate(compiled.sites) if "grid_barrier" not in site.file]
        accesses.append((counts.executions[own].sum() / CHAIN, counts.sectors[own].sum() / CHAIN))
    assert accesses[0] == accesses[1]
    assert max(accesses[0]) < 40
