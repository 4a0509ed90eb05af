"""An observer that exports a run to OpenTelemetry: spans of the run and its supersteps, counters, and a histogram."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from gpu_pregel.host.agents.observers.events import Event
from gpu_pregel.host.arguments import require

if TYPE_CHECKING:
    from opentelemetry.metrics import Histogram, Meter
    from opentelemetry.trace import Span, Tracer

_COUNTED = {
    "supersteps": "supersteps committed",
    "attempts": "attempts that ended, by status",
    "retries": "failed attempts that are retried",
    "failures": "vertices that failed their last attempt",
    "deaths": "worker processes that died",
}
_ATTRIBUTES = {
    "active": "gpu_pregel.superstep.active",
    "messages": "gpu_pregel.superstep.messages",
    "failed": "gpu_pregel.superstep.failed",
    "retries": "gpu_pregel.superstep.retries",
    "seconds": "gpu_pregel.retry.seconds",
    "partition": "gpu_pregel.worker.partition",
    "reason": "gpu_pregel.worker.reason",
    "type": "error.type",
    "text": "exception.message",
}
"""The attributes of an event's facts. Other facts are not exported, so values and messages never are."""
_BOUNDARIES = [0.0001, 0.001, 0.01, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1800.0]
"""Bucket boundaries of the histogram, in seconds; the default ones are for milliseconds."""


class OpenTelemetryObserver:
    """Exports a run to OpenTelemetry; needs ``pip install gpu-pregel[telemetry]`` and a configured SDK.

    A span ``gpu_pregel.run`` contains a span ``gpu_pregel.superstep`` for each superstep, and another one when a held
    superstep continues. Retries, failures, interrupts and deaths of workers are events of the span of the superstep; a
    failure sets its status. The counters are ``gpu_pregel.supersteps``, ``attempts``, ``retries``, ``failures`` and
    ``deaths``, the histogram is ``gpu_pregel.superstep.duration``. Ids of vertices and texts of exceptions are
    exported; values, messages and emissions never.

    An instance observes one run at a time. The span of the run ends when the run ends or its ``with`` block is left.
    The span of a superstep that is neither committed nor held ends as an error.

    Parameters
    ----------
    tracer : opentelemetry.trace.Tracer, optional
    meter : opentelemetry.metrics.Meter, optional
        Default: those of the global providers.

    Raises
    ------
    MissingPackageError
        The OpenTelemetry API is not installed.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> def compute(ctx):
    ...     ctx.vote_to_halt()
    >>> observer = gp.agents.OpenTelemetryObserver()
    >>> gp.agents.run([gp.agents.Vertex("a")], compute, observer=observer).status
    'completed'
    """

    def __init__(self, tracer: Tracer | None = None, meter: Meter | None = None) -> None:
        require("opentelemetry", "OpenTelemetryObserver", "gpu-pregel[telemetry]")
        from opentelemetry import metrics, trace

        self._trace = trace
        self._tracer = tracer or trace.get_tracer("gpu_pregel")
        meter = meter or metrics.get_meter("gpu_pregel")
        self._counters = {
            name: meter.create_counter(f"gpu_pregel.{name}", f"{{{name}}}", description)
            for name, description in _COUNTED.items()
        }
        self._seconds = _make_histogram(meter)
        self._attempts: Counter[str] = Counter()
        """Attempts of this superstep by status, added to the counter at its end."""
        self._run: Span | None = None
        self._superstep: Span | None = None
        self._is_held = False
        self._failure = self._problem = ""
        """The latest failure of the superstep, and the reason why the run cannot continue, if any."""

    def __call__(self, event: Event) -> None:
        """Export an event."""
        kind = event.kind
        if kind == "emit":
            return
        if kind == "end":
            self._end(event.facts["status"])
            return
        if kind == "hold" and self._superstep is None:
            return  # still held: nothing was computed
        if self._superstep is None or kind == "superstep":
            self._begin(event)
        assert self._superstep is not None
        if kind == "attempt":
            self._attempts[event.facts["status"]] += 1
        elif kind == "commit":
            self._superstep.set_attributes(_attributes(event, "active", "messages", "failed", "retries"))
            self._counters["supersteps"].add(1)
            self._seconds.record(event.facts["seconds"])
            self._problem = ""
            self._end_superstep("committed")
        elif kind == "hold":
            status = event.facts["status"]
            self._is_held = True
            self._problem = "" if status == "interrupted" else self._failure or status
            self._end_superstep(status, self._problem)
        elif kind != "superstep":
            self._note(event, self._superstep)

    def _note(self, event: Event, span: Span) -> None:
        """Add a retry, a failure, an interrupt or a death to the span as an event."""
        attributes = _attributes(event, "seconds", "partition", "reason", "type", "text")
        span.add_event(f"gpu_pregel.{event.kind}", attributes)
        if event.kind == "failure":
            self._failure = f"{event.facts.get('type')}: {event.facts.get('text')}"
            span.set_status(self._trace.StatusCode.ERROR, self._failure)
            self._counters["failures"].add(1, {"error.type": str(event.facts.get("type"))})
        elif event.kind == "retry":
            self._counters["retries"].add(1)
        elif event.kind == "death":
            self._counters["deaths"].add(1)

    def _begin(self, event: Event) -> None:
        """Start the span of a superstep, and of the run before its first one."""
        if self._superstep is not None:
            self._abort_superstep()
        if self._run is None:
            self._run = self._tracer.start_span("gpu_pregel.run", attributes={"gpu_pregel.run.id": event.run})
        attributes = {"gpu_pregel.superstep.number": event.superstep}
        if event.kind == "superstep":
            attributes |= _attributes(event, "active")
        if self._is_held:
            attributes["gpu_pregel.superstep.resumed"] = True
        parent = self._trace.set_span_in_context(self._run)
        self._superstep = self._tracer.start_span("gpu_pregel.superstep", parent, attributes=attributes)
        self._is_held, self._failure = False, ""

    def _end_superstep(self, status: str, problem: str = "") -> None:
        for outcome, count in self._attempts.items():
            self._counters["attempts"].add(count, {"gpu_pregel.attempt.status": outcome})
        self._attempts.clear()
        span, self._superstep = self._superstep, None
        if span is not None:
            span.set_attribute("gpu_pregel.superstep.status", status)
            if problem:
                span.set_status(self._trace.StatusCode.ERROR, problem)
            span.end()

    def _abort_superstep(self) -> None:
        """End the span of a superstep that was neither committed nor held because of an exception."""
        self._problem = self._failure or "the superstep was cut off"
        self._end_superstep("cut off", self._problem)

    def _end(self, status: str) -> None:
        if self._superstep is not None:
            self._abort_superstep()
        span, self._run = self._run, None
        if span is not None:
            span.set_attribute("gpu_pregel.run.status", status)
            if self._problem:
                span.set_status(self._trace.StatusCode.ERROR, self._problem)
            span.end()
        self._is_held, self._problem = False, ""


def _make_histogram(meter: Meter) -> Histogram:
    name, description = "gpu_pregel.superstep.duration", "seconds from the start of a superstep to its commit"
    try:
        return meter.create_histogram(name, "s", description, explicit_bucket_boundaries_advisory=_BOUNDARIES)
    except TypeError:  # before 1.30
        return meter.create_histogram(name, "s", description)


def _attributes(event: Event, *names: str) -> dict[str, Any]:
    """Return the attributes of the vertex, the attempt and the named facts."""
    attributes: dict[str, Any] = {}
    if event.vertex is not None:
        attributes["gpu_pregel.vertex.id"] = event.vertex if isinstance(event.vertex, str) else repr(event.vertex)
    if event.attempt is not None:
        attributes["gpu_pregel.attempt.number"] = event.attempt
    for name in names:
        fact = event.facts.get(name)
        if isinstance(fact, (str, int, float)):
            attributes[_ATTRIBUTES[name]] = fact
    return attributes
