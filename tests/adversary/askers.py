"""Programs that send messages to a run, answer and cancel, and are killed: an accepted message arrives once."""

from __future__ import annotations

import random
import signal
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.adversary.program import Settings
from tests.adversary.trials import Calibration, Process, Trial, Way

_COUNT = 12
"""Messages of a program."""


class AskerTrial(Trial):
    """A run to which programs send messages, each of which is killed; the run itself is not."""

    def __init__(
        self, way: Way, where: str, folder: Path, chance: random.Random, calibration: Calibration, cluster: Any,
        margin: float,
    ) -> None:  # fmt: skip
        super().__init__(way, where, folder, chance, calibration, cluster, margin)
        self._asker: Process | None = None
        self._next, self._left, self._at = 0, 0, 0.0
        self._killed = 0

    @property
    def count(self) -> int:
        """Number of killed programs."""
        return self._killed

    def run(self, most: int) -> None:
        """Kill ``most`` programs."""
        self._left, self._unsent = min(most, self._way.kills), [-1]
        super().run(0)

    def _request(self) -> None:
        """Keep one program running until enough were killed; then send a last message."""
        if self._asker is None and self._left > 0 and self._store.runs():
            self._asker = self._start()
        if self._asker is not None:
            self._watch(self._asker)
        elif self._left <= 0:
            super()._request()

    def _watch(self, asker: Process) -> None:
        """Kill the program when its time has come, and note what it has sent."""
        if not self._way.at_calls and time.monotonic() >= self._at:
            asker.kill()
        if asker.is_running():
            return
        status, output, errors = asker.finish()
        self._asker = None
        accepted = [int(line) for line in output.splitlines()]
        self._sent += accepted
        if status == -signal.SIGKILL:
            self._killed, self._left = self._killed + 1, self._left - 1
            self._uncertain += set(range(self._next, self._next + _COUNT)).difference(accepted)
        elif status != 0:
            self.found.errors.append(f"a sender ended with exit status {status}: {errors[-2000:]}")
            self._left = 0
        self._next += _COUNT
        for _, kind, _ in asker.watcher.killed if asker.watcher is not None else ():
            self.places[kind] += 1

    def _start(self) -> Process:
        kind, ordinal = self._chance.choice(["write", "pwrite64", "fdatasync", "sendto"]), self._chance.randint(1, 20)
        process = Process(
            (lambda one, number, _is_first: (one, number) == (kind, ordinal)) if self._way.at_calls else None,
            traced=self._way.at_calls,
            task="ask",
            settings=asdict(Settings("", "")),
            store=self._where,
            messages=list(range(self._next, self._next + _COUNT)),
        )
        self._at = time.monotonic() + self._chance.random() * 0.06
        return process
