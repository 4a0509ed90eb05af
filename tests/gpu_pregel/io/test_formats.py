"""Tests common to all formats: selection by suffix, unreadable files, atomic writing."""

from __future__ import annotations

import errno
import os
import re
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import (
    ArgumentError,
    ArgumentTypeError,
    FormatError,
    MissingFileError,
    NotAFileError,
    UnreadableFileError,
    WriteError,
)
from gpu_pregel.io import _formats, check_output

WriteFile = Callable[[str, str | bytes], Path]

NAMES = ["a.el", "a.txt.gz", "a.csv.zst", "a.mtx", "a.graph", "a.v", "a.bin", "a.sg", "a.parquet", "a.pregel"]


def large_graph() -> gp.Graph:
    """A graph that takes at least 64 KiB in every format."""
    return gp.uniform(13, edge_factor=16, seed=1)


@pytest.mark.parametrize("suffix", [suffix for entry in _formats.FORMATS.values() for suffix in entry.suffixes])
def test_suffixes_are_case_insensitive(suffix: str) -> None:
    chosen = _formats.choose_format(f"graph{suffix}", None)
    assert suffix in _formats.FORMATS[chosen].suffixes
    assert _formats.choose_format(f"graph{suffix.upper()}", None) == chosen
    for compression in (".gz", ".zst", ".zstd", ".GZ"):
        if _formats.FORMATS[chosen].compressible:
            assert _formats.choose_format(f"graph{suffix}{compression}", None) == chosen
        else:
            with pytest.raises(FormatError, match="decompress the file"):
                _formats.choose_format(f"graph{suffix}{compression}", None)


@pytest.mark.parametrize("name", ["a.docx", "a", "a.gz", "el"])
def test_unknown_suffix(name: str, write_file: WriteFile) -> None:
    path = write_file(name, "0 1\n")
    with pytest.raises(FormatError, match=r"pass format=, or use one of edgelist: \.txt \.el"):
        gp.read_graph(path)
    with pytest.raises(FormatError, match="unknown suffix"):
        gp.Graph.from_edgelist([0], [1]).save(path)
    with pytest.raises(ArgumentError, match=r"format must be 'edgelist', 'matrix-market', .* or 'pregel', not"):
        gp.read_graph(path, "word")
    with pytest.raises(ArgumentError, match=r"format='csv' is a suffix: omit it for \.csv files, or .*='edgelist'"):
        gp.read_graph(path, "csv")
    with pytest.raises(ArgumentError, match=r"format='mtx' is a suffix: .* pass format='matrix-market'"):
        gp.Graph.from_edgelist([0], [1]).save(path, "mtx")
    assert gp.read_graph(write_file("b.docx", "0 1\n"), "edgelist").num_stored_edges == 2


@pytest.mark.parametrize("name", NAMES)
def test_files_that_cannot_be_opened(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / name
    with pytest.raises(MissingFileError, match=re.escape(str(path))):
        gp.read_graph(path)
    with pytest.raises(MissingFileError, match=re.escape(str(tmp_path / "no_suffix"))):
        gp.read_graph(tmp_path / "no_suffix")
    with pytest.raises(NotAFileError, match=re.escape(str(tmp_path))):
        gp.read_graph(tmp_path)
    path.mkdir()
    with pytest.raises(NotAFileError, match=re.escape(str(path))):
        gp.read_graph(path)

    def forbid(*arguments: Any) -> Any:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr("builtins.open", forbid)
    with pytest.raises(UnreadableFileError, match=f"{re.escape(str(path))} cannot be read: Permission denied"):
        gp.read_graph(path)


@pytest.mark.parametrize(
    "name, options, problem",
    [
        ("a.graph", {"source": "a", "target": "b"}, "the format metis does not support source="),
        ("a.graph", {"num_vertices": 3}, "the format metis does not support num_vertices="),
        ("a.sg", {"renumber": False}, "the format gapbs does not support renumber="),
        ("a.sg", {"target": "b"}, "the format gapbs does not support target="),
        ("a.parquet", {"header": True}, "the format parquet does not support header="),
        ("a.sg", {"weight": "cost"}, "the format gapbs has no columns to choose from: omit weight='cost'"),
        ("a.el", {"combine": "last"}, "combine must be 'sum', 'min'"),
        ("a.el", {"self_loops": False}, "self_loops must be 'keep' or 'drop'"),
        ("a.el", {"renumber": "never"}, "renumber must be"),
        ("a.el", {"threads": 0}, "threads must be"),
        ("a.el", {"num_vertices": -1}, "num_vertices must be"),
    ],
)
def test_bad_options(name: str, options: Any, problem: str, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=problem):
        gp.read_graph(tmp_path / name, **options)


@pytest.mark.parametrize(
    "options",
    [
        {"weight_dtype": "int8"},
        {"weight_dtype": "number"},
        {"source": 1.5, "target": 0},
        {"target": True},
        {"weight": 1.5},
        {"directed": 1},
    ],
)
def test_options_of_the_wrong_type(options: Any, tmp_path: Path) -> None:
    with pytest.raises(ArgumentTypeError, match=next(iter(options))):
        gp.read_graph(tmp_path / "a.parquet", **options)


# Graphalytics files require their suffixes.
@pytest.mark.parametrize("name", [name for name in NAMES if name != "a.v"])
def test_format_takes_precedence_over_the_suffix(name: str, tmp_path: Path, equal: Any) -> None:
    graph = gp.Graph.from_edgelist([0, 1, 2], [1, 2, 3])
    chosen = _formats.choose_format(name, None)
    graph.save(tmp_path / "graph.data", chosen)
    assert equal(gp.read_graph(tmp_path / "graph.data", chosen), graph)


@pytest.mark.parametrize("name", NAMES)
def test_a_failed_write_leaves_no_file(name: str, tmp_path: Path, small_disk: Any) -> None:
    graph = large_graph()
    with pytest.raises(WriteError, match=re.escape(str(tmp_path / "a."))) as caught, small_disk():
        graph.save(tmp_path / name)
    assert "no partial file remains" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("failure", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()], ids=repr)
def test_a_full_disk_and_ctrl_c_keep_the_old_file(
    name: str, failure: BaseException, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, equal: Any
) -> None:
    old = gp.Graph.from_edgelist([0, 1], [1, 2])
    old.save(tmp_path / name)
    before = sorted(tmp_path.iterdir())
    real_replace, graph = os.replace, large_graph()

    def fail(source: Any, target: Any) -> None:
        assert Path(source).stat().st_size > 0
        raise failure

    monkeypatch.setattr("os.replace", fail)
    expected = "No space left on device; no partial file remains" if isinstance(failure, OSError) else None
    with pytest.raises(WriteError if isinstance(failure, OSError) else KeyboardInterrupt, match=expected):
        graph.save(tmp_path / name)
    monkeypatch.setattr("os.replace", real_replace)
    assert sorted(tmp_path.iterdir()) == before
    assert equal(gp.read_graph(tmp_path / name), old)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_open = open
    monkeypatch.setattr(
        "builtins.open", lambda path, mode="r": real_open("/dev/full", "wb") if mode == "xb" else real_open(path, mode)
    )
    with pytest.raises(WriteError, match="No space left on device"):
        large_graph().save(tmp_path / "a.el")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("check", [check_output, gp.Graph.from_edgelist([0], [1]).save])
def test_invalid_targets(check: Callable[[Path], None], tmp_path: Path) -> None:
    (tmp_path / "folder.el").mkdir()
    with pytest.raises(WriteError, match="is a folder"):
        check(tmp_path / "folder.el")
    with pytest.raises(WriteError, match="does not exist: create it first"):
        check(tmp_path / "missing" / "a.el")
    os.mkfifo(tmp_path / "pipe.el")
    with pytest.raises(WriteError, match="is not a regular file"):
        check(tmp_path / "pipe.el")
    assert stat.S_ISFIFO((tmp_path / "pipe.el").stat().st_mode)
    with pytest.raises(FormatError, match="unknown suffix"):
        check(tmp_path / "a.docx")


def test_links_are_followed(tmp_path: Path, equal: Any) -> None:
    graph = gp.Graph.from_edgelist([0], [1])
    (tmp_path / "link.el").symlink_to(tmp_path / "real.el")
    graph.save(tmp_path / "link.el")
    assert (tmp_path / "link.el").is_symlink()
    assert equal(gp.read_graph(tmp_path / "real.el"), graph)


def test_pipes_can_be_read(tmp_path: Path, edges: Any) -> None:
    reading, writing = os.pipe()
    os.write(writing, b"0 1\n1 2\n")
    os.close(writing)
    try:
        assert edges(gp.read_graph(f"/dev/fd/{reading}", "edgelist")) == [(0, 1), (1, 2)]
    finally:
        os.close(reading)


def test_named_pipes_are_opened_once(tmp_path: Path) -> None:
    path = tmp_path / "pipe.el"
    os.mkfifo(path)
    writer = subprocess.Popen(["bash", "-c", 'printf "0 1\\n1 2\\n" > "$0"', str(path)])
    program = f"import gpu_pregel as gp; print(gp.read_graph({str(path)!r}).num_stored_edges)"
    try:
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    finally:
        writer.kill()
        writer.wait()
    assert done.stdout == "4\n"


# METIS files are undirected.
@pytest.mark.parametrize(
    ("name", "directed"), [(name, directed) for name in NAMES for directed in (False, True)[: 1 + (name != "a.graph")]]
)
def test_round_trip_of_every_format(name: str, directed: bool, tmp_path: Path, equal: Any) -> None:
    graph = gp.uniform(8, edge_factor=4, seed=3)
    if directed:
        src, dst, _ = graph.to_edgelist()
        graph = gp.Graph.from_edgelist(src, dst, num_vertices=graph.num_vertices, directed=True)
    graph.save(tmp_path / name)
    read = gp.read_graph(tmp_path / name, directed=directed)
    assert read.is_directed == directed
    assert np.array_equal(read.indices, graph.indices)


def test_reading_imports_no_pandas(tmp_path: Path) -> None:
    """Arrow imports pandas for some conversions, which takes longer than reading most files."""
    names = [name for name in NAMES if name != "a.parquet"]
    for name in names:
        gp.Graph.from_edgelist([0, 1], [1, 2]).save(tmp_path / name)
    code = f"import sys, gpu_pregel as gp\nfor name in {names}: gp.read_graph(name)\nassert 'pandas' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True)
