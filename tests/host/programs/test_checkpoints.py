"""Checkpoints of numeric runs in a store: what is written, kept, refused, and left after failures."""

from __future__ import annotations

import json
import pickle
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, CheckpointError, ClaimedError, StoreError
from gpu_pregel.host.programs import checkpoints
from gpu_pregel.host.programs.checkpoints import CheckpointedRun, Identity, ResumePoint, as_checkpoint
from gpu_pregel.host.programs.master_step import Decision
from gpu_pregel.host.programs.policy import NumericChange
from gpu_pregel.host.programs.state import Activity
from gpu_pregel.host.superstep.journal import FoldedSuperstep

IDENTITY = Identity(vertices=3, edges=4, directed=True, weights=None, content="0" * 16, program="a" * 64, parameters={})


class State:
    """The part of a run that checkpoints use: its arrays by name, and its aggregates."""

    has_master = False

    def __init__(self, fill: int = 0) -> None:
        self.arrays: dict[str, Any] = {"value0": np.full(3, fill, np.int32), "frontier": np.full(1, fill, np.uint64)}
        self.aggregates = (np.zeros(1, np.float32),)

    def snapshot(self) -> dict[str, Any]:
        return self.arrays

    def restore(self, arrays: dict[str, Any]) -> None:
        for name in self.arrays:
            self.arrays[name][...] = arrays[name]


def row(step: int) -> dict[str, Any]:
    return {"superstep": step, "direction": "pull", "seconds": 0.1 + step}


def folded(supersteps: int) -> FoldedSuperstep[NumericChange]:
    """The last of a number of supersteps."""
    totals = (np.float32(supersteps / 3),)
    change = NumericChange(Activity(supersteps, 2 * supersteps), totals, Decision(False, ()))
    return FoldedSuperstep(supersteps - 1, supersteps, False, change, row(supersteps - 1))


def start(supersteps: int) -> ResumePoint:
    """The starting point after a number of supersteps."""
    rows = [row(step) for step in range(supersteps)]
    return ResumePoint(supersteps, Activity(supersteps, 2 * supersteps), (np.float32(supersteps / 3),), rows)


def write(path: Any, supersteps: int, *, every: int = 1, keep: int = 2, **options: Any) -> None:
    """Save the commits of a number of supersteps."""
    state: Any = State()
    with CheckpointedRun(gp.Checkpoint(path, every=every, keep=keep, **options), IDENTITY, resume=False) as saving:
        journal, begun = saving.begin(state)
        assert begun is None
        for s in range(1, supersteps + 1):
            state.arrays["value0"][:] = s
            journal.commit(folded(s), "running")


def restore(path: Any, identity: Identity = IDENTITY, **options: Any) -> tuple[ResumePoint | None, State]:
    state: Any = State()
    with CheckpointedRun(gp.Checkpoint(path), identity, resume=True, **options) as opened:
        return opened.begin(state)[1], state


def kept(path: Any, run_id: str = "run") -> list[int]:
    """The number of supersteps before each checkpoint that is kept."""
    with gp.SQLiteStore(path) as store:
        return [commit.step + 1 for commit in store.history(run_id) if commit.base]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "runs.db"


def test_a_saved_state_is_restored(path: Path) -> None:
    write(path, 3)
    begun, state = restore(path)
    assert begun == start(3)
    assert begun is not None
    assert isinstance(begun.totals[0], np.float32)
    assert state.arrays["value0"].tolist() == [3, 3, 3]


def test_an_open_store_stays_open() -> None:
    with gp.MemoryStore() as store:
        write(store, 2, run_id="a")
        write(store, 3, run_id="b")
        assert [run.id for run in store.runs()] == ["a", "b"]
        with CheckpointedRun(gp.Checkpoint(store, "a"), IDENTITY, resume=True) as opened:
            state: Any = State()
            assert opened.begin(state)[1] == start(2)
        assert store.run("a").kind == "numeric"


@pytest.mark.parametrize(
    "every, keep, expected", [(1, 1, [7]), (1, 2, [6, 7]), (3, 2, [3, 6]), (2, 9, [2, 4, 6]), (8, 1, [])]
)
def test_cadence_and_number_of_kept_checkpoints(path: Path, every: int, keep: int, expected: list[int]) -> None:
    state: Any = State()
    with CheckpointedRun(gp.Checkpoint(path, every=every, keep=keep), IDENTITY, resume=False) as saving:
        journal, _ = saving.begin(state)
        for s in range(1, 8):
            journal.commit(folded(s), "running")
        assert kept(path) == expected
        journal.commit(folded(8), "completed")
        assert kept(path)[-1] == 8
    with gp.SQLiteStore(path) as store:
        assert store.run("run").status == "completed"


def test_keep_counts_checkpoints_of_earlier_programs(path: Path) -> None:
    write(path, 3, keep=2)
    state: Any = State()
    with CheckpointedRun(gp.Checkpoint(path, every=1, keep=2), IDENTITY, resume=True) as saving:
        journal, begun = saving.begin(state)
        assert begun == start(3)
        journal.commit(folded(3), "running")  # repeated, as after an error: nothing is written
        journal.commit(folded(4), "running")
    assert kept(path) == [3, 4]
    assert restore(path)[0] == start(4)


def test_a_new_file_starts_a_new_run(path: Path) -> None:
    assert restore(path)[0] is None
    assert path.is_file()
    assert restore(path)[0] is None
    with pytest.raises(CheckpointError, match="belongs to another graph"):
        restore(path, IDENTITY._replace(edges=9))


def test_a_relative_path_is_resolved_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with CheckpointedRun(gp.Checkpoint("here.db", every=1), IDENTITY, resume=False) as saving:
        state: Any = State()
        journal, _ = saving.begin(state)
        monkeypatch.chdir("/")
        journal.commit(folded(1), "running")
    assert kept(tmp_path / "here.db") == [1]


def test_a_new_run_does_not_overwrite_earlier_checkpoints(path: Path) -> None:
    write(path, 1)
    with pytest.raises(CheckpointError, match=r"already has a run 'run': pass resume=True to resume it from its"):
        write(path, 2)
    assert kept(path) == [1]


def test_two_programs_cannot_write_the_same_run(path: Path) -> None:
    with (
        CheckpointedRun(gp.Checkpoint(path), IDENTITY, resume=True),
        pytest.raises(ClaimedError, match=r"run 'run' is claimed by process \d+ on"),
    ):
        restore(path)
    assert restore(path)[0] is None


@pytest.mark.parametrize(
    "changes, problem",
    [
        ({"program": "b" * 64}, "belongs to another program"),
        ({"content": "1" * 16}, "belongs to another graph (as large, but its edges or weights differ)"),
        ({"vertices": 5}, "(it has 3 vertices and 4 stored edges, directed, no weights; this one 5 vertices and 4"),
        ({"edges": 5}, "this one 3 vertices and 5 stored edges"),
        ({"directed": False}, "4 stored edges, undirected, no weights)"),
        ({"weights": "float32"}, "directed, float32 weights)"),
        ({"weights": "int32", "program": "b" * 64}, "directed, int32 weights)"),
    ],
)
def test_another_graph_or_program_is_refused(path: Path, changes: dict[str, Any], problem: str) -> None:
    write(path, 1)
    with pytest.raises(CheckpointError) as caught:
        restore(path, IDENTITY._replace(**changes))
    assert caught.value.path.endswith(f"{path.name}, run 'run', superstep 0")
    assert problem in caught.value.problem
    assert "choose another run_id" in caught.value.problem
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (copy.path, copy.problem, str(copy)) == (caught.value.path, caught.value.problem, str(caught.value))


def test_a_run_saved_before_partitions_were_stored_can_be_resumed(path: Path) -> None:
    write(path, 1)
    assert restore(path, IDENTITY._replace(partitions=3))[0] == start(1)


def test_another_version_and_another_kind_are_refused(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "SCHEMA", 7)
        write(path, 1)
    with pytest.raises(CheckpointError, match="was written by another version"):
        restore(path)
    with gp.MemoryStore() as store:
        gp.agents.run([], lambda ctx: None, store=store, run_id="run")
        with pytest.raises(CheckpointError, match="belongs to a run of agents: choose another run_id"):
            restore(store)


def test_more_supersteps_than_the_limit_are_refused(path: Path) -> None:
    write(path, 3)
    assert restore(path, max_supersteps=3)[0] == start(3)
    with pytest.raises(CheckpointError, match="holds 3 supersteps, more than max_supersteps=2: raise it"):
        restore(path, max_supersteps=2)


HEADER = {"identity": list(IDENTITY), "plan": [1, 2], "arrays": {"value0": "<i4"}}
ARRAYS: dict[str, Any] = {
    "value0": np.zeros(3, np.int32),
    "frontier": np.zeros(1, np.uint64),
    "total0": np.zeros(1, np.float32),
}
WHOLE = {**HEADER, "arrays": {name: array.dtype.str for name, array in ARRAYS.items()}}


@pytest.mark.parametrize(
    "header, blobs",
    [
        (b"{", {}),
        (b"[" * 100_000, {}),
        (b"7", {}),
        ({}, {}),
        ({**HEADER, "plan": [1]}, {}),
        ({**HEADER, "plan": 5}, {}),
        ({**HEADER, "identity": [1]}, {}),
        ({**HEADER, "arrays": [1]}, {}),
        ({**HEADER, "arrays": {"value0": "|O"}}, {}),
        ({**HEADER, "arrays": {"value0": "<M8[s]"}}, {}),
        ({**HEADER, "arrays": {"value0": "no dtype"}}, {}),
        (HEADER, {}),
        (HEADER, {"value0": np.zeros(40, np.int8)}),
        (WHOLE, {**ARRAYS, "value0": np.zeros(5, np.int8)}),
        (WHOLE, ARRAYS),
        (WHOLE, {**ARRAYS, "trace": b"{"}),
        (WHOLE, {**ARRAYS, "total0": b"", "trace": b""}),
    ],
)
def test_forged_checkpoints_with_valid_checksums_are_refused(header: Any, blobs: dict[str, Any]) -> None:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    with gp.MemoryStore() as store:
        claim = store.create("run", "numeric", text, owner="me")
        store.commit(claim, 0, b"", base=text, blobs=blobs)
        store.release(claim)
        with pytest.raises((StoreError, CheckpointError), match=r"(is not a checkpoint|that fits this run)"):
            restore(store)


def damaged(path: Path, change: Callable[[bytes], bytes]) -> None:
    with sqlite3.connect(path) as database:
        (data,) = database.execute("SELECT data FROM bases WHERE step = 1 ORDER BY part DESC LIMIT 1").fetchone()
        database.execute("UPDATE bases SET data = ? WHERE step = 1 AND data = ?", (change(data), data))
    database.close()


@pytest.mark.parametrize("change", [lambda data: data[:-1], lambda data: bytes([data[0] ^ 16]) + data[1:]])
def test_damage_is_located_and_an_older_checkpoint_is_usable(path: Path, change: Any) -> None:
    write(path, 2)
    damaged(path, change)
    with pytest.raises(StoreError, match=r"runs\.db, run 'run', superstep 1"):
        restore(path)
    with gp.SQLiteStore(path) as store:
        older = store.load("run", 0)
        store.fork("run", 0, "older", older.base(), blobs={name: older.blob(name) for name in older.blobs})
    state: Any = State()
    with CheckpointedRun(gp.Checkpoint(path, "older"), IDENTITY, resume=True) as opened:
        assert opened.begin(state)[1] == start(1)


def test_a_full_store_keeps_the_older_checkpoint_intact(path: Path) -> None:
    write(path, 1)
    with gp.SQLiteStore(path) as store:
        assert store._database._connection is not None
        (pages,) = store._database._connection.execute("PRAGMA page_count").fetchone()
        store._database._connection.execute(f"PRAGMA max_page_count = {pages}")
        state: Any = State()
        with CheckpointedRun(gp.Checkpoint(store, every=1, keep=1), IDENTITY, resume=True) as saving:
            journal, _ = saving.begin(state)
            state.arrays = {name: np.resize(array, 100_000) for name, array in state.arrays.items()}
            with pytest.raises(StoreError, match="has no space left"):
                journal.commit(folded(2), "running")
    assert kept(path) == [1]
    assert restore(path)[0] == start(1)


def test_paths_that_cannot_be_stores_are_refused_before_work(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("mine" * 1000)
    for store in (tmp_path, tmp_path / "text", tmp_path / "text" / "below", Path("/proc/nothing/here")):
        with pytest.raises((StoreError, ArgumentError, OSError)) as caught:
            restore(store)
        assert str(store) in str(caught.value)
    assert (tmp_path / "text").read_text() == "mine" * 1000


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ((7,), ArgumentTypeError, "store must be the path of a file, or a store, not 7"),
        ((b"x",), ArgumentTypeError, "store must be the path"),
        (("",), ArgumentError, "not an empty string"),
        (("x", 5), ArgumentTypeError, "run_id must be a string"),
        (("x", "run", 0), ArgumentError, "every must be at least 1, not 0"),
        (("x", "run", 1.5), ArgumentTypeError, "every must be a whole number, not 1.5"),
        (("x", "run", True), ArgumentTypeError, "every must be a whole number"),
        (("x", "run", 1, 0), ArgumentError, "keep must be at least 1, not 0"),
        (("x", "run", 1, "2"), ArgumentTypeError, "keep must be a whole number"),
        (("x", "run", 1, 2, "never"), ArgumentError, "durability must be 'machine' or 'process'"),
    ],
)
def test_arguments_are_checked(arguments: tuple[Any, ...], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        gp.Checkpoint(*arguments)


def test_a_path_or_a_store_stands_for_a_checkpoint(tmp_path: Path) -> None:
    assert as_checkpoint("x") == gp.Checkpoint("x", every=10, keep=2)
    assert as_checkpoint(tmp_path) == gp.Checkpoint(tmp_path)
    given = gp.Checkpoint("x", "y", 3)
    assert as_checkpoint(given) is given
    with gp.MemoryStore() as store:
        assert as_checkpoint(store).store is store
    with pytest.raises(ArgumentTypeError, match=r"checkpoint must be a gp\.Checkpoint, the path of a file or a store"):
        as_checkpoint(3)
