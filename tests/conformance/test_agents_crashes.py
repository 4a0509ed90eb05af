"""Programs killed at each crash point or stopped while another takes over, and stores that fail or are damaged.

What is asserted each time: the bytes of an undisturbed run; one contributing record per superstep and vertex; an effect
for each key, and no second one where a record was durable. ``GPU_PREGEL_TESTS=all`` runs every variant.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, ClaimedError
from gpu_pregel.host.agents.codec import encode
from gpu_pregel.host.stores.store import Store
from tests import agents
from tests import crashes as crashing
from tests.crashes import HELD, RUN, STEP, effects, recorded
from tests.devices import LONG
from tests.worker_faults import arm

_ROOT = Path(__file__).parents[2]
_names = itertools.count()


class Case(NamedTuple):
    """A crash point, a number of workers and a kind of store."""

    point: str
    workers: int
    kind: str


BOTH = ("sqlite", "postgres")
POINTS: list[tuple[str, tuple[int, ...], tuple[str, ...]]] = [
    # A point and the place in it, numbers of workers, kinds of stores. The first combination runs by default.
    ("1", (0,), BOTH),
    ("1 INSERT INTO bases", (0,), BOTH),
    ("2", (0, 2), BOTH),
    ("3", (2,), BOTH),
    ("4", (2, 0), BOTH),
    ("5", (0, 2), BOTH),
    ("6 pipe", (2,), BOTH),
    ("6", (0,), BOTH),
    ("7", (2, 0), BOTH),
    ("8 INSERT INTO segments", (0, 2), BOTH),
    ("8", (2, 0), BOTH),
    ("9", (0, 2), BOTH),
    ("10", (2, 0), BOTH),
    ("11", (0, 2), BOTH),
    ("12", (2, 0), BOTH),
    ("13", (0, 2), BOTH),
    ("14 INSERT INTO commits", (0, 2), BOTH),
    ("14 UPDATE runs", (0,), ("sqlite",)),
    ("14", (2, 0), BOTH),
    ("15", (0, 2), BOTH),
    ("16 worker", (2,), BOTH),
    ("16", (0,), BOTH),
    ("17", (0, 2), BOTH),
    ("18", (2, 0), BOTH),
    ("19", (0, 2), BOTH),
    ("20", (2, 0), BOTH),
    ("21", (0, 2), BOTH),
    ("22", (0, 2), BOTH),
    ("22 after", (2, 0), BOTH),
    ("22 told", (0, 2), BOTH),
    ("23", (0, 2), BOTH),
    ("23 COMMIT", (0,), BOTH),
    ("23 background", (0, 2), BOTH),
    ("23 DELETE FROM commits", (0,), BOTH),
    ("24", (0,), BOTH),
    ("24 COMMIT", (0,), BOTH),
    ("24 after", (0,), BOTH),
]


def cases() -> list[Any]:
    """All variants; by default the first of each point on SQLite and three on PostgreSQL run."""
    found: list[Any] = []
    seen: set[tuple[str, str]] = set()
    for point, numbers, kinds in POINTS:
        for kind, workers in itertools.product(kinds, numbers):
            first = (point.split()[0], kind)
            if point == "23 background":
                first = (point, kind)
            quick = first not in seen and (kind == "sqlite" or first[0] in ("8", "14", "21"))
            seen.add(first)
            marks = () if quick else LONG
            found.append(pytest.param(Case(point, workers, kind), id=f"{point}-{workers}-{kind}", marks=marks))
    return found


@pytest.fixture
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The location of a case's store; a SQLite file if there is no case."""
    case = request.node.callspec.params.get("case") if hasattr(request.node, "callspec") else None
    if case is not None and case.kind == "postgres":
        return f"{request.getfixturevalue('postgres')}|crashes_{next(_names)}"
    return str(tmp_path / "runs.db")


def launch(where: str, log: Path, point: str, **given: Any) -> subprocess.Popen[str]:
    """Start the program in its own process."""
    content = {"do": "run", "workers": 0, "signal": "SIGKILL", "options": {}, **given}
    content |= {"store": where, "log": str(log), "point": point}
    return subprocess.Popen(
        [sys.executable, "-m", "tests.crashes", json.dumps(content)], cwd=_ROOT, text=True, stderr=subprocess.PIPE
    )


def crash(where: str, log: Path, point: str, **given: Any) -> None:
    """Run the program until it is killed; with the point "none", to its end."""
    process = launch(where, log, point, **given)
    _, err = process.communicate(timeout=200)
    assert process.returncode == (0 if point == "none" else -signal.SIGKILL), err


def resume(store: Store, log: Path, run_id: str = RUN, **options: Any) -> gp.agents.AgentResult:
    """Resume a run to its end and answer its questions."""
    options = {**crashing.program(str(log)), "takeover": True, **options}
    result = gp.agents.resume(store, run_id, **options)
    while result.interrupts:
        answers = dict.fromkeys(result.interrupts, "blue")
        result = gp.agents.resume(store, run_id, answers=answers, **options)
    return result


@cache
def undisturbed(folder: Path, run_id: str = RUN) -> tuple[bytes, Counter[str]]:
    """The result and the effects of an undisturbed run."""
    log = folder / f"undisturbed {run_id}"
    begun = gp.agents.start(crashing.VERTICES, run_id=run_id, **crashing.program(str(log)))
    return left(crashing.run_to_end(begun)), effects(log)


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, Counter[str]]:
    whole = undisturbed(tmp_path_factory.mktemp("undisturbed"))
    assert set(whole[1].values()) == {1}
    return whole


def left(result: gp.agents.AgentResult) -> bytes:
    """The codec bytes of a result."""
    return encode((agents.rows(result), result.status, result.superstep, result.aggregates))


def check(
    store: Store, log: Path, result: gp.agents.AgentResult, expected: tuple[bytes, Counter[str]], before: Counter[str],
    durable: Counter[tuple[int, Any]],
) -> None:  # fmt: skip
    """Assert what must hold after each crash; ``before`` and ``durable`` are the effects and records at that time."""
    whole, wanted = expected
    assert left(result) == whole
    assert left(gp.agents.state_at(store, RUN)) == whole
    keys = {(int(line.split()[0]), line.split()[1]): line for line in wanted}
    assert recorded(store) == Counter(keys.keys())
    after = effects(log)
    assert after.keys() == wanted.keys()
    for place, line in keys.items():
        assert after[line] == before[line] if place in durable else after[line] <= before[line] + 1, line


# The crash points


@pytest.mark.parametrize("case", cases())
def test_a_run_killed_at_a_crash_point_resumes_to_the_same_result(
    case: Case, where: str, tmp_path: Path, expected: tuple[bytes, Counter[str]]
) -> None:
    log = tmp_path / "log"
    number, _, variant = case.point.partition(" ")
    options: dict[str, Any] = {"base_every": 3} if number == "23" else {}
    given: dict[str, Any] = {"workers": case.workers, "options": options}
    if number == "21":
        crash(where, log, "9", **given)
        given["do"] = "resume"
    if number == "24" or variant.startswith("DELETE"):
        crash(where, log, "none", **given)
        given["do"] = "fork" if number == "24" else "fold"
    crash(where, log, case.point, **given)
    before = effects(log)
    with crashing.open_store(where) as store:
        try:
            durable = recorded(store)
        except ArgumentError:
            assert number == "1"
            begun = gp.agents.start(
                crashing.VERTICES, run_id=RUN, store=store, **crashing.program(str(log), case.workers)
            )
            result, durable = crashing.run_to_end(begun), Counter()
        else:
            assert number != "1"
            result = resume(store, log, workers=case.workers, **options)
        check(store, log, result, expected, before, durable)
        assert set(before.values()) <= {1}
        check_own(case, store, tmp_path)


def check_own(case: Case, store: Store, path: Path) -> None:
    """Assert what holds for one point only."""
    number, _, variant = case.point.partition(" ")
    if number == "23":
        steps = [row.step for row in store.history(RUN) if row.base]
        assert steps == ([HELD] if variant == "background" else [STEP, 2 * STEP + 1])
    if number == "24":
        ids = [row.id for row in store.runs()]
        assert ids == ([RUN, "fork"] if variant == "after" else [RUN])
        if variant != "after":
            gp.agents.fork(store, RUN, STEP, "fork")
        store.delete(RUN)
        log = path / "fork's log"
        forked = resume(store, log, "fork")
        gp.agents.fork(store, "fork", STEP, "another")
        assert agents.rows(forked) != agents.rows(resume(store, log, "another"))  # it has its own random numbers
        assert set(effects(log).values()) == {1}


def test_all_crash_points_are_covered() -> None:
    assert {int(point.split()[0]) for point, *_ in POINTS} == set(range(1, 25))


def test_a_run_is_resumed_after_its_lease_expires(
    tmp_path: Path, where: str, expected: tuple[bytes, Counter[str]]
) -> None:
    log = tmp_path / "log"
    crash(where, log, "9", options={"lease_seconds": 1.0})
    begin, before = time.monotonic(), effects(log)
    with crashing.open_store(where) as store:
        durable = recorded(store)
        while True:
            try:
                result = resume(store, log, takeover=False)
                break
            except ClaimedError:
                assert time.monotonic() - begin < 200
                time.sleep(0.05)
        check(store, log, result, expected, before, durable)


# Workers that die


@pytest.mark.parametrize("place", ["loading", "idle", "computing", "marked", "torn", "committing"])
def test_a_killed_worker_is_replaced(
    place: str, where: str, tmp_path: Path, expected: tuple[bytes, Counter[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    log, mark = tmp_path / "log", tmp_path / "mark"
    arm(monkeypatch, place, 1 if place == "loading" else 4, mark)
    with crashing.open_store(where) as store:
        begun = gp.agents.start(crashing.VERTICES, run_id=RUN, store=store, **crashing.program(str(log), 2))
        result = crashing.run_to_end(begun)
        assert mark.exists()
        check(store, log, result, expected, effects(log), Counter())
        if place not in ("computing", "torn"):  # there is no record yet, or only half a frame
            assert set(effects(log).values()) == {1}


@pytest.mark.parametrize("place", ["computing", "torn"])
def test_a_worker_is_killed_and_then_its_master(
    place: str, where: str, tmp_path: Path, expected: tuple[bytes, Counter[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    log, mark = tmp_path / "log", tmp_path / "mark"
    arm(monkeypatch, place, 10 if place == "computing" else 3, mark)
    crash(where, log, "15", workers=2)
    assert mark.exists()
    before = effects(log)
    with crashing.open_store(where) as store:
        durable = recorded(store)
        check(store, log, resume(store, log, workers=2), expected, before, durable)


# Fencing


@pytest.mark.parametrize(
    ("point", "workers"),
    [
        ("flush", 0),
        ("commit", 2),
        ("hold", 0),
        pytest.param("flush", 2, marks=LONG),
        pytest.param("commit", 0, marks=LONG),
        pytest.param("hold", 2, marks=LONG),
    ],
)
def test_a_program_that_slept_while_another_took_over_is_fenced(
    point: str, workers: int, where: str, tmp_path: Path, expected: tuple[bytes, Counter[str]]
) -> None:
    log = tmp_path / "log"
    process = launch(where, log, point, workers=workers, signal="SIGSTOP")
    try:
        while not os.WIFSTOPPED(os.waitpid(process.pid, os.WUNTRACED | os.WNOHANG)[1]):
            time.sleep(0.01)
        before = effects(log)
        with crashing.open_store(where) as store:
            durable = recorded(store)
            result = resume(store, log)
            before |= expected[1]  # its workers did not sleep
            check(store, log, result, expected, before, durable)
            was = everything(store)
            process.send_signal(signal.SIGCONT)
            _, err = process.communicate(timeout=200)
            last = err.rstrip().splitlines()[-1]
            assert last.startswith("gpu_pregel.errors.FencedError: run 'run' was claimed by process "), err
            assert process.returncode == 1
            assert everything(store) == was
    finally:
        process.kill()
        process.communicate()


def everything(store: Store) -> list[Any]:
    """All rows of a SQLite store."""
    tables = ("runs", "metas", "bases", "commits", "segments", "answers")
    return [store._database.query(f"SELECT * FROM {table}", ()) for table in tables]
