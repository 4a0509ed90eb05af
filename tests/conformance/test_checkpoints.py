"""Runs that went on from a checkpoint, and runs that nothing interrupted: equal, to the bit where that is promised."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, CheckpointError, SuperstepLimitError
from gpu_pregel.host import checkpoints
from gpu_pregel.host.compiling import compile_program
from gpu_pregel.host.devices.cpu import CpuDevice
from gpu_pregel.host.numeric import NumericRun
from gpu_pregel.host.partitions import partition_graph

LABELS = gp.VertexProgram(
    value=np.uint32,
    init=lambda ctx: ctx.vertex,
    message=lambda value, ctx: value,
    combine="min",
    apply=lambda value, incoming, ctx: min(value, incoming),
)
DISTANCES = gp.VertexProgram(
    value=np.float64,
    init=lambda ctx: 0.0 if ctx.vertex == 0 else np.inf,
    initially_active=lambda ctx: ctx.vertex == 0,
    message=lambda value, weight, ctx: value + weight,
    combine="min",
    apply=lambda value, incoming, ctx: min(value, incoming),
)
RANKS = gp.VertexProgram(
    value=np.float64,
    init=lambda ctx: 1 / ctx.num_vertices,
    message=lambda value, ctx: value / ctx.out_degree,
    combine="sum",
    apply=lambda value, incoming, ctx: 0.15 / ctx.num_vertices + 0.85 * incoming,
    active="always",
    aggregators={"change": gp.Aggregator("sum", lambda old, new, ctx: abs(new - old))},
    halt=lambda aggregated: aggregated.change < 1e-4,
)
# Both the sender and the receiver look at aggregates, the sender at those of the superstep before.
PAIRS = gp.VertexProgram(
    value=(np.int64, np.float32),
    init=lambda ctx: (ctx.vertex % 13, 0.5),
    message=lambda value, ctx: (value[0] + ctx.aggregated.total % 7, value[1] + ctx.superstep),
    combine="min",
    apply=lambda value, incoming, ctx: (incoming[0] + ctx.aggregated.top % 5, max(value[1], incoming[1])),
    active="always",
    aggregators={
        "total": gp.Aggregator("sum", lambda old, new, ctx: new[0]),
        "top": gp.Aggregator("max", lambda old, new, ctx: new[0] + ctx.vertex),
    },
)
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


def trace(result: gp.running.ProgramResult) -> list[dict[str, Any]]:
    return [{name: value for name, value in row.items() if name != "seconds"} for row in result.trace]


def bits(result: gp.running.ProgramResult) -> list[bytes]:
    parts = result.values if isinstance(result.values, tuple) else (result.values,)
    return [part.tobytes() for part in parts]


def numbered(folder: Path, supersteps: int) -> Path:
    return folder / f"superstep-{supersteps:012d}.checkpoint"


@pytest.mark.parametrize("partitions", [1, 2, 3])
@pytest.mark.parametrize("name", PROGRAMS)
def test_going_on_after_every_superstep_gives_the_same(
    graph: gp.Graph, tmp_path: Path, name: str, partitions: int
) -> None:
    program, limit = PROGRAMS[name]
    expected = gp.run(graph, program, partitions=partitions, max_supersteps=limit)
    everything = gp.Checkpoint(tmp_path / "all", every=1, keep=1000)
    saved = gp.run(graph, program, partitions=partitions, max_supersteps=limit, checkpoint=everything)
    assert bits(saved) == bits(expected)
    assert expected.supersteps > 8
    for s in range(1, expected.supersteps + 1):
        folder = tmp_path / str(s)
        folder.mkdir()
        shutil.copy(numbered(tmp_path / "all", s), folder)
        mode = "auto" if s % 2 else "pull"
        resumed = gp.run(
            graph,
            program,
            partitions=partitions,
            max_supersteps=limit,
            mode=mode,
            checkpoint=gp.Checkpoint(folder, every=1000, keep=1),
            resume=True,
        )
        assert bits(resumed) == bits(expected)
        assert (resumed.status, resumed.supersteps) == (expected.status, expected.supersteps)
        if mode == "auto":
            assert trace(resumed) == trace(expected)
        assert [path.name for path in folder.iterdir()] == [numbered(folder, expected.supersteps).name]


@pytest.mark.parametrize("name", PROGRAMS)
def test_going_on_with_other_partitions(graph: gp.Graph, tmp_path: Path, name: str) -> None:
    program, limit = PROGRAMS[name]
    expected = gp.run(graph, program, max_supersteps=limit)
    for before, after in ((1, 3), (3, 1), (2, 3)):
        folder = tmp_path / f"{before}-{after}"
        early: dict[str, Any] = {"partitions": before, "max_supersteps": 5, "on_limit": "return"}
        assert gp.run(graph, program, checkpoint=folder, **early).supersteps == 5
        resumed = gp.run(graph, program, partitions=after, max_supersteps=limit, checkpoint=folder, resume=True)
        if name == "ranks":
            np.testing.assert_allclose(resumed.values, expected.values, rtol=1e-12)
        else:
            assert bits(resumed) == bits(expected)
        assert (resumed.status, resumed.supersteps) == (expected.status, expected.supersteps)


def test_a_limit_that_was_reached_may_be_raised(graph: gp.Graph, tmp_path: Path) -> None:
    with pytest.raises(SuperstepLimitError):
        gp.run(graph, LABELS, max_supersteps=4, checkpoint=tmp_path)
    with pytest.raises(SuperstepLimitError) as caught:
        gp.run(graph, LABELS, max_supersteps=4, checkpoint=tmp_path, resume=True)
    partial: Any = caught.value.result
    assert partial.supersteps == 4
    with pytest.raises(CheckpointError, match=r"holds 4 supersteps, more than max_supersteps=3"):
        gp.run(graph, LABELS, max_supersteps=3, checkpoint=tmp_path, resume=True)
    resumed = gp.run(graph, LABELS, max_supersteps=1000, checkpoint=tmp_path, resume=True)
    assert bits(resumed) == bits(gp.run(graph, LABELS))


def test_a_run_that_had_ended_returns_without_running(
    graph: gp.Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = gp.run(graph, RANKS, checkpoint=tmp_path)
    assert first.status == "halted"
    with monkeypatch.context() as patch:
        for phase in ("initialise", "push", "pull", "apply"):
            patch.delattr(f"gpu_pregel.host.numeric.NumericRun.{phase}")
        again = gp.run(graph, RANKS, checkpoint=tmp_path, resume=True)
    assert bits(again) == bits(first)
    assert (again.status, list(again.trace)) == (first.status, list(first.trace))
    # ``halt`` is the run's, not the program's: a stricter one goes on from there.
    stricter = replace(RANKS, halt=lambda aggregated: aggregated.change < 1e-8)
    longer = gp.run(graph, stricter, checkpoint=tmp_path, resume=True)
    assert longer.supersteps > first.supersteps
    assert bits(longer) == bits(gp.run(graph, stricter))


def test_nothing_is_begun_where_there_is_nothing_to_go_on_from(graph: gp.Graph, tmp_path: Path) -> None:
    resumed = gp.run(graph, LABELS, checkpoint=tmp_path / "new", resume=True)
    assert bits(resumed) == bits(gp.run(graph, LABELS))
    with pytest.raises(ArgumentError, match="resume=True needs checkpoint="):
        gp.run(graph, LABELS, resume=True)


@pytest.mark.parametrize("n", [0, 1, 2, 65])
def test_graphs_with_few_vertices_and_no_edges(tmp_path: Path, n: int) -> None:
    empty = gp.Graph.from_edgelist([], [], num_vertices=n)
    saved = gp.run(empty, LABELS, checkpoint=tmp_path)
    resumed = gp.run(empty, LABELS, checkpoint=tmp_path, resume=True)
    assert resumed.values.tolist() == list(range(n))
    assert resumed.supersteps == saved.supersteps


def test_other_graphs_are_refused(graph: gp.Graph, tmp_path: Path) -> None:
    gp.run(graph, DISTANCES, checkpoint=tmp_path)
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
        with pytest.raises(CheckpointError, match=rf"\.checkpoint: is of another graph \(.*{problem}"):
            gp.run(other, DISTANCES, checkpoint=tmp_path, resume=True)
    same = gp.Graph.from_edgelist(src[::-1], dst[::-1], weight[::-1], num_vertices=200)
    assert gp.run(same, DISTANCES, checkpoint=tmp_path, resume=True).supersteps > 8


def test_other_programs_are_refused(graph: gp.Graph, tmp_path: Path) -> None:
    gp.run(graph, DISTANCES, checkpoint=tmp_path)
    others = [
        replace(DISTANCES, value=np.float32),
        replace(DISTANCES, combine="max"),
        replace(DISTANCES, initially_active=lambda ctx: ctx.vertex == 1),
        replace(DISTANCES, active="always"),
        replace(DISTANCES, aggregators={"count": gp.Aggregator("sum", lambda old, new, ctx: 1)}),
    ]
    for other in others:
        with pytest.raises(CheckpointError, match=r"\.checkpoint: is of another program .* name another folder"):
            gp.run(graph, other, checkpoint=tmp_path, resume=True)


def test_a_program_that_cannot_be_told_again_is_refused_before_work(graph: gp.Graph, tmp_path: Path) -> None:
    class Secret:
        pass

    secret = Secret()
    program = replace(LABELS, init=lambda ctx: 0 if secret is None else ctx.vertex)
    with pytest.raises(ArgumentError, match=r"checkpoint= cannot be: .* use a .*Secret"):
        gp.run(graph, program, checkpoint=tmp_path / "folder")
    assert not (tmp_path / "folder").exists()


def test_a_damaged_checkpoint_can_be_deleted_to_fall_back(graph: gp.Graph, tmp_path: Path) -> None:
    expected = gp.run(graph, RANKS, checkpoint=gp.Checkpoint(tmp_path, every=3))
    newest = numbered(tmp_path, expected.supersteps)
    newest.write_bytes(newest.read_bytes()[:-100])
    with pytest.raises(CheckpointError, match=r"is damaged or cut short .*: delete it, and resume=True goes on from"):
        gp.run(graph, RANKS, checkpoint=tmp_path, resume=True)
    newest.unlink()
    assert bits(gp.run(graph, RANKS, checkpoint=tmp_path, resume=True)) == bits(expected)


KILLED = """
from __future__ import annotations
import os, signal, sys
import numpy as np
import gpu_pregel as gp
from gpu_pregel.host import checkpoints

folder, moment = sys.argv[1:]
program = gp.VertexProgram(
    value=np.uint32,
    init=lambda ctx: ctx.vertex,
    message=lambda value, ctx: value,
    combine="min",
    apply=lambda value, incoming, ctx: min(value, incoming),
)
calls = 0

def die(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)

def fifth(function):
    def call(*arguments):
        global calls
        calls += 1
        return function(*arguments) if calls < 5 else die()
    return call

if moment == "half":
    pieces = checkpoints._pieces
    def half(header, arrays):
        for number, piece in enumerate(pieces(header, arrays)):
            if header["supersteps"] == 5 and number == 3:
                die()
            yield piece
    checkpoints._pieces = half
elif moment == "computing":
    program = gp.VertexProgram(**{**vars(program), "halt": lambda aggregated: ask()})
    ask = fifth(lambda: False)
elif moment == "renaming":
    checkpoints.os.replace = fifth(os.replace)
elif moment == "removing":
    checkpoints.Path.unlink = die

gp.run(gp.grid(10, 20), program, checkpoint=gp.Checkpoint(folder, every=1, keep=4))
"""


@pytest.mark.parametrize("moment, whole", [("half", 4), ("renaming", 4), ("removing", 5), ("computing", 5)])
def test_a_killed_run_goes_on_from_the_newest_whole_checkpoint(tmp_path: Path, moment: str, whole: int) -> None:
    ended = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path), moment], timeout=120)
    assert ended.returncode == -signal.SIGKILL
    left = sorted(path.name for path in tmp_path.iterdir())
    assert any(name.endswith(".tmp") for name in left) == (moment in ("half", "renaming"))
    assert left[-1] == numbered(tmp_path, whole).name
    expected = gp.run(gp.grid(10, 20), LABELS)
    resumed = gp.run(gp.grid(10, 20), LABELS, checkpoint=tmp_path, resume=True)
    assert bits(resumed) == bits(expected)
    assert trace(resumed) == trace(expected)
    left = sorted(path.name for path in tmp_path.iterdir())
    assert left == [numbered(tmp_path, s).name for s in (20, expected.supersteps)]


def test_no_bit_of_a_made_up_frontier_leaves_the_graph() -> None:
    few = gp.Graph.from_edgelist([], [], num_vertices=65)
    parts = partition_graph(few.to_csr(), few.csc, 1, threads=1)
    compiled = compile_program(LABELS, has_weights=False)
    state = NumericRun(compiled, parts, few.out_degrees, few.out_degrees, CpuDevice(1), always=False)
    made_up = {name: array.copy() for name, array in state.snapshot().items()}
    made_up["frontier"][:] = ~np.uint64(0)
    state.restore(made_up)
    assert state.frontier.tolist() == [2**64 - 1, 1]


def test_nothing_is_saved_where_nothing_was_asked(graph: gp.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(checkpoints.CheckpointFolder, "_save")
    monkeypatch.delattr("gpu_pregel.host.numeric.NumericRun.snapshot")
    assert gp.run(graph, LABELS).supersteps > 8
