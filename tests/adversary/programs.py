"""Random programs for the simulator and for runs with any number of workers, whose results must be equal.

The value of each vertex has a script, a list of requests for each superstep, and a log of what the vertex has seen.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import gpu_pregel as gp
from gpu_pregel.agents import AgentResult, Aggregator, Edge, TopK, Vertex
from gpu_pregel.host.agents.codec import encode
from tests.adversary.simulator import Simulation
from tests.agents import WITHOUT_WAIT, rows

IDS: list[Any] = [0, 1, 2, 7, "a", "bc", (1, "a"), b"x"]
AGGREGATORS: dict[str, Any] = {
    "sum": "sum",  # of floats, so that the order matters
    "list": Aggregator("list", persistent=True),
    "top": TopK(3),
    "function": Aggregator(lambda a, b: b - 2 * a, initial=1.5, persistent=True),
}
_SIMULATED: dict[str, tuple[Callable[[Any, Any], Any], Any, bool]] = {
    "sum": (lambda total, one: total + one, 0, False),
    "list": (lambda total, one: [*total, one], [], True),
    "top": (lambda total, one: sorted([*total, one], reverse=True)[:3], [], False),
    "function": (lambda total, one: one - 2 * total, 1.5, True),
}
COMBINERS: list[Any] = [None, "min", "list", "last", TopK(2), lambda a, b: f"({a}{b})"]
_COMBINED: list[Callable[[list[Any]], list[Any]]] = [
    lambda messages: messages,
    lambda messages: [min(messages)],
    lambda messages: [messages],
    lambda messages: messages[-1:],
    lambda messages: [sorted(messages, reverse=True)[:2]],
    lambda messages: ["(" * (len(messages) - 1) + messages[0] + "".join(f"{one})" for one in messages[1:])],
]
_TEXTS, _WEIGHTS = ["", "x", "yy", "é"], [1, 0.5, "w", [1, [2]], {"k": 1.5}]
_FIGURES = [0.1, -0.1, 1e16, -1e16, 3.0, 1 / 3, "no figure"]
MOST = 6
"""Maximum number of supersteps."""


@dataclass
class Program:
    """A random program; ``outside`` are messages from outside before a superstep, and ``direct`` is for the master."""

    graph: dict[Any, tuple[list[Any], list[Any], Any, bool]]
    is_async: bool = False
    on_missing: str = "create"
    combiner: int = 0
    resolves: bool = False
    uses: int = -1
    """The superstep after which the other function is used."""
    halts: int = -1
    outside: dict[int, list[tuple[Any, str]]] = field(default_factory=dict)

    @property
    def vertices(self) -> list[Vertex]:
        """The initial vertices; without edges to missing ones if these are an error."""
        return [
            Vertex(
                one,
                {"script": script, "log": []},
                [Edge(to, weight) for to in targets if to in self.graph or self.on_missing != "error"],
                halted,
            )
            for one, (script, targets, weight, halted) in self.graph.items()
        ]


def random_program(chance: random.Random) -> Program:
    """Return a random program; ``chance`` may be one of Hypothesis."""
    pick: Any = chance.choice

    def some(make: Callable[[], Any], most: int, least: int = 0) -> list[Any]:
        return [make() for _ in range(chance.randint(least, most))]

    makers: list[Callable[[], tuple[Any, ...]]] = [
        lambda: ("send", pick(IDS), pick(_TEXTS)),
        lambda: ("send", pick(IDS), pick(_TEXTS)),
        lambda: ("send_to_neighbors", pick(_TEXTS)),
        lambda: ("vote_to_halt",),
        lambda: ("vote_to_halt",),
        lambda: ("aggregate", pick(list(AGGREGATORS)), pick(_FIGURES)),
        lambda: ("add_edge", pick(IDS), pick(IDS), pick(_WEIGHTS)),
        lambda: ("remove_edge", pick(IDS), pick(IDS)),
        lambda: ("remove_vertex", pick(IDS)),
        lambda: ("add_vertex", pick(IDS), {"script": [[("draw",)]], "log": []}, some(lambda: pick(IDS), 2)),
        lambda: ("keep", pick(_TEXTS)),
        lambda: ("look",),
        lambda: ("draw",),
        lambda: ("ask", pick(_TEXTS)),
        lambda: ("fail", pick([2, 2, 3, 9])),
    ]

    def request() -> tuple[Any, ...]:
        made: tuple[Any, ...] = pick(makers)()
        return made

    def row() -> tuple[list[Any], list[Any], Any, bool]:
        scripts = some(lambda: some(request, 5), 4, 2)
        return scripts, some(lambda: pick(IDS), 3), pick(_WEIGHTS), pick([False, False, True])

    names = list(dict.fromkeys(some(lambda: pick(IDS), 8, 3)))
    return Program(
        {name: row() for name in names},
        is_async=pick([False, True]),
        on_missing=pick(["create", "drop", "create", "error"]),
        combiner=chance.randrange(len(COMBINERS)),
        resolves=pick([False, True]),
        uses=pick([-1, 0, 1, 2]),
        halts=pick([-1, -1, -1, 2, 3]),
        outside={step: some(lambda: (pick(IDS), pick(_TEXTS)), 2) for step in range(1, 5)},
    )


def interpreter(name: str, is_async: bool) -> Any:
    """Return a compute function that executes the script in the value of its vertex."""

    def interpret(ctx: Any) -> None:
        value = ctx.value or {"script": [], "log": ["by a message"]}
        log, script = value["log"], value["script"]
        log.append((name, ctx.superstep, ctx.num_vertices, ctx.messages))
        if ctx.superstep >= len(script):
            ctx.vote_to_halt()
        for request, *arguments in script[ctx.superstep] if ctx.superstep < len(script) else ():
            if request == "keep":
                log.extend(arguments)
            elif request == "look":
                log.append([ctx.aggregated(one) for one in ("sum", "list", "top", "function")])
                log.append([(edge.target, edge.weight) for edge in ctx.edges])
            elif request == "draw":
                log.append((ctx.key, ctx.random.random()))
                if ctx.neighbors:
                    ctx.send(ctx.random.choice(ctx.neighbors), "drawn")
            elif request == "ask":
                log.append(ctx.interrupt(arguments[0]))
            elif request == "fail":
                if ctx.attempt < arguments[0]:
                    raise ValueError(f"attempt {ctx.attempt}")
            else:
                getattr(ctx, request)(*arguments)
        ctx.value = value

    async def interpret_later(ctx: Any) -> None:
        import asyncio

        for _ in range(len(repr(ctx.vertex_id)) % 3):
            await asyncio.sleep(0)
        interpret(ctx)

    return interpret_later if is_async else interpret


def resolve(vertex: Any, existing: Any, requested: list[Any], messages: list[Any]) -> Any:
    """Resolve conflicting requests to add a vertex."""
    return [None, existing, *requested][len(messages) % 3]


def answer_to(payload: str) -> str:
    """Return the answer to a question."""
    return payload + "!"


def options_of(program: Program, **options: Any) -> dict[str, Any]:
    """Return the options of a run of a program."""
    uses, halts = program.uses, program.halts

    def direct(m: Any) -> None:
        if m.superstep == uses:
            m.use("other")
        if m.superstep == halts:
            m.halt()

    return {
        "compute": interpreter("compute", program.is_async),
        "functions": {"other": interpreter("other", program.is_async)},
        "aggregators": AGGREGATORS,
        "combiner": COMBINERS[program.combiner],
        "master": direct,
        "retry": WITHOUT_WAIT,
        "on_failure": "continue",
        "on_missing": program.on_missing,
        "resolve": resolve if program.resolves else None,
        "max_supersteps": MOST,
        "on_limit": "return",
        "run_id": "one",
        **options,
    }


def result_of(program: Program, leaves: bool = False, **options: Any) -> AgentResult:
    """Run a program; with ``leaves`` and a store, each superstep in another ``AgentRun``."""
    given = options_of(program, **options)
    run, sent = gp.agents.start(program.vertices, **given), 0
    try:
        while True:
            result = run.result()
            for vertex, payload in result.interrupts.items():
                run.answer(vertex, answer_to(payload))
            if not result.interrupts and result.superstep > sent:
                sent = result.superstep
                for target, message in program.outside.get(sent, ()) if result.status in _OPEN else ():
                    if target in result.vertices:
                        run.send(target, message)
            if run.status not in ("running", "interrupted"):
                return run.result()
            if leaves:
                run.__exit__()
                run = gp.agents.reopen(**given)
            run.step()
    finally:
        run.__exit__()


_OPEN = ("running", "completed", "partial")


def simulate(program: Program) -> bytes:
    """Return the summary of a simulation of a program."""
    simulation = Simulation(
        program.vertices,
        {name: interpreter(name, False) for name in ("compute", "other")},
        _SIMULATED,
        combine=lambda messages: _COMBINED[program.combiner](messages) if messages else [],
        is_exact=COMBINERS[program.combiner] == "min",
        resolve=resolve if program.resolves else None,
        on_missing=program.on_missing,
        direct=lambda step: ("other" if step == program.uses else None, step == program.halts),
        answer=answer_to,
        run_id="one",
    )
    sent = 0
    while True:
        if simulation.superstep > sent:
            sent = simulation.superstep
            for target, message in program.outside.get(sent, ()) if simulation.status in _OPEN else ():
                if target in simulation.vertices:
                    simulation.send(target, message)
                    simulation.status = "running"
        if simulation.status != "running":
            break
        simulation.step(MOST)
    vertices = [
        (one.id, one.value, [tuple(edge) for edge in one.edges], one.halted) for one in simulation.vertices.values()
    ]
    return _encoded(vertices, simulation.status, simulation.superstep, simulation.aggregates, simulation.failed)


def summary(result: AgentResult) -> bytes:
    """Return what a run and its simulation have in common."""
    failed = {vertex: (one.superstep, one.kind, one.messages) for vertex, one in result.failed.items()}
    return _encoded(rows(result), result.status, result.superstep, result.aggregates, failed)


def _encoded(vertices: list[Any], status: str, superstep: int, aggregates: Any, failed: Any) -> bytes:
    ordered = sorted(vertices, key=lambda row: encode(row[0]))
    return encode((ordered, status, superstep, sorted(aggregates.items()), sorted(failed.items(), key=repr)))


def try_program(chance: random.Random, workers: tuple[int, ...] = (0, 1, 2, 5)) -> list[str]:
    """Run a random program in all ways, and return those whose results are not those of the simulation."""
    program = random_program(chance)
    expected = simulate(program)
    different = [f"workers={count}" for count in workers if summary(result_of(program, workers=count)) != expected]
    with gp.MemoryStore() as store:
        left = result_of(program, leaves=True, store=store, base_every=chance.choice([1, 2, 3, 50]))
        if summary(left) != expected:
            different.append("each superstep in another run")
        if summary(gp.agents.state_at(store, "one")) != expected:
            different.append("state_at")
    return [f"{', '.join(different)}: not as simulated: {program}"] if different else []
