"""Runs for tests of pages: one with everything that a page shows, and a held one."""

from __future__ import annotations

from typing import Any

import gpu_pregel.agents as agents
from gpu_pregel.agents import Aggregator, RetryPolicy, Timeline, Vertex
from gpu_pregel.host.stores.store import Store

HACK = "document.title='hacked'"
EVIL = f'</script><script>{HACK}</script><img src=http://leak.invalid/ onerror="{HACK}">'
"""Text that would run or load something if it became markup."""


def work(ctx: Any) -> None:
    """Plan, two searches of which one is tried twice, a question, and a review."""
    step, name = ctx.superstep, ctx.vertex_id
    if name == "plan":
        ctx.emit("first ")
        ctx.emit(EVIL)
        ctx.value = {"goal": EVIL, "open": ["search", "ask"]} if step == 0 else {**ctx.value, "open": []}
        if step == 0:
            ctx.send("search 1", {"query": EVIL})
            ctx.send("search 2", {"query": "two"})
    elif name.startswith("search"):
        if name == "search 2" and ctx.attempt == 1:
            raise OSError(f"no answer {EVIL}")
        ctx.aggregate("state", {name: 3})
        ctx.value = [name]
        ctx.send("ask", "done")
    elif name == "ask":
        ctx.value = ctx.interrupt({"question": f"publish? {EVIL}"})
        ctx.send("plan", ctx.value)
    ctx.vote_to_halt()


def merge(state: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
    return {**state, **new}


def options(store: Store) -> dict[str, Any]:
    return {
        "store": store,
        "observer": Timeline(store),
        "retry": RetryPolicy(attempts=2, wait=0),
        "aggregators": {"state": Aggregator(merge, initial={}, persistent=True)},
    }


def make_held(store: Store, run_id: str = "held") -> None:
    """Run until a vertex asks in superstep 2."""
    edges = {"plan": ["search 1", "search 2"], "search 1": ["ask"], "search 2": ["ask"], "ask": []}
    vertices = [Vertex(name, None, out, halted=name != "plan") for name, out in edges.items()]
    agents.run(vertices, work, run_id=run_id, **options(store))


def make_finished(store: Store, run_id: str = "finished") -> None:
    """Run to the end: superstep 0 plan, 1 searches, 2 ask, 3 plan."""
    make_held(store, run_id)
    given = options(store)
    agents.resume(given.pop("store"), run_id, work, answers={"ask": "yes"}, **given)
