"""Tests of the command line with closed stdout or stderr, and of errors without a message."""

from __future__ import annotations

import subprocess
import sys

import pytest

from gpu_pregel import cli


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
    assert cli.main(["info"]) == 1
    assert capsys.readouterr().err == "gpu-pregel: MemoryError\n"
