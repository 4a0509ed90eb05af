"""The superstep loop: the order of its phases, when a run ends, is held or stops, and what a failing phase leaves."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from gpu_pregel.host.superstep.journal import FoldedSuperstep, Journal
from gpu_pregel.host.superstep.master import AGAIN, COMMIT, Master, Start, Waits


class Countdown:
    """A policy whose vertices vote to halt after some supersteps; it logs every call."""

    def __init__(self, active: list[int], verdicts: Iterable[str] = (), halts: int | None = None) -> None:
        self.log: list[Any] = []
        self.active, self.halts = active, halts
        self.verdicts = iter(verdicts)
        self.waits: list[float | None] = []
        self.fails = ""

    def note(self, phase: str, *facts: Any) -> None:
        self.log.append((phase, *facts))
        if phase == self.fails:
            self.fails = ""
            raise OSError(phase)

    def begin(self, superstep: int) -> Start[str]:
        return Start(self.active[superstep])

    def order(self, superstep: int) -> str:
        self.note("order", superstep)
        return f"order {superstep}"

    def execute(self, superstep: int, order: str, limit: int, journal: Journal | None) -> Waits[list[str]]:
        self.note("execute", superstep, order, limit)
        yield from self.waits
        return [order]

    def wait(self, until: float | None) -> None:
        self.note("wait", until)

    def judge(self, reports: list[str], journal: Journal | None) -> str:
        self.note("judge")
        return next(self.verdicts, COMMIT)

    def fold(self, reports: list[str], seconds: float) -> list[FoldedSuperstep[str]]:
        self.note("fold")
        step = int(reports[0].split()[1])
        return [FoldedSuperstep(step, self.active[step + 1], step == self.halts, f"change {step}", {"superstep": step})]

    def commit(self, folded: FoldedSuperstep[str]) -> None:
        self.note("commit", folded.change)

    def receive(self, part: int) -> None:
        self.note("receive", part)
        self.active[1] = part

    def status_of(self, end: str) -> str:
        return end

    def close(self) -> None:
        self.note("close")


class Notes(Journal):
    """A journal that writes to the policy's log."""

    def __init__(self, policy: Countdown, every: int = 1) -> None:
        self.policy, self._every = policy, every

    def record(self, *parts: int, taken: Sequence[int] = ()) -> None:
        self.policy.note("journal records", *parts)

    def close(self) -> None:
        self.policy.note("journal closes")

    def commit(self, folded: FoldedSuperstep[str], status: str) -> None:
        self.policy.note("journal", folded.superstep, status)

    def hold(self, superstep: int, status: str) -> None:
        self.policy.note("journal holds", superstep, status)


def master_of(policy: Countdown, limit: int | None = None, every: int = 1) -> Master[str, list[str], str]:
    return Master(
        policy,
        max_supersteps=limit,
        observe=lambda kind, facts: policy.note(kind, *facts.values()),
        journal=Notes(policy, every),
    )


def test_phases_run_in_order_with_the_durable_commit_before_the_visible_one() -> None:
    policy = Countdown([1, 0])
    assert master_of(policy).run() == "completed"
    assert policy.log == [
        ("order", 0),
        ("superstep", 1),
        ("execute", 0, "order 0", 1),
        ("judge",),
        ("fold",),
        ("journal", 0, "completed"),
        ("commit", "change 0"),
        ("commit", 0),
        ("end", "completed"),
    ]


@pytest.mark.parametrize(
    "active, limit, halts, status, supersteps",
    [
        ([0], None, None, "completed", 0),
        ([5, 3, 0], None, None, "completed", 2),
        ([5, 3, 0], 2, None, "completed", 2),
        ([5, 3, 1, 0], 2, None, "max_supersteps", 2),
        ([5, 3, 1, 0], None, 1, "halted", 2),
        ([5, 3, 0], 2, 1, "halted", 2),
    ],
)
def test_when_a_run_ends(active: list[int], limit: int | None, halts: int | None, status: str, supersteps: int) -> None:
    policy = Countdown(active, halts=halts)
    master = master_of(policy, limit)
    assert master.run() == status
    assert [row["superstep"] for row in master.trace] == list(range(supersteps))
    assert master.superstep == supersteps
    before = list(policy.log)
    assert not master.step()
    assert policy.log == before


def test_a_held_superstep_keeps_its_order_until_it_commits() -> None:
    policy = Countdown([1, 0], verdicts=["failed", AGAIN, AGAIN, COMMIT])
    master = master_of(policy)
    assert not master.step()
    assert (master.status, master.order, master.superstep) == ("failed", "order 0", 0)
    assert policy.log[-2:] == [("journal holds", 0, "failed"), ("hold", "failed")]
    assert not master.step()
    assert master.status == "completed"
    assert [phase for phase, *_ in policy.log].count("order") == 1
    assert [phase for phase, *_ in policy.log].count("execute") == 4


def test_the_master_waits_where_its_policy_does_and_continues_after_an_interrupted_wait() -> None:
    policy = Countdown([1, 0])
    policy.waits, policy.fails = [None, 1.5], "wait"
    master = master_of(policy)
    with pytest.raises(OSError, match="wait"):
        master.step()
    assert list(master.advance()) == [None, 1.5]
    assert master.status == "completed"
    phases = [note[:2] for note in policy.log if note[0] in ("order", "execute", "wait", "journal")]
    assert phases == [("order", 0), ("execute", 0), ("wait", None), ("execute", 0), ("journal", 0)]


@pytest.mark.parametrize("phase", ["order", "execute", "judge", "fold", "journal", "commit", "end"])
def test_a_failed_phase_can_be_repeated(phase: str) -> None:
    policy = Countdown([1, 1, 0])
    master = master_of(policy)
    master.step()
    policy.fails = phase
    with pytest.raises(OSError, match=phase):
        master.step()
    while master.step():
        pass
    assert master.status == "completed"
    assert [row["superstep"] for row in master.trace] == [0, 1]
    assert master.superstep == 2
    executed = {tuple(facts) for phase, *facts in policy.log if phase == "execute"}
    assert executed == {(0, "order 0", 1), (1, "order 1", 1)}


def test_a_stop_takes_effect_at_the_next_commit() -> None:
    policy = Countdown([1] * 9)
    master = master_of(policy)
    policy.verdicts = iter([AGAIN, COMMIT])
    master.stop()
    assert not master.step()
    assert (master.status, master.superstep) == ("stopped", 0)
    master = master_of(policy)
    execute = policy.execute

    def and_stop(superstep: int, order: str, limit: int, journal: Journal | None) -> Waits[list[str]]:
        master.stop()
        return execute(superstep, order, limit, journal)

    policy.execute = and_stop  # type: ignore[method-assign]
    assert not master.step()
    assert (master.status, master.superstep) == ("stopped", 1)
    assert policy.log[-4:] == [("journal", 0, "stopped"), ("commit", "change 0"), ("commit", 0), ("end", "stopped")]


def test_ending_a_held_run_records_its_superstep() -> None:
    policy = Countdown([1, 1], verdicts=["interrupted"])
    master = master_of(policy)
    master.step()
    master.end()
    assert master.status == "stopped"
    assert policy.log[-2:] == [("journal holds", 0, "stopped"), ("end", "stopped")]
    master.end()
    assert not master.step()


def test_without_a_journal_several_supersteps_may_execute_together() -> None:
    policy = Countdown([1, 1, 0])
    Master(policy, max_supersteps=7, observe=lambda kind, facts: None).run()
    assert [facts[-1] for phase, *facts in policy.log if phase == "execute"] == [7, 6]


class Together(Countdown):
    """Executes as many supersteps as it may, during which the run is told to stop."""

    master: Any

    def execute(self, superstep: int, order: str, limit: int, journal: Journal | None) -> Waits[list[str]]:
        reports = yield from super().execute(superstep, order, limit, journal)
        self.count = limit
        if superstep == 4:
            self.master.stop()
        return reports

    def fold(self, reports: list[str], seconds: float) -> list[FoldedSuperstep[str]]:
        first = int(reports[0].split()[1])
        return [FoldedSuperstep(step, 1, False, f"change {step}", {}) for step in range(first, first + self.count)]


def test_with_a_journal_supersteps_up_to_the_next_commit_execute_together() -> None:
    """They are stopped after the last of them, as only that one's state can be saved."""
    policy = Together([1] * 9)
    master = policy.master = master_of(policy, limit=11, every=4)
    assert [master.step(), master.step()] == [True, False]
    assert (master.status, master.superstep) == ("stopped", 8)
    assert [facts[-1] for phase, *facts in policy.log if phase == "execute"] == [4, 4]
    assert [facts[-1] for phase, *facts in policy.log if phase == "journal"] == ["running"] * 7 + ["stopped"]
    ending = Together([1] * 11)
    ending.master = master_of(ending, limit=6, every=4)
    ending.master.step()
    ending.master.step()
    assert [facts[-1] for phase, *facts in ending.log if phase == "execute"] == [4, 2]


def test_a_resumed_run_starts_at_its_superstep() -> None:
    policy = Countdown([1, 1, 1, 0])
    master = Master(
        policy,
        max_supersteps=None,
        observe=lambda kind, facts: None,
        superstep=2,
        trace=[{"superstep": 0}, {"superstep": 1}],
    )
    assert master.run() == "completed"
    assert [row["superstep"] for row in master.trace] == [0, 1, 2]


def test_a_part_from_outside_wakes_a_completed_run() -> None:
    policy = Countdown([1, 0, 0])
    master = master_of(policy)
    assert master.run() == "completed"
    master.receive(1)
    assert policy.log[-2:] == [("journal records", 1), ("receive", 1)]
    assert master.run() == "completed"
    assert master.superstep == 2


def test_closing_releases_the_partitions_before_the_claim() -> None:
    policy = Countdown([0])
    with master_of(policy):
        pass
    assert policy.log == [("close",), ("journal closes",)]


def test_a_numeric_run_imports_no_agent_module() -> None:
    program = """
import sys
import gpu_pregel as gp, numpy as np
count = gp.VertexProgram(value=np.int64, init=lambda ctx: 0, message=lambda value, ctx: value, combine="min",
                         apply=lambda value, incoming, ctx: incoming)
gp.run(gp.Graph.from_edgelist([0], [1]), count, device="cpu")
print([name for name in sys.modules if "agents" in name])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
