"""Figures of the agent benchmark: trials of contestants in turn, checked results, and the rows of the report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

from benchmarks._measure import Summary, format_ratio, format_seconds, in_turn, progress, timed

Measure = Callable[[], float]
"""Measures once and returns seconds or vertices per second; raises ``WrongResultError`` for a wrong result."""


class WrongResultError(Exception):
    """The measured code computed a wrong result."""


@dataclass
class Figure:
    """A row of the report.

    Attributes
    ----------
    name : str
    unit : str
        "s", "/s" for vertices per second, or "B".
    asked : float or None
        The target: a maximum, or a minimum if the unit is "/s".
    asked_of : {"ratio", "ours"}
        The quantity to which the target applies.
    ours, theirs : dict
        Trials, median, minimum, quartiles and spread; empty if not measured.
    ratio : float or None
        Our median divided by theirs.
    """

    name: str
    unit: str
    asked: float | None
    asked_of: str
    ours: dict[str, Any]
    theirs: dict[str, Any]
    ratio: float | None

    @classmethod
    def of(
        cls,
        name: str,
        unit: str,
        asked: float | None,
        asked_of: str,
        ours: list[float],
        theirs: list[float] | None = None,
    ) -> Figure:
        """Summarise the trials of both contestants."""
        one, other = _summarise(ours), _summarise(theirs or [])
        ratio = one["median"] / other["median"] if one and other else None
        return cls(name, unit, asked, asked_of, one, other, ratio)

    def cells(self) -> list[str]:
        """Return the cells of the table's row; the spread is ours, then theirs."""
        sides = [side for side in (self.ours, self.theirs) if side]
        return [
            self.name,
            *[_format_amount(side.get("median"), self.unit) for side in (self.ours, self.theirs)],
            format_ratio(self.ratio),
            format_ratio(self.asked) if self.asked_of == "ratio" else _format_amount(self.asked, self.unit),
            ", ".join(f"{100 * side['spread']:.0f}%" for side in sides) or "-",
        ]


def expect(result: Any, expected: Any) -> None:
    """Raise ``WrongResultError`` unless both are equal."""
    if result != expected:
        raise WrongResultError(f"{str(result)[:60]} instead of {str(expected)[:60]}")


def checked_measure(function: Callable[[], Any], expected: Any, count: int) -> Measure:
    """Return a measure of the seconds per item that ``function`` takes to compute ``expected``."""

    def measure() -> float:
        result, seconds = timed(function)
        expect(result, expected)
        return seconds / count

    return measure


def median_of(runs: int, measure: Measure) -> float:
    """Measure ``runs`` times and return the median."""
    return median(measure() for _ in range(runs))


def run_trials(title: str, measures: dict[str, Measure], trials: int, errors: list[str]) -> dict[str, list[float]]:
    """Measure all once to warm up, then in turn; a contestant that fails takes no further turn and has no figures."""
    figures: dict[str, list[float]] = {name: [] for name in measures}
    failed: set[str] = set()

    def trial(name: str, is_warm: bool = True) -> None:
        if name in failed:
            return
        try:
            figure = measures[name]()
        except Exception as error:
            failed.add(name)
            errors.append(f"{title}: {name}: {type(error).__name__}: {error}")
            figures[name].clear()
        else:
            figures[name] += [figure] if is_warm else []

    progress(title)
    for name in measures:
        trial(name, is_warm=False)
    in_turn(list(measures), trials, trial)
    return figures


def _summarise(trials: list[float]) -> dict[str, Any]:
    return {**asdict(summary := Summary.of(trials)), "spread": summary.spread} if trials else {}


def _format_amount(amount: float | None, unit: str) -> str:
    if unit == "s" or amount is None:
        return format_seconds(amount)
    return f"{amount / 1e6:,.2f} MB" if unit == "B" else f"{amount:,.0f} {unit}"
