"""Checkpoint files: what is written, kept, refused, and left by what goes wrong."""

from __future__ import annotations

import hashlib
import json
import pickle
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, CheckpointError, UnreadableFileError, WriteError
from gpu_pregel.host import checkpoints
from gpu_pregel.host.checkpoints import CheckpointFolder, Commit, Identity, as_checkpoint
from gpu_pregel.host.numeric import Plan

IDENTITY = Identity(vertices=3, edges=4, directed=True, weights=None, content="0" * 16, program="a" * 64)


class State:
    """What a folder asks of a run: its arrays by name, and its aggregates."""

    def __init__(self, fill: int = 0) -> None:
        self.arrays: dict[str, Any] = {"value0": np.full(3, fill, np.int32), "frontier": np.full(1, fill, np.uint64)}
        self.aggregates = (np.zeros(1, np.float32),)

    def snapshot(self) -> dict[str, Any]:
        return self.arrays

    def restore(self, arrays: dict[str, Any]) -> None:
        for name in self.arrays:
            self.arrays[name][...] = arrays[name]


def commit(supersteps: int) -> Commit:
    rows = [{"superstep": s, "direction": "pull", "seconds": 0.1 + s} for s in range(supersteps)]
    return Commit(supersteps, Plan(supersteps, 2 * supersteps), (np.float32(supersteps / 3),), rows)


def write(folder: Path, supersteps: int, *, every: int = 1, keep: int = 2) -> Path:
    """Save the commits of a run of so many supersteps; return the last file."""
    state: Any = State()
    with CheckpointFolder(gp.Checkpoint(folder, every, keep), IDENTITY, resume=False) as opened:
        start, after_commit = opened.begin(state)
        assert start is None
        for s in range(1, supersteps + 1):
            state.arrays["value0"][:] = s
            after_commit(commit(s), False)
    return sorted(folder.glob("*.checkpoint"))[-1]


def take_up(folder: Path, identity: Identity = IDENTITY, **options: Any) -> tuple[Commit | None, State]:
    state: Any = State()
    with CheckpointFolder(gp.Checkpoint(folder), identity, resume=True, **options) as opened:
        return opened.begin(state)[0], state


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@contextmanager
def small_files(size: int) -> Iterator[None]:
    """Let the system refuse larger files; meanwhile the test runner must not write its own output."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_what_was_saved_comes_back(tmp_path: Path) -> None:
    write(tmp_path, 3)
    start, state = take_up(tmp_path)
    assert start == commit(3)
    assert start is not None
    assert isinstance(start.totals[0], np.float32)
    assert state.arrays["value0"].tolist() == [3, 3, 3]


@pytest.mark.parametrize(
    "every, keep, expected", [(1, 1, [7]), (1, 2, [6, 7]), (3, 2, [3, 6]), (2, 9, [2, 4, 6]), (8, 1, [])]
)
def test_every_so_many_are_saved_and_the_newest_kept(
    tmp_path: Path, every: int, keep: int, expected: list[int]
) -> None:
    with CheckpointFolder(gp.Checkpoint(tmp_path, every, keep), IDENTITY, resume=False) as opened:
        state: Any = State()
        after_commit = opened.begin(state)[1]
        for s in range(1, 8):
            after_commit(commit(s), False)
        assert names(tmp_path) == [f"superstep-{s:012d}.checkpoint" for s in expected]
        after_commit(commit(8), True)
        assert names(tmp_path)[-1] == "superstep-000000000008.checkpoint"


def test_an_empty_or_missing_folder_begins_anew(tmp_path: Path) -> None:
    assert take_up(tmp_path / "a" / "b")[0] is None
    assert (tmp_path / "a" / "b").is_dir()


def test_a_relative_folder_stays_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with CheckpointFolder(gp.Checkpoint("here", every=1), IDENTITY, resume=False) as opened:
        state: Any = State()
        after_commit = opened.begin(state)[1]
        monkeypatch.chdir("/")
        after_commit(commit(1), False)
    assert names(tmp_path / "here") == ["superstep-000000000001.checkpoint"]


def test_leftovers_are_cleared_and_nothing_else(tmp_path: Path) -> None:
    write(tmp_path, 1)
    leftover = tmp_path / ".superstep-000000000002.checkpoint.0123abcd.tmp"
    leftover.write_bytes(b"half")
    (tmp_path / "notes.tmp").write_text("mine")
    start, _ = take_up(tmp_path)
    assert start == commit(1)
    assert names(tmp_path) == ["notes.tmp", "superstep-000000000001.checkpoint"]


def test_a_run_that_would_begin_anew_leaves_earlier_checkpoints_alone(tmp_path: Path) -> None:
    path = write(tmp_path, 1)
    with pytest.raises(CheckpointError, match=r"an earlier run: pass resume=True to go on from it, or name another"):
        write(tmp_path, 2)
    assert names(tmp_path) == [path.name]


def test_two_runs_do_not_share_a_folder(tmp_path: Path) -> None:
    with (
        CheckpointFolder(gp.Checkpoint(tmp_path), IDENTITY, resume=True),
        pytest.raises(CheckpointError, match="in use by another run"),
    ):
        take_up(tmp_path)
    assert take_up(tmp_path)[0] is None


def test_every_flipped_byte_is_noticed(tmp_path: Path) -> None:
    path = write(tmp_path, 2)
    whole = path.read_bytes()
    for position in range(len(whole)):
        path.write_bytes(whole[:position] + bytes([whole[position] ^ 0x10]) + whole[position + 1 :])
        with pytest.raises(CheckpointError, match=rf"{path.name}: (is damaged|has version)"):
            take_up(tmp_path)
    path.write_bytes(whole)
    assert take_up(tmp_path)[0] == commit(2)


def test_every_cut_is_noticed(tmp_path: Path) -> None:
    path = write(tmp_path, 2)
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        with pytest.raises(CheckpointError, match=rf"{path.name}: is damaged"):
            take_up(tmp_path)
    path.write_bytes(whole + b"\0")
    with pytest.raises(CheckpointError, match="its checksum does not match"):
        take_up(tmp_path)


def test_damage_is_no_reason_to_skip_silently_but_says_how_to_fall_back(tmp_path: Path) -> None:
    path = write(tmp_path, 3)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CheckpointError, match=r"delete it, and resume=True goes on from superstep-000000000002\.check"):
        take_up(tmp_path)
    path.unlink()
    assert take_up(tmp_path)[0] == commit(2)
    write(tmp_path / "one", 1).write_bytes(b"")
    with pytest.raises(CheckpointError, match=r"delete it, and resume=True begins anew, as there is no older one"):
        take_up(tmp_path / "one")


@pytest.mark.parametrize(
    "changes, problem",
    [
        ({"program": "b" * 64}, "is of another program"),
        ({"content": "1" * 16}, "is of another graph (as large, but its edges or weights differ)"),
        ({"vertices": 5}, "(it has 3 vertices and 4 stored edges, directed, no weights; this one 5 vertices and 4"),
        ({"edges": 5}, "this one 3 vertices and 5 stored edges"),
        ({"directed": False}, "4 stored edges, undirected, no weights)"),
        ({"weights": "float32"}, "directed, float32 weights)"),
        ({"weights": "int32", "program": "b" * 64}, "directed, int32 weights)"),
    ],
)
def test_another_graph_or_program_is_refused(tmp_path: Path, changes: dict[str, Any], problem: str) -> None:
    path = write(tmp_path, 1)
    with pytest.raises(CheckpointError) as caught:
        take_up(tmp_path, IDENTITY._replace(**changes))
    assert caught.value.path == str(path)
    assert problem in caught.value.problem
    assert "name another folder" in caught.value.problem
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (copy.path, copy.problem, str(copy)) == (caught.value.path, caught.value.problem, str(caught.value))


def test_another_version_of_the_format_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(checkpoints, "FORMAT_VERSION", 7)
        write(tmp_path, 1)
    with pytest.raises(CheckpointError, match="has version 7 of the format, but this gpu_pregel reads version 1"):
        take_up(tmp_path)


def test_more_supersteps_than_the_limit_are_refused(tmp_path: Path) -> None:
    write(tmp_path, 3)
    assert take_up(tmp_path, max_supersteps=3)[0] == commit(3)
    with pytest.raises(CheckpointError, match="holds 3 supersteps, more than max_supersteps=2: raise that"):
        take_up(tmp_path, max_supersteps=2)


HEADER = {"supersteps": 1, "plan": [1, 2], "identity": list(IDENTITY), "arrays": [["value0", "<i4", 3]]}


@pytest.mark.parametrize(
    "header",
    [
        b"{",
        b"[" * 100_000,
        b"7",
        {},
        {**HEADER, "supersteps": "1"},
        {**HEADER, "plan": [1]},
        {**HEADER, "identity": [1]},
        {**HEADER, "arrays": [["value0", "|O", 3]]},
        {**HEADER, "arrays": [["value0", "<M8[s]", 1]]},
        {**HEADER, "arrays": [["value0", "no dtype", 1]]},
        {**HEADER, "arrays": [["value0", "<i4", 1 << 60]]},
        {**HEADER, "arrays": [["value0", "<i4", -1]]},
        {**HEADER, "arrays": [["value0", "<i4", 40]]},
        {**HEADER, "arrays": [["value0", "<i4", 3.5]]},
        HEADER,
        {**HEADER, "arrays": [["value0", "<i8", 1], ["frontier", "<u8", 1]]},
    ],
)
def test_made_up_files_are_refused_though_their_checksum_holds(tmp_path: Path, header: Any) -> None:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    body = b"gpu-pregel checkpoint\n\0\0" + (1).to_bytes(8, "little") + len(text).to_bytes(8, "little") + text
    body += bytes(-len(body) % 64 + 64)
    path = tmp_path / "superstep-000000000001.checkpoint"
    path.write_bytes(body + hashlib.sha256(body).digest())
    with pytest.raises(CheckpointError, match=r"(does not hold what its format asks for|has no .* that fits this run)"):
        take_up(tmp_path)


def test_a_full_disk_leaves_the_older_checkpoint_whole(tmp_path: Path) -> None:
    path = write(tmp_path, 1)
    state: Any = State()
    with CheckpointFolder(gp.Checkpoint(tmp_path, every=1, keep=1), IDENTITY, resume=True) as opened:
        after_commit = opened.begin(state)[1]
        with small_files(256), pytest.raises(WriteError, match=r"000002\.checkpoint was not written: .* resume=True"):
            after_commit(commit(2), False)
    assert names(tmp_path) == [path.name]
    assert take_up(tmp_path)[0] == commit(1)


@pytest.mark.parametrize("moment", ["fsync", "replace"])
def test_an_interrupt_while_writing_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str
) -> None:
    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    path = write(tmp_path, 1)
    state: Any = State()
    with CheckpointFolder(gp.Checkpoint(tmp_path, every=1, keep=1), IDENTITY, resume=True) as opened:
        after_commit = opened.begin(state)[1]
        monkeypatch.setattr(f"gpu_pregel.host.checkpoints.os.{moment}", interrupt)
        with pytest.raises(KeyboardInterrupt):
            after_commit(commit(2), False)
    assert names(tmp_path) == [path.name]


def test_a_folder_that_cannot_be_one_is_refused_before_work(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("mine")
    for folder in (file, file / "below"):
        with pytest.raises(WriteError, match="is no folder"):
            take_up(folder)
    with pytest.raises(WriteError, match="cannot hold checkpoints"):
        take_up(Path("/proc/nothing/here"))
    (tmp_path / "superstep-000000000001.checkpoint").mkdir()
    with pytest.raises(UnreadableFileError, match="cannot be read"):
        take_up(tmp_path)


@pytest.mark.parametrize(
    "arguments, error, message",
    [
        ((7,), ArgumentTypeError, "folder must be the path of a folder, not 7"),
        ((b"x",), ArgumentTypeError, "folder must be the path"),
        (("",), ArgumentError, "not an empty string"),
        (("x", 0), ArgumentError, "every must be at least 1, not 0"),
        (("x", 1.5), ArgumentTypeError, "every must be a whole number, not 1.5"),
        (("x", True), ArgumentTypeError, "every must be a whole number"),
        (("x", 1, 0), ArgumentError, "keep must be at least 1, not 0"),
        (("x", 1, "2"), ArgumentTypeError, "keep must be a whole number"),
    ],
)
def test_arguments_are_checked(arguments: tuple[Any, ...], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        gp.Checkpoint(*arguments)


def test_a_folder_stands_for_a_checkpoint(tmp_path: Path) -> None:
    assert as_checkpoint("x") == gp.Checkpoint("x", every=10, keep=2)
    assert as_checkpoint(tmp_path) == gp.Checkpoint(tmp_path)
    given = gp.Checkpoint("x", 3)
    assert as_checkpoint(given) is given
    with pytest.raises(ArgumentTypeError, match=r"checkpoint must be a gp\.Checkpoint or the path of a folder, not 3"):
        as_checkpoint(3)
