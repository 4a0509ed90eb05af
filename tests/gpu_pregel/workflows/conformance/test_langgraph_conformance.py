"""LangGraphSaver on all stores: LangGraph's conformance package, and the lists and deletions that it leaves out."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, CodecError
from gpu_pregel.host.stores.store import Store
from tests.packages import needs
from tests.stores import Open, XorCipher

needs("langgraph.checkpoint.conformance", "test")

from langgraph.checkpoint.conformance import checkpointer_test, validate  # noqa: E402
from langgraph.checkpoint.conformance.capabilities import ALL_CAPABILITIES  # noqa: E402

from gpu_pregel.workflows import LangGraphSaver  # noqa: E402
from tests.gpu_pregel.workflows.checkpoints import config_of, count, ids, put  # noqa: E402


@pytest.fixture
def saver(store: Store) -> Any:
    return LangGraphSaver(store, durability="process")


@pytest.mark.parametrize("cipher", [None, XorCipher()], ids=["plain", "encrypted"])
def test_conformance_package_passes(opened: Open, cipher: Any) -> None:
    store = opened(cipher=cipher)

    async def make() -> AsyncIterator[Any]:
        yield LangGraphSaver(store, durability="process")

    report = asyncio.run(validate(checkpointer_test(name="LangGraphSaver")(make)))
    # passed_all() is true with suites that were not detected.
    detected = {name for name, result in report.results.items() if result.detected}
    assert detected == {one.value for one in ALL_CAPABILITIES}
    assert len(detected) == 8
    assert [failure for result in report.results.values() for failure in result.failures] == []
    assert min(result.tests_passed for result in report.results.values()) >= 5
    assert report.passed_all()


def test_lists_are_in_order_and_paged(saver: Any) -> None:
    places = [config_of("a"), config_of("a", "sub:1"), config_of("b")]
    for number in range(90):  # more than the first page
        put(saver, places[number % 3], number, parity=number % 2)
    named = [f"{number:04}" for number in range(89, -1, -1)]
    assert ids(saver.list(None)) == named
    assert ids(saver.list({"configurable": {"thread_id": "a"}})) == [one for one in named if int(one) % 3 < 2]
    assert ids(saver.list(places[1])) == named[1::3]
    assert ids(saver.list(places[0], filter={"parity": 1})) == [one for one in named[2::3] if int(one) % 2]
    assert ids(saver.list(None, filter={"parity": 1}, limit=40)) == named[0:80:2]
    assert ids(saver.list(places[0], filter={"parity": 0, "step": 6})) == ["0006"]
    assert ids(saver.list(places[0], filter={"no such key": None}, limit=1)) == ["0087"]
    assert ids(saver.list(config_of("a", "sub:1", "0004"))) == ["0004"]
    assert ids(saver.list({"configurable": {"thread_id": "a", "checkpoint_id": "0004"}})) == ["0004"]
    assert ids(saver.list(None, limit=0)) == ids(saver.list(config_of("no such thread"))) == []
    assert ids(saver.list(None, before=config_of(checkpoint="0003"))) == ["0002", "0001", "0000"]
    paged: list[str] = []
    while page := ids(saver.list(None, before=config_of(checkpoint=paged[-1]) if paged else None, limit=7)):
        paged += page
    assert paged == named


def test_places_are_apart(saver: Any) -> None:
    thread = UUID(int=7)
    for number, (one, namespace) in enumerate(itertools.product(["a", 7, thread], ["", "node:1", "node:1|deep:2"])):
        put(saver, config_of(one, namespace), number, {"x": (one, namespace)})
    for number, (one, namespace) in enumerate(
        itertools.product(["a", "7", str(thread)], ["", "node:1", "node:1|deep:2"])
    ):
        found = saver.get_tuple(config_of(one, namespace))
        assert (found.config, found.parent_config) == (config_of(one, namespace, f"{number:04}"), None)
        assert str(found.checkpoint["channel_values"]["x"][0]) == one
    saver.delete_thread("a")
    assert len(list(saver.list(None))) == 6


def test_checkpoint_stored_again_replaces_the_first(saver: Any) -> None:
    first = put(saver, config_of(), 1, {"x": "a" * 100})
    second = put(saver, first, 2, {"x": "b" * 100})
    assert put(saver, second, 2, {"x": "c" * 100}) == second
    found = saver.get_tuple(second)
    assert (found.checkpoint["channel_values"], found.parent_config) == ({"x": "c" * 100}, first)
    assert ids(saver.list(config_of())) == ["0002", "0001"]


def test_fork_keeps_the_values_of_both_branches(saver: Any) -> None:
    text = [f"line {number} of a text that grows" for number in range(60)]
    at = config_of()
    configs = []
    for number in range(1, 51):
        at = put(saver, at, number, {"text": text[:number]})
        configs.append(at)
    forks = [put(saver, configs[9], 100 + k, {"text": [*text[:10], f"another line {k}"]}) for k in range(3)]
    forks.append(put(saver, forks[0], 200, {"text": [*text[:10], "another line 0", "and one more"]}))
    for number, config in enumerate(configs, 1):
        assert saver.get_tuple(config).checkpoint["channel_values"] == {"text": text[:number]}
    assert saver.get_tuple(config_of()).checkpoint["channel_values"]["text"][10:] == ["another line 0", "and one more"]
    assert saver.get_tuple(forks[2]).parent_config == configs[9]


def test_writes_are_kept_or_replaced_by_their_channels(saver: Any) -> None:
    config = put(saver, config_of(), 1)
    saver.put_writes(config, [("x", 1), ("y", 2)], "task 2", "path b")
    saver.put_writes(config, [("x", "ignored"), ("y", "ignored"), ("z", 3)], "task 2", "path b")
    saver.put_writes(config, [("x", 4)], "task 1", "path c")
    saver.put_writes(config, [("__resume__", 5)], "task 3")
    saver.put_writes(config, [("__resume__", 6)], "task 3")
    saver.put_writes(config, [("__error__", ValueError("no"))], "task 4")
    saver.put_writes(config, [], "task 5")
    expected = [
        ("task 3", "__resume__", 6),
        ("task 4", "__error__", "ValueError('no')"),
        ("task 2", "x", 1),
        ("task 2", "y", 2),
        ("task 2", "z", 3),
        ("task 1", "x", 4),
    ]
    assert saver.get_tuple(config).pending_writes == expected
    assert next(saver.list(config_of())).pending_writes == expected


def test_writes_may_come_before_their_checkpoint(saver: Any) -> None:
    saver.put_writes(config_of(checkpoint="0001"), [("x", 1)], "task")
    assert saver.get_tuple(config_of()) is None
    put(saver, config_of(), 1)
    assert saver.get_tuple(config_of()).pending_writes == [("task", "x", 1)]


def test_prune_keeps_what_is_needed(store: Store, saver: Any) -> None:
    at = config_of()
    for number in range(1, 41):
        values = {"text": [f"line {k} of a text that grows" for k in range(number)], f"other {number % 4}": "x" * 200}
        at = put(saver, at, number, values)
        saver.put_writes(at, [("x", number)], "task")
    latest = saver.get_tuple(config_of())
    saver.prune(["thread"])
    assert list(saver.list(config_of())) == [latest]
    assert (count(store, "checkpoints"), count(store, "writes")) == (1, 1)
    assert count(store, "values") < 41
    at = put(saver, at, 41, {"text": [*latest.checkpoint["channel_values"]["text"], "one more"]})
    assert saver.get_tuple(at).checkpoint["channel_values"]["text"][-2:] == ["line 39 of a text that grows", "one more"]
    saver.prune(["thread"], strategy="delete")
    assert [count(store, table) for table in ("checkpoints", "writes", "values")] == [0, 0, 0]


def test_deleting_runs_leaves_the_others(store: Store, saver: Any) -> None:
    at = config_of()
    for number in range(1, 31):
        at = put(
            saver, at, number, {"text": [f"line {k} of a text" for k in range(number)]}, run_id=f"run {number % 3}"
        )
    saver.delete_for_runs(["run 0", "run 2", "no such run"])
    found = list(saver.list(config_of()))
    assert ids(found) == [f"{number:04}" for number in range(28, 0, -3)]
    assert [len(one.checkpoint["channel_values"]["text"]) for one in found] == list(range(28, 0, -3))
    saver.delete_for_runs(["run 1"])
    assert saver.get_tuple(config_of()) is None
    assert count(store, "values") == 0


def test_copy_is_independent(opened: Open) -> None:
    saver: Any = LangGraphSaver(opened(cipher=XorCipher()), durability="process")
    at = config_of()
    for number in range(1, 31):
        at = put(saver, at, number, {"text": [f"line {k} of a text" for k in range(number)]})
    put(saver, config_of(namespace="sub"), 50, {"y": {1, 2}})
    saver.put_writes(at, [("x", (1, 2))], "task")
    saver.put_writes(config_of(checkpoint="later"), [("x", 3)], "task")
    before = list(saver.list({"configurable": {"thread_id": "thread"}}))
    saver.copy_thread("thread", "copy")
    saver.delete_thread("thread")
    after = list(saver.list({"configurable": {"thread_id": "copy"}}))
    assert [one[1:3] + one[4:] for one in after] == [one[1:3] + one[4:] for one in before]
    put(saver, config_of("copy", checkpoint="0030"), 31, {"text": ["new"]})
    with pytest.raises(ArgumentError, match=r"no thread 'thread' in "):
        saver.copy_thread("thread", "another")
    with pytest.raises(ArgumentError, match=r"thread 'copy' exists in .*: delete it first"):
        saver.copy_thread("copy", "copy")


class NotRegistered:
    pass


@pytest.mark.parametrize(
    "call, error, message",
    [
        (lambda s: s.get_tuple({}), ArgumentError, "config names no thread: pass {'configurable': {'thread_id'"),
        (lambda s: s.get_tuple(config_of("")), ArgumentError, "thread_id must have from 1 to 200 printable"),
        (lambda s: s.get_tuple(config_of(b"x")), ArgumentTypeError, "thread_id must be a string, not b'x'"),
        (lambda s: s.get_tuple(config_of(True)), ArgumentTypeError, "thread_id must be a string, not True"),
        (lambda s: s.get_tuple(config_of("x", "y" * 1501)), ArgumentError, "checkpoint_ns must have from 1 to 1,?500"),
        (lambda s: s.get_tuple(config_of("x", "ß" * 800)), ArgumentError, "checkpoint_ns has more than 1,500 bytes"),
        (lambda s: s.put_writes(config_of(), [("x", 1)], "task"), ArgumentError, "config has no checkpoint_id: pass"),
        (lambda s: s.list(None, limit=-1), ArgumentError, "limit must be at least 0, not -1"),
        (lambda s: s.list(None, filter="x"), ArgumentTypeError, "filter must be a dict of metadata, not 'x'"),
        (lambda s: s.prune("thread"), ArgumentTypeError, "thread_ids must be a list of ids, not 'thread'"),
        (
            lambda s: s.prune([], strategy="some"),
            ArgumentError,
            "strategy must be 'keep_latest' or 'delete', not 'some'",
        ),
        (lambda s: s.get_next_version("x.1"), ArgumentError, "the version 'x.1' of a channel is not a number"),
        (
            lambda s: put(s, config_of(), 1, {"x": "y" * 100, "state": {"found": [1, NotRegistered()]}}),
            CodecError,
            r"channel_values\['state'\]\['found'\]\[1\] is of type .*\.NotRegistered, which cannot be encoded: ",
        ),
        (lambda s: put(s, config_of(), 1, at=len), CodecError, r"metadata\['at'\] is of type builtin_function"),
        (
            lambda s: s.put_writes(config_of(checkpoint="1"), [("a", 1), ("b", [NotRegistered()])], "task"),
            CodecError,
            r"the write to 'b'\[0\] is of type .*\.NotRegistered, which cannot be encoded",
        ),
    ],
)
@pytest.mark.parametrize("opened", ["memory"], indirect=True)
def test_bad_input_is_refused_before_anything_is_written(
    store: Store, saver: Any, call: Any, error: Any, message: str
) -> None:
    with pytest.raises(error, match=message):
        call(saver)
    assert store.counts.transactions == 0


def test_store_is_checked() -> None:
    with pytest.raises(ArgumentTypeError, match="store must be a MemoryStore, SQLiteStore or PostgresStore, not 'x'"):
        LangGraphSaver("x")  # type: ignore[arg-type]


def test_versions_go_on_in_their_form(saver: Any) -> None:
    versions = [None, 3, 2.5, "00000000000000000000000000000009.0.123", "7"]
    assert [saver.get_next_version(one) for one in versions] == [
        1,
        4,
        3.5,
        "00000000000000000000000000000010.0.123",
        "8",
    ]
