"""Supersteps that one launch runs: results, where it ends, and how little it reads."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.host.devices import get_device
from gpu_pregel.host.devices.emulated import EmulatedDevice
from gpu_pregel.host.programs.cuda_state import CHAIN
from gpu_pregel.kernels.traverse.rows_cuda import HUB_EDGES
from tests.devices import CUDA_DEVICES, EMULATED, EMULATED_DEVICES
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
CHANGING_ALONG_EDGES = replace(
    CHANGING, message=lambda value, weight, ctx: value * np.int64(weight) + ctx.vertex + ctx.superstep + ctx.out_degree
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
    same_as_on_the_cpu(graph, CHANGING_ALONG_EDGES, device, max_supersteps=12)
    same_as_on_the_cpu(gp.grid(13), DISTANCES, device)
    # More vertices than a block sends from in one round.
    same_as_on_the_cpu(layers(900, 2), CHANGING, device)
    # So few edges that one warp sends along all of them, some to the same vertex.
    few = gp.Graph.from_edgelist(u[:75] % 50, v[:75] % 50, weights[:75], num_vertices=60, directed=True)
    same_as_on_the_cpu(few, CHANGING, device, max_supersteps=25)
    same_as_on_the_cpu(few, CHANGING_ALONG_EDGES, device, max_supersteps=25)


def layers(*sizes: int) -> gp.Graph:
    """All vertices of a layer have edges to all of the next one."""
    firsts = np.cumsum([0, *sizes])
    pairs = [
        np.indices((j - i, k - j)).reshape(2, -1) + np.array([[i], [j]])
        for i, j, k in zip(firsts, firsts[1:], firsts[2:], strict=False)
    ]
    u, v = np.concatenate(pairs, axis=1)
    return gp.Graph.from_edgelist(u, v, num_vertices=int(firsts[-1]), directed=True)


@EMULATED_DEVICES
@pytest.mark.parametrize("size", [31, 32, 33])
def test_one_warp_runs_supersteps_of_up_to_32_edges(size: int, device: str) -> None:
    same_as_on_the_cpu(layers(1, 1, size, 1, size, 1, 2, 2, 1), HOPS, device)


@EMULATED
def test_one_warp_runs_supersteps_of_up_to_32_vertices() -> None:
    """Of 40 active vertices the last five have an edge."""
    u = np.concatenate([[0], np.full(40, 1), np.arange(37, 42), [42]])
    v = np.concatenate([[1], np.arange(2, 42), np.full(5, 42), [43]])
    same_as_on_the_cpu(gp.Graph.from_edgelist(u, v, directed=True), HOPS, "emulated")


@EMULATED_DEVICES
@pytest.mark.parametrize("rows", [CHAIN, 3])
def test_blocks_that_wait_resume_at_the_right_superstep(
    rows: int, device: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first block runs several supersteps alone, then all run one; both sets of figures are used again."""
    monkeypatch.setattr(f"{MODULE}.CHAIN", rows)
    same_as_on_the_cpu(layers(*(1, 1, 300, 3) * 4, 1), HOPS, device)


@CUDA_DEVICES
@pytest.mark.parametrize("edges", [0, 1 << 16])
def test_messages_are_combined_to_the_same_bits(edges: int, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In registers or in inboxes: -0 is less than 0, NaN and infinity change nothing, in any order."""
    monkeypatch.setattr(f"{MODULE}._BATCH_EDGES", edges)
    u, v = [0, 1, 1, 2, 7, 7, 1, 5, 9], [3, 3, 4, 4, 5, 6, 6, 8, 8]
    weights = np.array([-0.0, 0.0, 0.0, -0.0, 1.0, 1.0, 2.0, 1.0, 1.0])
    graph = gp.Graph.from_edgelist(u, v, weights, num_vertices=10, directed=True)
    initial = np.array([-0.0, 0.0, -0.0, np.inf, np.inf, np.inf, np.inf, np.nan, np.inf, 2.0])
    found = gp.run(graph, DISTANCES, device=device, mode="push", initial=initial, frontier=[0, 1, 2, 5, 7, 9])
    expected = np.array([-0.0, 0, -0.0, -0.0, -0.0, np.inf, 2, np.nan, 3, 2])
    assert np.asarray(found).tobytes() == expected.tobytes()
    assert [row["applied"] for row in found.trace] == [0, 5, 0]


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
    monkeypatch.setattr(f"{MODULE}._WIDE_BATCH", 2)
    device = Recording()
    monkeypatch.setattr(
        "gpu_pregel.host.programs.run.get_device", lambda name, **_: device if name == "x" else get_device(name)
    )
    same_as_on_the_cpu(gp.grid(9), HOPS, "x")
    names = device.taken()
    assert names[:3] == ["initialise", "list_frontier", "chain"]
    assert names[-2:] == ["list_frontier", "chain"]
    assert 5 < names.count("push") < 12
    # As many edges as the limit are not beyond it.
    monkeypatch.setattr(f"{MODULE}._BATCH_EDGES", 40)
    same_as_on_the_cpu(layers(1, 1, 40, 1, 1), HOPS, "x")
    assert device.taken() == ["initialise", "list_frontier", "chain"]


@EMULATED
@pytest.mark.parametrize("others", [1, 40])
def test_a_hub_sends_in_pieces(others: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of a run, where one warp or a block finds it, and at its beginning."""
    device = Recording()
    monkeypatch.setattr(
        "gpu_pregel.host.programs.run.get_device", lambda name, **_: device if name == "x" else get_device(name)
    )
    u = np.concatenate([np.arange(4), np.full(1_100, 4), np.arange(60, 65), np.full(others, 3)])
    v = np.concatenate([np.arange(1, 5), np.arange(5, 1_105), np.arange(2_000, 2_005), np.arange(60, 60 + others)])
    same_as_on_the_cpu(gp.Graph.from_edgelist(u, v, num_vertices=2_005), HOPS, "x")
    assert device.taken() == [
        *("initialise", "list_frontier", "chain"),
        *("chain", "push", "apply_messages"),
        *("list_frontier", "chain"),
    ]
    same_as_on_the_cpu(layers(1, 1_100, 1), HOPS, "x")
    assert device.taken()[:5] == ["initialise", "list_frontier", "chain", "push", "apply_messages"]


@EMULATED
def test_a_row_as_long_as_a_piece_ends_no_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is no hub, whether a list, one warp or blocks find it."""
    device = Recording()
    monkeypatch.setattr(
        "gpu_pregel.host.programs.run.get_device", lambda name, **_: device if name == "x" else get_device(name)
    )
    for graph in (layers(1, HUB_EDGES, 1), layers(1, 1, HUB_EDGES, 1), layers(1, 40, 1, HUB_EDGES, 1)):
        same_as_on_the_cpu(graph, HOPS, "x")
        assert device.taken() == ["initialise", "list_frontier", "chain"]


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
        ((compiled, counts),) = device.counts.items()
        own = [k for k, site in enumerate(compiled.sites) if "grid_barrier" not in site.file]
        accesses.append((counts.executions[own].sum() / CHAIN, counts.sectors[own].sum() / CHAIN))
    assert accesses[0] == accesses[1]
    assert accesses[0][0] < 18
    assert accesses[0][1] < 8


@EMULATED
def test_supersteps_between_checkpoints_are_chained(tmp_path: Path) -> None:
    device: Any = get_device("emulated")
    saving = gp.Checkpoint(tmp_path / "run.db", every=40, keep=9, durability="process")
    options: dict[str, Any] = {"device": "emulated", "checkpoint": saving, "on_limit": "return"}
    launches = device.launches
    gp.run(path(200), HOPS, max_supersteps=130, **options)
    # Superstep 0 and its list, then chains to supersteps 39, 79, 119 and 129.
    assert device.launches - launches == 2 + 4
    history = gp.SQLiteStore(tmp_path / "run.db").history("run")
    assert [commit.step for commit in history if commit.base] == [39, 79, 119, 129]
    result = gp.run(path(200), HOPS, resume=True, **options)
    assert (result.to_numpy().tolist(), result.supersteps) == (list(range(200)), 201)
