"""Calls of state graphs: invoke, ainvoke, batch, limits, configuration, claims, bad input, Ctrl-C."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import (
    AgentsFailedError,
    ArgumentError,
    ArgumentTypeError,
    ClaimedError,
    SuperstepLimitError,
)
from gpu_pregel.host.stores.store import Store
from gpu_pregel.workflows import START, Command, Send, StateGraph
from tests.devices import LONG
from tests.gpu_pregel.workflows.small_graphs import WAYS, Notes, chain, naps, noted, single, thread
from tests.stores import output, python

ABC = {"x": 4, "log": ["a", "b", "c"]}


@WAYS
@pytest.mark.parametrize("workers", [0, 2])
def test_without_store(way: Callable[..., Any], workers: int) -> None:
    assert way(chain(workers=workers), {"x": 1}) == ABC


@WAYS
def test_stores(way: Callable[..., Any], store: Store) -> None:
    app = chain(store=store)
    assert way(app, {"x": 1}, thread()) == ABC
    assert way(app, {"x": 5}, thread()) == {"x": 8, "log": [*"abcabc"]}
    assert way(app, {"x": 1}, thread("other")) == ABC


@WAYS
@pytest.mark.parametrize("kind", ["plain", "async", "mixed"])
@pytest.mark.parametrize("count", [10, 32])
def test_nodes_wait_side_by_side(way: Callable[..., Any], kind: str, count: int) -> None:
    begin = time.monotonic()
    assert len(way(naps(count, 0.3, kind), {})["log"]) == count
    assert time.monotonic() - begin < 0.3 * count / 3


def test_thirty_three_blocking_nodes_take_two_rounds() -> None:
    running, most, lock = 0, 0, threading.Lock()

    def node(state: Any) -> None:
        nonlocal running, most
        with lock:
            running += 1
            most = max(most, running)
        time.sleep(0.1)
        with lock:
            running -= 1

    graph = StateGraph(Notes).add_node("work", node)
    app = graph.add_conditional_edges(START, lambda state: [Send("work", k) for k in range(40)]).compile()
    app.invoke({})
    assert most == 32


@pytest.mark.parametrize("kind", ["plain", "mixed"])
def test_blocking_nodes_do_not_block_the_event_loop(kind: str) -> None:
    async def run() -> float:
        longest, last = 0.0, time.monotonic()
        task = asyncio.create_task(naps(4, 0.5, kind).ainvoke({}))
        while not task.done():
            await asyncio.sleep(0.005)
            longest, last = max(longest, time.monotonic() - last), time.monotonic()
        return longest

    assert asyncio.run(run()) < 0.4


def test_calls_on_one_loop_run_side_by_side() -> None:
    async def run() -> Any:
        app = naps(2, 0.2, "mixed")
        return await asyncio.gather(*(app.ainvoke({"x": k}) for k in range(8)))

    begin = time.monotonic()
    assert [one["x"] for one in asyncio.run(run())] == list(range(8))
    assert time.monotonic() - begin < 1.0


def test_cancellation_ends_at_once() -> None:
    async def run() -> float:
        task = asyncio.create_task(naps(2, 5, "mixed").ainvoke({}))
        await asyncio.sleep(0.1)
        begin = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return time.monotonic() - begin

    begin = time.monotonic()
    loop = asyncio.new_event_loop()  # asyncio.run would wait for the threads of plain nodes
    try:
        assert loop.run_until_complete(run()) < 2
    finally:
        loop.close()
    assert time.monotonic() - begin < 4


def test_async_nodes_are_called_from_within_a_loop_too() -> None:
    async def run() -> Any:
        return naps(2, 0, "async").invoke({"x": 1})

    assert asyncio.run(run()) == {"x": 1, "log": [1, 1]}


# Batch.


def test_batch_keeps_the_order_and_runs_side_by_side() -> None:
    begin = time.monotonic()
    found = naps(1, 0.2, "plain").batch([{"x": k} for k in range(20)])
    assert [one["x"] for one in found] == list(range(20))
    assert time.monotonic() - begin < 2
    assert naps(1, 0, "plain").batch([]) == []


def test_batch_takes_a_configuration_each() -> None:
    app = single(lambda state, context: {"log": [context.config["k"]]})
    configs = [{"configurable": {"k": k}} for k in range(3)]
    assert [one["log"] for one in app.batch([{}] * 3, configs)] == [[0], [1], [2]]
    with pytest.raises(ArgumentError, match="batch got 2 inputs and 3 configs"):
        app.batch([{}] * 2, configs)


# Limits.


@WAYS
@pytest.mark.parametrize("store", ["memory"], indirect=True)
def test_recursion_limit_counts_supersteps_of_a_call(way: Callable[..., Any], store: Store) -> None:
    app = chain("abcd", store=store, max_supersteps=3)
    with pytest.raises(SuperstepLimitError, match="'d'"):
        way(app, {"x": 0}, thread())
    assert app.get_state(thread()).next == ("d",)
    assert way(app, None, thread()) == {"x": 4, "log": [*"abcd"]}
    assert way(app, {"x": 0}, {**thread(), "recursion_limit": 4})["log"] == [*"abcdabcd"]
    with pytest.raises(SuperstepLimitError):
        way(app, {"x": 0}, {**thread(), "recursion_limit": 2})
    assert app.get_state(thread()).next == ("c",)


# The configuration.


@pytest.mark.parametrize("workers", [0, 1])
def test_nodes_see_the_configuration_of_each_call_of_a_thread(workers: int) -> None:
    def node(state: Any, context: Any) -> Any:
        return {"log": [context.config.get("user")]}

    app = single(node, options={"store": gp.MemoryStore(), "workers": workers})
    assert app.invoke({}, thread(user="ada")) == {"log": ["ada"]}
    assert app.invoke({}, thread(user="bob")) == {"log": ["ada", "bob"]}
    assert app.invoke({}, thread()) == {"log": ["ada", "bob", None]}


def test_a_mended_retry_policy_holds_for_threads_that_have_begun() -> None:
    store, tries = gp.MemoryStore(), []

    def node(state: Any, context: Any) -> None:
        tries.append(context.attempt)
        raise OSError("away")

    def run(attempts: int, given: Any) -> None:
        retry = gp.agents.RetryPolicy(attempts=attempts, wait=0)
        with pytest.raises(AgentsFailedError):
            single(node, options={"store": store, "retry": retry}).invoke(given, thread())

    run(1, {})
    run(3, None)
    assert tries == [1, 2, 3]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"threads": 0}, "threads must be from 1 to 1,024"),
        ({"threads": 2, "workers": 1}, "pass threads= or workers="),
        ({"workers": -1}, "workers must be from 0"),
        ({"max_supersteps": 0}, "max_supersteps must be from 1"),
    ],
)
def test_bad_options(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ArgumentError, match=text):
        chain(**options)


BAD_CONFIGS = {
    "no mapping": (3, ArgumentTypeError, "config must be a dict"),
    "configurable": ({"configurable": 3}, ArgumentTypeError, r'config\["configurable"\] must be a dict'),
    "limit of text": ({"recursion_limit": "a"}, ArgumentTypeError, "recursion_limit.* must be a whole number"),
    "limit 0": ({"recursion_limit": 0}, ArgumentError, "recursion_limit.* from 1"),
}


@WAYS
@pytest.mark.parametrize("case", BAD_CONFIGS)
def test_bad_configurations(way: Callable[..., Any], case: str) -> None:
    config, error, text = BAD_CONFIGS[case]
    with pytest.raises(error, match=text):
        way(chain(), {"x": 1}, config)


@pytest.mark.parametrize("config", [None, {}, {"configurable": {}}, {"configurable": {"thread_id": None}}])
def test_a_graph_with_a_store_needs_a_thread(config: Any) -> None:
    with pytest.raises(ArgumentError, match=r"needs config=.*thread_id"):
        chain(store=gp.MemoryStore()).invoke({"x": 1}, config)


BAD_NAMES = ["", "a\nb", "\0", "\ud800", "x" * 181, "t #2", "t @3", "t > a @0"]
GOOD_NAMES = ["a b", "a@3", "a|b|0", "../x", "é", "%s';--", "t #2x", "#2", "@1", "x" * 180, 7, " "]


@pytest.mark.parametrize("name", BAD_NAMES)
def test_refused_names_of_threads(name: str) -> None:
    store = gp.MemoryStore()
    with pytest.raises(ArgumentError, match="thread_id"):
        chain(store=store).invoke({"x": 1}, thread(name))
    assert not store.runs()


@pytest.mark.parametrize("name", GOOD_NAMES, ids=lambda name: repr(name)[:12])
def test_names_of_threads(name: Any) -> None:
    failing = {"b"}
    app = chain(store=gp.MemoryStore(), failing=failing)
    with pytest.raises(AgentsFailedError):
        app.invoke({"x": 1}, thread(name))
    failing.clear()
    assert app.invoke({"x": 1}, thread(name))["log"] == [*"aabc"]  # in a fork
    first = list(app.get_state_history(thread(name)))[-1]
    assert app.invoke(None, first.config) == ABC


# Claims.


@WAYS
def test_a_thread_that_runs_is_left_alone(way: Callable[..., Any], store: Store) -> None:
    begun, may_end = threading.Event(), threading.Event()

    def node(state: Any) -> dict[str, Any]:
        begun.set()
        assert may_end.wait(60)
        return {"log": "a"}

    app, found = single(node, options={"store": store}), []
    runner = threading.Thread(target=lambda: found.append(app.invoke({"x": 1}, thread())))
    runner.start()
    assert begun.wait(60)
    first = app.get_state(thread())
    attempts: list[Callable[[], Any]] = [
        lambda: way(app, {"x": 2}, thread()),
        lambda: way(app, None, thread()),
        lambda: way(app, Command(resume=1), thread()),
        lambda: way(app, None, first.config),
        lambda: way(app, {"x": 2}, first.config),
        lambda: app.update_state(thread(), {"x": 2}, as_node="a"),
        lambda: app.update_state(first.config, {"x": 2}, as_node="a"),
    ]
    for attempt in attempts:
        with pytest.raises(ClaimedError, match=r"run 't' is claimed by process .*wait until it has ended") as error:
            attempt()
        assert "takeover" not in str(error.value)
    may_end.set()
    runner.join()
    assert found == [{"x": 1, "log": ["a"]}]
    assert [row.id for row in store.runs()] == ["t"]
    assert app.invoke({"x": 3}, thread()) == {"x": 3, "log": ["a", "a"]}


_CRASHING = """
import os, sys
from tests.devices import LONG
from tests.gpu_pregel.workflows.small_graphs import Notes, single, thread
import gpu_pregel as gp
def node(state):
    os.kill(os.getpid(), 9)
single(node, options={"store": gp.SQLiteStore(sys.argv[1])}).invoke({"x": 1}, thread())
"""


def test_the_thread_of_a_process_that_has_died_continues(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    died = subprocess.run([sys.executable, "-c", _CRASHING, str(path)], check=False, timeout=120)
    assert died.returncode == -signal.SIGKILL
    with gp.SQLiteStore(path) as store:
        app = single(noted("a"), options={"store": store})
        assert app.get_state(thread()).next == ("a",)
        assert app.invoke(None, thread()) == {"x": 2, "log": ["a"]}


# Ctrl-C.

_INTERRUPTED = """
import os, signal, sys, threading, time
from tests.devices import LONG
from tests.gpu_pregel.workflows.small_graphs import chain, single, thread, Notes
from gpu_pregel.workflows import START, StateGraph
import gpu_pregel as gp
os.environ["MASTER"] = str(os.getpid())
def first(state):
    threading.Timer(0.2, os.kill, (int(os.environ["MASTER"]), signal.SIGINT)).start()
    time.sleep(1)
    return {"log": "first"}
graph = StateGraph(Notes).add_sequence([first, ("second", lambda state: {"log": "second"})]).add_edge(START, "first")
app = graph.compile(store=gp.MemoryStore(), workers=int(sys.argv[1]))
try:
    if sys.argv[2] == "invoke":
        app.invoke({}, thread())
    else:
        list(app.stream({}, thread(), stream_mode=sys.argv[2]))
except KeyboardInterrupt:
    print("stopped", app.get_state(thread()).values["log"], app.get_state(thread()).next)
print(app.invoke(None, thread())["log"])
"""


@pytest.mark.parametrize(
    ("workers", "how"),
    [(1, "invoke"), (0, "values"), pytest.param(0, "invoke", marks=LONG), pytest.param(0, "messages", marks=LONG)],
)
def test_ctrl_c_ends_the_run_after_the_superstep(workers: int, how: str) -> None:
    lines = output(python(_INTERRUPTED, workers, how)).splitlines()
    assert lines == ["stopped ['first'] ('second',)", "['first', 'second']"]
