"""The campaigns of the adversary: which runs are disturbed, how, and how often."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from typing import Any

from tests.adversary.askers import AskerTrial
from tests.adversary.evidence import Findings
from tests.adversary.graph_kills import GraphTrial
from tests.adversary.graph_victim import Carry
from tests.adversary.owners import Fight
from tests.adversary.partitions import try_partitions
from tests.adversary.programs import try_program
from tests.adversary.system_calls import why_unavailable
from tests.adversary.trials import Calibration, Trial, Way, stores
from tests.adversary.weights import try_graph
from tests.gpu_pregel.networkx.odd_calls import try_calls
from tests.postgres import Cluster, why_missing


@dataclass
class Report:
    """What a campaign has done and found.

    Attributes
    ----------
    name, unit : str
    done, runs : int
        Number of units, such as kills, and of runs that have ended.
    found : Findings
    seconds : float
    notes : Counter
        What else is counted, such as the system calls at which processes were killed.
    skipped : str
        Why nothing was done.
    """

    name: str
    unit: str
    done: int = 0
    runs: int = 0
    found: Findings = field(default_factory=Findings)
    seconds: float = 0.0
    notes: Counter[str] = field(default_factory=Counter)
    skipped: str = ""

    def as_data(self) -> dict[str, Any]:
        """Return it as data for JSON."""
        return {**vars(self), "found": vars(self.found), "notes": dict(self.notes)}


_MOST_BAD = 10
"""A campaign ends after so many runs with problems."""
Tell = Callable[[str], None]
"""Shows progress."""
_TRIALS: dict[str, Callable[[random.Random], list[str]]] = {
    "programs": try_program,
    "weighted graphs": try_graph,
    "vertex programs": try_partitions,
}
"""What tries one unit of the campaigns that disturb no run, and returns what is wrong."""


@dataclass(frozen=True)
class Request:
    """How much to do.

    Attributes
    ----------
    count : int or None
        Number of units; None for that of the whole table.
    seed : int
        Of the first run; each further run has the next one.
    until : float
        When to end, on the monotonic clock.
    margin : float
        See ``Trial``.
    """

    count: int | None
    seed: int
    until: float
    margin: float


@dataclass(frozen=True)
class Campaign:
    """Disturbances of one kind.

    Attributes
    ----------
    name : str
    unit : str
        What is counted.
    count : int
        Number of them in the whole table.
    store : str
        "sqlite", "postgres" or "".
    ways : tuple of Way
        Runs are disturbed in these ways in turn.
    kind : type
        What disturbs a run.
    carry : {"shared", "messages"}
        How the state of a state graph gets from node to node.
    """

    name: str
    unit: str
    count: int
    store: str = ""
    ways: tuple[Way, ...] = ()
    kind: type[Trial] = Trial
    carry: Carry = "shared"

    def why_skipped(self) -> str | None:
        """Return why this machine cannot run it, or None."""
        if self.store == "postgres" and (why := why_missing()):
            return why
        if self.unit == "graphs" and find_spec("langgraph") is None:
            return "LangGraph is not installed: pip install gpu-pregel[langgraph]"
        return why_unavailable() if any(way.at_calls for way in self.ways) else None

    def run(self, request: Request, cluster: Cluster | None, tell: Tell) -> Report:
        """Disturb runs until enough is done."""
        report, begin = Report(self.name, self.unit), time.monotonic()
        wanted, seed = self.count if request.count is None else request.count, request.seed
        calibrations: dict[Way, Calibration] = {}
        bad = 0
        while report.done < wanted and bad < _MOST_BAD and time.monotonic() < request.until:
            chance = random.Random(f"{self.name} {seed}")
            found, done, notes = self._run_one(seed, chance, calibrations, wanted - report.done, request, cluster)
            report.runs, report.done = report.runs + 1, report.done + done
            report.found.add(found)
            report.notes.update(notes)
            bad += bool(found.problems)
            for problem in found.problems:
                tell(f"{self.name}, seed {seed}: {problem}")
            seed += 1
            tell(f"{self.name}: {report.done} of {wanted} {self.unit}, {report.runs} runs")
        report.seconds = time.monotonic() - begin
        return report

    def _run_one(
        self, seed: int, chance: random.Random, calibrations: dict[Way, Calibration], most: int, request: Request,
        cluster: Cluster | None,
    ) -> tuple[Findings, int, Counter[str]]:  # fmt: skip
        """Disturb one run; return what is found, the number of units, and notes."""
        if self.unit in _TRIALS:
            return Findings(errors=_TRIALS[self.unit](chance)), 1, Counter()
        if self.unit == "sweeps":
            return Findings(errors=try_calls(seed)), 1, Counter()
        if self.unit == "graphs":
            from tests.gpu_pregel.workflows.langgraph_oracle import disagreements

            found = disagreements(seed, defers=self.name == "deferred-graphs")
            return Findings(errors=["; ".join(found)] if found else []), 1, Counter()
        with stores(self.store, cluster, f"adversary_{seed}_{time.monotonic_ns()}") as (where, folder):
            if self.unit == "fights":
                fight = Fight(where, folder, chance)
                fight.run()
                return fight.found, 1, fight.outcomes
            if self.unit == "graph kills":
                graph = GraphTrial(seed, folder, self.carry)
                graph.run(min(most, 12))
                return graph.found, graph.kills, Counter()
            way = self.ways[seed % len(self.ways)]
            is_new = way not in calibrations
            calibration = calibrations.setdefault(way, Calibration())
            trial = self.kind(way, where, folder, chance, calibration, cluster, request.margin)
            trial.run(0 if is_new and way.target in ("master", "worker") else most)
            return trial.found, trial.count, trial.places


def _ways(target: str = "master", at_calls: bool = False, **options: Any) -> tuple[Way, ...]:
    """Return ways with several numbers of workers, for both kinds of functions."""
    numbers = (1, 2) if target == "worker" else (0, 2, 1)
    return tuple(
        Way(workers, is_async, target, at_calls, **options) for workers in numbers for is_async in (False, True)
    )


CAMPAIGNS = (
    Campaign("kills-sqlite", "kills", 300, "sqlite", _ways()),
    Campaign("kills-postgres", "kills", 200, "postgres", _ways()),
    Campaign("calls-sqlite", "kills", 300, "sqlite", _ways(at_calls=True)),
    Campaign("calls-postgres", "kills", 200, "postgres", _ways(at_calls=True)),
    Campaign("kills-workers", "kills", 300, "sqlite", _ways("worker", kills=10, steps=16)),
    Campaign("kills-workers-postgres", "kills", 50, "postgres", _ways("worker", kills=10, steps=16)),
    Campaign("calls-workers", "kills", 150, "sqlite", _ways("worker", at_calls=True, kills=8, steps=8)),
    Campaign("kills-askers", "kills", 60, "sqlite", (Way(steps=40), Way(2, steps=40)), AskerTrial),
    Campaign("kills-askers-postgres", "kills", 40, "postgres", (Way(steps=40), Way(2, steps=40)), AskerTrial),
    Campaign("calls-askers", "kills", 60, "sqlite", (Way(at_calls=True, steps=40),), AskerTrial),
    Campaign("restarts", "restarts", 100, "postgres", _ways("server", kills=5, steps=16)),
    Campaign("owners-sqlite", "fights", 30, "sqlite"),
    Campaign("owners-postgres", "fights", 20, "postgres"),
    Campaign("programs", "programs", 300),
    Campaign("networkx", "sweeps", 200),
    Campaign("random-graphs", "graphs", 300),
    Campaign("deferred-graphs", "graphs", 300),
    Campaign("weights", "weighted graphs", 2000),
    Campaign("partitions", "vertex programs", 200),
    Campaign("kills-graphs", "graph kills", 200, "sqlite"),
    Campaign("kills-message-graphs", "graph kills", 60, "sqlite", carry="messages"),
)


@contextmanager
def server(campaigns: tuple[Campaign, ...]) -> Iterator[Cluster | None]:
    """A PostgreSQL server, if a campaign needs one."""
    if any(one.store == "postgres" and one.why_skipped() is None for one in campaigns):
        with Cluster() as cluster:
            yield cluster
    else:
        yield None
