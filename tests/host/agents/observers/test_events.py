"""Observers for logging and tqdm: their output, and the removal of the bar when nothing is computed."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import tqdm

import gpu_pregel as gp
from gpu_pregel.host.agents.observers.events import Event, LogObserver, ProgressObserver
from gpu_pregel.host.superstep import progress
from tests.agents import EVENT_KINDS


def superstep(number: int, active: int) -> Event:
    return Event("superstep", number, facts={"active": active})


def attempt(number: int, status: str = "completed") -> Event:
    return Event("attempt", number, "a", 1, {"status": status})


@pytest.mark.parametrize("kind", EVENT_KINDS)
def test_each_event_is_logged_on_one_line(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    facts = {"superstep": 3, "seconds": 0.123456789, "text": "first\nsecond\n"}
    with caplog.at_level(logging.DEBUG, "gpu_pregel.agents"):
        LogObserver()(Event(kind, 3, "a\nb", 2, facts, "one\nrun"))
    (record,) = caplog.records
    expected = f"run one\\nrun, superstep 3, vertex 'a\\nb', attempt 2: {kind} seconds 0.123, text first\\nsecond"
    assert record.getMessage() == expected
    levels = {"attempt": "DEBUG", "emit": "DEBUG", "failure": "ERROR", "death": "ERROR"}
    levels |= dict.fromkeys(("retry", "undeliverable", "hold"), "WARNING")
    assert record.levelname == levels.get(kind, "INFO")


def test_an_integer_with_more_digits_than_python_converts_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "gpu_pregel.agents"):
        LogObserver()(Event("emit", 3, "a", 2, {"payload": 10**5000}))
    assert caplog.messages == ["superstep 3, vertex 'a', attempt 2: emit payload an integer of 16,610 bits"]


def test_events_below_the_level_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    observer = LogObserver()
    with caplog.at_level(logging.WARNING, "gpu_pregel.agents"):
        observer(attempt(0))
        observer(Event("commit", 0))
    assert not caplog.records


@pytest.fixture
def bars(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """Bars in order of creation; each is drawn at every event from the second on."""
    made: list[Any] = []

    class Bar:
        def __init__(self, **options: Any) -> None:
            self.drawn: list[Any] = []
            self.is_closed = False
            made.append(self)

        def set_description_str(self, text: str) -> None:
            assert not self.is_closed
            self.drawn.append((text, self.n, self.total))

        def close(self) -> None:
            self.is_closed = True

        start_t = 0.0
        n = total = None

    monkeypatch.setattr(tqdm, "tqdm", Bar)
    monkeypatch.setattr(progress, "_DELAY_SECONDS", 0.0)
    monkeypatch.setattr(progress, "_PERIOD_SECONDS", 0.0)
    return made


def test_progress_uses_one_bar(bars: list[Any]) -> None:
    observer = ProgressObserver()
    events = [
        superstep(0, 2),
        attempt(0),
        attempt(0, "failed"),
        attempt(0),
        Event("commit", 0),
        superstep(1, 5),
        attempt(1),
    ]
    for event in events:
        observer(event)
    (bar,) = bars
    first, second = "superstep 0", "superstep 1"
    assert bar.drawn == [(first, 1, 2), (first, 1, 2), (first, 2, 2), (first, 2, 2), (second, 0, 5), (second, 1, 5)]
    assert not bar.is_closed
    observer(Event("end", 2, facts={"status": "completed"}))
    assert bar.is_closed


def test_a_hold_removes_the_progress_bar(bars: list[Any]) -> None:
    observer = ProgressObserver()
    for event in [
        superstep(0, 2),
        attempt(0),
        attempt(0, "interrupted"),
        Event("hold", 0, facts={"status": "interrupted"}),
    ]:
        observer(event)
    (bar,) = bars
    assert bar.is_closed
    for event in [attempt(0), Event("commit", 0), Event("end", 1, facts={"status": "completed"})]:
        observer(event)
    _, another = bars
    assert another.drawn == [("superstep 0", 2, 2)]
    assert another.is_closed


def test_an_exception_removes_the_progress_bar(bars: list[Any]) -> None:
    def fail(m: Any) -> None:
        m.use("missing")

    with pytest.raises(KeyError, match="missing"):
        gp.agents.run(
            [gp.agents.Vertex(v) for v in range(3)], lambda ctx: None, master=fail, observer=ProgressObserver()
        )
    (bar,) = bars
    assert bar.is_closed


def test_a_short_run_shows_no_progress_bar(capsys: pytest.CaptureFixture[str]) -> None:
    def compute(ctx: Any) -> None:
        if ctx.superstep == 50:
            ctx.vote_to_halt()

    gp.agents.run([gp.agents.Vertex("a")], compute, observer=ProgressObserver())
    assert capsys.readouterr().err == ""


def test_tqdm_draws_the_progress_bar(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TQDM_DISABLE", raising=False)
    monkeypatch.setattr(progress, "_DELAY_SECONDS", 0.0)
    monkeypatch.setattr(progress, "_PERIOD_SECONDS", 0.0)
    observer = ProgressObserver()
    for event in [superstep(7, 4), attempt(7), attempt(7)]:
        observer(event)
    assert "superstep 7:  50%|" in capsys.readouterr().err
    observer(Event("end", 7, facts={"status": "running"}))
    assert capsys.readouterr().err.endswith("\r")
