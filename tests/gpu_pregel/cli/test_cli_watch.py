"""``gpu-pregel runs STORE watch`` and ``show --html``: follow runs of this and other programs, and write pages."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
import gpu_pregel.agents as agents
from gpu_pregel.agents import RetryPolicy, Timeline, Vertex
from gpu_pregel.cli import _watch, main
from gpu_pregel.errors import AgentsFailedError
from gpu_pregel.workflows.run_watcher import Happening, RunWatcher
from tests.gpu_pregel.workflows.page.runs_to_show import make_held, options, work


@pytest.fixture
def path(tmp_path: Path) -> str:
    """A store with a held run, which was recorded, and runs that were not: a failed one and a numeric one."""

    def fail(ctx: Any) -> None:
        if ctx.superstep == 1:
            raise KeyError("missing\x1b[2J")
        ctx.send(ctx.vertex_id, "input")

    smallest = gp.VertexProgram(
        value=np.int64,
        init=lambda ctx: ctx.vertex,
        message=lambda value, ctx: value,
        combine="min",
        apply=lambda value, incoming, ctx: min(value, incoming),
    )
    name = str(tmp_path / "runs.db")
    with gp.SQLiteStore(name) as store:
        make_held(store)
        with pytest.raises(AgentsFailedError):
            agents.run([Vertex("a")], fail, store=store, run_id="failed", retry=RetryPolicy(attempts=2, wait=0))
        graph = gp.Graph.from_edgelist([0, 1], [1, 2])
        gp.run(graph, smallest, device="python", checkpoint=gp.Checkpoint(store, "numeric"))
    return name


def lines(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 0) -> list[str]:
    assert main(["runs", *arguments]) == status
    return [line for line in capsys.readouterr().out.splitlines() if " begin" not in line]


def test_a_recorded_run(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = lines(capsys, path, "watch", "held", "--all", status=1)
    assert found[0] == "run held (agents): interrupted, 2 supersteps committed"
    assert found[1].startswith("superstep 0: plan, attempt 1 emits: first </script>")
    assert found[2].startswith("superstep 0: committed, 1 computed, 2 active, 2 sent, ")
    assert found[3].startswith("superstep 1: search 2, attempt 1 failed and is tried again: no answer")
    assert found[4].startswith("superstep 1: committed, 2 computed, 1 active, 2 sent, 1 tried again, ")
    assert found[5].startswith("superstep 2: ask asks {question: 'publish?")
    assert found[6:] == ["superstep 2 is held: interrupted", "run held: interrupted after 2 supersteps"]


@pytest.mark.parametrize(
    ("active", "text"), [(1, "1 vertex begins"), (1200, "1,200 vertices begin"), (None, "all vertices begin")]
)
def test_how_many_vertices_begin(active: int | None, text: str) -> None:
    assert _watch.sentence(Happening("superstep", 3, facts={"active": active})) == f"superstep 3: {text}"


def test_runs_that_were_not_recorded(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = lines(capsys, path, "watch", "failed", "--all", status=1)
    assert found[0] == "run failed (agents): failed, 1 supersteps committed"
    assert found[1].startswith("superstep 0: committed, 1 computed, 1 active, 1 sent")
    assert found[2:] == [
        "superstep 1: a, attempt 2 failed: KeyError: 'missing\\x1b[2J'",
        "superstep 1 is held: failed",
        "run failed: failed after 1 supersteps",
    ]
    found = lines(capsys, path, "watch", "numeric", "--all")
    assert [line.partition(", ")[0] for line in found[1:-1]] == [
        f"superstep {k}: committed" for k in range(len(found) - 2)
    ]
    assert "init" in found[1]
    assert found[-1].startswith("run numeric: completed after ")
    assert lines(capsys, path, "watch", "numeric")[1:-1] == []


def test_lines_of_json(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = [json.loads(line) for line in lines(capsys, path, "watch", "held", "--all", "--json", status=1)]
    assert [one["kind"] for one in found] == [
        *("run", "superstep", "emit", "commit", "superstep", "retry", "commit", "superstep", "question", "hold", "end")
    ]
    assert found[5]["vertex"] == "search 2"
    assert found[-1] == {"kind": "end", "run": "held", "status": "interrupted", "superstep": 1}


@pytest.mark.parametrize("is_recorded", [True, False])
def test_a_run_is_followed_to_its_end(is_recorded: bool) -> None:
    """Each look tells what is new, whatever happens between two of them; all of it is told once."""
    store = gp.MemoryStore()
    given = options(store) if is_recorded else {**options(store), "observer": ()}
    make = [Vertex("plan", None, ["search 1"]), *(Vertex(f"search {k}", None, ["ask"], halted=True) for k in (1, 2))]
    told: list[Happening] = []
    with agents.start([*make, Vertex("ask", halted=True)], work, run_id="run", **given) as run:
        watcher = RunWatcher(store, "run", from_start=False)
        for _ in range(3):
            run.step()
            told += watcher.look()
            assert not watcher.is_over  # this program has it
        run.answer("ask", "yes")
        while run.step():
            told += watcher.look()
    told += watcher.look()
    assert watcher.is_over
    told += watcher.finish()
    kinds = [(one.superstep, one.kind) for one in told if one.kind not in ("superstep", "emit")]
    assert kinds == [
        (0, "commit"),
        (1, "retry"),
        (1, "commit"),
        (2, "question"),
        (2, "hold"),
        (2, "commit"),
        (3, "commit"),
    ]
    assert [one.facts["computed"] for one in told if one.kind == "commit"] == [1, 2, 1, 1]
    assert sum(one.kind == "emit" for one in told) == (2 if is_recorded else 0)


_PROGRAM = """
import sys, time
import gpu_pregel as gp
from gpu_pregel.agents import *
def work(ctx):
    ctx.emit(f"token {ctx.superstep}")
    time.sleep(0.02)
    if ctx.superstep == int(sys.argv[2]):
        ctx.vote_to_halt()
with gp.SQLiteStore(sys.argv[1]) as store:
    timeline = Timeline(store)
    with start([Vertex("a")], work, store=store, run_id="run", observer=timeline, max_supersteps=None) as run:
        print("ready", flush=True)
        sys.stdin.readline()
        while run.step():
            pass
"""


@pytest.fixture
def other(tmp_path: Path) -> Any:
    """Starts a program that has begun a run and waits for a line."""
    started = []

    def start(last: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", _PROGRAM, str(tmp_path / "other.db"), str(last)]
        process = subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        started.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


def begin(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def test_a_run_of_another_program(other: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    process, path, page = other(10), str(tmp_path / "other.db"), tmp_path / "page.html"
    threading.Timer(1.0, begin, [process]).start()
    found = lines(capsys, path, "watch", "run")
    assert found[0] == "run run (agents): running, 0 supersteps committed"
    assert [line.partition(",")[0] for line in found if "committed," in line] == [
        f"superstep {k}: committed" for k in range(11)
    ]
    assert [line for line in found if "emits" in line] == [
        f"superstep {k}: a, attempt 1 emits: token {k}" for k in range(11)
    ]
    assert found[-1] == "run run: completed after 11 supersteps"
    assert main(["runs", path, "show", "run", "--html", str(page), "--refresh", "0.2"]) == 0
    assert '"refresh"' not in page.read_text()


def test_a_program_that_was_killed(other: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    process, path = other(1 << 30), str(tmp_path / "other.db")
    begin(process)
    threading.Timer(0.4, process.kill).start()
    found = lines(capsys, path, "watch", "run", status=1)
    assert found[-2].endswith("no program has the run any more; resume it")
    assert found[-1].startswith("run run: running after ")


def test_ctrl_c_leaves_the_run_alone(other: Any, tmp_path: Path) -> None:
    """Of ``watch``, and of a page that is refreshed, which then no longer loads itself."""
    process, path, page = other(1 << 30), str(tmp_path / "other.db"), tmp_path / "page.html"
    begin(process)
    for arguments in (["watch", "run"], ["show", "run", "--html", str(page), "--refresh", "0.2"]):
        command = [sys.executable, "-m", "gpu_pregel", "runs", path, *arguments]
        watching = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
        assert watching.stdout is not None
        if arguments[0] == "watch":
            watching.stdout.readline()
        else:
            until = time.monotonic() + 60
            while not page.exists() and time.monotonic() < until:
                time.sleep(0.02)
            assert '"refresh":0.2' in page.read_text()
        os.kill(watching.pid, signal.SIGINT)
        _, err = watching.communicate(timeout=60)
        assert (watching.returncode, err.decode().strip()) == (130, "gpu-pregel: interrupted")
    assert '"refresh"' not in page.read_text()
    assert process.poll() is None
    with gp.SQLiteStore(path, read_only=True) as store:
        head = store.run("run").head
        until = time.monotonic() + 60
        while store.run("run").head == head and time.monotonic() < until:
            time.sleep(0.02)
        assert store.run("run").head > head


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize("has_colours", [True, False])
def test_terminals(has_colours: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Texts of an attempt continue their line; what comes from a run cannot control the terminal."""
    monkeypatch.delenv("NO_COLOR", raising=False)
    if not has_colours:
        monkeypatch.setenv("NO_COLOR", "1")
    out = Terminal()
    printer = _watch.Printer(out, as_json=False)
    monkeypatch.setattr(printer, "_begun", time.monotonic() - 5)
    printer._superstep = 3
    printer.wait(3)
    for text in ("one ", "two\x1b[2J"):
        printer.show(Happening("emit", 3, "a", 1, {"text": text}))
    printer.wait(3)
    printer.show(Happening("failure", 3, "a", 1, {"type": "KeyError", "text": "x"}))
    expected = "\r\x1b[K… superstep 3, 5 s\r\x1b[K<36>a │ <0>one two\\x1b[2J\n"
    expected += "<31>superstep 3: a, attempt 1 failed: KeyError: x<0>\n"
    for code in ("36", "31", "0"):
        expected = expected.replace(f"<{code}>", f"\x1b[{code}m" if has_colours else "")
    assert out.getvalue() == expected


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["show", "held", "--refresh", "2"], "--refresh is how often the page is written: pass --html FILE as well"),
        (["show", "held", "--html", "FOLDER"], "is a folder: pass a file"),
        (["show", "held", "--html", "FOLDER/none/page.html"], "does not exist: create it first"),
        (["show", "held", "--html", "page.html", "--values"], "--values prints, and --html writes a page"),
        (["show", "held", "--html", "page.html", "--json"], "--json prints, and --html writes a page"),
        (["show", "nobody", "--html", "FOLDER/page.html"], "no run 'nobody'"),
        (["watch", "nobody"], "no run 'nobody'"),
    ],
)
def test_errors(
    path: str, tmp_path: Path, arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["runs", path, *(one.replace("FOLDER", str(tmp_path)) for one in arguments)]) == 2
    assert problem in capsys.readouterr().err
    assert not list(tmp_path.glob("*.html"))


@pytest.mark.parametrize("text", ["0", "0.1", "x", "nan", "1e9"])
def test_wrong_times_between_refreshes(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["runs", "runs.db", "show", "held", "--html", "page.html", "--refresh", text])
    assert "is not a number of seconds from 0.2" in capsys.readouterr().err


def test_a_page_that_cannot_be_written_leaves_the_old_one(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    assert main(["runs", path, "show", "held", "--html", str(page)]) == 0
    before = page.read_bytes()
    assert capsys.readouterr() == ("", f"write       {page}\n")

    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    assert main(["runs", path, "show", "held", "--html", str(page)]) == 1
    assert "No space left on device; no partial file remains" in capsys.readouterr().err
    assert page.read_bytes() == before
    assert [one.name for one in tmp_path.glob("*page*")] == ["page.html"]


def test_serving_can_record(tmp_path: Path) -> None:
    """``agents serve --record`` adds a timeline to the observers of each run."""
    program, path = tmp_path / "orders_to_record.py", str(tmp_path / "runs.db")
    program.write_text("def compute(ctx):\n    ctx.emit('served')\n    ctx.vote_to_halt()\n")
    script = f"""if True:
        import gpu_pregel as gp
        from orders_to_record import compute
        with gp.SQLiteStore({path!r}) as store:
            gp.agents.run([gp.agents.Vertex("a")], compute, store=store, run_id="run")
            gp.agents.fork(store, "run", -1, "again")
        from gpu_pregel.cli import main
        serve = ["agents", "serve", "orders_to_record:compute", "--store", {path!r}]
        raise SystemExit(main([*serve, "--once", "--record"]))
    """
    subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=True, timeout=120, capture_output=True)
    with gp.SQLiteStore(path, read_only=True) as store:
        events = Timeline(store).read("again")
    assert [one.facts["text"] for one in events if one.kind == "emit"] == ["served"]
