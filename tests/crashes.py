"""A program that kills or stops itself at a crash point: ``python -m tests.crashes`` with a JSON object.

The package itself knows no crash points: this module wraps its functions. ``program`` is what runs here and,
to the end, in the tests: failures that pass at a later attempt, a question, mutations, aggregates, another function by
master compute, random numbers, and a line in a log for each attempt that has an effect.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpu_pregel as gp
from gpu_pregel.host.agents import fold as folding
from gpu_pregel.host.agents import policy
from gpu_pregel.host.agents import recovery as _beginning
from gpu_pregel.host.agents.codec import decode
from gpu_pregel.host.agents.formats import SavedSuperstep, Segment
from gpu_pregel.host.agents.observers.events import EventQueue
from gpu_pregel.host.agents.parts import FailedAttempts
from gpu_pregel.host.agents.state_format import pack_state
from gpu_pregel.host.agents.workers import pipes, transport
from gpu_pregel.host.agents.workers import pool as workers
from gpu_pregel.host.agents.workers.channel import Channel
from gpu_pregel.host.stores.store import Store
from gpu_pregel.host.superstep import base_writer, journal
from gpu_pregel.host.superstep.master import ENDED

RUN = "run"
STEPS = 6
"""The number of supersteps of ``program``."""
STEP = 2
"""The superstep that takes long and contains most points."""
HELD = 3
"""The superstep in which a vertex is interrupted."""
_RING = ["a", "b", "c", "d", "e", "f", "asks", "fails"]
VERTICES = [gp.agents.Vertex(name, [], [_RING[(k + 1) % len(_RING)]]) for k, name in enumerate(_RING)]


def program(log: str, workers: int = 0, point: str = "") -> dict[str, Any]:
    """The arguments of a run; its compute functions kill their master at the points 4 and 5."""
    master = os.getpid()

    def strike() -> None:
        os.kill(master, signal.SIGKILL)
        time.sleep(60)  # until this process is ended too

    def compute(ctx: Any) -> None:
        draw, answer, vertex = ctx.random.random(), None, ctx.vertex_id
        if ctx.superstep == STEP:
            time.sleep(0.012)
            if vertex == "fails" and ctx.attempt == 1:
                raise OSError("not yet")
        if ctx.superstep == HELD and vertex == "asks":
            answer = ctx.interrupt("which?")
        if point == "4" and (ctx.superstep, vertex) == (STEP, "d"):
            strike()
        with open(log, "a") as file:
            file.write(f"{ctx.superstep} {vertex} {ctx.key}\n")
        if point == "5" and (ctx.superstep, vertex) == (STEP, "d"):
            strike()
        total = ctx.aggregated("total")
        ctx.value = [*ctx.value, (ctx.superstep, ctx.messages, draw, total, answer, ctx.num_vertices)]
        ctx.aggregate("total", ctx.superstep + len(ctx.messages))
        if ctx.superstep == 1 and vertex == "a":
            ctx.add_vertex("new", [], ["a"])
            ctx.add_edge("b", "new", 2.5)
        if ctx.superstep == 3 and vertex == "c":
            ctx.remove_edge("a", "b")
        if ctx.superstep == 4 and vertex == "f":
            ctx.remove_vertex("new")
        if ctx.superstep < 5:
            ctx.send_to_neighbors([vertex, ctx.superstep])
        else:
            ctx.vote_to_halt()

    def late(ctx: Any) -> None:
        compute(ctx)
        ctx.aggregate("most", len(ctx.value))

    def direct(m: Any) -> None:
        if m.superstep == 3:
            m.use("late")

    return {
        "compute": compute,
        "functions": {"late": late},
        "master": direct,
        "aggregators": {"total": gp.agents.Aggregator("sum", initial=0, persistent=True), "most": "max"},
        "retry": gp.agents.RetryPolicy(attempts=3, wait=0.01),
        "on_missing": "drop",
        "workers": workers,
    }


def open_store(where: str) -> Store:
    """The store at a path, or at ``dsn|schema``."""
    dsn, _, schema = where.partition("|")
    return gp.PostgresStore(dsn, schema=schema) if schema else gp.SQLiteStore(where)


def run_to_end(agents: gp.agents.AgentRun) -> gp.agents.AgentResult:
    """Step to the end, and answer all questions."""
    with agents:
        while True:
            while agents.step():
                pass
            asked = agents.result().interrupts
            if not asked:
                return agents.result()
            for vertex in asked:
                agents.answer(vertex, "blue")


def effects(log: Path) -> Counter[str]:
    """The number of effects of each key."""
    return Counter(log.read_text().splitlines() if log.exists() else [])


def recorded(store: Store, run_id: str = RUN) -> Counter[tuple[int, Any]]:
    """The number of records of each superstep and vertex, committed or not."""
    row = store._reader.table.find(run_id)
    found: Counter[tuple[int, Any]] = Counter()
    pieces = [
        (commit.step, piece)
        for commit, *_ in store._reader.commits(row, -1, row.head, after=None)
        for piece in SavedSuperstep.unpack(commit.step, commit.segments(), commit.data).segments
    ]
    pieces += [(row.head + 1, Segment.unpack(piece)) for piece in store.load(run_id).held()]
    for step, piece in pieces:
        found.update((step, decode(vertex)) for vertex, _ in piece.records)
    return found


# Crash points.


class Crash:
    """Wraps functions so that this process sends itself a signal before or after them.

    Parameters
    ----------
    store : Store
    how : signal
    """

    def __init__(self, store: Store, how: signal.Signals) -> None:
        self.store, self._how = store, how
        self.superstep = -1
        self._armed = ""
        execute = policy.AgentPolicy.execute

        def executed(this: Any, superstep: int, *rest: Any) -> Any:
            self.superstep = superstep
            return execute(this, superstep, *rest)

        policy.AgentPolicy.execute = executed  # type: ignore[method-assign,assignment]

    def strike(self) -> None:
        """Send the signal to this process; this thread takes it before it does anything else."""
        signal.pthread_kill(threading.get_ident(), self._how)

    def before(self, owner: Any, name: str, when: Callable[..., bool] = lambda *_a, **_k: True) -> None:
        """Strike before a call for whose arguments ``when`` is true."""
        function, struck = getattr(owner, name), False

        def call(*arguments: Any, **options: Any) -> Any:
            nonlocal struck
            if not struck and when(*arguments, **options):
                struck = True
                self.strike()
            return function(*arguments, **options)

        setattr(owner, name, call)

    def after(self, owner: Any, name: str, when: Callable[..., bool] = lambda *_a, **_k: True) -> None:
        """Strike after a call for whose arguments ``when`` is true."""
        function = getattr(owner, name)

        def call(*arguments: Any, **options: Any) -> Any:
            is_now = when(*arguments, **options)
            result = function(*arguments, **options)
            if is_now:
                self.strike()
            return result

        setattr(owner, name, call)

    def within(self, name: str, statement: str, when: Callable[..., bool] = lambda *_a, **_k: True) -> None:
        """Strike inside a transaction of the store's method ``name``, before a statement is sent."""
        function = getattr(self.store, name)

        def call(*arguments: Any, **options: Any) -> Any:
            self._armed = statement if when(*arguments, **options) else ""
            result = function(*arguments, **options)
            assert not self._armed, f"{name} sent no {statement}"
            return result

        setattr(self.store, name, call)
        self.store._database._connection = _Watched(self.store._database._connection, self._sends)

    def _sends(self, statement: str) -> None:
        plain = statement.replace(self.store._database.dialect.prefix, "").replace('"', "")
        if self._armed and plain.startswith(self._armed):
            self.strike()


class _Watched:
    """A connection that reports each statement before it is sent."""

    def __init__(self, connection: Any, tell: Callable[[str], None]) -> None:
        self._connection, self._tell = connection, tell

    def execute(self, statement: Any, *rest: Any, **options: Any) -> Any:
        self._tell(statement.decode() if isinstance(statement, bytes) else statement)
        return self._connection.execute(statement, *rest, **options)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)


def _send_half(crash: Crash) -> None:
    """Point 3: send half of a batch."""
    send = Channel.send

    def sent(this: Any, kind: int, content: bytes) -> None:
        if kind == pipes.BATCH and crash.superstep == STEP:
            frame = pipes.header(len(content), kind) + content
            this._connection.send(frame[: len(frame) // 2])
            crash.strike()
        send(this, kind, content)

    Channel.send = sent  # type: ignore[method-assign,assignment]


def _in_background(crash: Crash) -> None:
    """Point 23: all bases count as large, and the thread that writes the first one strikes inside its transaction."""
    base_writer.LARGE_BASE = 0
    crash.within("put_base", "INSERT INTO bases")


def place(crash: Crash, point: str) -> None:
    """Wrap the functions of a crash point."""
    number, _, variant = point.partition(" ")

    def here(*_arguments: Any, **_options: Any) -> bool:
        return crash.superstep == STEP

    def is_step(_claim: Any, step: int, *_rest: Any, **_options: Any) -> bool:
        return step == STEP

    def is_hold(_journal: Any, _superstep: int, status: str) -> bool:
        return status == "interrupted"

    def is_last(_journal: Any, _folded: Any, status: str) -> bool:
        return status in ENDED

    def notes_failure(this: Any, *_rest: Any, **_options: Any) -> bool:
        return any(isinstance(part, FailedAttempts) for part in this._parts)

    def has_records(_policy: Any, _ledger: Any, event: Any, _journal: Any) -> bool:
        return here() and any(outcome.status == "completed" for outcome in event.outcomes)

    def tells_commit(_queue: Any, kind: str, facts: dict[str, Any]) -> bool:
        return kind == "commit" and facts["superstep"] == STEP

    def tells_end(_queue: Any, kind: str, _facts: dict[str, Any]) -> bool:
        return kind == "end"

    def tells_first(_transport: Any, partition: int, step: int, _change: Any) -> bool:
        return step == STEP and partition == 0

    record, agents = journal.Journal, policy.AgentPolicy
    places: dict[str, Callable[[], None]] = {
        "1": lambda: crash.within("create", variant or "COMMIT"),
        "2": lambda: crash.after(crash.store, "create"),
        "3": lambda: _send_half(crash),
        "6": lambda: (
            crash.before(workers.WorkerPool, "_receive", here)
            if variant == "pipe"
            else crash.after(transport.InProcessTransport, "_compute", here)
        ),
        "7": lambda: crash.after(agents, "_record_outcomes", has_records),
        "8": lambda: crash.within("flush", variant or "COMMIT", is_step),
        "9": lambda: crash.after(crash.store, "flush", is_step),
        "10": lambda: crash.before(agents, "_handle_failure"),
        "11": lambda: crash.after(record, "flush", notes_failure),
        "12": lambda: crash.before(agents, "judge", here),
        "13": lambda: crash.after(folding, "_ask_master", here),
        "14": lambda: crash.within("commit", variant or "COMMIT", is_step),
        "15": lambda: crash.after(crash.store, "commit", is_step),
        "16": lambda: crash.after(
            workers.WorkerPool if variant == "worker" else transport.InProcessTransport, "commit", tells_first
        ),
        "17": lambda: crash.before(EventQueue, "observe", tells_commit),
        "18": lambda: crash.before(record, "hold", is_hold),
        "19": lambda: crash.after(record, "hold", is_hold),
        "20": lambda: crash.after(crash.store, "answer"),
        "21": lambda: crash.after(crash.store, "claim"),
        "22": lambda: {
            "": lambda: crash.before(record, "commit", is_last),
            "after": lambda: crash.after(record, "commit", is_last),
            "told": lambda: crash.after(EventQueue, "observe", tells_end),
        }[variant](),
        "23": lambda: (
            crash.within("put_base", variant)
            if variant.startswith("DELETE")
            else _in_background(crash)
            if variant == "background"
            else crash.within("commit", variant or "INSERT INTO bases", is_step)
        ),
        "24": lambda: (
            crash.after(crash.store, "fork")
            if variant == "after"
            else crash.within("fork", variant or "INSERT INTO bases")
        ),
        # For fencing: stop just before the store is called.
        "flush": lambda: crash.before(crash.store, "flush", is_step),
        "commit": lambda: crash.before(crash.store, "commit", is_step),
        "hold": lambda: crash.before(record, "hold", is_hold),
    }
    if number in places:
        places[number]()


def main(given: dict[str, Any]) -> None:
    """Run, resume, fork or fold a base, until the crash point."""
    store, point = open_store(given["store"]), given["point"]
    place(Crash(store, signal.Signals[given["signal"]]), point)
    options = {**program(given["log"], given["workers"], point), **given["options"], "store": store}
    watched = {**options, "observer": lambda event: None}  # some crash points are at events
    if given["do"] == "run":
        run_to_end(gp.agents.start(VERTICES, run_id=RUN, **watched))
    elif given["do"] == "resume":
        run_to_end(gp.agents.reopen(run_id=RUN, takeover=True, **watched))
    elif given["do"] == "fork":
        gp.agents.fork(store, RUN, STEP, "fork")
    elif given["do"] == "fold":
        found = _beginning.read_run(store, RUN, HELD)
        claim = store.claim(RUN, owner="folding", takeover=True)
        store.put_base(claim, HELD, pack_state(found.state), prune=True)


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
