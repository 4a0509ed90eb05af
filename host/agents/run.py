"""``run``, ``arun`` and ``start``: from vertices and a compute function to a run and its result."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gpu_pregel.errors import AgentsFailedError, ArgumentTypeError
from gpu_pregel.host.agents.agent_run import AgentRun
from gpu_pregel.host.agents.observers.events import Observer
from gpu_pregel.host.agents.options import Call, Compute, Vertex
from gpu_pregel.host.agents.recovery import begin
from gpu_pregel.host.agents.results import AgentResult
from gpu_pregel.host.agents.retry import RetryPolicy
from gpu_pregel.host.agents.rules import MasterContext
from gpu_pregel.host.superstep.interrupts import stop_on_interrupt

if TYPE_CHECKING:
    from gpu_pregel.host.stores.store import Store


def run(
    vertices: Iterable[Vertex] | bytes,
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
    run_id: str | None = None,
    store: Store | None = None,
    durability: str = "machine",
    lease_seconds: float = 60.0,
    base_every: int = 50,
) -> AgentResult:
    """Run agent vertices until all have halted and no message is under way.

    Ctrl-C stops the run at its next commit, with the status "stopped"; a second one stops it at once.

    Parameters
    ----------
    vertices : iterable of Vertex, or bytes
        Bytes are those of :meth:`AgentRun.checkpoint_data`, from which the run goes on.
    compute : callable
        ``compute(ctx)``, an ordinary or ``async`` function, called once for each active vertex in each superstep. Its
        messages come in the order of (sender, sequence); senders are ordered by the type of their id (int, str, bytes,
        tuple), integers by value, others by length first, then by content.
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
        ``resolve(id, existing, requested, messages)`` decides about a vertex that is added: it gets the Vertex that is
        there or None, those that are asked for, and the messages to it, and returns the Vertex that is to be, or None.
    timeout : float, optional
        Seconds of an attempt; needs workers, or an ``async`` function. With ``workers=0`` it can only cancel at an
        ``await``: what blocks the event loop cannot be ended, and what goes on for a second after it was cancelled
        fails and is left behind.
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
    run_id : str, optional
        Names the run: ``ctx.key`` and ``ctx.random`` depend on it. Default: one that no other run has.
    store : SQLiteStore, PostgresStore or MemoryStore, optional
        Keeps each superstep, and what there is of one that is held: :func:`resume` goes on when the program has ended.
    durability : {"machine", "process"}
        Whether what is kept survives the end of the machine, forced to disk, or that of the program alone.
    lease_seconds : float, default 60
        For so long nobody else may go on with the run, unless they say ``takeover=True``; it is renewed meanwhile.
    base_every : int, default 50
        After so many supersteps the whole state is kept, and in between what changes.

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
    return finish(start(vertices, compute, **options))


def finish(agents: AgentRun) -> AgentResult:
    """Run to the end."""
    with agents:
        with stop_on_interrupt(agents.stop):
            while agents.step():
                pass
        result = agents.result()
    if result.status == "failed":
        raise AgentsFailedError(result)
    return result


async def arun(vertices: Iterable[Vertex] | bytes, compute: Compute | None = None, **options: Any) -> AgentResult:
    """Run as :func:`run` does, without blocking the running event loop; cancelling it stops the run at its next commit.

    Examples
    --------
    >>> import asyncio
    >>> import gpu_pregel as gp
    >>> async def ask(ctx):
    ...     await asyncio.sleep(0)
    ...     ctx.value = ctx.vertex_id * 2
    ...     ctx.vote_to_halt()
    >>> asyncio.run(gp.agents.arun([gp.agents.Vertex(21)], ask)).values
    {21: 42}
    """
    import asyncio

    def work() -> AgentResult:
        with agents:
            while agents.step():
                pass
            return agents.result()

    agents = await asyncio.to_thread(start, vertices, compute, **options)
    running = asyncio.get_running_loop().run_in_executor(None, work)
    try:
        result = await asyncio.shield(running)
    except asyncio.CancelledError:
        agents.stop()
        await asyncio.wait([running])
        raise
    if result.status == "failed":
        raise AgentsFailedError(result)
    return result


def start(vertices: Iterable[Vertex] | bytes, compute: Compute | None = None, **options: Any) -> AgentRun:
    """Begin a run and compute nothing yet; parameters are those of :func:`run`."""
    call = make_call("start", compute, options)
    return AgentRun(call, begin(vertices, call))


def make_call(name: str, compute: Compute | None, options: Mapping[str, Any]) -> Call:
    """The checked arguments of a function that takes those of :func:`run`."""
    unknown = options.keys() - inspect.signature(run).parameters.keys()
    if unknown:
        raise ArgumentTypeError(f"{name} takes no argument {', '.join(sorted(unknown))}")
    return Call(compute=compute, **options)
