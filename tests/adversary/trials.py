"""One run that is disturbed until it has ended: kills of its master or its workers, restarts, requests from outside."""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, UnknownRunError
from tests.adversary.evidence import (
    Findings,
    Kill,
    Line,
    check_end,
    check_kills,
    check_repeats,
    durable_places,
    read_log,
)
from tests.adversary.program import MESSAGES, RUN, STEPS, Settings, open_store
from tests.adversary.system_calls import CallWatcher

ROOT = Path(__file__).parents[2]
_SECONDS = 120.0
"""Seconds after which a process counts as stuck."""
_TICK = 0.004


@dataclass(frozen=True)
class Way:
    """How a run is disturbed.

    Attributes
    ----------
    workers, is_async
        As in ``Settings``.
    target : str
        "master", "worker" or "server", or "asker" for a process that sends messages.
    at_calls : bool
        Whether to kill at a system call, otherwise at a random moment.
    kills : int
        Maximum number of kills in a run.
    steps, pause
        As in ``Settings``.
    """

    workers: int = 0
    is_async: bool = False
    target: str = "master"
    at_calls: bool = False
    kills: int = 12
    steps: int = STEPS
    pause: float = 0.02


@dataclass
class Calibration:
    """What undisturbed processes took: seconds, and system calls by kind; kills are chosen from them."""

    seconds: float = 0.0
    calls: Counter[tuple[str, bool]] = field(default_factory=Counter)


@contextmanager
def stores(kind: str, cluster: Any, name: str) -> Iterator[tuple[str, Path]]:
    """The location of a new store, and a folder."""
    with tempfile.TemporaryDirectory(prefix="adversary-", ignore_cleanup_errors=True) as folder:
        if kind == "sqlite":
            yield str(Path(folder, "runs.db")), Path(folder)
        else:
            yield f"{cluster.dsn}|{name}", Path(folder)
            cluster.execute(f'DROP SCHEMA IF EXISTS "{name}" CASCADE')


class Process:
    """A process of ``victim``; ``watcher`` serves its system calls if it is traced."""

    def __init__(self, choose: Callable[[str, int, bool], bool] | None, *, traced: bool, **given: Any) -> None:
        parent, child = socket.socketpair()
        with parent, child:
            content = json.dumps({"parent": child.fileno(), "traced": traced, "background": False, **given})
            self._errors = tempfile.TemporaryFile("w+")  # noqa: SIM115
            self.popen = subprocess.Popen(
                [sys.executable, "-m", "tests.adversary.victim", content],
                cwd=ROOT,
                text=True,
                stdout=subprocess.PIPE,
                stderr=self._errors,
                pass_fds=[child.fileno()],
            )
            child.close()
            parent.settimeout(_SECONDS)
            _, descriptors, _, _ = socket.recv_fds(parent, 1, 1)
        self.begin = time.monotonic()
        self.pid = self.popen.pid
        self.watcher = CallWatcher(descriptors[0], self.pid, choose) if descriptors else None

    def is_running(self) -> bool:
        """Whether it has not ended; it is killed if it is stuck."""
        if time.monotonic() > self.begin + _SECONDS and self.popen.poll() is None:
            self.popen.kill()
            self._errors.write(f"\nkilled after {_SECONDS:.0f} s")
        return self.popen.poll() is None

    def kill(self) -> float:
        """Kill it; return when."""
        at = time.monotonic()
        self.popen.kill()
        return at

    def workers(self) -> list[int]:
        """Return the worker processes."""
        found = []
        with suppress(OSError):
            for task in os.listdir(f"/proc/{self.pid}/task"):
                with open(f"/proc/{self.pid}/task/{task}/children") as file:
                    found += [int(pid) for pid in file.read().split()]
        return [pid for pid in found if is_alive(pid) and is_worker(pid)]

    def finish(self) -> tuple[int, str, str]:
        """Wait for the end; return the exit status, the output and the errors."""
        output, _ = self.popen.communicate()
        if self.watcher is not None:
            self.watcher.join()
        with self._errors:
            self._errors.seek(0)
            return self.popen.returncode, output, self._errors.read()


def is_alive(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    with suppress(OSError), open(f"/proc/{pid}/stat") as file:
        return file.read().rpartition(")")[2].split()[0] not in "ZX"
    return False


def is_worker(pid: int) -> bool:
    """Whether a process is a worker, and not the one that watches the workers."""
    with suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as file:
        return b"agents.workers.worker\0" in file.read()
    return False


class Trial:
    """A run in a store, its processes one after the other, and what is found.

    Parameters
    ----------
    way : Way
    where : str
    folder : Path
    chance : random.Random
    calibration : Calibration
        Extended by this trial.
    cluster : Cluster or None
    margin : float
        Seconds by which a busy machine may be late.
    """

    def __init__(
        self, way: Way, where: str, folder: Path, chance: random.Random, calibration: Calibration, cluster: Any,
        margin: float,
    ) -> None:  # fmt: skip
        self._way, self._where, self._chance, self._calibration = way, where, chance, calibration
        self._cluster, self._margin = cluster, margin
        self._log = folder / "log"
        self._store: Any = None
        self._unsent = list(range(MESSAGES))
        self._sent: list[int] = []
        self._uncertain: list[int] = []
        self._cancels = chance.randrange(2)
        self._is_asked = False
        self.found = Findings()
        self.kills: list[Kill] = []
        self.deaths: dict[int, float] = {}
        """Times at which workers were killed, by process."""
        self.restarts = 0
        self.places: Counter[str] = Counter()
        """System calls at which processes were killed, and what these had computed."""

    @property
    def count(self) -> int:
        """Number of kills or, where servers are restarted, of restarts so far."""
        return self.restarts if self._way.target == "server" else len(self.kills) + len(self.deaths)

    def run(self, most: int) -> None:
        """Disturb the run at most ``most`` times, let it end, and check it."""
        with open_store(self._where) as self._store:
            number = 0
            while not self._step(f"i{number}", max(0, min(most, self._way.kills) - self.count)):
                number += 1
                if number > 50 + most:
                    self.found.errors.append("the run does not end")
                    return
            lines = read_log(self._log)
            self._note_progress(lines)
            check_kills(lines, self.kills, self._margin, self.found)
            check_repeats(lines, self.deaths, self._margin, self.found)
            check_end(self._store, lines, self._way.steps, self._sent, self._uncertain, self.found)

    def _note_progress(self, lines: list[Line]) -> None:
        """Count what the killed processes had computed, as kills of processes that only start prove little."""
        attempts = Counter(line.process for line in lines if line.kind == "effect")
        attempts.subtract(line.process for line in lines if line.kind == "finish")
        for pid in self.deaths:
            when = "before any" if pid not in attempts else "during an" if attempts[pid] > 0 else "between two"
            self.places[f"{when} attempt"] += 1
        incarnations = {line.incarnation for line in lines}
        for kill in self.kills:
            self.places["after an attempt" if kill.incarnation in incarnations else "before any attempt"] += 1

    def _step(self, incarnation: str, left: int) -> bool:
        """Run one process until it ends or is killed; return whether the run has ended."""
        way = self._way
        settings = Settings(str(self._log), incarnation, way.workers, way.is_async, way.steps, way.pause)
        process = Process(
            self._choice(left),
            traced=way.at_calls,
            task="run",
            settings=asdict(settings),
            store=self._where,
            background=self._chance.random() < 0.5,
        )
        killed, where = self._accompany(process, left)
        status, _, errors = process.finish()
        watcher = process.watcher
        for at, kind, pid in watcher.killed if watcher is not None else ():
            self.places[kind] += 1
            if pid == process.pid:
                killed, where = at, f"at {kind}"
            else:
                self.deaths[pid] = at
        if killed is not None and status == -signal.SIGKILL:
            if self._cluster is not None:
                time.sleep(0.03)  # the server may be executing the last transaction
            self.kills.append(Kill(incarnation, killed, durable_places(self._store), where))
            return False
        if status != 0:
            if "in succession ended before computing a vertex" not in errors:
                self.found.errors.append(f"exit status {status}: {errors[-2000:]}")
            return bool(self.found.errors)
        if left == 0 or not self.count:
            self._calibration.seconds = max(self._calibration.seconds, time.monotonic() - process.begin)
            if watcher is not None:
                self._calibration.calls |= watcher.counts
        return not self._unsent and not self._store.requests.list(RUN)

    def _choice(self, left: int) -> Callable[[str, int, bool], bool] | None:
        """Choose the system call at which to kill or, for workers, one for each kill."""
        calls, chance, is_master = self._calibration.calls, self._chance, self._way.target == "master"
        kinds = sorted(kind for kind, is_first in calls if is_first is is_master)
        if not left or not kinds or not self._way.at_calls:
            return None
        chosen = set()
        for _ in range(1 if is_master else left):
            kind = chance.choice(kinds)
            most = int(calls[kind, is_master] * chance.choice([0.2, 0.5, 1.0]))
            chosen.add((kind, chance.randint(1, max(1, most)), is_master))
        return lambda *call: call in chosen

    def _accompany(self, process: Process, left: int) -> tuple[float | None, str]:
        """Send requests, and kill at random moments; return when the master was killed, and where."""
        way, begin = self._way, time.monotonic()
        at, size = self._next_strike(begin), self._log_size()
        while process.is_running():
            time.sleep(_TICK)
            now = time.monotonic()
            if at is None and self._log_size() > size:
                at = now + self._moment()
            if left > 0 and not way.at_calls and at is not None and now >= at:
                if way.target == "master":
                    return process.kill(), f"after {(now - begin) * 1e3:.0f} ms"
                away = self._strike_server(process) if way.target == "server" else None
                if away is not None:
                    return away, "while the server was away"
                left -= self._strike(process) if way.target == "worker" else 1
                at, size = self._next_strike(time.monotonic()), self._log_size()
            self._request()
        return None, ""

    def _next_strike(self, now: float) -> float | None:
        """Return when to strike next, or None to wait until a vertex has been computed, however long that takes."""
        return now + self._moment() if self._chance.random() < 0.2 else None

    def _log_size(self) -> int:
        return self._log.stat().st_size if self._log.exists() else 0

    def _moment(self) -> float:
        """Return how many seconds to wait before a kill."""
        if self._way.target == "master":
            return self._chance.random() * (self._calibration.seconds or 1.0) * self._chance.choice([0.2, 0.5, 0.9])
        return self._chance.random() * (0.1 if self._way.target == "worker" else 0.5)

    def _strike_server(self, process: Process) -> float | None:
        """Restart the server; if the master was killed meanwhile, return when the server was stopped."""
        at = time.monotonic()
        self._cluster.stop(self._chance.choice([signal.SIGINT, signal.SIGQUIT]))
        time.sleep(self._chance.random() * 0.3)
        is_killed = self._chance.random() < 0.3
        if is_killed:
            process.kill()
        self._cluster.start()
        self.restarts += 1
        return at if is_killed else None

    def _strike(self, process: Process) -> int:
        """Kill a worker; return how many were killed."""
        workers = process.workers()
        if not workers:
            return 0
        worker = self._chance.choice(workers)
        self.deaths[worker] = time.monotonic()
        with suppress(ProcessLookupError):
            os.kill(worker, signal.SIGKILL)
        return 1

    def _request(self) -> None:
        """Now and then send a message, answer, or cancel, as another program does."""
        chance, store = self._chance, self._store
        with suppress(UnknownRunError, ArgumentError):  # there is no run yet, it has ended, or nothing is asked
            if self._unsent and chance.random() < 0.02:
                gp.agents.send(store, RUN, "till", self._unsent[0])
                self._sent.append(self._unsent.pop(0))
            if not self._is_asked and chance.random() < 0.2:
                gp.agents.answer(store, RUN, "asks", "blue")
                self._is_asked = True
            if self._cancels and chance.random() < 0.005:
                gp.agents.cancel(store, RUN)
                self._cancels -= 1
