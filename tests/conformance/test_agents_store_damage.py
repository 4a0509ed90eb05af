"""Damaged stores of agents and stores with planted data are read correctly or refused.

``GPU_PREGEL_TESTS=all`` reads 500 damaged copies.
"""

from __future__ import annotations

import os
import pickle
import random
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import AgentsFailedError, CodecError, StoreError
from gpu_pregel.host.agents.codec import encode
from gpu_pregel.host.agents.codec import types as codec_types
from gpu_pregel.host.agents.formats import SCHEMA, Segment
from gpu_pregel.host.agents.records import Record
from gpu_pregel.host.agents.records import VertexData as StoredVertex
from gpu_pregel.host.agents.state import State
from gpu_pregel.host.agents.state_format import pack_state
from gpu_pregel.host.stores.blobs import BlobFormat, context_of
from gpu_pregel.host.stores.database import WriteOutcome
from tests import crashes as crashing
from tests.agents import result_bytes
from tests.conformance.agent_programs import GROWING, GROWING_VERTICES
from tests.crashes import HELD, RUN, STEP
from tests.devices import EXHAUSTIVE
from tests.stores import check_damaged_copies

_DAMAGES = 500 if EXHAUSTIVE else 60
"""Number of damaged copies of a store."""


# Damage


def flip(path: Path, part: str) -> None:
    """Flip a byte in the file, in the middle of the data that a query selects."""
    with closing(sqlite3.connect(path)) as connection:
        (found,) = connection.execute(part).fetchone()
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    whole = bytearray(path.read_bytes())
    assert whole.count(found) == 1
    whole[whole.index(found) + len(found) // 2] ^= 0x10
    path.write_bytes(whole)


@pytest.mark.parametrize(
    ("part", "step", "segment"),
    [
        ("SELECT data FROM commits WHERE step = 2", 2, None),
        ("SELECT data FROM segments WHERE step = 2 AND number = 1", 2, 1),
        ("SELECT data FROM bases WHERE part = 1", -1, None),
        ("SELECT seal FROM commits WHERE step = 2", 2, None),
        ("SELECT seal FROM metas", None, None),
        ("SELECT seal FROM runs", None, None),
    ],
)
def test_a_flipped_byte_is_located_in_the_error(
    path: Path, tmp_path: Path, part: str, step: int | None, segment: int | None
) -> None:
    log = str(tmp_path / "log")
    with gp.SQLiteStore(path) as store:
        whole = crashing.run_to_end(
            gp.agents.start(crashing.VERTICES, run_id=RUN, store=store, **crashing.program(log))
        )
    flip(path, part)
    with gp.SQLiteStore(path) as store:
        reads: list[Callable[[], Any]] = [
            lambda: gp.agents.state_at(store, RUN),
            lambda: gp.agents.resume(store, RUN, **crashing.program(log)),
        ]
        for read in reads:
            with pytest.raises(StoreError, match=r"damaged|checksum") as caught:
                read()
            error = caught.value
            assert (error.store, error.run, error.step, error.segment) == (str(path), RUN, step, segment)
        if step == STEP:
            assert gp.agents.state_at(store, RUN, STEP - 1).superstep == STEP
            gp.agents.fork(store, RUN, STEP - 1, "fork")
            forked = crashing.run_to_end(gp.agents.reopen(store, "fork", **crashing.program(log)))
            assert list(forked.vertices) == list(whole.vertices)


def test_a_flipped_byte_in_an_answer_is_located_in_the_error(path: Path, tmp_path: Path) -> None:
    program = crashing.program(str(tmp_path / "log"))
    with (
        gp.SQLiteStore(path) as store,
        gp.agents.start(crashing.VERTICES, run_id=RUN, store=store, **program) as agents,
    ):
        while agents.step():
            pass
        agents.answer("asks", "a long answer that is in no other place")
    flip(path, "SELECT data FROM answers")
    with gp.SQLiteStore(path) as store:
        with pytest.raises(StoreError, match="superstep 3") as caught:
            gp.agents.resume(store, RUN, **program)
        assert (caught.value.run, caught.value.step) == (RUN, HELD)
        assert gp.agents.state_at(store, RUN, HELD - 1).superstep == HELD


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, list[bytes]]:
    """A store with a run that used every feature and one that is held, and their states after each superstep."""
    folder = tmp_path_factory.mktemp("example")
    program = crashing.program(str(folder / "log"))
    with gp.SQLiteStore(folder / "runs.db") as store:
        options = {**program, "store": store, "durability": "process"}
        crashing.run_to_end(gp.agents.start(crashing.VERTICES, run_id=RUN, base_every=4, **options))
        with gp.agents.start(crashing.VERTICES, run_id="held", **options) as agents:
            while agents.step():
                pass
            agents.send("a", "from outside")
            agents.answer("asks", "blue")
        gp.agents.run(GROWING_VERTICES, **GROWING, run_id="grown", store=store, durability="process")
        gp.agents.fork(store, RUN, 2, "fork")
        expected = everything(store)
    return (folder / "runs.db").read_bytes(), expected


def everything(store: gp.SQLiteStore) -> list[bytes]:
    """Everything that can be read of all runs."""
    heads = {RUN: (-1, 5), "held": (-1, 2), "grown": (-1, 5), "fork": (2, 2)}
    return [
        result_bytes(gp.agents.state_at(store, run_id, step))
        for run_id, (first, head) in heads.items()
        for step in [None, *range(first, head + 1)]
    ]


def test_damaged_copies_are_read_correctly_or_refused(example: tuple[bytes, list[bytes]], path: Path) -> None:
    whole, expected = example
    check_damaged_copies(whole, path, _DAMAGES, everything, expected)


def test_damaged_copies_resume_correctly_or_are_refused(path: Path) -> None:
    chance = random.Random(_DAMAGES)
    program = crashing.program(str(path.with_name("log")))
    with (
        gp.SQLiteStore(path) as store,
        gp.agents.start(crashing.VERTICES, run_id="held", store=store, **program) as agents,
    ):
        while agents.step():
            pass
        agents.answer("asks", "blue")
    whole = path.read_bytes()
    with gp.SQLiteStore(path) as store:
        finished = result_bytes(crashing.run_to_end(gp.agents.reopen(store, "held", **program)))
    resumed = refused = 0
    for _ in range(_DAMAGES // 5):
        damaged = bytearray(whole)
        damaged[chance.randrange(len(whole))] ^= 1 << chance.randrange(8)
        path.write_bytes(damaged)
        try:
            with gp.SQLiteStore(path) as store:
                assert result_bytes(crashing.run_to_end(gp.agents.reopen(store, "held", **program))) == finished
                resumed += 1
        except StoreError:
            refused += 1
        for leftover in path.parent.iterdir():
            leftover.unlink()
    assert resumed > 0
    assert refused > 0


# Data that is not a run


class Bomb:
    """Runs code when it is unpickled."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.mark),)


def plants(mark: Path) -> list[bytes]:
    """Data that an attacker could put into a store to have it executed."""
    from dataclasses import make_dataclass

    planted = [pickle.dumps(Bomb(mark), protocol) for protocol in (0, 2, 5)]
    for name in ("os.system", "subprocess:Popen", "this", "antigravity.fly", "gpu_pregel.agents.AgentRun", "__main__"):
        kind = make_dataclass("Kind", ["args"])
        codec_types.register(kind, name)
        planted.append(encode(kind(f"mkdir {mark}")))
        codec_types._remove(codec_types.by_name[name])
    valid = encode((1, "x", [b"y"], {"z": 2.5}))
    planted += [bytes([tag]) + valid for tag in range(256)]
    return planted


def check_nothing_happened(mark: Path, modules: set[str]) -> None:
    assert not mark.exists()
    assert not {"this", "antigravity"} & set(sys.modules)
    assert {name for name in set(sys.modules) - modules if not name.startswith("gpu_pregel.")} == set()


def test_planted_data_in_a_store_is_refused(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    planted = plants(mark)
    good_base = pack_state(State({encode(1): StoredVertex(encode(0), ())}, {}, {}, "compute"))
    commit: tuple[Any, ...] = {}, "compute", [], [], [], {"superstep": 0}
    good_commit = encode((*commit, None))
    store = gp.MemoryStore()
    modules: set[str] = set()

    def compute(ctx: Any) -> None:
        ctx.value = ctx.value + 1
        ctx.vote_to_halt()

    for number, data in enumerate(planted):
        commits = {"commit": data, "inside": encode((*commit, data)), "segment": good_commit}
        for place in ("base", *commits, "held"):
            run_id, base = f"{place} {number}", data if place == "base" else good_base
            claim = store.create(run_id, "agents", base, owner="somebody", schema=SCHEMA)
            if place == "held":
                store.flush(claim, 0, [data])
            elif place != "base":
                store.commit(claim, 0, commits[place], [data] if place == "segment" else [])
            store.release(claim)
            reads: list[Any] = [gp.agents.state_at, partial(gp.agents.resume, compute=compute)]
            if place == "held":
                reads.append(partial(gp.agents.answer, vertex=1, answer=2))
            for read in reads:
                with pytest.raises(StoreError, match="holds data that cannot be read") as caught:
                    read(store, run_id)
                assert caught.value.run == run_id
            modules = modules or set(sys.modules)
            check_nothing_happened(mark, modules)


FAILED, INTERRUPTED, RETRIED, SENT, RECEIVED = range(5)
"""The codes of the kinds of parts."""


@pytest.mark.parametrize(
    "event",
    [
        (),
        (9, b"vertex"),
        (-1, b"vertex", b""),
        (FAILED, encode(1)),
        (FAILED, encode(1), 1, None, False),
        (FAILED, encode(1), 1, ("exception",), False),
        (INTERRUPTED, encode(1), 1, None, 0),
        (RETRIED, 1),
        (SENT, encode(1), "message"),
        (RECEIVED, encode(1)),
        "event",
        [0],
    ],
    ids=str,
)
def test_impossible_events_are_refused(event: Any) -> None:
    store, state = gp.MemoryStore(), State({encode(1): StoredVertex(encode(0), ())}, {}, {}, "compute")
    claim = store.create("run", "agents", pack_state(state), owner="somebody", schema=SCHEMA)
    store.flush(claim, 0, [encode((*Segment().columns()[:-1], [event]))])
    store.release(claim)
    for read in (gp.agents.state_at, partial(gp.agents.resume, compute=lambda ctx: None)):
        with pytest.raises(StoreError, match="superstep 0, segment 0: holds data that cannot be read"):
            read(store, "run")


def test_planted_values_are_data_or_refused(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    store = gp.MemoryStore()
    modules: set[str] = set()

    def compute(ctx: Any) -> None:
        ctx.value = [ctx.value, ctx.messages]
        ctx.vote_to_halt()

    for number, data in enumerate(plants(mark)):
        run_id = str(number)
        records = [(encode(1), Record(data, False, [(encode(1), data)], [], []))]
        claim = store.create(
            run_id,
            "agents",
            pack_state(State({encode(1): StoredVertex(data, ())}, {}, {}, "compute")),
            owner="somebody",
            schema=SCHEMA,
        )
        commit = encode(({}, "compute", [], [], [], {"superstep": 0}, Segment(records).columns()))
        store.commit(claim, 0, commit, Segment(records).pack() if number % 2 else [])
        store.release(claim)
        try:
            repr(gp.agents.state_at(store, run_id).values)
        except (CodecError, StoreError):  # StoreError for a difference
            # CodecError for the messages of a failed vertex
            with pytest.raises((AgentsFailedError, CodecError, StoreError)):
                gp.agents.resume(store, run_id, compute)
        modules = modules or set(sys.modules)
        check_nothing_happened(mark, modules)


@pytest.mark.parametrize("contents", [b"\xff", b"x base", b"", b"1 other"], ids=str)
def test_a_base_with_a_planted_table_of_contents_is_refused(contents: bytes) -> None:
    store = gp.MemoryStore()
    store.release(store.create("run", "agents", b"state", owner="somebody", schema=SCHEMA))
    seal, data = BlobFormat(None).encode(context_of("base", "run", -1, 0), contents)
    update = "UPDATE bases SET seal = ?, data = ? WHERE part = 0"
    assert store._database.apply(True, (update, (seal, data)), ()) is WriteOutcome.COMMITTED
    with pytest.raises(StoreError, match=r"table of contents|is missing") as caught:
        store.load("run")
    assert (caught.value.run, caught.value.step) == ("run", -1)
