"""Runs in each state that ``gp.agents.serve`` may find, and the function that computes them."""

from __future__ import annotations

import time
from typing import Any

import gpu_pregel as gp
from gpu_pregel.agents import Vertex
from gpu_pregel.host.stores.store import Store
from tests.agents import ONCE

LATER = 1e11
"""A time that does not come."""


def working(ctx: Any) -> None:
    """Do what the value says."""
    doing = ctx.value if isinstance(ctx.value, str) else ""
    if ctx.messages:
        ctx.value = ctx.messages
    elif doing == "asks":
        ctx.value = ctx.interrupt("how much?")
    elif doing == "fails":
        raise ValueError("not today")
    elif doing.startswith("sleeps"):
        ctx.wake_at(LATER if doing == "sleeps long" else 1.0)
        ctx.value = "slept"
    elif ctx.superstep < 2 and doing == "counts":
        return
    ctx.vote_to_halt()


def begin(store: Store, run_id: str, value: str, **options: Any) -> None:
    """Run until the run ends or is held."""
    options = {"on_waiting": "return", "retry": ONCE, **options}
    with gp.agents.start([Vertex("a", value)], working, store=store, run_id=run_id, **options) as agents:
        while agents.step():
            pass


def stopped(store: Store, run_id: str) -> None:
    gp.agents.start([Vertex("a", "counts")], working, store=store, run_id=run_id).stop()


def crashed(store: Store, run_id: str) -> None:
    """Its owner has ended without releasing its claim, which has expired."""
    with gp.agents.start([Vertex("a", "counts")], working, store=store, run_id=run_id) as agents:
        agents.step()
    claim = store.claim(run_id, owner="somebody")
    store.flush(claim, 1, [], "running")
    store.renew(claim, 1e-6)
    time.sleep(1e-3)


def forked(store: Store, run_id: str) -> None:
    stopped(store, "parent")
    gp.agents.fork(store, "parent", -1, run_id)
    store.delete("parent")


def due(store: Store, run_id: str) -> None:
    """It waits for a timer that the last owner has not seen end."""
    options: dict[str, Any] = {"on_waiting": "return", "store": store, "run_id": run_id}
    agents = gp.agents.start([Vertex("a", "sleeps")], working, **options)
    agents.step()
    agents.__exit__()


def waiting(store: Store, run_id: str) -> None:
    begin(store, run_id, "sleeps long")


def waiting_with_message(store: Store, run_id: str) -> None:
    waiting(store, run_id)
    gp.agents.send(store, run_id, "a", 5)


def asking(store: Store, run_id: str) -> None:
    begin(store, run_id, "asks")


def asking_and_crashed(store: Store, run_id: str) -> None:
    """Its owner may have had more to compute than what waits for an answer."""
    asking(store, run_id)
    crash(store, run_id)


def waiting_and_crashed(store: Store, run_id: str) -> None:
    waiting(store, run_id)
    crash(store, run_id)


def crash(store: Store, run_id: str) -> None:
    """Let an owner of a run end without releasing its claim, which expires."""
    store.claim(run_id, owner="somebody", lease_seconds=1e-6)
    time.sleep(1e-3)


def answered(store: Store, run_id: str) -> None:
    asking(store, run_id)
    gp.agents.answer(store, run_id, "a", 42)


def failed(store: Store, run_id: str) -> None:
    begin(store, run_id, "fails")


def retried(store: Store, run_id: str) -> None:
    """Its program was stopped between ``retry`` and ``step``."""
    failed(store, run_id)
    with gp.agents.reopen(store, run_id, working) as agents:
        agents.retry()


def retried_by_id(store: Store, run_id: str) -> None:
    failed(store, run_id)
    assert gp.agents.retry(store, run_id) == ["a"]


def completed(store: Store, run_id: str) -> None:
    begin(store, run_id, "")


def sent_to(store: Store, run_id: str) -> None:
    completed(store, run_id)
    gp.agents.send(store, run_id, "a", 5)


def sent_to_and_crashed(store: Store, run_id: str) -> None:
    """Its owner has taken the message up, but not computed its superstep."""
    sent_to(store, run_id)
    with gp.agents.reopen(store, run_id, working) as agents:
        agents._take_requests()
    assert (store.run(run_id).status, store.requests.list(run_id)) == ("completed", [])


def cancelled(store: Store, run_id: str) -> None:
    asking(store, run_id)
    gp.agents.send(store, run_id, "a", 5)
    gp.agents.cancel(store, run_id)


def cancelled_without_owner(store: Store, run_id: str) -> None:
    """The owner of a run on another machine ends before it has seen the request."""
    stopped(store, run_id)
    claim = store.claim(run_id, owner="somebody")
    assert gp.agents.cancel(store, run_id) is True
    store.renew(claim, 1e-6)
    time.sleep(1e-3)


def limited(store: Store, run_id: str) -> None:
    begin(store, run_id, "counts", max_supersteps=1, on_limit="return")


def claimed(store: Store, run_id: str) -> None:
    stopped(store, run_id)
    store.claim(run_id, owner="somebody")
