"""What must hold of a run that was killed: nothing lost, nothing twice, nothing forgotten.

- lost: a record or message that was durable is missing in the end, or the result is another one.
- twice: an effect was repeated although its record was durable, or a record or message counts twice.
- forgotten: a record had been finished for longer than ``BOUND`` and a margin, and was not durable or, if a worker was
  killed, not sent.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import gpu_pregel as gp
from gpu_pregel.errors import UnknownRunError
from gpu_pregel.host.agents.codec import encode
from tests.adversary.program import RUN, TIMED, VERTICES, Settings, program
from tests.agents import rows
from tests.crashes import recorded, run_to_end

BOUND = {"master": 0.021, "worker": 0.001}
"""Seconds after which a finished record must be durable if the master is killed, or sent if its worker is."""
Place = tuple[int, Any]
"""A superstep and a vertex."""


class Line(NamedTuple):
    """A line of the log: an effect, or the end of an attempt."""

    kind: str
    incarnation: str
    place: Place
    process: int
    key: str
    time: float


def read_log(log: Path) -> list[Line]:
    """Return the lines of a log, in order."""
    lines = []
    for text in log.read_text().splitlines() if log.exists() else ():
        kind, incarnation, step, vertex, process, key, time = text.split(" ")
        lines.append(Line(kind, incarnation, (int(step), vertex), int(process), key, float(time)))
    return lines


class Kill(NamedTuple):
    """A kill: of which incarnation, when, and the places whose records were durable just afterwards."""

    incarnation: str
    time: float
    durable: frozenset[Place]
    where: str


@dataclass
class Findings:
    """What was found in one run, or in all of them.

    Attributes
    ----------
    lost, twice, forgotten, errors : list of str
    ages : list of float
        Seconds between the end of an attempt and a kill, where the record was not durable or not sent.
    repeated : int
        Effects that were repeated, as they may be where no record was durable.
    """

    lost: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    forgotten: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    ages: list[float] = field(default_factory=list)
    repeated: int = 0

    @property
    def problems(self) -> list[str]:
        """All problems, with their kinds."""
        kinds = ("lost", "twice", "forgotten", "errors")
        return [f"{kind}: {problem}" for kind in kinds for problem in getattr(self, kind)]

    def add(self, other: Findings) -> None:
        """Add those of another run."""
        for name in ("lost", "twice", "forgotten", "errors", "ages"):
            getattr(self, name).extend(getattr(other, name))
        self.repeated += other.repeated


def durable_places(store: Any) -> frozenset[Place]:
    """Return the places whose records are in a store."""
    try:
        return frozenset(recorded(store, RUN))
    except UnknownRunError:
        return frozenset()


@cache
def expected(steps: int) -> tuple[bytes, frozenset[Place]]:
    """Return the result of an undisturbed run without a store, and the places that it computes."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder, "log")
        options = program(Settings(str(log), "undisturbed", steps=steps, pause=0.0))
        agents = gp.agents.start(VERTICES, **options, run_id=RUN)
        result = run_to_end(agents)
        effects = [line.place for line in read_log(log) if line.kind == "effect"]
    assert result.status == "completed"
    assert len(effects) == len(set(effects))
    return content(result), frozenset(place for place in effects if place[1] not in TIMED)


def content(result: Any) -> bytes:
    """Return the bytes of a result that do not depend on messages from other programs."""
    left = [(vertex, None if vertex == "till" else value, *rest) for vertex, value, *rest in rows(result)]
    return encode((left, result.aggregates["total"]))


def check_kills(lines: list[Line], kills: list[Kill], margin: float, found: Findings) -> None:
    """Check that what was durable is not computed again, and that what was finished in time was durable."""
    names = list(dict.fromkeys(line.incarnation for line in lines))
    for kill in kills:
        later = set(names[names.index(kill.incarnation) + 1 :]) if kill.incarnation in names else set()
        for line in lines:
            if line.kind == "effect" and line.incarnation in later and line.place in kill.durable:
                found.twice.append(f"{line.place} had been durable when {kill.incarnation} was killed {kill.where}")
            if line.kind == "finish" and line.incarnation == kill.incarnation and line.place not in kill.durable:
                age = kill.time - line.time
                if age > 0:
                    found.ages.append(age)
                if age > BOUND["master"] + margin:
                    found.forgotten.append(f"{line.place}, finished {age * 1e3:.1f} ms before a kill {kill.where}")


def check_repeats(lines: list[Line], deaths: dict[int, float], margin: float, found: Findings) -> None:
    """Check that within an incarnation an effect is repeated only if a worker died before it could send the record.

    ``deaths`` has the times at which workers were killed, by process.
    """
    effects = [line.place for line in lines if line.kind == "effect"]
    found.repeated += len(effects) - len(set(effects))
    last: dict[tuple[str, Place], Line] = {}
    finished: dict[tuple[str, Place], Line] = {}
    for line in lines:
        which = line.incarnation, line.place
        if line.kind == "finish":
            finished[which] = line
        elif which not in last:
            last[which] = line
        else:
            first, end = last[which], finished.pop(which, None)
            last[which] = line
            if first.process not in deaths:
                found.twice.append(f"{line.place} in {line.incarnation}, where no worker had died")
            elif end is not None:
                age = deaths[first.process] - end.time
                found.ages.append(max(0.0, age))
                if age > BOUND["worker"] + margin:
                    found.forgotten.append(f"{line.place}, finished {age * 1e3:.1f} ms before its worker was killed")


def check_end(
    store: Any, lines: list[Line], steps: int, sent: list[int], uncertain: list[int], found: Findings
) -> None:
    """Check the result, the records and the effects of a run that has ended.

    ``sent`` are the messages that the store has accepted, and ``uncertain`` those whose senders were killed.
    """
    wanted, places = expected(steps)
    try:
        counts = recorded(store, RUN)
    except UnknownRunError:
        found.lost.append("the run does not exist")
        return
    result = gp.agents.state_at(store, RUN)
    if result.status != "completed":
        found.lost.append(f"the run is {result.status}")
    elif content(result) != wanted:
        found.lost.append(f"the result is another one; the timer came {result.values.get('sleeps')} times")
    received = Counter(result.values.get("till", ()))
    found.lost += [f"message {one} was not received" for one in sent if not received[one]]
    found.twice += [f"message {one} was received {count} times" for one, count in received.items() if count > 1]
    found.twice += [f"message {one} was not sent" for one in received.keys() - {*sent, *uncertain}]
    for place, count in counts.items():
        if count > 1:
            found.twice.append(f"{place} has {count} records")
    computed = {line.place for line in lines if line.kind == "effect"}
    regular = {place for place in counts if place[1] not in TIMED}
    found.lost += [f"{place} has no record" for place in sorted(places - regular)]
    found.twice += [f"{place} is computed, but not by an undisturbed run" for place in sorted(regular - places)]
    found.lost += [f"{place} has an effect and no record" for place in sorted(computed - counts.keys())]
    found.lost += [f"{place} has a record and no effect" for place in sorted(counts.keys() - computed)]
    keys: dict[Place, set[str]] = {}
    for line in lines:
        keys.setdefault(line.place, set()).add(line.key)
    found.twice += [f"{place} has {len(one)} keys" for place, one in keys.items() if len(one) > 1]


def worst(ages: list[float]) -> str:
    """Return the longest age in milliseconds, and how many there are."""
    return f"{max(ages) * 1e3:.0f} ms of {len(ages)}" if ages else "none"
