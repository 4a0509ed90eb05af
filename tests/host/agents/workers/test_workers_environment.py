"""The environment of compute functions in worker processes: output, paths, variables, and limits."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest

import gpu_pregel as gp
import gpu_pregel.agents as agents
from gpu_pregel.agents import RetryPolicy, Vertex
from gpu_pregel.errors import ArgumentError
from gpu_pregel.host.agents.workers import pool
from gpu_pregel.host.agents.workers.output import MAX_LINE, AttemptOutput, LineSplitter
from tests.agents import FEW, ONCE

pytestmark = pytest.mark.usefixtures("one_run_id")


def test_output_and_log_lines_name_worker_vertex_and_attempt(
    capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    length = MAX_LINE + 7

    def compute(ctx: Any) -> None:
        import logging
        import subprocess
        import sys

        print("out", ctx.vertex_id, end="")
        print("err", file=sys.stderr)
        subprocess.run(["echo", "from a program"], check=True)
        if ctx.vertex_id == "b":
            logging.getLogger("of.a.test").info("logged %d", 7)
            logging.getLogger("of.a.test").debug("not wanted")
        elif ctx.attempt == 2:
            logging.getLogger("of.a.test").info("x" * length)
        if ctx.attempt == 1:
            raise ValueError
        ctx.vote_to_halt()

    with caplog.at_level(logging.INFO, "of.a.test"):
        agents.run([Vertex("a"), Vertex("b")], compute, workers=1, retry=RetryPolicy(wait=0))
    captured = capsys.readouterr()
    lines = captured.err.splitlines()
    assert captured.out == ""
    for vertex in "ab":
        for attempt in (1, 2):
            where = f"[worker 0, vertex {vertex!r}, attempt {attempt}]"
            assert f"{where} out {vertex}" in lines
            assert f"{where} err" in lines
            assert f"{where} from a program" in lines
    assert [record.getMessage() for record in caplog.records] == [
        "[worker 0, vertex 'b', attempt 1] logged 7",
        f"[worker 0, vertex 'a', attempt 2] {'x' * MAX_LINE}",
        "[worker 0, vertex 'b', attempt 2] logged 7",
    ]


def test_output_of_async_attempts_names_them(capsys: pytest.CaptureFixture[str]) -> None:
    async def compute(ctx: Any) -> None:
        import asyncio

        await asyncio.sleep(0.01)
        await asyncio.to_thread(print, "of", ctx.vertex_id)
        print("begun ", end="")
        await asyncio.sleep(0.01)
        print("and ended, not yet ", end="")
        if ctx.vertex_id == 0:
            await asyncio.sleep(0.3)
            print("but now", end="")
        ctx.vote_to_halt()

    agents.run([Vertex(k) for k in range(3)], compute, workers=1)
    lines = capsys.readouterr().err.splitlines()
    own = [f"[worker 0, vertex {k}, attempt 1]" for k in range(3)]
    assert lines[-1] == f"{own[0]} begun and ended, not yet but now"
    expected = [f"{own[k]} of {k}" for k in range(3)] + [f"{own[k]} begun and ended, not yet " for k in (1, 2)]
    assert sorted(lines[:-1]) == sorted(expected)


def test_much_output_does_not_block() -> None:
    def compute(ctx: Any) -> None:
        print("x" * 3_000_000)
        ctx.vote_to_halt()

    assert agents.run([Vertex(k) for k in range(2)], compute, workers=2).status == "completed"


def test_output_without_newlines_is_divided_into_lines_that_fit_into_memory() -> None:
    splitter = LineSplitter()
    lines = [line for _ in range(40) for line in splitter.add(b"x" * 65_536)]
    assert [len(line) for line in lines] == [MAX_LINE, MAX_LINE]
    assert [len(line) for line in splitter.add(b"\nnext\nlast")] == [40 * 65_536 - 2 * MAX_LINE, 4]
    assert splitter.end() == [b"last"]
    assert splitter.end() == []


def test_a_worker_divides_long_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []

    def write(_fd: int, data: Any) -> int:
        written.append(bytes(data))
        return len(data)

    output = AttemptOutput(1, lambda: None)
    monkeypatch.setattr(os, "write", write)
    for _ in range(20):
        output.write("x" * 65_536)
    output.write("end\nnext")
    output.end_all()
    assert b"".join(written) == b"x" * MAX_LINE + b"\n" + b"x" * 65_536 * 4 + b"end\nnext\n"
    assert len(written) == 3


SCRIPT = """
    import gpu_pregel.agents as agents

    class Helper:
        factor = 2

    def compute(ctx):
        ctx.value = Helper.factor * sum(ctx.messages)
        if ctx.superstep == 0:
            ctx.send_to_neighbors(21)
        ctx.vote_to_halt()

    print(agents.run([agents.Vertex("a", 0, ["b"]), agents.Vertex("b", 0)], compute, workers=2).values)
"""


@pytest.mark.parametrize("how", ["stdin", "script", "command"])
def test_workers_start_from(how: str, tmp_path: Path) -> None:
    text = textwrap.dedent(SCRIPT)
    script = tmp_path / "script.py"
    script.write_text(text)
    command = {"stdin": [sys.executable, "-"], "script": [sys.executable, str(script)]}
    done = subprocess.run(
        command.get(how, [sys.executable, "-c", text]),
        input=text if how == "stdin" else "",
        capture_output=True,
        text=True,
        timeout=200,
        check=True,
        cwd=Path(__file__).parents[4],
        env={**__import__("os").environ, "PYTHONPATH": str(Path(__file__).parents[4])},
    )
    assert done.stdout == "{'a': 0, 'b': 42}\n"
    assert done.stderr == ""


DAEMON = """
    import sys
    import threading

    import gpu_pregel as gp

    def compute(ctx):
        ctx.value += 1

    def run():
        vertices = [gp.agents.Vertex(k, 0) for k in range(50)]
        gp.agents.run(vertices, compute, store=store, run_id="run", workers=2, observer=note)

    def note(event):
        if event.kind == "commit" and event.superstep == 3:
            has_begun.set()

    store, has_begun = gp.SQLiteStore(sys.argv[1]), threading.Event()
    threading.Thread(target=run, daemon=True).start()
    has_begun.wait()
"""


def test_a_program_may_end_while_a_daemon_thread_computes_with_workers(tmp_path: Path) -> None:
    """Silently, with the store not closed, and what it has committed is there."""
    path = tmp_path / "runs.db"
    command = [sys.executable, "-c", textwrap.dedent(DAEMON), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=True)
    assert (done.stdout, done.stderr) == ("", "")
    with gp.SQLiteStore(path) as store:
        state = agents.state_at(store, "run")
        assert {one.value for one in state.vertices.values()} == {state.superstep}


def test_workers_have_the_environment_and_paths_of_the_master(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "module_of_a_test.py").write_text("ANSWER = 42\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("PYTHONPATH", "/of/a/test")
    monkeypatch.setattr(pool, "registered", dict)  # types of other tests may need NumPy
    monkeypatch.setenv("A_TEST", "yes")

    def compute(ctx: Any) -> None:
        import os
        import signal
        import sys

        import module_of_a_test  # type: ignore[import-not-found]

        ignores = signal.getsignal(signal.SIGINT) == signal.SIG_IGN
        numeric = any(
            name in sys.modules for name in ("numpy", "numba", "scipy", "pyarrow", "gpu_pregel.host.programs.compiler")
        )
        group = os.getpgid(0) == os.getpid()
        environment = [os.environ[name] for name in ("PYTHONPATH", "A_TEST", "PYTHONHASHSEED")]
        ctx.value = [module_of_a_test.ANSWER, sys.path, environment, os.getcwd(), ignores, numeric, group]
        ctx.vote_to_halt()

    [value] = agents.run([Vertex(0)], compute, workers=1).values.values()
    assert value == [42, sys.path, ["/of/a/test", "yes", "0"], str(Path.cwd()), True, False, True]


def test_max_memory_limits_a_worker() -> None:
    def compute(ctx: Any) -> None:
        if ctx.vertex_id == 1:
            ctx.value = len(bytes(1 << 31))
        ctx.vote_to_halt()

    result = agents.run(
        [Vertex(k) for k in range(3)], compute, workers=2, max_memory=1 << 30, on_failure="continue", retry=ONCE
    )
    assert {key: (one.kind, one.type) for key, one in result.failed.items()} == {1: ("limit", "MemoryError")}


@FEW
def test_the_text_of_an_exception_is_limited(workers: int) -> None:
    def compute(ctx: Any) -> None:
        raise ValueError("begins " + "x" * 5_000_000 + " ends")

    result = agents.run([Vertex(0)], compute, workers=workers, on_failure="continue", retry=ONCE)
    text = result.failed[0].text
    assert text.startswith("begins xxx")
    assert text.endswith("xxx ends")
    assert "4,934,476 characters left out" in text
    assert len(text) + len(result.failed[0].traceback) < 140_000
    result = agents.run([Vertex(0)], compute, workers=workers, on_failure="continue", retry=ONCE, max_record=1000)
    assert len(result.failed[0].text) < 1100


@FEW
def test_max_record_limits_the_output_of_an_attempt(workers: int) -> None:
    def compute(ctx: Any) -> None:
        if ctx.vertex_id == 1:
            ctx.value = "x" * 900
            ctx.send(0, "x" * 200)
        ctx.vote_to_halt()

    result = agents.run([Vertex(k) for k in range(3)], compute, workers=workers, max_record=1000, on_failure="continue")
    assert {key: one.kind for key, one in result.failed.items()} == {1: "limit"}
    assert "1,000" in result.failed[1].text


def test_max_memory_needs_workers() -> None:
    with pytest.raises(ArgumentError, match="max_memory"):
        agents.run([Vertex(0)], lambda ctx: ctx.vote_to_halt(), max_memory=1 << 30)
