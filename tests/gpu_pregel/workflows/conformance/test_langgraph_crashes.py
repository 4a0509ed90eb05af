"""LangGraphSaver after crashes, with several writers, with damaged and encrypted rows, and with many threads."""

from __future__ import annotations

import random
import signal
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import StoreError
from gpu_pregel.host.stores.store import Store
from tests.packages import needs
from tests.stores import Open, XorCipher, begin, check_damaged_copies, execute, output, python, run_together

needs("langgraph.checkpoint.conformance", "test")

from langgraph.checkpoint.sqlite import SqliteSaver  # noqa: E402

from gpu_pregel.workflows import LangGraphSaver  # noqa: E402
from tests.gpu_pregel.workflows.checkpoints import config_of, ids, put  # noqa: E402

GRAPH = """
    import operator, os, signal, sys, time
    from typing import Annotated, Any, TypedDict
    from langgraph.graph import START, StateGraph
    from langgraph.types import Command, interrupt
    import gpu_pregel as gp
    from gpu_pregel.workflows import LangGraphSaver

    class State(TypedDict):
        log: Annotated[list, operator.add]

    def node(name):
        def run(state):
            with open(sys.argv[2], "a") as log:
                print(name, file=log)
            if name == "crashes" and sys.argv[3] == "first":
                while not any(task.name == "works" and task.result for task in graph.get_state(thread).tasks):
                    time.sleep(0.01)  # until its sibling is on record
                os.kill(os.getpid(), signal.SIGKILL)
            if name == "asks":
                return {"log": [(name, interrupt("question"))]}
            return {"log": [(name, len(state["log"]))]}
        return run

    names = ["begins", "works", "crashes", "asks"]
    builder = StateGraph(State)
    for name in names:
        builder.add_node(name, node(name))
    builder.add_edge(START, "begins").add_edge("begins", "works").add_edge("begins", "crashes")
    builder.add_edge(["works", "crashes"], "asks")
    thread = {"configurable": {"thread_id": "thread"}}
    with gp.SQLiteStore(sys.argv[1]) as store:
        graph = builder.compile(checkpointer=LangGraphSaver(store))
        for action in [{"log": []}] if sys.argv[3] == "first" else [None, Command(resume=("yes", {1}))]:
            graph.invoke(action, thread, durability="sync")
            print((graph.get_state(thread).values["log"], graph.get_state(thread).next))
"""


def test_graph_resumes_after_a_crash(tmp_path: Path) -> None:
    paths = tmp_path / "runs.db", tmp_path / "log"
    crashed = python(GRAPH, *paths, "first")
    crashed.communicate(timeout=100)
    assert crashed.returncode == -signal.SIGKILL
    assert sorted(paths[1].read_text().split()) == ["begins", "crashes", "works"]
    log = [("begins", 0), ("crashes", 1), ("works", 1)]
    held, ended = output(python(GRAPH, *paths, "second")).splitlines()
    assert held == repr((log, ("asks",)))
    assert ended == repr(([*log, ("asks", ("yes", {1}))], ()))
    # What was on record did not run again.
    assert sorted(paths[1].read_text().split()) == ["asks", "asks", "begins", "crashes", "crashes", "works"]


KILLED = """
    import os, signal, sys
    import gpu_pregel as gp
    from gpu_pregel.workflows import LangGraphSaver
    from tests.gpu_pregel.workflows.checkpoints import config_of, put

    store = gp.SQLiteStore(sys.argv[1])
    saver = LangGraphSaver(store)
    whole = saver.get_tuple(config_of())
    apply = store._database.apply

    def rest(statements, count):
        for number, statement in enumerate(statements):
            if number == count:
                os.kill(os.getpid(), signal.SIGKILL)
            yield statement
        os.kill(os.getpid(), signal.SIGKILL)

    store._database.apply = lambda forced, first, others: apply(forced, first, rest(others, int(sys.argv[3])))
    text = [*whole.checkpoint["channel_values"]["text"], "the last line"]
    if sys.argv[2] == "put":
        put(saver, whole.config, 30, {"text": text, "another": "y" * 300})
    elif sys.argv[2] == "prune":
        saver.prune(["thread"])
    elif sys.argv[2] == "copy":
        saver.copy_thread("thread", "copy")
    else:
        saver.put_writes(whole.config, [("x", 1), ("y", 2), ("z", 3)], "another task")
"""


@pytest.mark.parametrize("action, count", [("put", 2), ("put", 9), ("prune", 3), ("copy", 5), ("writes", 1)])
def test_kill_in_a_transaction_leaves_the_former_state(tmp_path: Path, action: str, count: int) -> None:
    path = tmp_path / "runs.db"
    with gp.SQLiteStore(path) as store:
        grow(LangGraphSaver(store), 12)
        before = list(LangGraphSaver(store).list(None))
    killed = python(KILLED, path, action, count)
    _, error = killed.communicate(timeout=100)
    assert killed.returncode == -signal.SIGKILL, error
    with gp.SQLiteStore(path) as store:
        saver: Any = LangGraphSaver(store)
        assert list(saver.list(None)) == before
        put(saver, before[0].config, 31, {"text": ["new"]})
        assert len(list(saver.list(None))) == len(before) + 1


def grow(saver: Any, steps: int, thread: str = "thread") -> None:
    """Store a growing list, and two writes after each checkpoint."""
    at = config_of(thread)
    for number in range(1, steps + 1):
        at = put(
            saver, at, number, {"text": [f"line {k} of a text that grows" for k in range(3 * number)]}, run_id="run"
        )
        saver.put_writes(at, [("x", number), ("y", "z" * 100)], "task")


WRITER = """
    import sys
    import gpu_pregel as gp
    from gpu_pregel.workflows import LangGraphSaver
    from tests.gpu_pregel.workflows.checkpoints import config_of, put
    *where, first = sys.argv[1:]
    with {opening} as store:
        saver = LangGraphSaver(store, durability="process")
        print("ready", flush=True)
        sys.stdin.readline()
        for number in range(int(first), 40, 2):
            found = saver.get_tuple(config_of())
            text = found.checkpoint["channel_values"]["text"] if found else []
            place = found.config if found else config_of()
            config = put(saver, place, number, {{"text": [*text, "x" * 50 + str(number)]}})
            saver.put_writes(config, [("x", number)], "task")
"""


@pytest.mark.parametrize("opened", ["sqlite", "postgres"], indirect=True)
def test_two_programs_may_write_to_one_thread(opened: Open, request: pytest.FixtureRequest) -> None:
    store: Any = opened()
    if isinstance(store, gp.SQLiteStore):
        opening, where = "gp.SQLiteStore(where[0])", [store.name]
    else:
        opening, where = (
            "gp.PostgresStore(where[0], schema=where[1])",
            [
                request.getfixturevalue("postgres"),
                store._database._schema,
            ],
        )
    program = WRITER.format(opening=opening)
    run_together(*(python(program, *where, first) for first in (0, 1)))
    found = list(LangGraphSaver(store).list(config_of()))
    assert ids(found) == [f"{number:04}" for number in range(39, -1, -1)]
    values = {one.config["configurable"]["checkpoint_id"]: one.checkpoint["channel_values"]["text"] for one in found}
    for one in found:
        own = "x" * 50 + str(one.metadata["step"])
        parent = one.parent_config and values[one.parent_config["configurable"]["checkpoint_id"]]
        assert one.checkpoint["channel_values"]["text"] == [*(parent or []), own]
        assert one.pending_writes == [("task", "x", one.metadata["step"])]


DAMAGES = [
    ("checkpoints SET data = seal WHERE id = '0007'", "checkpoint 0007: its row is damaged"),
    ("checkpoints SET parent = '0003' WHERE id = '0007'", "checkpoint 0007: its row is damaged .its checksum"),
    ("checkpoints SET run = 'other' WHERE id = '0007'", "checkpoint 0007: its row is damaged .its checksum"),
    ("writes SET data = seal WHERE checkpoint = '0007'", "checkpoint 0007: write 0 of task 'task' is damaged"),
    (
        "writes SET number = 5 WHERE checkpoint = '0007' AND number = 1",
        "checkpoint 0007: write 5 of task 'task' is dam",
    ),
    ("values SET data = seal", "checkpoint 0012: a value is damaged"),
    ("values SET position = 1000 WHERE position = 1", r"checkpoint 0012: rows of chain \d of its values are missing"),
]


@pytest.mark.parametrize("change, message", DAMAGES)
def test_damaged_rows_name_thread_and_checkpoint(store: Store, change: str, message: str) -> None:
    saver: Any = LangGraphSaver(store, durability="process")
    begin(store)
    grow(saver, 12)
    grow(saver, 3, "another")
    table, _, rest = change.partition(" ")
    execute(store, f"UPDATE @thread_{table} {rest}")
    with pytest.raises(StoreError, match=rf"thread 'thread', {message}.*: restore a copy of the store, or continue"):
        list(saver.list(config_of()))


@pytest.mark.parametrize(
    "deletion, message",
    [
        ("checkpoints WHERE id = '0012'", "thread 'thread', checkpoint 0012: is missing"),
        ("writes WHERE checkpoint = '0012' AND number = 0", "checkpoint 0012: writes of task 'task' are missing"),
        ("values WHERE position = 1", r"checkpoint 0012: rows of chain \d of its values are missing"),
    ],
)
def test_missing_rows_are_detected(store: Store, deletion: str, message: str) -> None:
    saver: Any = LangGraphSaver(store, durability="process")
    begin(store)
    grow(saver, 12)
    execute(store, f"DELETE FROM @thread_{deletion}")
    with pytest.raises(StoreError, match=message):
        saver.get_tuple(config_of())


def test_missing_checkpoint_is_detected_by_a_list(store: Store) -> None:
    saver: Any = LangGraphSaver(store, durability="process")
    begin(store)
    grow(saver, 12)
    execute(store, "DELETE FROM @thread_checkpoints WHERE id = '0005'")
    for config in (config_of(), {"configurable": {"thread_id": "thread"}}):
        with pytest.raises(StoreError, match=r"12 checkpoints, but 11 are found"):
            list(saver.list(config))


def test_damaged_copies_are_read_correctly_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "whole" / "runs.db"
    path.parent.mkdir()
    with gp.SQLiteStore(path) as store:
        for thread in ("a", "b"):
            grow(LangGraphSaver(store, durability="process"), 12, thread)
        expected = values_of(store)
    damaged = tmp_path / "damaged" / "runs.db"
    damaged.parent.mkdir()
    check_damaged_copies(path.read_bytes(), damaged, 150, values_of, expected)


def values_of(store: Any) -> list[Any]:
    """Return the checkpoints of both threads, without writes: losing all of a task runs it again."""
    saver = LangGraphSaver(store)
    return [[one[:4] for one in saver.list(config_of(thread))] for thread in ("a", "b")]


@pytest.mark.parametrize("opened", ["sqlite", "postgres"], indirect=True)
def test_encryption_hides_values(opened: Open) -> None:
    store = opened(cipher=XorCipher())
    saver: Any = LangGraphSaver(store)
    config = put(saver, config_of(), 1, {"x": "secret words " * 20, "short": "secret words"}, note="secret words")
    saver.put_writes(config, [("x", "secret words")], "task")
    for table in ("checkpoints", "values", "writes"):
        rows = store._database.query(f"SELECT seal, data FROM {store._database.dialect.prefix}thread_{table}", ())
        assert rows
        assert not any(b"secret words" in bytes(cell) for row in rows for cell in row)
    with pytest.raises(StoreError, match="checkpoint 0001: its row is encrypted: open the store with the cipher="):
        LangGraphSaver(opened()).get_tuple(config)
    assert saver.get_tuple(config).metadata["note"] == "secret words"


def test_growing_chat_takes_less_space_than_with_the_saver_of_langgraph(tmp_path: Path) -> None:
    sizes = {}
    with gp.SQLiteStore(tmp_path / "ours.db") as store, closing(sqlite3.connect(tmp_path / "peer.db")) as connection:
        chance = random.Random(1)
        text = [f"{chance.getrandbits(400):0100x}" for _ in range(200)]
        savers: dict[str, Any] = {"ours": LangGraphSaver(store, durability="process"), "peer": SqliteSaver(connection)}
        for saver in savers.values():
            at = config_of()
            for number in range(1, 201):
                at = put(saver, at, number, {"text": text[:number], "constant": "x" * 1000})
            assert saver.get_tuple(at).checkpoint["channel_values"]["text"] == text
        sums = [
            store._database.query(f"SELECT COUNT(*), SUM(LENGTH(data)) FROM thread_{table}", ())[0]
            for table in ("checkpoints", "values")
        ]
        assert [rows for rows, _ in sums] == [200, 201]  # the constant is stored once
        sizes["ours"] = sum(size for _, size in sums)
        sizes["peer"] = connection.execute("SELECT SUM(LENGTH(checkpoint)) FROM checkpoints").fetchone()[0]
    assert sizes["ours"] < 60 * len("".join(text))
    assert sizes["peer"] > 10 * sizes["ours"]


def test_one_thread_among_thousands_is_found_by_its_index(store: Store) -> None:
    saver: Any = LangGraphSaver(store, durability="process")
    for number in range(300):
        put(saver, config_of(f"thread {number}"), number, {"x": number})
    queries: list[int] = []
    query = store._database.query

    def counting(sql: str, parameters: Any) -> Any:
        rows = query(sql, parameters)
        queries.append(len(rows))
        return rows

    store._database.query = counting  # type: ignore[method-assign]
    assert saver.get_tuple(config_of("thread 7")).checkpoint["channel_values"] == {"x": 7}
    assert ids(saver.list(config_of("thread 7"))) == ["0007"]
    assert sum(queries) < 10
    saver.delete_thread("thread 7")
    assert sum(queries) < 20


def test_store_that_is_only_read(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with gp.SQLiteStore(path) as store:
        begin(store)
    for steps in (0, 3):
        with gp.SQLiteStore(path, read_only=True) as store:
            saver: Any = LangGraphSaver(store)
            assert len(list(saver.list(None))) == steps
            assert (saver.get_tuple(config_of()) is None) == (steps == 0)
            with pytest.raises(StoreError, match="was opened with read_only=True"):
                put(saver, config_of(), 9)
        with gp.SQLiteStore(path) as store:
            grow(LangGraphSaver(store), 3)
    with pytest.raises(StoreError, match="is closed: open it again"):
        LangGraphSaver(store)
