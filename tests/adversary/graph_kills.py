"""State graphs whose process is killed and started again until they have ended.

Once the record of a task is in the store, its key must not be logged again; the last state must be that of an
undisturbed run.
"""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from hashlib import sha256
from pathlib import Path
from typing import Any

import gpu_pregel as gp
from gpu_pregel.errors import SuperstepLimitError
from gpu_pregel.host.agents.codec import encode, id_key
from tests.adversary.evidence import Findings
from tests.adversary.graph_victim import CONFIG, THREAD, Carry, app_of, run_to_end
from tests.crashes import recorded

ROOT = Path(__file__).parents[2]
_SECONDS = 60.0
"""Seconds after which a process counts as stuck."""


def find_graph(seed: int, carry: Carry) -> tuple[int, dict[str, Any]]:
    """Return the seed of a graph that ends after some nodes, and its last state."""
    while True:
        try:
            values = run_to_end(app_of(seed, carry, gp.MemoryStore()))
        except SuperstepLimitError:
            values = {"steps": 0}
        if 15 < values["steps"] < 60:
            return seed, values
        seed += 1_000_000


class GraphTrial:
    """A graph that is killed.

    Parameters
    ----------
    seed : int
    folder : Path
        Has the store and the log.
    carry : {"shared", "messages"}
        How the state gets from node to node.
    """

    def __init__(self, seed: int, folder: Path, carry: Carry = "shared") -> None:
        self._chance, self._carry = random.Random(seed), carry
        self._seed, self._expected = find_graph(seed, carry)
        self._path, self._log = folder / "runs.db", folder / "log"
        self.found, self.kills = Findings(), 0
        self._known: list[tuple[int, set[str]]] = []

    def run(self, most: int) -> None:
        """Kill the process at most ``most`` times, let the run end, and check it."""
        workers = self._chance.choice([0, 0, 2])
        while self._start(workers, may_kill=self.kills < most):
            self._known.append((len(self._lines()), self._keys_on_record()))
        self.judge(self._known)

    def _start(self, workers: int, *, may_kill: bool) -> bool:
        """Run a process until it ends or is killed; return whether it was killed."""
        places = {"store": str(self._path), "log": str(self._log)}
        given = json.dumps({"seed": self._seed, "carry": self._carry, "workers": workers, **places})
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.adversary.graph_victim", given],
            cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            if may_kill:
                self._wait_for_lines(process)
                process.kill()
            _, errors = process.communicate(timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            _, errors = process.communicate()
            self.found.errors.append(f"the process is stuck: {errors[-2000:]}")
            return False
        if process.returncode == -signal.SIGKILL:
            self.kills += 1
            return True
        if process.returncode:
            self.found.errors.append(f"exit status {process.returncode}: {errors[-2000:]}")
        return False

    def _wait_for_lines(self, process: subprocess.Popen[str]) -> None:
        """Wait until the process has logged a few lines, or ended, and a moment longer."""
        more = self._chance.choice([0, 1, 1, 2, 3, 5, 8])
        wanted = len(self._lines()) + more
        deadline = time.monotonic() + _SECONDS
        while process.poll() is None and len(self._lines()) < wanted and time.monotonic() < deadline:
            time.sleep(0.001)
        longest = 0.012 if more else 0.4  # between two lines, or while the process starts
        time.sleep(self._chance.random() * longest)

    def _lines(self) -> list[str]:
        return self._log.read_text().splitlines() if self._log.exists() else []

    def _keys_on_record(self) -> set[str]:
        """Return the keys of the tasks whose records are in the store."""
        if not self._path.exists():
            return set()
        with gp.SQLiteStore(self._path) as store:
            if all(row.id != THREAD for row in store.runs()):
                return set()
            branch = store.run(THREAD).branch
            places = recorded(store, THREAD)
        return {sha256(encode((THREAD, branch, step, id_key(task)))).hexdigest() for step, task in places}

    def judge(self, known: list[tuple[int, set[str]]]) -> None:
        """Check that no task that was on record has run again, and the last state.

        Parameters
        ----------
        known : list of (int, set)
            The number of lines of the log at each kill, and the keys that were on record.
        """
        lines = self._lines()
        for start, keys in known:
            self.found.twice += [line for line in lines[start:] if line.partition(" ")[0] in keys]
        if self.found.errors:
            return
        with gp.SQLiteStore(self._path) as store:
            values = app_of(self._seed, self._carry, store).get_state(CONFIG).values
        if values != self._expected:
            self.found.errors.append(f"the last state is {values}, not {self._expected}")
