"""The observer for OpenTelemetry, tested with the SDK: spans and metrics are read from memory."""

from __future__ import annotations

import sys
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import MissingPackageError
from gpu_pregel.host.agents.observers.events import Event
from tests.agents import EVENT_KINDS
from tests.packages import needs

needs("opentelemetry.sdk", "test")

from opentelemetry import trace  # noqa: E402
from opentelemetry.sdk.metrics import MeterProvider  # noqa: E402
from opentelemetry.sdk.metrics.export import InMemoryMetricReader  # noqa: E402
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider  # noqa: E402
from opentelemetry.sdk.trace.export import SimpleSpanProcessor  # noqa: E402
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter  # noqa: E402

Vertex = gp.agents.Vertex
WITHOUT_WAIT = gp.agents.RetryPolicy(attempts=3, wait=0)
ERROR, UNSET = trace.StatusCode.ERROR, trace.StatusCode.UNSET


class Telemetry:
    """An observer and the spans and metrics that it has exported."""

    def __init__(self) -> None:
        self.exporter, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = provider.get_tracer("test")
        self._meters = MeterProvider([self.reader], shutdown_on_exit=False)
        self.observer = gp.agents.OpenTelemetryObserver(self.tracer, self._meters.get_meter("test"))

    def tell(self, *events: Event) -> None:
        for event in events:
            self.observer(event)

    def spans(self, name: str) -> list[ReadableSpan]:
        return [span for span in self.exporter.get_finished_spans() if span.name == f"gpu_pregel.{name}"]

    def supersteps(self) -> list[dict[str, Any]]:
        """Return the attributes of spans, without the common prefix."""
        prefix = "gpu_pregel.superstep."
        return [
            {name.removeprefix(prefix): value for name, value in (span.attributes or {}).items()}
            for span in self.spans("superstep")
        ]

    def points(self) -> dict[str, Any]:
        """Return all points of each metric."""
        data = self.reader.get_metrics_data()
        if data is None:
            return {}
        metrics = [metric for part in data.resource_metrics for scope in part.scope_metrics for metric in scope.metrics]
        return {metric.name: list(metric.data.data_points) for metric in metrics}

    def counts(self) -> dict[str, Any]:
        """Return counters without the prefix; those with attributes by the values of these."""
        counts: dict[str, Any] = {}
        for name, points in self.points().items():
            if name != "gpu_pregel.superstep.duration":
                parts = {" ".join(map(str, (point.attributes or {}).values())): point.value for point in points}
                counts[name.removeprefix("gpu_pregel.")] = parts[""] if list(parts) == [""] else parts
        return counts


@pytest.fixture
def telemetry() -> Telemetry:
    return Telemetry()


def begin(number: int, active: int) -> Event:
    return Event("superstep", number, facts={"active": active})


def attempt(number: int, status: str) -> Event:
    return Event("attempt", number, "a", 1, {"status": status})


def hold(number: int, status: str) -> Event:
    return Event("hold", number, facts={"status": status})


def commit(number: int) -> Event:
    row = {"superstep": number, "active": 1, "messages": 0, "failed": 0, "retries": 0, "seconds": 0.25}
    return Event("commit", number, facts=row)


def end(number: int, status: str) -> Event:
    return Event("end", number, facts={"status": status})


@pytest.mark.parametrize("workers", [0, 2])
def test_spans_of_a_run_and_its_supersteps(telemetry: Telemetry, workers: int) -> None:
    def compute(ctx: Any) -> None:
        if ctx.superstep == 0:
            ctx.send_to_neighbors("a message")
        elif ctx.attempt == 1 and ctx.messages:
            raise ValueError("once")
        ctx.vote_to_halt()

    with telemetry.tracer.start_as_current_span("caller") as caller:
        vertices = [Vertex(("a", 1), edges=["b"]), Vertex("b")]
        gp.agents.run(vertices, compute, workers=workers, retry=WITHOUT_WAIT, observer=telemetry.observer, run_id="r")
    (run,) = telemetry.spans("run")
    assert run.parent == caller.get_span_context()
    assert run.attributes == {"gpu_pregel.run.id": "r", "gpu_pregel.run.status": "completed"}
    assert telemetry.supersteps() == [
        {"number": 0, "active": 2, "messages": 1, "failed": 0, "retries": 0, "status": "committed"},
        {"number": 1, "active": 1, "messages": 0, "failed": 0, "retries": 1, "status": "committed"},
    ]
    for span in telemetry.spans("superstep"):
        assert span.parent == run.context
        assert span.status.status_code == UNSET
        assert (run.start_time or 0) <= (span.start_time or 0) <= (span.end_time or 0) <= (run.end_time or 0)
    first, second = telemetry.spans("superstep")
    assert not first.events
    (retry,) = second.events
    assert retry.name == "gpu_pregel.retry"
    assert retry.attributes == {
        "gpu_pregel.vertex.id": "b",
        "gpu_pregel.attempt.number": 1,
        "gpu_pregel.retry.seconds": 0.0,
        "exception.message": "once",
    }
    assert telemetry.counts() == {"supersteps": 2, "attempts": {"completed": 3, "failed": 1}, "retries": 1}
    (seconds,) = telemetry.points()["gpu_pregel.superstep.duration"]
    assert seconds.count == 2
    assert 0 < seconds.sum < 60
    assert seconds.explicit_bounds[0] == 0.0001


def test_a_failure_sets_the_status_even_if_the_run_continues(telemetry: Telemetry) -> None:
    def compute(ctx: Any) -> None:
        if ctx.vertex_id == ("a", 1):
            raise ZeroDivisionError("never")
        ctx.vote_to_halt()

    gp.agents.run(
        [Vertex(("a", 1)), Vertex("b")],
        compute,
        on_failure="continue",
        retry=WITHOUT_WAIT,
        observer=telemetry.observer,
        run_id="r",
    )
    (superstep,), (run,) = telemetry.spans("superstep"), telemetry.spans("run")
    assert (superstep.status.status_code, superstep.status.description) == (ERROR, "ZeroDivisionError: never")
    assert [event.name for event in superstep.events] == ["gpu_pregel.retry"] * 2 + ["gpu_pregel.failure"]
    assert superstep.events[2].attributes == {
        "gpu_pregel.vertex.id": "('a', 1)",
        "gpu_pregel.attempt.number": 3,
        "error.type": "ZeroDivisionError",
        "exception.message": "never",
    }
    assert run.status.status_code == UNSET
    assert run.attributes == {"gpu_pregel.run.id": "r", "gpu_pregel.run.status": "partial"}
    assert telemetry.counts()["failures"] == {"ZeroDivisionError": 1}


def test_a_death_is_an_event(telemetry: Telemetry) -> None:
    def compute(ctx: Any) -> None:
        import os

        if ctx.attempt == 1:
            os.kill(os.getpid(), 9)
        ctx.vote_to_halt()

    gp.agents.run([Vertex("a")], compute, workers=1, retry=WITHOUT_WAIT, observer=telemetry.observer)
    (superstep,) = telemetry.spans("superstep")
    death, retry = superstep.events
    assert (death.name, retry.name) == ("gpu_pregel.death", "gpu_pregel.retry")
    assert death.attributes == {"gpu_pregel.worker.partition": 0, "gpu_pregel.worker.reason": "ended by SIGKILL"}
    assert telemetry.counts() == {"supersteps": 1, "attempts": {"completed": 1}, "retries": 1, "deaths": 1}


def test_a_held_superstep_has_a_span_for_each_step(telemetry: Telemetry) -> None:
    telemetry.tell(begin(0, 2), attempt(0, "completed"), attempt(0, "interrupted"))
    telemetry.tell(Event("interrupt", 0, "a", 1), hold(0, "interrupted"), hold(0, "interrupted"))
    assert telemetry.supersteps() == [{"number": 0, "active": 2, "status": "interrupted"}]
    assert [event.name for event in telemetry.spans("superstep")[0].events] == ["gpu_pregel.interrupt"]
    assert telemetry.counts() == {"attempts": {"completed": 1, "interrupted": 1}}
    failure = Event("failure", 0, "a", 1, {"type": "OSError", "text": "lost"})
    telemetry.tell(attempt(0, "failed"), failure, hold(0, "failed"))
    telemetry.tell(attempt(0, "completed"), commit(0), end(0, "completed"))
    _, second, third = telemetry.supersteps()
    assert second == {"number": 0, "resumed": True, "status": "failed"}
    assert third["resumed"] is True
    assert third["status"] == "committed"
    assert [span.status.status_code for span in telemetry.spans("superstep")] == [UNSET, ERROR, UNSET]
    (run,) = telemetry.spans("run")
    assert run.status.status_code == UNSET
    assert [span.parent for span in telemetry.spans("superstep")] == [run.context] * 3
    counts = {"supersteps": 1, "attempts": {"completed": 2, "interrupted": 1, "failed": 1}, "failures": {"OSError": 1}}
    assert telemetry.counts() == counts


@pytest.mark.parametrize("status", ["stopped", "failed"])
def test_a_run_that_ends_during_a_hold_is_an_error(telemetry: Telemetry, status: str) -> None:
    failure = Event("failure", 0, "a", 1, {"type": "OSError", "text": "lost"})
    telemetry.tell(begin(0, 1), attempt(0, "failed"), failure, hold(0, "failed"))
    assert not telemetry.spans("run")
    telemetry.tell(end(0, status))
    (run,) = telemetry.spans("run")
    assert (run.status.status_code, run.status.description) == (ERROR, "OSError: lost")
    assert run.attributes == {"gpu_pregel.run.id": "", "gpu_pregel.run.status": status}
    telemetry.tell(begin(0, 1), commit(0), end(0, "completed"))
    assert telemetry.spans("run")[1].status.status_code == UNSET
    assert "resumed" not in telemetry.supersteps()[1]


def test_spans_end_after_an_exception(telemetry: Telemetry) -> None:
    with pytest.raises(KeyError, match="missing"):
        gp.agents.run(
            [Vertex("a")], lambda ctx: None, master=lambda m: m.aggregated("missing"), observer=telemetry.observer
        )
    assert telemetry.supersteps() == [{"number": 0, "active": 1, "status": "cut off"}]
    assert [span.status.status_code for span in telemetry.exporter.get_finished_spans()] == [ERROR, ERROR]
    assert telemetry.counts() == {"attempts": {"completed": 1}}


def test_values_and_messages_are_not_exported(telemetry: Telemetry) -> None:
    facts = {"status": "failed", "active": 1, "seconds": 0.5, "text": "reason", "type": "OSError"}
    secret = {"value": "secret", "messages": ["secret"], "payload": "secret", "answers": "secret"}
    for kind in EVENT_KINDS:
        telemetry.tell(Event(kind, 0, "a", 1, {**facts, **secret}))
    spans = telemetry.exporter.get_finished_spans()
    assert len(spans) > 1
    exported = str([span.to_json() for span in spans]) + str(telemetry.points())
    assert "reason" in exported
    assert "secret" not in exported


def test_without_a_provider_nothing_is_exported() -> None:
    def compute(ctx: Any) -> None:
        ctx.vote_to_halt()

    observer = gp.agents.OpenTelemetryObserver()
    assert gp.agents.run([Vertex("a")], compute, observer=observer).status == "completed"


def test_a_missing_package_is_an_error_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    with pytest.raises(MissingPackageError, match=r"pip install gpu-pregel\[telemetry\]"):
        gp.agents.OpenTelemetryObserver()


def test_an_older_meter_has_default_boundaries() -> None:
    made: list[Any] = []

    class Meter:
        def create_counter(self, name: str, unit: str, description: str) -> None:
            made.append((name, unit))

        def create_histogram(self, name: str, unit: str, description: str) -> None:
            made.append((name, unit))

    older: Any = Meter()
    gp.agents.OpenTelemetryObserver(meter=older)
    assert ("gpu_pregel.attempts", "{attempts}") in made
    assert ("gpu_pregel.superstep.duration", "s") in made
