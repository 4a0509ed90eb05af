"""``gpu-pregel agents serve``: real processes that are killed and stopped, log lines, errors and exit statuses."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import gpu_pregel as gp
from gpu_pregel.cli import main
from gpu_pregel.cli._programs import load_agents
from gpu_pregel.host.stores.store import Store
from tests.agents import ONCE
from tests.devices import LONG
from tests.postgres import Cluster

ROOT = Path(gp.__file__).parents[1]
SECONDS = 60
"""How long a process may take."""
MODULE = """
import os, time
from pathlib import Path

FOLDER = Path(__file__).parent

def count(ctx):
    "Add 1 five times; the second superstep waits until there is a file named gate."
    with open(FOLDER / "log", "a") as file:
        file.write(f"{ctx.superstep}\\n")
    if ctx.superstep == 1:
        (FOLDER / "reached").touch()
        while not (FOLDER / "gate").exists():
            time.sleep(0.005)
    print("counted")
    ctx.value += 1
    if ctx.value == 5:
        ctx.vote_to_halt()

def fail(ctx):
    raise ValueError("not\\ntoday")

def direct(m):
    if m.superstep == 1:
        m.halt()

directed = {"compute": count, "master": direct}
number = 7
"""


class Served:
    """A folder with the module ``orders``, and a store."""

    def __init__(self, folder: Path, *store: str) -> None:
        self.folder, self.store, self.schema = folder, store[0], store[1:]
        (folder / "orders.py").write_text(MODULE)

    def start(self, *arguments: str, function: str = "orders:count") -> subprocess.Popen[str]:
        """Start a supervisor."""
        command = ["-m", "gpu_pregel", "agents", "serve", function, "--store", self.store, "--interval", "0.05"]
        command += ["--schema", *self.schema] if self.schema else []
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        environment = {**os.environ, "PYTHONPATH": str(ROOT)}
        return subprocess.Popen([sys.executable, *command, *arguments], cwd=self.folder, env=environment, **pipes)

    def wait_for(self, name: str) -> None:
        """Wait until a file exists."""
        deadline = time.monotonic() + SECONDS
        while not (self.folder / name).exists():
            assert time.monotonic() < deadline, f"there is no file {name}"
            time.sleep(0.005)

    def open_gate(self) -> None:
        (self.folder / "gate").touch()

    def effects(self) -> Counter[str]:
        """The number of effects of each superstep."""
        return Counter((self.folder / "log").read_text().splitlines())

    def open(self) -> Store:
        return gp.PostgresStore(self.store, schema=self.schema[0]) if self.schema else gp.SQLiteStore(self.store)


@pytest.fixture(params=["sqlite", "postgres"])
def served(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A store with a stopped run of the function ``count``."""
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.delitem(sys.modules, "orders", raising=False)
    with ExitStack() as undo:
        if request.param == "sqlite":
            store = [str(tmp_path / "runs.db")]
        else:
            cluster: Cluster = request.getfixturevalue("cluster")
            store = [f"postgresql://postgres@/postgres?host={quote(str(cluster.folder), safe='')}", "served"]
            undo.callback(cluster.execute, "DROP SCHEMA IF EXISTS served CASCADE")
        found = Served(tmp_path, *store)
        begin(found, "run")
        yield found
        sys.modules.pop("orders", None)


def in_stores(name: str, **values: Any) -> pytest.MarkDecorator:
    """Run a test with one value in each store, and with the others if all variants run."""
    cases = [(store, value) for store in values for value in values.values()]
    marked = [pytest.param(*case, marks=() if case in values.items() else LONG) for case in cases]
    return pytest.mark.parametrize(("served", name), marked, indirect=["served"])


only_sqlite = pytest.mark.parametrize("served", ["sqlite"], indirect=True)


def begin(served: Served, run_id: str, function: str = "count", **options: Any) -> None:
    """Start a run and stop it before its first superstep."""
    compute = load_agents("orders", function)["compute"]
    with served.open() as store:
        gp.agents.start([gp.agents.Vertex("a", 0)], compute, store=store, run_id=run_id, **options).stop()


def finish(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Return the exit status, standard output and standard error of a process."""
    out, err = process.communicate(timeout=SECONDS)
    return process.returncode, out, err


def row(served: Served, run_id: str = "run") -> tuple[str, int, bool]:
    """Return status, head, and whether the run has no owner."""
    with served.open() as store:
        found = store.run(run_id)
        return found.status, found.head, found.lease == 0


@in_stores("workers", sqlite="0", postgres="1")
def test_another_supervisor_continues_after_sigkill(served: Served, workers: str) -> None:
    killed = served.start("--workers", workers)
    served.wait_for("reached")
    killed.kill()
    finish(killed)
    assert row(served) == ("running", 0, False)
    served.open_gate()
    status, out, err = finish(served.start("--workers", workers, "--once"))
    assert (status, out.replace("counted\n", "")) == (0, ""), err
    assert row(served) == ("completed", 4, True)
    with served.open() as store:
        assert gp.agents.state_at(store, "run").values == {"a": 5}
        assert [commit.epoch for commit in store.history("run")] == [2] + [3] * 4
    assert served.effects() == {"0": 1, "1": 2, "2": 1, "3": 1, "4": 1}


@in_stores("number", sqlite=signal.SIGINT, postgres=signal.SIGTERM)
def test_a_signal_ends_it_after_the_superstep(served: Served, number: signal.Signals, interrupts: None) -> None:
    process = served.start("--json")
    served.wait_for("reached")
    process.send_signal(number)
    assert process.stdout is not None
    lines = [json.loads(process.stdout.readline()) for _ in range(3)]
    assert [one["kind"] for one in lines] == ["start", "claim", "stop"]
    served.open_gate()
    status, out, err = finish(process)
    assert (status, err) == (0, "counted\n" * 2)
    assert [json.loads(line)["kind"] for line in out.splitlines()] == ["release", "end"]
    assert row(served) == ("stopped", 1, True)
    assert served.effects() == {"0": 1, "1": 1}


@only_sqlite
def test_a_second_signal_ends_it_at_once(served: Served, interrupts: None) -> None:
    process = served.start("--json")
    served.wait_for("reached")
    process.send_signal(signal.SIGINT)
    assert process.stdout is not None
    while json.loads(process.stdout.readline())["kind"] != "stop":
        pass
    process.send_signal(signal.SIGINT)
    status, _, err = finish(process)
    assert (status, err) == (130, "counted\ngpu-pregel: interrupted\n")
    assert row(served) == ("stopped", 0, True)


@only_sqlite
def test_two_supervisors_share_the_runs(served: Served) -> None:
    served.open_gate()
    names = ["run", *(f"run {k}" for k in range(5))]
    for name in names[1:]:
        begin(served, name)
    ends = [finish(one) for one in [served.start("--once", "--json", "--concurrency", "2") for _ in range(2)]]
    assert [status for status, _, _ in ends] == [0, 0]
    events = [json.loads(line) for _, out, _ in ends for line in out.splitlines()]
    assert sorted(one["run"] for one in events if one["kind"] == "release") == names
    assert {one["kind"] for one in events} == {"start", "claim", "release", "end"}
    assert served.effects() == dict.fromkeys("01234", 6)


# In this process


def serve(served: Served, *arguments: str, function: str = "orders:count") -> int:
    return main(["agents", "serve", function, "--store", served.store, "--once", *arguments])


@pytest.fixture
def here(served: Served, monkeypatch: pytest.MonkeyPatch) -> Served:
    """The same with an open gate, in this process."""
    monkeypatch.chdir(served.folder)
    served.open_gate()
    return served


@only_sqlite
def test_log_lines(here: Served, capsys: pytest.CaptureFixture[str]) -> None:
    begin(here, "bad", "fail", retry=ONCE)
    assert serve(here, "--run", "run") == 0
    told = capsys.readouterr()
    assert told.out == ""
    lines = [line[20:] for line in told.err.splitlines() if line != "counted"]
    assert lines == [
        f"serving orders:count in {here.store} (runs at once: 4)",
        "run run, superstep 0: continued (stopped before)",
        "run run, superstep 5: completed",
        "ended (runs: 1 completed)",
    ]
    assert serve(here, function="orders:fail") == 1
    lines = [line[20:] for line in capsys.readouterr().err.splitlines()]
    assert lines[1:] == [
        "run bad, superstep 0: continued (stopped before)",
        r"run bad, superstep 0, vertex 'a': failed: ValueError: not\ntoday",
        "run bad, superstep 0: failed",
        "ended (runs: 1 failed)",
    ]


@only_sqlite
def test_json_lines(here: Served, capsys: pytest.CaptureFixture[str]) -> None:
    assert serve(here, "--json", "--verbose", "--max-supersteps", "2") == 0
    events = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    superstep = ["superstep", "attempt", "commit"]
    assert [one.pop("kind") for one in events] == ["start", "claim", *superstep * 2, "end", "release", "end"]
    assert all(one.pop("time") > 1e9 for one in events)
    assert events[0] == {"function": "orders:count", "store": here.store, "concurrency": 4}
    assert events[1] == {"run": "run", "superstep": 0, "status": "stopped"}
    assert events[3] == {"run": "run", "superstep": 0, "vertex": "a", "attempt": 1, "status": "completed"}
    assert events[-2:] == [{"run": "run", "superstep": 2, "status": "max_supersteps"}, {"left": {"max_supersteps": 1}}]


@only_sqlite
def test_a_mapping_of_arguments(here: Served, capsys: pytest.CaptureFixture[str]) -> None:
    begin(here, "halts", master=load_agents("orders", "directed")["master"])
    assert serve(here, "--run", "halts") == 1
    told = capsys.readouterr().err
    assert "cannot continue" in told
    assert "was started with master=direct, but functions and exceptions are not stored: pass master again" in told
    assert "or --override master to continue without it" in told
    assert serve(here, "--run", "halts", function="orders:directed") == 0
    assert row(here, "halts") == ("halted", 1, True)


@only_sqlite
def test_runs_of_other_functions_are_left_alone(here: Served, capsys: pytest.CaptureFixture[str]) -> None:
    assert serve(here, function="orders:fail") == 0
    assert (
        "run run, superstep 0: was started with orders:count, not orders:fail: it is left alone; pass --override "
        "compute to continue such runs\n"
    ) in capsys.readouterr().err
    assert serve(here, "--override", "compute", function="orders:fail") == 1
    assert row(here)[0] == "failed"


@only_sqlite
@pytest.mark.parametrize(
    ("arguments", "status", "problem"),
    [
        (["nowhere:count"], 1, "there is no module nowhere: pass the name of one in the current folder"),
        (["orders.shop:count"], 1, "there is no module orders.shop"),
        (["orders:nothing"], 1, "orders does not define nothing; it defines count, fail, direct"),
        (["planned:app"], 1, "app in planned is a state graph, whose threads its own invoke(None, config) continues"),
        (["orders:number"], 1, "number in orders is of type int: name a compute function, or a dict of arguments"),
        (["broken:count"], 1, "broken: ZeroDivisionError: division by zero"),
        (["lacking:count"], 1, "lacking: ModuleNotFoundError: No module named 'nowhere'"),
        (["orders:count", "--store", "none.db"], 1, "none.db: does not exist"),
        (["orders:count", "--schema", "other"], 2, "--schema is that of a store in PostgreSQL, and "),
        (["orders:count", "--timeout", "5"], 2, "--timeout 5.0 cannot be enforced with --workers 0"),
        (
            ["orders:count", "--workers", "1", "--threads", "2"],
            2,
            "--threads 2 are threads of this process, but --workers",
        ),
        (["orders:count", "--override", "nothing"], 2, "--override must be"),
    ],
)
def test_errors(
    here: Served, arguments: list[str], status: int, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (here.folder / "broken.py").write_text("1 / 0")
    (here.folder / "lacking.py").write_text("import nowhere")
    (here.folder / "planned.py").write_text(
        "from gpu_pregel.workflows import START, GraphState, StateGraph\n"
        "app = StateGraph(GraphState).add_node('a', lambda state: None).add_edge(START, 'a').compile()"
    )
    assert main(["agents", "serve", "--store", here.store, "--once", *arguments]) == status
    assert problem in capsys.readouterr().err
    assert row(here) == ("stopped", -1, True)


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["orders"], "'orders' is not of the form MODULE:FUNCTION, such as orders:compute"),
        (["shop/orders.py:count"], "names a file: pass its module, such as shop.orders:count"),
        (["orders:count", "--interval", "0"], "'0' is not a number of seconds above 0"),
        (["orders:count", "--lease", "soon"], "'soon' is not a number of seconds above 0"),
        (["orders:count", "--concurrency", "0"], "0 is below 1"),
    ],
)
def test_usage_errors(arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["agents", "serve", "--store", "runs.db", *arguments])
    assert ended.value.code == 2
    assert problem in capsys.readouterr().err


class FullStream(io.StringIO):
    """Output that cannot be written."""

    def write(self, text: str) -> int:
        raise OSError(f"no space for {len(text)} characters")


@pytest.mark.parametrize(("options", "stream"), [(["--json"], "stdout"), ([], "stderr")])
def test_a_closed_output_ends_it(
    options: list[str], stream: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without a signal, it would wait for runs for ever."""
    (tmp_path / "orders.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    gp.SQLiteStore("runs.db").close()
    monkeypatch.setattr(sys, stream, FullStream())
    assert main(["agents", "serve", "orders:count", "--store", "runs.db", *options]) == 1
