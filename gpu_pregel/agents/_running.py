"""``run``, ``arun`` and ``start``: from vertices and a compute function to a run, and its steps."""

from __future__ import annotations

import asyncio
import inspect
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpu_pregel._arguments import check_choice, check_integer
from gpu_pregel.agents._results import AgentResult, Failed, Vertices
from gpu_pregel.errors import AgentsFailedError, ArgumentError, ArgumentTypeError, CodecError
from gpu_pregel.host.agents.codec import check_id, decode, encode
from gpu_pregel.host.agents.combining import Folding
from gpu_pregel.host.agents.context import Context, Limits
from gpu_pregel.host.agents.events import Observer
from gpu_pregel.host.agents.executor import Job
from gpu_pregel.host.agents.records import Id
from gpu_pregel.host.agents.records import Vertex as Loaded
from gpu_pregel.host.agents.retry import RetryPolicy
from gpu_pregel.host.agents.run import AgentRun as Engine
from gpu_pregel.host.agents.run import Aggregate, MasterContext, Rules, State
from gpu_pregel.host.agents.transport import InProcess, Transport

Compute = Callable[[Context], Any]
_DEFAULT_CONCURRENCY = 64


@dataclass(frozen=True)
class Vertex:
    """A vertex as a user gives it.

    Parameters
    ----------
    id : str, int, bytes or tuple of such
    value : data
    edges : iterable
        Out-edges: targets, or (target, weight) pairs as :class:`Edge`; ``weights`` says which.
    halted : bool
        Whether it waits for a first message.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> gp.agents.Vertex("a", 1, ["b", "c"]).id
    'a'
    """

    id: Any
    value: Any = None
    edges: Iterable[Any] = ()
    halted: bool = False


@dataclass(frozen=True)
class Aggregator:
    """A figure that vertices contribute to, and all see in the next superstep.

    Parameters
    ----------
    combine : str, TopK or callable
        "sum", "min", "max", "count", "first", "last", "list", "and", "or", ``TopK(k)`` or a function of two values.
    initial : data, optional
        What it is before anything was contributed.
    persistent : bool
        Whether it carries over from superstep to superstep; else it begins anew in each.
    """

    combine: Any
    initial: Any = None
    persistent: bool = False


def run(
    vertices: Iterable[Vertex],
    compute: Compute | None = None,
    *,
    workers: int = 0,
    combiner: Any = None,
    aggregators: Mapping[str, Any] | None = None,
    master: Callable[[MasterContext], Any] | None = None,
    functions: Mapping[str, Compute] | None = None,
    retry: RetryPolicy | None = None,
    on_failure: Any = "raise",
    on_missing: str = "error",
    resolve: Callable[..., Any] | None = None,
    timeout: float | None = None,
    max_supersteps: int = 100,
    max_concurrency: int | None = None,
    max_message: int | None = None,
    max_outbox: int | None = None,
    max_record: int | None = None,
    max_memory: int | None = None,
    observer: Observer | Sequence[Observer] = (),
) -> AgentResult:
    """Run agent vertices until all have halted and no message is under way.

    Parameters
    ----------
    vertices : iterable of Vertex
    compute : callable
        ``compute(ctx)``, an ordinary or ``async`` function, called once for each active vertex in each superstep.
    workers : int, default 0
        Worker processes; 0 computes in this one, with the same results.
    combiner : str, TopK or callable, optional
        Folds the messages to a vertex into one: see :class:`Aggregator`.
    aggregators : mapping of str to Aggregator, or to what its ``combine`` may be
    master : callable, optional
        ``master(m)`` after each superstep: it sees the aggregates and may ``halt()`` or ``use`` another function.
    functions : mapping of str to callable, optional
        Further compute functions, by the names that ``master`` uses; ``compute`` is "compute".
    retry : RetryPolicy, optional
    on_failure : {"raise", "continue"} or callable
        When a vertex has failed for good: hold the superstep and raise; go on without it, its value kept; or what
        ``on_failure(failures)`` returns, which may also be a list of vertices to try again.
    on_missing : {"error", "create", "drop"}
        What becomes of a message to a vertex that is not there.
    resolve : callable, optional
        ``resolve(id, existing, requested, messages)`` decides about vertices that are added twice.
    timeout : float, optional
        Seconds of an attempt; needs workers, or an ``async`` function.
    max_supersteps : int, default 100
        3 runs the supersteps 0, 1 and 2.
    max_concurrency : int, optional
        Attempts of an ``async`` function under way at once, in each worker; default 64.
    max_message, max_outbox : int, optional
        Most bytes of a message, and of all messages of a vertex in a superstep.
    max_record : int, optional
        Most bytes of all that an attempt leaves: value, messages, contributions.
    max_memory : int, optional
        Most bytes of address space of each worker process; needs workers.
    observer : callable or sequence of callables
        Called with an :class:`Event` for each superstep, attempt, retry, failure, death of a worker and commit.

    Returns
    -------
    AgentResult

    Raises
    ------
    AgentsFailedError
        Vertices failed and ``on_failure`` is "raise"; ``error.result`` is what there is.
    AgentError
        A message or an edge to a vertex that is not there, or conflicting additions.
    ArgumentError, ArgumentTypeError, CodecError
        Wrong arguments: duplicate ids, values that are no data; before any work.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> def hello(ctx):
    ...     if ctx.superstep == 0:
    ...         ctx.send_to_neighbors(ctx.vertex_id)
    ...     else:
    ...         ctx.value = ctx.messages
    ...     ctx.vote_to_halt()
    >>> result = gp.agents.run([gp.agents.Vertex("a", edges=["b"]), gp.agents.Vertex("b")], hello)
    >>> result.values, result.status
    ({'a': None, 'b': ['a']}, 'completed')
    """
    options = {name: value for name, value in locals().items() if name not in ("vertices", "compute")}
    with start(vertices, compute, **options) as agents:
        while agents.step():
            pass
        result = agents.result()
    if result.status == "failed":
        raise AgentsFailedError(result)
    return result


async def arun(vertices: Iterable[Vertex], compute: Compute | None = None, **options: Any) -> AgentResult:
    """Run as :func:`run` does, without blocking the running event loop."""
    return await asyncio.to_thread(run, vertices, compute, **options)


def start(vertices: Iterable[Vertex], compute: Compute | None = None, **options: Any) -> AgentRun:
    """Begin a run and compute nothing yet; parameters are those of :func:`run`."""
    unknown = options.keys() - inspect.signature(run).parameters.keys()
    if unknown:
        raise ArgumentTypeError(f"start takes no argument {', '.join(sorted(unknown))}")
    return AgentRun(_Call(vertices=vertices, compute=compute, **options))


@dataclass
class _Call:
    """The arguments of a run, checked."""

    vertices: Iterable[Vertex]
    compute: Compute | None
    workers: int = 0
    combiner: Any = None
    aggregators: Mapping[str, Any] | None = None
    master: Callable[[MasterContext], Any] | None = None
    functions: Mapping[str, Compute] | None = None
    retry: RetryPolicy | None = None
    on_failure: Any = "raise"
    on_missing: str = "error"
    resolve: Callable[..., Any] | None = None
    timeout: float | None = None
    max_supersteps: int = 100
    max_concurrency: int | None = None
    max_message: int | None = None
    max_outbox: int | None = None
    max_record: int | None = None
    max_memory: int | None = None
    observer: Observer | Sequence[Observer] = ()
    observers: list[Observer] = field(init=False)

    def __post_init__(self) -> None:
        check_integer("workers", self.workers, 0, 1 << 10)
        check_integer("max_supersteps", self.max_supersteps, 1, 1 << 62)
        check_choice("on_missing", self.on_missing, ("error", "create", "drop"))
        for name in ("max_concurrency", "max_message", "max_outbox", "max_record", "max_memory"):
            if getattr(self, name) is not None:
                check_integer(name, getattr(self, name), 1, 1 << 62)
        if self.max_memory is not None and self.workers == 0:
            raise ArgumentError("max_memory limits worker processes, and there are none: pass workers=1 or more")
        if not callable(self.on_failure):
            check_choice("on_failure", self.on_failure, ("raise", "continue"))
        if self.retry is not None and not isinstance(self.retry, RetryPolicy):
            raise ArgumentTypeError(f"retry must be a RetryPolicy, not {self.retry!r}")
        for name in ("master", "resolve"):
            if getattr(self, name) is not None and not callable(getattr(self, name)):
                raise ArgumentTypeError(f"{name} must be a function, not {getattr(self, name)!r}")
        self.observers = [self.observer] if callable(self.observer) else list(self.observer)
        self._check_functions()

    def _check_functions(self) -> None:
        given = dict(self.functions or {})
        if self.compute is not None:
            given["compute"] = self.compute
        if not given:
            raise ArgumentError("there is no compute function: pass compute=, or functions= by name")
        for name, function in given.items():
            if not callable(function):
                raise ArgumentTypeError(f"compute function {name!r} must be a function of (ctx), not {function!r}")
        self.functions = given
        if self.timeout is None:
            return
        if not isinstance(self.timeout, (int, float)) or not self.timeout > 0:
            raise ArgumentError(f"timeout must be a number of seconds above 0, not {self.timeout!r}")
        ordinary = [name for name, function in given.items() if not inspect.iscoroutinefunction(function)]
        if self.workers == 0 and ordinary:
            raise ArgumentError(
                f"timeout={self.timeout} cannot be kept with workers=0, as nobody can end function {ordinary[0]!r}: "
                f"pass workers=1, or make it async"
            )

    def job(self) -> Job:
        """What partitions must know."""
        return Job(
            functions=dict(self.functions or {}),
            combine=None if self.combiner is None else Folding.of("combiner", self.combiner),
            limits=Limits(self.max_message, self.max_outbox),
            retry=self.retry or RetryPolicy(),
            run=uuid.uuid4().bytes,
            branch=0,
            timeout=self.timeout,
            max_concurrency=self.max_concurrency or _DEFAULT_CONCURRENCY,
            max_record=self.max_record,
            max_memory=self.max_memory,
        )

    def rules(self) -> Rules:
        """How the run goes on."""
        functions = self.functions or {}
        return Rules(
            function="compute" if "compute" in functions else next(iter(functions)),
            aggregates={name: _aggregate(name, one) for name, one in (self.aggregators or {}).items()},
            master=self.master,
            on_failure=self.on_failure,
            on_missing=self.on_missing,
            resolve=self.resolve,
            max_supersteps=self.max_supersteps,
        )

    def load(self) -> dict[Id, Loaded]:
        """The vertices as data, checked: ids are different, and edges lead somewhere."""
        loaded: dict[Id, Loaded] = {}
        for one in self.vertices:
            if not isinstance(one, Vertex):
                raise ArgumentTypeError(f"vertices must be gp.agents.Vertex objects, not {one!r}")
            vertex_id = _id_of(one.id, "a vertex's id")
            if vertex_id in loaded:
                raise ArgumentError(f"vertex {one.id!r} is there twice: give each vertex an id of its own")
            try:
                value = encode(one.value)
            except CodecError as error:
                raise CodecError(f"vertex {one.id!r}: value: {error}") from None
            edges = [_edge_of(one.id, edge) for edge in one.edges]
            loaded[vertex_id] = Loaded(value, edges, one.halted)
        if self.on_missing == "error":
            for vertex_id, vertex in loaded.items():
                for target, _ in vertex.edges:
                    if target not in loaded:
                        raise ArgumentError(
                            f"vertex {decode(vertex_id)!r} has an edge to {decode(target)!r}, which is not there: "
                            f"add it, or pass on_missing='create' or 'drop'"
                        )
        return loaded


def _aggregate(name: str, given: Any) -> Aggregate:
    one = given if isinstance(given, Aggregator) else Aggregator(given)
    folding = Folding.of(f"aggregator {name!r}", one.combine)
    return Aggregate(folding, folding.identity if one.initial is None else one.initial, one.persistent)


def _id_of(given: Any, what: str) -> Id:
    try:
        check_id(given)
    except (CodecError, TypeError) as error:
        raise ArgumentTypeError(f"{what}: {error}") from None
    return encode(given)


def _edge_of(source: Any, edge: Any) -> tuple[Id, Any]:
    """An edge is a target, or an ``Edge`` with its weight."""
    from gpu_pregel.host.agents.context import Edge

    target, weight = (edge.target, edge.weight) if isinstance(edge, Edge) else (edge, 1)
    encode(weight)
    return _id_of(target, f"vertex {source!r}, edge to"), weight


class AgentRun:
    """A run under way: made by :func:`start`, and ended by leaving its ``with`` block or by :meth:`stop`.

    Attributes
    ----------
    status : str
        "running" between supersteps, or as in :class:`AgentResult`.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> def ask(ctx):
    ...     ctx.value = ctx.interrupt("how much?")
    ...     ctx.vote_to_halt()
    >>> with gp.agents.start([gp.agents.Vertex("a")], ask) as agents:
    ...     _ = agents.step()
    ...     print(agents.status, agents.result().interrupts)
    ...     agents.answer("a", 42)
    ...     while agents.step():
    ...         pass
    ...     print(agents.result().values)
    interrupted {'a': 'how much?'}
    {'a': 42}
    """

    def __init__(self, call: _Call) -> None:
        loaded, rules, job = call.load(), call.rules(), call.job()
        aggregates = {name: one.initial for name, one in rules.aggregates.items()}
        state = State(loaded, {}, aggregates, rules.function)
        self._engine = Engine(job, rules, state, _transport(call.workers, job), call.observers)

    @property
    def status(self) -> str:
        """How it stands."""
        return self._engine.status

    def step(self) -> bool:
        """Run a superstep, or what is left of a held one; whether another may follow."""
        return self._engine.step()

    def retry(self, vertices: Iterable[Any] | None = None) -> None:
        """Give failed vertices of the held superstep new attempts, with the same input; default: all of them."""
        failed = self._engine.failures()
        chosen = list(failed) if vertices is None else list(vertices)
        unknown = [vertex for vertex in chosen if vertex not in failed]
        if unknown:
            raise ArgumentError(f"vertex {unknown[0]!r} has not failed in a held superstep: failed are {list(failed)}")
        if self._engine.ledger is not None:
            self._engine.ledger.retry([encode(vertex) for vertex in chosen])

    def answer(self, vertex: Any, answer: Any) -> None:
        """Answer a vertex's interrupt: it runs again, from its start, with the next :meth:`step`."""
        waiting = self._engine.interrupts()
        if vertex not in waiting or self._engine.ledger is None:
            raise ArgumentError(f"vertex {vertex!r} waits for no answer: waiting are {list(waiting)}")
        self._engine.ledger.answer(encode(vertex), encode(answer))

    def stop(self) -> None:
        """End the run where it is: the last commit stands."""
        if self._engine.status in ("running", "failed", "interrupted"):
            self._engine.status = "stopped"
        self._engine.close()

    def result(self) -> AgentResult:
        """What there is now."""
        engine = self._engine
        failed = {
            decode(vertex): Failed(step, *failure[:4], [decode(message) for message in messages])
            for vertex, (step, failure, messages) in engine.state.failed.items()
        }
        for vertex, failure in engine.failures().items():
            failed[vertex] = Failed(engine.state.superstep, *failure[:4], [])
        return AgentResult(
            vertices=Vertices(dict(engine.state.vertices)),
            status=engine.status,
            failed=failed,
            superstep=engine.state.superstep,
            aggregates=dict(engine.state.aggregates),
            interrupts=engine.interrupts(),
            trace=list(engine.trace),
        )

    def __enter__(self) -> AgentRun:
        return self

    def __exit__(self, *_: object) -> None:
        self._engine.close()


def _transport(workers: int, job: Job) -> Transport:
    if workers == 0:
        return InProcess(job)
    from gpu_pregel.host.agents.workers import Workers

    return Workers(job, workers)
