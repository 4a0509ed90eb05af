"""Tests of the command line with closed stdout or stderr, errors without a message, and control characters."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from gpu_pregel.cli import main


@pytest.mark.parametrize("arguments", ["info", "cc -g 4", "cc -g 4 --json", "cc -g 4 -o -"])
def test_a_closed_stdout_does_not_crash(arguments: str) -> None:
    command = f"{sys.executable} -m gpu_pregel {arguments} >&-"
    done = subprocess.run(["bash", "-c", command], stderr=subprocess.PIPE, text=True, timeout=120)
    assert "Traceback" not in done.stderr
    assert done.returncode == 0


def test_messages_for_a_closed_stderr_do_not_go_to_stdout() -> None:
    command = f"{sys.executable} -m gpu_pregel cc -g 4 -v -o - 2>&-"
    done = subprocess.run(["bash", "-c", command], stdout=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 17
    wrong = subprocess.run(["bash", "-c", f"{command} --no-such"], stdout=subprocess.PIPE, text=True, timeout=120)
    assert (wrong.returncode, wrong.stdout) == (2, "")


def test_an_error_without_a_message_prints_its_type(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail() -> object:
        raise MemoryError

    monkeypatch.setattr("gpu_pregel.cli.info.collect", fail)
    assert main(["info"]) == 1
    assert capsys.readouterr().err == "gpu-pregel: MemoryError\n"


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["bfs", "-f", "GRAPH", "--source", "\x1b[2J"], r"--source \x1b[2J: no vertex of the graph has this id"),
        (["cc", "-f", "no\x1b]0;title\x07\nway.el"], r"gpu-pregel: no\x1b]0;title\x07\nway.el: no such file"),
        (["convert", "GRAPH", "a.\x1b[31m"], r"a.\x1b[31m: "),
        (["cc", "-g", "4", "\x9b2J"], r"unrecognized arguments: \x9b2J"),
        (["run", "GRAPH:\u202e", "-g", "4"], r"GRAPH:\u202e"),
        (["cc", "-f", "GRAPH", "-o", "-"], r"graph       GRAPH: 2 vertices"),
    ],
)
def test_control_characters_in_messages_are_escaped(
    arguments: list[str], expected: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Those of ids, names of files and unknown arguments; a terminal would obey them."""
    path = tmp_path / "red\x1b[31m.el"
    path.write_text("0 1\n")
    with suppress(SystemExit):
        main([argument.replace("GRAPH", str(path)) for argument in arguments])
    err = capsys.readouterr().err
    assert all(line.isprintable() for line in err.splitlines())
    assert expected.replace("GRAPH", str(path).replace("\x1b", r"\x1b")) in err


def test_names_of_copied_examples_are_escaped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["examples", "bfs", "--copy", str(tmp_path / "\x1b[2J")]) == 0
    assert capsys.readouterr().out == f"{tmp_path}/\\x1b[2J/bfs.py\n"


def test_the_folder_of_the_cache_is_escaped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("gpu_pregel.cli.info._cache_folder", lambda: "\x1b[2J")
    assert main(["info"]) == 0
    out = capsys.readouterr().out
    assert r"\x1b[2J" in out
    assert "\x1b" not in out
