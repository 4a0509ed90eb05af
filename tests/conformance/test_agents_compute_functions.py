"""Mistakes of users of agent vertices: errors name the vertex and the remedy, and no run hangs."""

from __future__ import annotations

import functools
import math
import re
import threading
from pathlib import Path
from typing import Any

import pytest

import gpu_pregel.agents as agents
from gpu_pregel.agents import Aggregator, Edge, RetryPolicy, TopK, Vertex
from gpu_pregel.errors import AgentError, ArgumentError, ArgumentTypeError, CodecError, GpuPregelError
from tests.agents import ONCE, WORKERS, values
from tests.host.agents.workers.worker_programs import children

FEW = pytest.mark.parametrize("workers", [0, 2])


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
    pytest.param({"timeout": 0}, ArgumentError, "timeout must be a number of seconds above 0, not 0", id="timeout"),
    pytest.param({"timeout": math.nan}, ArgumentError, "timeout must be", id="timeout NaN"),
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
        r"vertex 'a': edges must be several targets, not 'abc': for one, pass \['abc'\]",
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
    pytest.param({"on_failure": "ignore"}, ArgumentError, "on_failure must be 'raise' or 'continue'", id="on_failure"),
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
        ArgumentError, match=r"timeout=5 cannot be enforced with workers=0.*pass workers=1, or make it async"
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


MISTAKES: dict[str, tuple[str, str, str]] = {
    # Mistake, which is the name of the vertex: kind, type and text of the failure.
    "returns": ("exception", "TypeError", "compute must return None, but returned int: set ctx.value"),
    "returns ctx": ("exception", "TypeError", "compute must return None, but returned Context"),
    "yields": ("exception", "TypeError", "compute must return None, but returned generator.*has a yield"),
    "does not await": ("exception", "TypeError", "compute must return None, but returned coroutine.*async function"),
    "value": ("data", "CodecError", "the value: value.*function"),
    "part of a value": ("data", "CodecError", r"the value: value\['part'\]\[0\] is of type object"),
    "value holds itself": ("data", "CodecError", "the value: .*contains itself"),
    "deep value": ("data", "CodecError", "the value: .*nested more than 200 levels deep"),
    "message": ("data", "CodecError", "a message: value is of type object"),
    "message to neighbors": ("data", "CodecError", "a message: value is of type object"),
    "aggregate": ("data", "CodecError", "a contribution to 'sum': value is of type object"),
    "value of a vertex": ("data", "CodecError", "a vertex's value: value is of type object"),
    "edges of a vertex": ("exception", "ArgumentTypeError", r"edges must be several.*for one, pass \['fine'\]"),
    "weight of a vertex": ("data", "CodecError", "an edge's weight: value is of type object"),
    "weight": ("data", "CodecError", "an edge's weight: value is of type object"),
    "payload": ("data", "CodecError", "an interrupt's payload: value is of type object"),
    "target": ("data", "CodecError", "id is of type float"),
    "id": ("data", "CodecError", "id is of type NoneType"),
    "source": ("data", "CodecError", "id is of type list"),
    "aggregator": ("exception", "KeyError", "no aggregator 'mean'; declared aggregators: 'sum'"),
    "aggregated": ("exception", "KeyError", "no aggregator 'mean'; declared aggregators: 'sum'"),
    "sets": ("exception", "AttributeError", "superstep"),
    "no such attribute": ("exception", "AttributeError", "salute"),
    "exits": ("exception", "SystemExit", "3"),
    "quits": ("exception", "GeneratorExit", ""),
    "recurses": ("exception", "RecursionError", "recursion"),
    "no text": ("exception", ".*NoTextError", "no text"),
    "odd text": ("exception", ".*OddTextError", r"\\udc80"),
    "group": ("exception", "ExceptionGroup", "2 sub-exceptions"),
}


def all_mistakes() -> Any:
    def compute(ctx: Any) -> Any:
        class NoTextError(Exception):
            def __str__(self) -> str:
                raise ValueError

            def __reduce__(self) -> Any:
                raise TypeError

        class OddTextError(Exception):
            def __init__(self, one: Any, another: Any) -> None:
                super().__init__("\udc80")

        async def forgotten() -> None:
            pass

        def recurse() -> None:
            recurse()

        def generator() -> Any:
            yield 1

        def fail(error: BaseException) -> None:
            raise error

        odd = object()
        circle: list[Any] = []
        circle.append(circle)
        deep: list[Any] = []
        for _ in range(5000):
            deep = [deep]
        mistakes: dict[str, Any] = {
            "returns": lambda: 5,
            "returns ctx": lambda: ctx,
            "yields": generator,
            "does not await": forgotten,
            "value": lambda: setattr(ctx, "value", recurse),
            "part of a value": lambda: ctx.value["part"].append(odd),
            "value holds itself": lambda: setattr(ctx, "value", circle),
            "deep value": lambda: setattr(ctx, "value", deep),
            "message": lambda: ctx.send("fine", odd),
            "message to neighbors": lambda: ctx.send_to_neighbors(odd),
            "aggregate": lambda: ctx.aggregate("sum", odd),
            "value of a vertex": lambda: ctx.add_vertex("new", odd),
            "edges of a vertex": lambda: ctx.add_vertex("new", 1, "fine"),
            "weight of a vertex": lambda: ctx.add_vertex("new", 1, [edge(odd)]),
            "weight": lambda: ctx.add_edge("fine", "fine", odd),
            "payload": lambda: ctx.interrupt(odd),
            "target": lambda: ctx.send(1.5, 1),
            "id": lambda: ctx.add_vertex(None),
            "source": lambda: ctx.remove_edge(["fine"], "fine"),
            "aggregator": lambda: ctx.aggregate("mean", 1),
            "aggregated": lambda: ctx.aggregated("mean"),
            "sets": lambda: setattr(ctx, "superstep", 5),
            "no such attribute": lambda: ctx.salute(),
            "exits": lambda: fail(SystemExit(3)),
            "quits": lambda: fail(GeneratorExit()),
            "recurses": recurse,
            "no text": lambda: fail(NoTextError()),
            "odd text": lambda: fail(OddTextError(1, 2)),
            "group": lambda: fail(ExceptionGroup("both", [ValueError("\udc80"), NoTextError()])),
        }
        if ctx.superstep == 0:
            for to in ("fine", "fine too"):
                ctx.send(to, "lost with the attempt" if ctx.vertex_id in mistakes else "kept")
            if ctx.vertex_id in mistakes:
                return mistakes[ctx.vertex_id]()
        ctx.value = ctx.messages
        return ctx.vote_to_halt()

    def edge(weight: Any) -> Any:
        from gpu_pregel.agents import Edge

        return Edge("fine", weight)

    return compute


@WORKERS
def test_mistakes_of_compute_functions(workers: int) -> None:
    """Each mistake fails only its vertex, in one run; the workers continue."""
    names = [*MISTAKES, "fine", "fine too"]
    vertices = [Vertex(name, {"part": []}, ["fine"]) for name in names]
    result = agents.run(
        vertices, all_mistakes(), workers=workers, retry=ONCE, on_failure="continue", aggregators={"sum": "sum"}
    )
    assert sorted(result.failed) == sorted(MISTAKES)
    for name, (kind, type_name, text) in MISTAKES.items():
        failed = result.failed[name]
        assert (name, failed.superstep, failed.kind) == (name, 0, kind)
        assert re.fullmatch(type_name, failed.type)
        assert re.search(text, failed.text), failed
        assert failed.traceback
    assert result.status == "partial"
    values(result, {name: {"part": []} if name in MISTAKES else ["kept", "kept"] for name in names})


@FEW
@pytest.mark.parametrize(
    "kind", ["lambda", "bound", "instance", "partial", "async bound", "async instance", "async partial", "async both"]
)
def test_kinds_of_compute_functions(kind: str, workers: int) -> None:
    class Program:
        def __init__(self, asynchronous: bool = False) -> None:
            self.value = 42

        def method(self, ctx: Any) -> None:
            ctx.value = self.value
            ctx.vote_to_halt()

        __call__ = method

        async def later(self, ctx: Any) -> None:
            import asyncio

            await asyncio.sleep(0)
            self.method(ctx)

    class Later(Program):
        async def __call__(self, ctx: Any) -> None:  # type: ignore[override]
            await self.later(ctx)

    program = Program()
    compute: dict[str, Any] = {
        "lambda": lambda ctx: program.method(ctx),
        "bound": program.method,
        "instance": program,
        "partial": functools.partial(Program.method, program),
        "async bound": program.later,
        "async instance": Later(),
        "async partial": functools.partial(Program.later, program),
        "async both": functools.partial(Later()),
    }
    options: dict[str, Any] = {"timeout": 60} if kind.startswith("async") else {}
    result = agents.run([Vertex(0), Vertex(1)], compute[kind], workers=workers, retry=ONCE, **options)
    values(result, {0: 42, 1: 42})


@WORKERS
def test_a_context_refuses_calls_after_its_attempt(workers: int, tmp_path: Path) -> None:
    """A thread continues to use the context: its calls raise an error and have no effect."""
    now, said = str(tmp_path / "now"), str(tmp_path / "said")

    def compute(ctx: Any) -> None:
        import os
        import threading
        import time

        def wait_for(path: str) -> None:
            until = time.monotonic() + 20
            while not os.path.exists(path):
                assert time.monotonic() < until
                time.sleep(0.001)

        def later() -> None:
            wait_for(now)
            errors = []
            asks: list[Any] = [
                lambda: ctx.send(0, "too late"),
                lambda: ctx.aggregate("count", 1),
                lambda: ctx.add_vertex("late"),
            ]
            for ask in asks:
                try:
                    ask()
                except RuntimeError as error:
                    errors.append(str(error))
            with open(f"{said}.new", "w") as file:
                file.write("\n".join(errors))
            os.rename(f"{said}.new", said)

        if ctx.superstep == 0:
            threading.Thread(target=later, daemon=True).start()
            ctx.send(1, "in time")
        else:
            os.close(os.open(now, os.O_CREAT))
            wait_for(said)
            ctx.value = ctx.messages
        ctx.vote_to_halt()

    vertices = [Vertex(0), Vertex(1, halted=True)]
    result = agents.run(vertices, compute, workers=workers, retry=ONCE, aggregators={"count": "count"})
    assert Path(said).read_text().count("the attempt has ended") == 3
    values(result, {0: None, 1: ["in time"]})
    assert result.aggregates == {"count": 0}


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


class OurError(Exception):
    pass


def wrong(*_: Any) -> Any:
    raise OurError("of a function of the user")


@FEW
@pytest.mark.parametrize("what", ["observer", "master", "resolve", "on_failure", "aggregator"])
def test_exceptions_of_functions_in_the_master(what: str, workers: int) -> None:
    """The run ends with their exception, and no process is left."""

    def compute(ctx: Any) -> None:
        ctx.aggregate("figure", 1)
        if ctx.superstep == 0:
            ctx.add_vertex("new", ctx.vertex_id)
        if what == "on_failure":
            raise ValueError
        ctx.vote_to_halt()

    options: dict[str, Any] = {what: wrong}
    aggregators = {"figure": options.pop("aggregator", "sum")}
    options.setdefault("resolve", lambda vertex, existing, requested, messages: requested[0])
    before = children()
    with pytest.raises(Exception, match="of a function of the user"):
        agents.run([Vertex(0), Vertex(1)], compute, workers=workers, aggregators=aggregators, retry=ONCE, **options)
    assert children() == before


@FEW
@pytest.mark.parametrize(
    ("combine", "error"),
    [
        ("min", "cannot fold the contributions: TypeError: '<' not supported"),
        ("sum", "cannot fold the contributions: TypeError"),
        (wrong, "cannot fold the contributions: OurError: of a function of the user"),
        (lambda a, b: object(), "has a result that is not data: its result is of type object"),
    ],
    ids=["min", "sum", "raises", "no data"],
)
def test_aggregators_that_cannot_fold_are_named_and_change_nothing(combine: Any, error: str, workers: int) -> None:
    def compute(ctx: Any) -> None:
        ctx.value = ctx.superstep
        ctx.aggregate("fine", 1)
        if ctx.superstep == 1:
            ctx.aggregate("wrong", 1 if ctx.vertex_id else "one")
            ctx.vote_to_halt()

    aggregators = {"fine": "sum", "wrong": combine}
    with agents.start([Vertex(0), Vertex(1)], compute, workers=workers, aggregators=aggregators, retry=ONCE) as run:
        assert run.step()
        for _ in range(2):
            with pytest.raises(AgentError, match=f"aggregator 'wrong' in superstep 1 {error}"):
                run.step()
            assert (run.status, run.result().superstep) == ("running", 1)
            assert run.result().aggregates["fine"] == 2
            values(run.result(), {0: 0, 1: 0})


@FEW
def test_combiners_that_raise_fail_the_recipient(workers: int) -> None:
    """The error names the combiner; senders do not fail, even if messages are folded at the sender."""

    def compute(ctx: Any) -> None:
        if ctx.superstep == 0:
            ctx.send(0, ctx.vertex_id)
            ctx.send(1, 1 if ctx.vertex_id else "one")
            if ctx.vertex_id == 2:
                ctx.send(1, "one too")
        else:
            ctx.value = ctx.messages
        ctx.vote_to_halt()

    def divide(a: Any, b: Any) -> Any:
        return a // b

    vertices = [Vertex(k) for k in range(3)]
    for combiner, name, value in (("max", "'max'", 2), (divide, ".*divide", 0), (TopK(1), r"TopK\(k=1\)", [2])):
        result = agents.run(vertices, compute, workers=workers, combiner=combiner, retry=ONCE, on_failure="continue")
        failed = result.failed.pop(1)
        assert not result.failed
        assert (failed.superstep, failed.kind, failed.type) == (1, "exception", "CombinerError")
        assert re.match(f"combiner {name} cannot fold the messages: TypeError: ", failed.text)
        assert failed.messages == ["one", 1, 1, "one too"]
        values(result, {0: [value], 1: None, 2: None})


@FEW
def test_invalid_calls_of_a_run(workers: int) -> None:
    def compute(ctx: Any) -> None:
        if ctx.vertex_id == "bad":
            raise ValueError
        ctx.vote_to_halt()

    with agents.start([Vertex("bad"), Vertex("good")], compute, workers=workers, retry=ONCE) as run:
        with pytest.raises(ArgumentError, match="'bad' has not failed in a held superstep"):
            run.retry(["bad"])
        with pytest.raises(ArgumentError, match="'bad' does not wait for an answer"):
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


@pytest.mark.parametrize("workers", [1, 2])
def test_a_fork_that_returns_from_compute_sends_nothing(workers: int) -> None:
    def compute(ctx: Any) -> None:
        import os

        ctx.value = "the worker's"
        if ctx.vertex_id % 2 and os.fork() == 0:
            ctx.value = "the fork's"
            ctx.send(0, "of the fork")
        ctx.send(0, ctx.vertex_id)
        if ctx.superstep == 3:
            ctx.value = ctx.messages

    result = agents.run([Vertex(k) for k in range(4)], compute, workers=workers, retry=ONCE, max_supersteps=4)
    assert result.status == "max_supersteps"
    values(result, {0: [0, 1, 2, 3], 1: [], 2: [], 3: []})


@pytest.mark.parametrize("workers", [1, 2])
def test_an_async_fork_sends_nothing(workers: int) -> None:
    async def compute(ctx: Any) -> None:
        import os

        ctx.value = "the fork's" if os.fork() == 0 else "the worker's"
        ctx.vote_to_halt()

    result = agents.run([Vertex(k) for k in range(6)], compute, workers=workers, retry=ONCE)
    values(result, dict.fromkeys(range(6), "the worker's"))
