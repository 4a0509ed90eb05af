"""Runs resumed from a checkpoint, on the same or another device, equal runs that were not interrupted."""

from __future__ import annotations

import signal
import sqlite3
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, CheckpointError, StoreError, SuperstepLimitError
from gpu_pregel.host.devices import get_device
from gpu_pregel.host.devices.cpu import CpuDevice
from gpu_pregel.host.graphs.partitions import partition_graph
from gpu_pregel.host.programs import checkpoints
from gpu_pregel.host.programs.compiler import compile_program
from gpu_pregel.host.programs.cpu_state import CpuState
from gpu_pregel.host.programs.run import ProgramResult
from tests.devices import PROGRAM_DEVICES, spread, ways
from tests.programs import DISTANCES, LABELS, PAIRS, RANKS

PROGRAMS = {
    "labels": (LABELS, None),
    "distances": (DISTANCES, None),
    "ranks": (RANKS, None),
    "pairs": (PAIRS, 9),
}


@pytest.fixture(scope="module")
def graph() -> gp.Graph:
    """A grid with weights and some long edges: about a dozen supersteps, and room for three partitions."""
    src, dst, _ = gp.grid(10, 20).to_edgelist()
    src, dst = np.append(src, [3, 150]), np.append(dst, [120, 17])
    weight = np.arange(len(src)) % 11 / 7 + 0.1
    return gp.Graph.from_edgelist(src, dst, weight, num_vertices=200)


def trace(result: ProgramResult) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if not name.endswith("seconds")} for row in result.trace]


def bits(result: ProgramResult) -> bytes:
    return result.to_numpy().tobytes()


def kept(path: Path) -> list[int]:
    """The number of supersteps before each checkpoint in a file."""
    with gp.SQLiteStore(path) as store:
        return [commit.step + 1 for commit in store.history("run") if commit.base]


def fork(path: Path, supersteps: int) -> str:
    """Fork the run of a file after a number of supersteps."""
    with gp.SQLiteStore(path) as store:
        saved = store.load("run", supersteps - 1)
        blobs = {name: saved.blob(name) for name in saved.blobs}
        store.fork("run", supersteps - 1, f"from {supersteps}", saved.base(), blobs=blobs)
    return f"from {supersteps}"


@ways(partitions=[1, 2, 3])
@pytest.mark.parametrize("name", PROGRAMS)
def test_resuming_after_any_superstep_gives_the_same_result(
    graph: gp.Graph, tmp_path: Path, name: str, device: str, way: dict[str, Any]
) -> None:
    program, limit = PROGRAMS[name]
    way = {"device": device, "max_supersteps": limit, **way}
    expected = gp.run(graph, program, **way)
    runs = tmp_path / "all.db"
    saving = gp.Checkpoint(runs, every=1, keep=1000, durability="process")
    saved = gp.run(graph, program, checkpoint=saving, **way)
    assert bits(saved) == bits(expected)
    assert expected.supersteps > 8
    for s in range(1, expected.supersteps + 1, 1 if device == "cpu" else 7):
        mode: Any = "auto" if s % 2 else "pull"
        saving = gp.Checkpoint(runs, fork(runs, s), every=1000, keep=1, durability="process")
        resumed = gp.run(graph, program, mode=mode, checkpoint=saving, resume=True, **way)
        assert bits(resumed) == bits(expected)
        assert (resumed.status, resumed.supersteps) == (expected.status, expected.supersteps)
        if mode == "auto":
            assert trace(resumed) == trace(expected)
    assert kept(runs) == list(range(1, expected.supersteps + 1))


@pytest.mark.parametrize("device, name", spread([(name,) for name in PROGRAMS], str))
def test_resuming_with_other_partitions(graph: gp.Graph, tmp_path: Path, device: str, name: str) -> None:
    program, limit = PROGRAMS[name]
    expected = gp.run(graph, program, device=device, max_supersteps=limit)
    for before, after in ((1, 3), (3, 1), (2, 3)):
        folder = tmp_path / f"{before}-{after}.db"
        early: dict[str, Any] = {"partitions": before, "max_supersteps": 5, "on_limit": "return"}
        assert gp.run(graph, program, device=device, checkpoint=folder, **early).supersteps == 5
        late: dict[str, Any] = {"partitions": after, "max_supersteps": limit, "resume": True}
        if name == "ranks":
            problem = f"partitions={before}, not {after}, on which its sums of floats depend: pass partitions={before}"
            with pytest.raises(CheckpointError, match=problem):
                gp.run(graph, program, device=device, checkpoint=folder, **late)
            late["partitions"] = before
        same(name, gp.run(graph, program, device=device, checkpoint=folder, **late), expected)


@pytest.mark.parametrize("device, name", spread([(name,) for name in PROGRAMS], str))
def test_resuming_on_another_device(graph: gp.Graph, tmp_path: Path, device: str, name: str) -> None:
    program, limit = PROGRAMS[name]
    expected = gp.run(graph, program, device="cpu", max_supersteps=limit)
    for k, (before, after) in enumerate([("cpu", device), (device, "cpu"), (device, device)]):
        folder = tmp_path / f"{k}.db"
        early: dict[str, Any] = {"max_supersteps": 6, "on_limit": "return"}
        gp.run(graph, program, device=before, checkpoint=folder, **early)
        resumed = gp.run(graph, program, device=after, checkpoint=folder, max_supersteps=limit, resume=True)
        same(name, resumed, expected)
        # A GPU's costs may lead to other directions.
        rows = [
            [
                {key: value for key, value in row.items() if key not in ("bytes", "direction", "rule")}
                for row in trace(one)
            ]
            for one in (resumed, expected)
        ]
        # Sums of floats in another order are nearly equal.
        for one, other in zip(*rows, strict=True):
            assert one == pytest.approx(other, rel=1e-9) if name == "ranks" else one == other


def same(name: str, result: ProgramResult, expected: ProgramResult) -> None:
    """Assert that results are equal to the bit, or nearly for sums of floats in another order."""
    if name == "ranks":
        np.testing.assert_allclose(result.to_numpy(), expected.to_numpy(), rtol=1e-12)
    else:
        assert bits(result) == bits(expected)
    assert (result.status, result.supersteps) == (expected.status, expected.supersteps)


def test_a_limit_that_was_reached_can_be_raised(graph: gp.Graph, tmp_path: Path) -> None:
    with pytest.raises(SuperstepLimitError):
        gp.run(graph, LABELS, max_supersteps=4, checkpoint=tmp_path / "runs.db")
    with pytest.raises(SuperstepLimitError) as caught:
        gp.run(graph, LABELS, max_supersteps=4, checkpoint=tmp_path / "runs.db", resume=True)
    partial: Any = caught.value.result
    assert partial.supersteps == 4
    with pytest.raises(CheckpointError, match=r"holds 4 supersteps, more than max_supersteps=3"):
        gp.run(graph, LABELS, max_supersteps=3, checkpoint=tmp_path / "runs.db", resume=True)
    resumed = gp.run(graph, LABELS, max_supersteps=1000, checkpoint=tmp_path / "runs.db", resume=True)
    assert bits(resumed) == bits(gp.run(graph, LABELS))


@PROGRAM_DEVICES
def test_resuming_a_run_that_has_ended_computes_nothing(
    graph: gp.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, device: str
) -> None:
    first = gp.run(graph, RANKS, device=device, checkpoint=tmp_path / "runs.db")
    assert first.status == "halted"
    with monkeypatch.context() as patch:
        patch.setattr(type(get_device(device)), "launch", lambda *_, **__: pytest.fail("a kernel was launched"))
        again = gp.run(graph, RANKS, device=device, checkpoint=tmp_path / "runs.db", resume=True)
    assert bits(again) == bits(first)
    assert (again.status, list(again.trace)) == (first.status, list(first.trace))
    # ``halt`` may differ between runs: a stricter one resumes from there.
    stricter = replace(RANKS, halt=lambda aggregated: aggregated.change < 1e-8)
    longer = gp.run(graph, stricter, device=device, checkpoint=tmp_path / "runs.db", resume=True)
    assert longer.supersteps > first.supersteps
    assert bits(longer) == bits(gp.run(graph, stricter, device=device))


def test_resume_without_a_checkpoint_argument_is_refused(graph: gp.Graph, tmp_path: Path) -> None:
    resumed = gp.run(graph, LABELS, checkpoint=tmp_path / "new.db", resume=True)
    assert bits(resumed) == bits(gp.run(graph, LABELS))
    with pytest.raises(ArgumentError, match="resume=True needs checkpoint="):
        gp.run(graph, LABELS, resume=True)


@pytest.mark.parametrize("n", [0, 1, 2, 65])
@PROGRAM_DEVICES
def test_graphs_with_few_vertices_and_no_edges(tmp_path: Path, device: str, n: int) -> None:
    empty = gp.Graph.from_edgelist([], [], num_vertices=n)
    saved = gp.run(empty, LABELS, device=device, checkpoint=tmp_path / "runs.db")
    resumed = gp.run(empty, LABELS, device=device, checkpoint=tmp_path / "runs.db", resume=True)
    assert resumed.to_numpy().tolist() == list(range(n))
    assert resumed.supersteps == saved.supersteps


def test_other_graphs_are_refused(graph: gp.Graph, tmp_path: Path) -> None:
    gp.run(graph, DISTANCES, checkpoint=tmp_path / "runs.db")
    src, dst, weight = graph.to_edgelist()
    assert weight is not None
    heavier = weight.copy()
    heavier[7] += 1e-9
    moved = dst.copy()
    moved[9] = 199
    others = [
        (gp.Graph.from_edgelist(src, dst, heavier, num_vertices=200), "as large, but its edges or weights differ"),
        (gp.Graph.from_edgelist(src, moved, weight, num_vertices=200), "as large, but its edges or weights differ"),
        (gp.Graph.from_edgelist(src, dst, weight, num_vertices=201), "this one 201 vertices"),
        (gp.Graph.from_edgelist(src[1:], dst[1:], weight[1:], num_vertices=200), "stored edges, undirected"),
        (gp.Graph.from_csr(*graph.to_csr(), directed=True), "this one .* directed, float64 weights"),
        (gp.Graph.from_edgelist(src, dst, weight.astype(np.float32), num_vertices=200), "float32 weights"),
        (gp.Graph.from_edgelist(src, dst, num_vertices=200), "no weights"),
    ]
    for other, problem in others:
        with pytest.raises(CheckpointError, match=rf"superstep \d+: belongs to another graph \(.*{problem}"):
            gp.run(other, DISTANCES, checkpoint=tmp_path / "runs.db", resume=True)
    same = gp.Graph.from_edgelist(src[::-1], dst[::-1], weight[::-1], num_vertices=200)
    assert gp.run(same, DISTANCES, checkpoint=tmp_path / "runs.db", resume=True).supersteps > 8


def test_other_programs_are_refused(graph: gp.Graph, tmp_path: Path) -> None:
    gp.run(graph, DISTANCES, checkpoint=tmp_path / "runs.db")
    others = [
        replace(DISTANCES, value=np.float32),
        replace(DISTANCES, combine="max"),
        replace(DISTANCES, initially_active=lambda ctx: ctx.vertex == 1),
        replace(DISTANCES, active="always"),
        replace(DISTANCES, aggregators={"count": gp.Aggregator("sum", lambda old, new, ctx: 1)}),
    ]
    for other in others:
        with pytest.raises(
            CheckpointError, match=r"superstep \d+: belongs to another program .* choose another run_id"
        ):
            gp.run(graph, other, checkpoint=tmp_path / "runs.db", resume=True)


def test_a_program_without_a_stable_fingerprint_is_refused_before_work(graph: gp.Graph, tmp_path: Path) -> None:
    class Secret:
        pass

    secret = Secret()
    program = replace(LABELS, init=lambda ctx: 0 if secret is None else ctx.vertex)
    with pytest.raises(ArgumentError, match=r"checkpoint= is not possible: .* use a .*Secret"):
        gp.run(graph, program, checkpoint=tmp_path / "runs.db")
    assert not (tmp_path / "runs.db").exists()


def test_a_damaged_checkpoint_leaves_the_previous_one_usable(graph: gp.Graph, tmp_path: Path) -> None:
    runs = tmp_path / "runs.db"
    expected = gp.run(graph, RANKS, checkpoint=gp.Checkpoint(runs, every=3))
    older, newest = kept(runs)
    with sqlite3.connect(runs) as database:
        database.execute("UPDATE bases SET data = zeroblob(9) WHERE step = ? AND part = 2", (newest - 1,))
    database.close()
    with pytest.raises(StoreError, match=rf"run 'run', superstep {newest - 1}"):
        gp.run(graph, RANKS, checkpoint=runs, resume=True)
    resumed = gp.run(graph, RANKS, checkpoint=gp.Checkpoint(runs, fork(runs, older)), resume=True)
    assert bits(resumed) == bits(expected)


KILLED = """
import os, signal, sys
import numpy as np
import gpu_pregel as gp
from gpu_pregel.host.stores.sqlite import SQLiteStore

path, moment = sys.argv[1:]
program = gp.VertexProgram(
    value=np.uint32,
    init=lambda ctx: ctx.vertex,
    message=lambda value, ctx: value,
    combine="min",
    apply=lambda value, incoming, ctx: min(value, incoming),
)
calls = 0

def die(*arguments, **options):
    os.kill(os.getpid(), signal.SIGKILL)

def fifth(function):
    def call(*arguments, **options):
        global calls
        calls += 1
        return function(*arguments, **options) if calls < 5 else die()
    return call

if moment == "before":
    SQLiteStore.commit = fifth(SQLiteStore.commit)
elif moment == "half":
    save = SQLiteStore.commit
    def watch(self, claim, step, *arguments, **options):
        if step == 4:
            self._database._connection.set_trace_callback(lambda sql: die() if sql.startswith("COMMIT") else None)
        save(self, claim, step, *arguments, **options)
    SQLiteStore.commit = watch
elif moment == "after":
    SQLiteStore.prune = die
elif moment == "computing":
    program = gp.VertexProgram(**{**vars(program), "halt": lambda aggregated: ask()})
    ask = fifth(lambda: False)

gp.run(gp.grid(10, 20), program, checkpoint=gp.Checkpoint(path, every=1, keep=4))
"""


@pytest.mark.parametrize("moment, whole", [("before", 4), ("half", 4), ("after", 5), ("computing", 5)])
def test_a_killed_run_resumes_from_the_newest_complete_checkpoint(tmp_path: Path, moment: str, whole: int) -> None:
    runs = tmp_path / "runs.db"
    ended = subprocess.run([sys.executable, "-c", KILLED, str(runs), moment], timeout=120)
    assert ended.returncode == -signal.SIGKILL
    assert kept(runs)[-1] == whole
    expected = gp.run(gp.grid(10, 20), LABELS)
    resumed = gp.run(
        gp.grid(10, 20), LABELS, checkpoint=runs, resume=True
    )  # without waiting for the lease: its owner is known to be gone
    assert bits(resumed) == bits(expected)
    assert trace(resumed) == trace(expected)
    assert kept(runs) == [20, expected.supersteps]


def test_frontier_bits_beyond_the_graph_are_cleared_on_restore() -> None:
    few = gp.Graph.from_edgelist([], [], num_vertices=65)
    parts = partition_graph(few.to_csr(), few.csc, 1, threads=1)
    compiled = compile_program(LABELS, weight=None)
    state = CpuState(compiled, parts, few.out_degrees, few.out_degrees, CpuDevice(1), always=False)
    made_up = {name: array.copy() for name, array in state.snapshot().items()}
    made_up["frontier"][:] = ~np.uint64(0)
    state.restore(made_up)
    assert state.frontier.tolist() == [2**64 - 1, 1]


@PROGRAM_DEVICES
def test_nothing_is_saved_without_a_checkpoint_argument(
    graph: gp.Graph, monkeypatch: pytest.MonkeyPatch, device: str
) -> None:
    monkeypatch.delattr(checkpoints.NumericFormat, "pack_commit")
    monkeypatch.delattr("gpu_pregel.host.programs.state.ProgramState.snapshot")
    assert gp.run(graph, LABELS, device=device).supersteps > 8
