"""Programs that attempts start end with their worker, in whatever session, environment and state they run."""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gpu_pregel.agents as agents
from gpu_pregel.agents import Vertex
from gpu_pregel.host.agents.workers import watchdog
from tests.agents import ONCE
from tests.host.agents.workers.worker_programs import is_alive, wait_for
from tests.worker_faults import forbid_cgroups

# Each sleeps for its own number of seconds, by which it is found.
NAMED = {"own session": "exec setsid sleep 901.{}", "daemon": "setsid sleep 902.{} & sleep 0.05"}
NAMELESS = {
    "no environment": "exec env -i sleep 903.{}",
    "forgotten daemon": "(env -i setsid sh -c 'sleep 904.{} &' &)",
}
_numbers = itertools.count()


@pytest.fixture
def tools() -> Iterator[dict[str, str]]:
    """The tools, whose numbers of seconds only this test has; those that it leaves are ended."""
    mine = {how: tool.format(f"{os.getpid()}{next(_numbers):03}") for how, tool in {**NAMED, **NAMELESS}.items()}
    yield mine
    for tool in mine.values():
        for pid in sleepers(tool):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@pytest.fixture
def cgroup(tmp_path: Path) -> str:
    """The folder of the cgroup of this process, which it may divide."""
    try:
        own = watchdog.own_cgroup()
        os.mkdir(trial := f"{own}/{tmp_path.name}.{os.getpid()}")
        os.rmdir(trial)
    except OSError as error:
        pytest.skip(f"this process may not divide its cgroup: {error}")
    return own


@pytest.mark.parametrize(
    ("found_by", "end"),
    [
        ("cgroup", "timeout"),
        ("cgroup", "death"),
        ("cgroup", "close"),
        ("parents", "timeout"),
        ("parents", "close"),
        ("parents", "death"),  # only by its environment, as it has no parents left
    ],
)
def test_tools_end_with_the_worker_that_started_them(
    found_by: str,
    end: str,
    tools: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    own = request.getfixturevalue("cgroup") if found_by == "cgroup" else None
    if own is None:
        forbid_cgroups(monkeypatch)
    chosen = [tools[how] for how in (NAMED if (found_by, end) == ("parents", "death") else tools)]
    go = str(tmp_path / "go")

    def compute(ctx: Any) -> None:
        import os
        import subprocess
        import time

        for tool in chosen:
            subprocess.Popen(["sh", "-c", tool], start_new_session=True)
        while not os.path.exists(go):
            time.sleep(0.01)
            ctx.heartbeat()
        if end == "death":
            os._exit(3)
        if end == "timeout":
            time.sleep(600)
        ctx.vote_to_halt()

    with agents.start([Vertex(0)], compute, workers=1, timeout=1.0, retry=ONCE, on_failure="continue") as run:
        thread = threading.Thread(target=run.step)
        thread.start()
        try:
            wait_for(lambda: all(map(sleepers, chosen)))
            started = [pid for tool in chosen for pid in sleepers(tool)]
        finally:
            Path(go).touch()
            thread.join()
        if end == "close":
            assert all(map(is_alive, started))
        else:
            assert run.result().failed[0].kind == end
            wait_for(lambda: not any(map(is_alive, started)))
        if own is not None:
            assert bool(cgroups_of(run, own)) == (end == "close")
    wait_for(lambda: not any(map(is_alive, started)))
    assert own is None or not cgroups_of(run, own)


def sleepers(tool: str) -> list[int]:
    """Return the processes that sleep for as many seconds as a tool."""
    command = f"sleep\0{tool.split('sleep ')[1].split()[0]}\0".encode()
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if Path(f"/proc/{name}/cmdline").read_bytes() == command:
                found.append(int(name))
    return found


def cgroups_of(run: Any, own: str) -> list[str]:
    """Return the cgroups of the workers of a run."""
    return [name for name in os.listdir(own) if run._policy._transport._watchdog.name in name]


MASTER = """
import os, sys, time
import gpu_pregel.agents as agents

def compute(ctx):
    import os, signal, subprocess, time
    subprocess.Popen(["sh", "-c", sys.argv[1 + ctx.vertex_id]])
    print("worker", os.getpid(), flush=True)
    if ctx.vertex_id == 1:
        os.kill(os.getpid(), signal.SIGSTOP)
    time.sleep(600)

agents.run([agents.Vertex(k) for k in range(2)], compute, workers=2)
"""


@pytest.mark.parametrize("found_by", ["cgroup", "parents"])
def test_a_killed_master_leaves_no_worker_and_no_tool(
    found_by: str, tools: dict[str, str], monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """One worker sleeps, the other is stopped."""
    own = request.getfixturevalue("cgroup") if found_by == "cgroup" else None
    if own is None:
        forbid_cgroups(monkeypatch)
    chosen = [tools["forgotten daemon"], tools["no environment"]]
    root = Path(__file__).parents[4]
    paths = os.environ.get("PYTHONPATH", "")
    master = subprocess.Popen(
        [sys.executable, "-c", MASTER, *chosen],
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": f"{paths}{os.pathsep}{root}"},
    )
    assert master.stderr is not None
    before = set(os.listdir(own or "/"))
    workers: list[int] = []
    while len(workers) < 2:
        line = master.stderr.readline()
        assert line
        workers.append(int(line.split("worker ")[-1]))
    wait_for(lambda: all(map(sleepers, chosen)))
    master.kill()
    master.wait()
    wait_for(lambda: not any(map(is_alive, workers)) and not any(map(sleepers, chosen)))
    wait_for(lambda: own is None or not [name for name in set(os.listdir(own)) - before if "gpu_pregel" in name])
    master.stderr.close()


ORPHANS = """
    import os, subprocess, time
    from gpu_pregel.host.agents.workers import subprocesses
    from gpu_pregel.host.agents.workers.watchdog import children

    subprocesses.enter_cgroup = lambda name: False
    subprocesses._REAP_AFTER = 0.0
    subprocesses.Subprocesses("of a test", lambda: None, lambda: None).watch()

    def wait_for_zombies(count):
        until = time.monotonic() + 60
        while sum(map(subprocesses._has_ended, children(os.getpid()))) < count:
            assert time.monotonic() < until
            time.sleep(0.001)

    program = subprocess.Popen(["sh", "-c", "exit 3"])
    own = [
        os.posix_spawn("/bin/sh", ["sh", "-c", "exit 4"], {}),
        os.posix_spawnp("sh", ["sh", "-c", "exit 5"], os.environ),
        os.fork() or os._exit(6),
    ]
    for _ in range(3):  # each leaves an orphan, and reaps that of the last one
        subprocess.run(["sh", "-c", "true & exit"])
        wait_for_zombies(5)
    subprocess.run(["true"])
    assert children(os.getpid()) == {program.pid, *own}
    print([program.wait()] + [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in own])
"""


def test_adopted_processes_are_reaped_and_own_ones_are_left_to_their_code() -> None:
    root = Path(__file__).parents[4]
    program = [sys.executable, "-c", textwrap.dedent(ORPHANS)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=200, cwd=root)
    assert (done.stdout, done.stderr) == ("[3, 4, 5, 6]\n", "")


# Cgroups


CGROUP2 = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
OTHERS = "22 28 0:20 / /proc rw - proc proc rw\n40 31 0:37 / /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n"


@pytest.mark.parametrize(
    ("cgroups", "mounts", "folder"),
    [
        ("0::/user.slice/a.scope\n", OTHERS + CGROUP2, "/sys/fs/cgroup/user.slice/a.scope"),
        ("0::/\n", CGROUP2, "/sys/fs/cgroup"),
        (
            "8:pids:/other\n0::/a\n",
            OTHERS + CGROUP2.replace("cgroup rw", "cgroup/unified rw"),
            "/sys/fs/cgroup/unified/a",
        ),
        ("0::/docker/1234/a\n", CGROUP2.replace(" / ", " /docker/1234 "), "/sys/fs/cgroup/a"),
        ("0::/docker/1234\n", CGROUP2.replace(" / ", " /docker/1234 "), "/sys/fs/cgroup"),
        ("0::/docker/12345\n", CGROUP2.replace(" / ", " /docker/1234 "), None),
        ("0::/a\n", OTHERS, None),
        ("8:pids:/a\n", CGROUP2, None),
    ],
)
def test_the_folder_of_a_cgroup(cgroups: str, mounts: str, folder: str | None) -> None:
    assert watchdog.find_cgroup(cgroups, mounts) == folder


@pytest.mark.parametrize(
    ("user", "systemd", "delegated", "expected"),
    [
        (1000, True, "", True),
        (0, False, "", True),
        (0, True, "", False),
        (0, True, "/a/b", True),
        (0, True, "/a", True),
    ],
)
def test_root_divides_only_cgroups_that_systemd_delegates(
    user: int, systemd: bool, delegated: str, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other users cannot write to cgroups that are not theirs."""

    def attribute(path: str, name: str) -> bytes:
        if path != delegated or name != "trusted.delegate":
            raise OSError
        return b"1"

    monkeypatch.setattr(os, "geteuid", lambda: user)
    monkeypatch.setattr(os.path, "exists", lambda path: systemd and path == "/run/systemd/system")
    monkeypatch.setattr(os, "getxattr", attribute)
    assert watchdog._is_delegated("/a/b") == expected


def test_processes_of_a_cgroup_are_killed_one_by_one_by_an_old_kernel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Folders stand for cgroups: that of a worker, one below it, and that of another worker."""
    processes = {}
    for name in ("gpu_pregel.run.1.0.", "gpu_pregel.run.1.0./nested", "gpu_pregel.run.11.0."):
        (tmp_path / name).mkdir()
        processes[name] = subprocess.Popen(["sleep", "900"])
        (tmp_path / name / "cgroup.procs").write_text(f"{processes[name].pid}\n")

    def remove(path: str) -> None:
        """Remove a folder as the kernel does: with its files, without processes."""
        if processes[os.path.relpath(path, tmp_path)].poll() is None or (Path(path) / "nested").exists():
            raise OSError
        for name in os.listdir(path):
            os.unlink(f"{path}/{name}")
        rmdir(path)

    rmdir = os.rmdir
    monkeypatch.setattr(watchdog, "own_cgroup", lambda: str(tmp_path))
    monkeypatch.setattr(watchdog, "_SECONDS", 60)
    with monkeypatch.context() as patch:
        patch.setattr(os, "rmdir", remove)
        watchdog.end_cgroups("run.1.")
    *ended, left = processes.values()
    assert [one.wait(200) for one in ended] == [-9, -9]
    assert os.listdir(tmp_path) == ["gpu_pregel.run.11.0."]
    assert left.poll() is None
    left.kill()
    left.wait()
