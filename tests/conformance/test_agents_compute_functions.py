"""All kinds of compute functions, and mistakes in them.

Errors name the vertex and the remedy and fail only this vertex; no run hangs.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path
from typing import Any

import pytest

import gpu_pregel.agents as agents
from gpu_pregel import MemoryStore
from gpu_pregel.agents import Vertex
from tests.agents import FEW, ONCE, WORKERS, values

MISTAKES: dict[str, tuple[str, str, str]] = {
    # Mistake, which is the name of the vertex: kind, type and text of the failure.
    "returns": ("exception", "TypeError", "compute must return None, but returned int: set ctx.value"),
    "returns ctx": ("exception", "TypeError", "compute must return None, but returned Context"),
    "yields": ("exception", "TypeError", "compute must return None, but returned generator.*contains yield: remove it"),
    "does not await": ("exception", "TypeError", "compute must return None, but returned coroutine.*async function"),
    "value": ("data", "CodecError", "the value: value.*function"),
    "part of a value": ("data", "CodecError", r"the value: value\['part'\]\[0\] is of type object"),
    "value holds itself": ("data", "CodecError", "the value: .*contains itself"),
    "deep value": ("data", "CodecError", "the value: .*nested more than 200 levels deep"),
    "message": ("data", "CodecError", "a message: value is of type object"),
    "message to neighbors": ("data", "CodecError", "a message: value is of type object"),
    "aggregate": ("data", "CodecError", "a contribution to 'sum': value is of type object"),
    "value of a vertex": ("data", "CodecError", "a vertex's value: value is of type object"),
    "edges of a vertex": (
        "exception",
        "ArgumentTypeError",
        r"edges must be a sequence.*for a single target, pass \['fine'\]",
    ),
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
    "exits in its text": ("exception", ".*ExitTextError", "no text: SystemExit"),
    "group": ("exception", "ExceptionGroup", "2 sub-exceptions"),
}


def all_mistakes() -> Any:
    def compute(ctx: Any) -> Any:
        class NoTextError(Exception):
            def __str__(self) -> str:
                raise ValueError

            def __reduce__(self) -> Any:
                raise TypeError

        class ExitTextError(Exception):
            def __str__(self) -> str:
                raise SystemExit(4)

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
            "exits in its text": lambda: fail(ExitTextError()),
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
            until = time.monotonic() + 200
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


def fork() -> bool:
    """Fork this process; return whether this is the new one. The other one waits for its end."""
    import os
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12 if there are threads
        child = os.fork()
    if child:
        os.waitpid(child, 0)
    return child == 0


@pytest.mark.parametrize(("workers", "end"), [(0, "return"), (0, "raise"), (0, "exit"), (2, "return")])
def test_a_fork_that_returns_from_compute_sends_nothing(workers: int, end: str) -> None:
    def compute(ctx: Any) -> None:
        ctx.value = "the worker's"
        if ctx.vertex_id % 2 and fork():
            ctx.value = "the fork's"
            ctx.send(0, "of the fork")
            if end != "return":
                raise ValueError if end == "raise" else SystemExit
        ctx.send(0, ctx.vertex_id)
        if ctx.superstep == 3:
            ctx.value = ctx.messages

    store = MemoryStore() if end == "exit" else None
    result = agents.run(
        [Vertex(k) for k in range(4)],
        compute,
        workers=workers,
        retry=ONCE,
        max_supersteps=4,
        on_limit="return",
        store=store,
    )
    assert result.status == "max_supersteps"
    values(result, {0: [0, 1, 2, 3], 1: [], 2: [], 3: []})


@pytest.mark.parametrize("workers", [0, 2])
def test_an_async_fork_sends_nothing(workers: int) -> None:
    async def compute(ctx: Any) -> None:
        ctx.value = "the fork's" if fork() else "the worker's"
        ctx.vote_to_halt()

    result = agents.run([Vertex(k) for k in range(6)], compute, workers=workers, retry=ONCE)
    values(result, dict.fromkeys(range(6), "the worker's"))
