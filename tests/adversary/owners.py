"""Programs that take the same run over from each other again and again."""

from __future__ import annotations

import json
import os
import random
import signal
import time
from collections import Counter
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError
from tests.adversary.evidence import Findings, check_end, check_repeats, read_log
from tests.adversary.program import MESSAGES, RUN, STEPS, VERTICES, Settings, open_store, program
from tests.adversary.trials import Process

OWNERS = 4
_PAUSE = 0.01


class Fight:
    """A run that four programs want.

    Parameters
    ----------
    where : str
    folder : Path
    chance : random.Random
    """

    def __init__(self, where: str, folder: Path, chance: random.Random) -> None:
        self._where, self._log, self._chance = where, folder / "log", chance
        self.found = Findings()
        self.outcomes: Counter[str] = Counter()
        """How often an owner left the run, and how often it lost it."""

    def run(self, owners: int = OWNERS) -> None:
        """Let them fight until the run has completed, and check it."""
        first = program(Settings(str(self._log), "first", pause=_PAUSE))
        with open_store(self._where) as store:
            gp.agents.start(VERTICES, **first, store=store, run_id=RUN).__exit__()
            processes = [self._start(f"o{k}", 2 if k == 0 else 0) for k in range(owners)]
            sent = self._accompany(store, processes)
            for process in processes:
                status, output, errors = process.finish()
                self.outcomes.update(output.split())
                if status != 0:
                    self.found.errors.append(f"exit status {status}: {errors[-2000:]}")
            with gp.agents.reopen(store, RUN, **first) as agents:  # messages that came last
                while agents.step():
                    pass
            lines = read_log(self._log)
            check_repeats(lines, {}, 0.0, self.found)
            check_end(store, lines, STEPS, sent, [], self.found)
        self._check_claims()

    def _start(self, name: str, workers: int) -> Process:
        return Process(
            None,
            traced=False,
            task="own",
            settings=asdict(Settings(str(self._log), name, workers, pause=_PAUSE)),
            store=self._where,
            seed=f"{name} {self._chance.random()}",
            background=self._chance.random() < 0.5,
        )

    def _accompany(self, store: gp.SQLiteStore | gp.PostgresStore, processes: list[Process]) -> list[int]:
        """Send messages, answer, and stop processes for a moment; return what was sent."""
        sent: list[int] = []
        while sum(process.is_running() for process in processes):
            time.sleep(0.004)
            with suppress(ArgumentError):
                if len(sent) < MESSAGES and self._chance.random() < 0.02:
                    gp.agents.send(store, RUN, "till", len(sent))
                    sent.append(len(sent))
                if self._chance.random() < 0.2:
                    gp.agents.answer(store, RUN, "asks", "blue")
            if self._chance.random() < 0.02:
                self._stop(self._chance.choice(processes))
        return sent

    def _stop(self, process: Process) -> None:
        with suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGSTOP)
            time.sleep(self._chance.random() * 0.1)
            os.kill(process.pid, signal.SIGCONT)

    def _check_claims(self) -> None:
        """Check that no owner computed what was durable before it claimed the run."""
        before: dict[str, list[str]] = {}
        for file in self._log.parent.glob("log.o*"):
            before |= dict(map(json.loads, file.read_text().splitlines()))
        for line in read_log(self._log):
            place = f"{line.place[0]} {line.place[1]}"
            if line.kind == "effect" and place in before.get(line.incarnation, ()):
                self.found.twice.append(f"{line.place} was durable before {line.incarnation} claimed the run")
