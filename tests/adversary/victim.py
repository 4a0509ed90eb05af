"""A process that is killed: ``python -m tests.adversary.victim`` with a JSON object.

``task`` is "run" (start or resume the run to its end), "own" (take the run over again and again, for a few supersteps
each) or "ask" (send messages, answer and cancel).
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import signal
import socket
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, ClaimedError, FencedError
from gpu_pregel.host.superstep import base_writer
from tests.adversary.program import RUN, VERTICES, Settings, open_store, program
from tests.adversary.system_calls import hand_over
from tests.crashes import recorded

_PR_SET_PDEATHSIG = 1


def run(store: Any, options: dict[str, Any]) -> None:
    """Run to the end, however often the run is interrupted or cancelled."""
    status = ""
    while status != "completed":
        assert status in ("", "interrupted", "cancelled"), status
        try:
            if status == "cancelled":
                status = gp.agents.resume(store, RUN, **options).status
            else:
                status = gp.agents.start_or_resume(VERTICES, **options, store=store, run_id=RUN).status
        except ClaimedError:  # by a program that cancels it
            pass
        time.sleep(0.005)


def own(store: Any, settings: Settings, options: dict[str, Any], seed: str) -> None:
    """Take the run over, note which records are durable, compute a little, and leave it; until it has completed."""
    chance, number = random.Random(seed), 0
    while store.run(RUN).status != "completed":
        number += 1
        incarnation = f"{settings.incarnation}.{number}"
        before = sorted(f"{step} {vertex}" for step, vertex in recorded(store))
        with open(f"{settings.log}.{settings.incarnation}", "a") as file:
            file.write(json.dumps([incarnation, before]) + "\n")
        named = program(Settings(**{**vars(settings), "incarnation": incarnation}))
        outcome = "left"
        try:
            with gp.agents.reopen(store, RUN, takeover=True, **{**options, **named}) as agents:
                for _ in range(chance.randint(1, 4)):
                    if not agents.step():
                        break
        except FencedError:
            outcome = "fenced"
        except ClaimedError:
            outcome = "refused"
        print(outcome, flush=True)
        time.sleep(chance.random() * 0.1)


def ask(store: Any, messages: list[int]) -> None:
    """Send messages, and print each that the store has accepted; answer, and cancel the run, in between."""
    others: list[Callable[[], object]] = [
        lambda: gp.agents.answer(store, RUN, "asks", "blue"),
        lambda: gp.agents.cancel(store, RUN),
    ]
    for number, message in enumerate(messages):
        if number % 4 == 1:
            with suppress(ArgumentError):  # nothing is asked, or the run has ended
                others[number // 4 % 2]()
        accepted = False
        with suppress(ArgumentError):  # the run was cancelled
            gp.agents.send(store, RUN, "till", message)
            accepted = True
        if accepted:
            os.write(1, b"%d\n" % message)


def main(given: dict[str, Any]) -> None:
    """Tell the parent that all is imported, and do the task."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    settings = Settings(**given["settings"])
    if given["background"]:
        base_writer.LARGE_BASE = 0
    with socket.socket(fileno=given["parent"]) as parent:
        if given["traced"]:
            hand_over(parent)
        else:
            parent.send(b".")
    with open_store(given["store"]) as store:
        if given["task"] == "ask":
            ask(store, given["messages"])
        elif given["task"] == "own":
            own(store, settings, program(settings), given["seed"])
        else:
            run(store, program(settings))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
