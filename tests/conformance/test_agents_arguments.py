"""Invalid arguments of agent runs are refused before any work, and invalid calls change nothing.

Errors name the vertex and the remedy.
"""

from __future__ import annotations

import math
import threading
from typing import Any

import pytest

import gpu_pregel.agents as agents
from gpu_pregel.agents import Aggregator, Edge, RetryPolicy, Vertex
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, CodecError, GpuPregelError
from tests.agents import FEW, ONCE, values
from tests.host.agents.workers.worker_programs import children


def never(ctx: Any) -> None:
    raise AssertionError("this is computed")


REFUSED: list[Any] = [
    pytest.param({"vertices": [Vertex(1), Vertex(2), Vertex(1)]}, ArgumentError, "duplicate vertex 1", id="twice"),
    pytest.param(
        {"vertices": [Vertex((1, "a")), Vertex((1, "a"))]},
        ArgumentError,
        r"duplicate vertex \(1, 'a'\)",
        id="pair",
    ),
    pytest.param(
        {"vertices": [Vertex("a", 0, ["b"])]},
        ArgumentError,
        "'a' has an edge to 'b', which does not exist: add",
        id="edge",
    ),
    pytest.param(
        {"vertices": [Vertex("a", {"x": [1, print]})]}, CodecError, r"vertex 'a': .*\['x'\]\[1\]", id="no data"
    ),
    pytest.param(
        {"vertices": [Vertex("a", 0, [Edge("a", print)])]},
        CodecError,
        "vertex 'a': weight of the edge to 'a' is of",
        id="weight",
    ),
    pytest.param(
        {"vertices": [Vertex("a", 0, [1.5])]},
        ArgumentTypeError,
        "vertex 'a': edge to: id is of type float",
        id="target",
    ),
    pytest.param({"vertices": [Vertex(True)]}, ArgumentTypeError, "id is of type bool", id="id"),
    pytest.param({"vertices": ["a"]}, ArgumentTypeError, r"gp\.agents\.Vertex objects, not 'a'", id="vertex"),
    pytest.param({"compute": None}, ArgumentError, "no compute function", id="no function"),
    pytest.param({"compute": "never"}, ArgumentTypeError, "must be a function of .ctx., not 'never'", id="function"),
    pytest.param(
        {"timeout": 0}, ArgumentError, "timeout must be a finite number of seconds above 0, not 0", id="timeout"
    ),
    pytest.param({"timeout": math.nan}, ArgumentError, "timeout must be", id="timeout NaN"),
    pytest.param({"lease_seconds": 1e9}, ArgumentError, "lease_seconds must be below 1,000,000", id="lease too long"),
    pytest.param({"timeout": math.inf}, ArgumentError, "timeout must be", id="timeout infinite"),
    pytest.param({"timeout": 10**400}, ArgumentError, "timeout must be.*, not 1000", id="timeout too long"),
    pytest.param({"timeout": True}, ArgumentTypeError, "timeout must be.*, not True", id="timeout True"),
    pytest.param({"timeout": "5"}, ArgumentTypeError, "timeout must be.*, not '5'", id="timeout of text"),
    pytest.param({"workers": True}, ArgumentTypeError, "workers must be a whole number, not True", id="workers True"),
    pytest.param({"vertices": None}, ArgumentTypeError, "vertices must be a sequence of gp.*, not None", id="none"),
    pytest.param({"vertices": Vertex("a")}, ArgumentTypeError, "vertices must be a sequence of gp", id="one vertex"),
    pytest.param(
        {"vertices": [Vertex("a", 0, 5)]},  # type: ignore[arg-type]
        ArgumentTypeError,
        "vertex 'a': edges must be.*not 5",
        id="edges",
    ),
    pytest.param(
        {"vertices": [Vertex("a", 0, "abc")]},
        ArgumentTypeError,
        r"vertex 'a': edges must be a sequence of targets, not 'abc': for a single target, pass \['abc'\]",
        id="edges of text",
    ),
    pytest.param(
        {"vertices": [Vertex("a", 0, {"a": 2.0})]},  # type: ignore[arg-type]
        ArgumentTypeError,
        r"pass \[Edge\(target, weight\)",
        id="edges dict",
    ),
    pytest.param(
        {"vertices": [Vertex("a", halted="no")]},  # type: ignore[arg-type]
        ArgumentTypeError,
        "vertex 'a': halted must be True or False, not 'no'",
        id="halted",
    ),
    pytest.param(
        {"vertices": [Vertex("a", 0, [Edge("a", "\udc80")])]}, CodecError, "surrogate", id="weight of no text"
    ),
    pytest.param({"observer": 5}, ArgumentTypeError, r"observer must be a function of \(event\).*not 5", id="observer"),
    pytest.param({"observer": "log"}, ArgumentTypeError, "observer must be.*not 'log'", id="observer by name"),
    pytest.param({"observer": [print, "x"]}, ArgumentTypeError, "observer must be.*not 'x'", id="observers"),
    pytest.param({"aggregators": ["sum"]}, ArgumentTypeError, "aggregators must be a mapping from", id="aggregators"),
    pytest.param({"aggregators": {5: "sum"}}, ArgumentTypeError, "aggregators must have names.*not 5", id="name"),
    pytest.param({"functions": [never]}, ArgumentTypeError, "functions must be a mapping from names", id="functions"),
    pytest.param(
        {"aggregators": {"x": Aggregator("sum", object())}},
        CodecError,
        "initial value of aggregator 'x': value is of type object",
        id="initial",
    ),
    pytest.param(
        {"aggregators": {"x": Aggregator("sum", len)}},
        ArgumentError,
        "aggregator 'x' of a run of agents cannot have a function or a dtype: agents contribute with ctx.aggregate",
        id="function",
    ),
    pytest.param(
        {"aggregators": {"x": Aggregator("sum", dtype=int)}}, ArgumentError, "cannot have a function or a", id="dtype"
    ),
    pytest.param({"run_id": "\udc80"}, CodecError, "run_id contains", id="run_id"),
    pytest.param({"workers": -1}, ArgumentError, "workers must be from 0", id="workers"),
    pytest.param({"workers": 1.0}, ArgumentTypeError, "workers must be a whole number", id="workers of a float"),
    pytest.param({"max_supersteps": 0}, ArgumentError, "max_supersteps must be from 1", id="max_supersteps"),
    pytest.param({"max_concurrency": 0}, ArgumentError, "max_concurrency must be from 1", id="max_concurrency"),
    pytest.param({"combiner": "average"}, ArgumentError, "combiner must be one of 'sum'", id="combiner"),
    pytest.param({"aggregators": {"x": 5}}, ArgumentTypeError, "aggregator 'x' must be", id="aggregator"),
    pytest.param({"master": 5}, ArgumentTypeError, "master must be a function", id="master"),
    pytest.param({"resolve": 5}, ArgumentTypeError, "resolve must be a function", id="resolve"),
    pytest.param({"retry": 3}, ArgumentTypeError, "retry must be a RetryPolicy", id="retry"),
    pytest.param(
        {"on_failure": "ignore"}, ArgumentError, "on_failure must be 'raise', 'continue' or 'abort'", id="on_failure"
    ),
    pytest.param({"on_missing": "ignore"}, ArgumentError, "on_missing must be", id="on_missing"),
]


@FEW
@pytest.mark.parametrize(("options", "error", "text"), REFUSED)
def test_invalid_arguments_are_refused_before_work(
    options: dict[str, Any], error: type[Exception], text: str, workers: int
) -> None:
    call: dict[str, Any] = {"vertices": [Vertex("a")], "compute": never, "workers": workers, **options}
    before = children()
    with pytest.raises(error, match=text) as caught:
        agents.run(**call)
    assert isinstance(caught.value, GpuPregelError)
    assert children() == before


def test_flags_may_be_bools_of_python_and_numpy() -> None:
    import numpy as np

    with pytest.raises(ArgumentTypeError, match="Aggregator's persistent must be True or False, not 'no'"):
        Aggregator("sum", persistent="no")  # type: ignore[arg-type]
    vertices = [Vertex("a", halted=np.True_), Vertex("b", halted=np.array([True, False])[1])]  # type: ignore[arg-type]
    assert agents.run(vertices, lambda ctx: ctx.vote_to_halt()).trace[0]["computed"] == 1


def test_a_timeout_that_cannot_be_enforced_is_refused_before_work() -> None:
    async def asynchronous(ctx: Any) -> None:
        ctx.vote_to_halt()

    with pytest.raises(
        ArgumentError,
        match=r"timeout=5 cannot be enforced with workers=0.*pass workers=1 or threads=1, or make it async",
    ):
        agents.run([Vertex("a")], never, timeout=5)
    with pytest.raises(ArgumentError, match="function 'second' cannot be interrupted"):
        agents.run([Vertex("a")], asynchronous, functions={"second": never}, timeout=5)
    assert agents.run([Vertex("a")], asynchronous, timeout=5).status == "completed"


def test_invalid_retry_policies() -> None:
    types: list[dict[str, Any]] = [
        {"wait": "1"},
        {"max_wait": None},
        {"exceptions": ValueError},
        {"exceptions": ("ValueError",)},
    ]
    for one in types:
        with pytest.raises(ArgumentTypeError, match=next(iter(one))):
            RetryPolicy(**one)
    for name, figure in (("wait", math.inf), ("wait", math.nan), ("max_wait", math.inf), ("factor", math.inf)):
        with pytest.raises(ArgumentError, match=name):
            RetryPolicy(**{name: figure})  # type: ignore[arg-type]
    patient = RetryPolicy(attempts=5000, wait=1, max_wait=30, jitter=0)
    assert [patient.seconds_before(k) for k in (2, 6, 7, 5000)] == [1, 16, 30, 30]
    assert RetryPolicy(attempts=5000, wait=0, jitter=0).seconds_before(5000) == 0


def test_functions_that_cannot_be_sent_to_workers_are_named() -> None:
    lock = threading.Lock()

    def compute(ctx: Any) -> None:
        lock.acquire()

    cases: list[tuple[dict[str, Any], str]] = [
        ({"compute": compute}, "compute function 'compute'"),
        ({"combiner": lambda a, b: lock}, "the combiner"),
    ]
    for options, name in cases:
        given = {"compute": never, **options}
        with pytest.raises(ArgumentError, match=f"{name} cannot be sent to worker processes: .*lock"):
            agents.run([Vertex("a")], workers=1, **given)


@FEW
def test_invalid_calls_of_a_run(workers: int) -> None:
    def compute(ctx: Any) -> None:
        if ctx.vertex_id == "bad":
            raise ValueError
        ctx.vote_to_halt()

    with agents.start([Vertex("bad"), Vertex("good")], compute, workers=workers, retry=ONCE) as run:
        with pytest.raises(ArgumentError, match="'bad' has not failed in a held superstep"):
            run.retry(["bad"])
        with pytest.raises(ArgumentError, match="'bad' is not waiting for an answer"):
            run.answer("bad", 1)
        assert not run.step()
        with pytest.raises(
            ArgumentError, match=r"'good' has not failed in a held superstep; failed vertices: \['bad'\]"
        ):
            run.retry(["bad", "good"])
        run.retry([])
        assert not run.step()
        run.retry(["bad", "bad"])
        assert not run.step()
        assert run.status == "failed"
        run.stop()
        assert not run.step()
        assert run.status == "stopped"
        values(run.result(), {"bad": None, "good": None})
