"""``run``, ``arun`` and ``start``: from vertices and a compute function to a run and its result."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from gpu_pregel.errors import AgentsFailedError, SuperstepLimitError
from gpu_pregel.host.agents.agent_run import AgentRun
from gpu_pregel.host.agents.options import Compute, RunOptions, make_options, takes_options
from gpu_pregel.host.agents.recovery import begin
from gpu_pregel.host.agents.results import AgentResult
from gpu_pregel.host.agents.vertices import Vertex
from gpu_pregel.host.agents.workers.garbage_collection import FEW
from gpu_pregel.host.superstep.interrupts import stop_on_interrupt


@takes_options(RunOptions)
def run(vertices: Iterable[Vertex] | bytes, compute: Compute | None = None, **options: Any) -> AgentResult:
    """Run agent vertices until all have halted and no messages are pending.

    Ctrl-C stops the run at its next commit, with the status "stopped"; a second Ctrl-C interrupts it.

    Parameters
    ----------
    vertices : iterable of Vertex, or bytes
        Bytes from :meth:`AgentRun.checkpoint_data` continue that run.
    compute : callable
        ``compute(ctx)``, an ordinary or ``async`` function, called once for each active vertex in each superstep. See
        :class:`Context` for the order of its messages.
    workers : int, default 0
        Number of worker processes; 0 computes in this process. Idle workers compute vertices that wait in busy ones.
        Results do not depend on it.
    threads : int, default 0
        Maximum number of attempts of an ordinary function that are computed side by side on threads of this process;
        with 0, and for a vertex that is alone in its superstep, they are computed on the thread of the caller. Attempts
        see the caller's context variables. Results do not depend on it.
    combiner : str, TopK or callable, optional
        Folds the messages to a vertex into one. Accepts the values of ``Aggregator.combine``.
    aggregators : mapping of str to Aggregator, or to a value of ``Aggregator.combine``
    master : callable, optional
        ``master(m)``, called after each superstep with a :class:`MasterContext`: it reads aggregates and may call
        ``m.halt()`` or ``m.use(name)``.
    functions : mapping of str to callable, optional
        Further compute functions by name, for ``m.use``; the name of ``compute`` is "compute".
    retry : RetryPolicy or callable, optional
        Or ``retry(id)``, which returns the policy of a vertex, or None for the default. It is called in any process and
        must return the same each time, and so must ``timeout(id)``.
    on_failure : {"raise", "continue", "abort"} or callable
        What to do when a vertex has failed its last attempt. "raise": let the others end, hold the superstep and raise.
        "abort": do so at once. Attempts that are running are cancelled: ``async`` functions of this process by
        ``CancelledError``, those of workers with the worker, which is replaced; on threads, they go on without effect.
        ``result.cancelled`` names their vertices, and those that have not begun. They are not charged an attempt, and
        are computed when the run continues. "continue": commit without the vertex, which keeps its value. A function of
        the failures, called at the end of the superstep, returns "raise", "continue", or a list of vertices to retry.
    on_missing : {"error", "create", "drop"}
        How to handle messages to vertices that do not exist, and new edges from such vertices: the vertex that asked
        fails, the missing vertex is created, or the message or edge is dropped.
    resolve : callable, optional
        ``resolve(id, existing, requested, messages)`` resolves conflicting requests to add a vertex: from the existing
        Vertex or None, the requested ones, and the messages to it, it returns the Vertex to add, or None. Without it,
        the vertices that made conflicting requests fail.
    timeout : float or callable, optional
        Maximum seconds of an attempt, or since its last ``ctx.heartbeat()``; needs workers, threads, or an ``async``
        function. A thread cannot be ended, so an attempt that takes longer is abandoned: it fails, and what its thread
        still does has no effect on the run. With ``workers=0`` an attempt of an ``async`` function is cancelled at its
        next ``await``. One that still runs a second later fails and is abandoned; one that blocks the event loop cannot
        be interrupted. Or ``timeout(id)``, which returns the seconds for a vertex, or None for no limit.
    max_supersteps : int or None, default 100
        Maximum number of supersteps; 3 runs supersteps 0, 1 and 2. If it is reached, the status is "max_supersteps",
        and an error is raised. None is no limit.
    on_limit : {"raise", "return"}
        With "return", the partial result is returned instead.
    on_waiting : {"wait", "return"}
        What to do while only timers of ``ctx.wake_at`` are left: wait for the next one, or return with the status
        "waiting", so that :func:`resume` can continue the run later; it waits for the rest of the time.
    max_concurrency : int, optional
        Maximum number of concurrent attempts of an ``async`` function in each worker; default 64.
    max_message, max_outbox : int, optional
        Maximum bytes of a message, and of all messages that a vertex sends in a superstep.
    max_record : int, optional
        Maximum bytes of the output of an attempt: value, messages, contributions.
    max_memory : int, optional
        Maximum bytes of address space of each worker process; needs workers.
    observer : callable or sequence of callables
        Called with an :class:`Event` for each superstep, attempt, retry, failure, death of a worker and commit, and for
        what attempts pass to ``ctx.emit``; by one thread at a time. :class:`Timeline` records them in a store.
    run_id : str, optional
        Name of the run, from which ``ctx.key`` and ``ctx.random`` are derived. Default: a unique name.
    store : SQLiteStore, PostgresStore or MemoryStore, optional
        Stores each superstep, including the completed part of a held one, so that :func:`resume` can continue the run.
    durability : {"machine", "process"}
        "machine" forces commits to disk, so that they survive a power failure; "process" survives a crash of the
        program only.
    lease_seconds : float, default 60
        How long the run stays claimed after a crash; the lease is renewed while it runs. ``resume(takeover=True)``
        overrides it.
    base_every : int, default 50
        Number of supersteps between snapshots of the whole state; other commits store changes. A large state is stored
        again once the changes since its last snapshot have grown to its size.
    override : str or sequence of str, optional
        With bytes or a stored run: names of options that may differ from those of the run so far. The run keeps
        ``combiner``, ``aggregators``, ``master``, ``resolve``, ``on_missing``, ``on_failure``, ``retry``,
        ``max_message``, ``max_outbox`` and ``max_record``: what is not passed is taken from it, functions and
        exceptions must be passed again, and another value is an error. Functions are compared by name and code, and
        by the arguments of a ``functools.partial``, but not by what their closures refer to.

    Returns
    -------
    AgentResult

    Raises
    ------
    AgentsFailedError
        Vertices failed and ``on_failure`` is "raise" or "abort"; ``error.result`` is the result so far.
    SuperstepLimitError
        ``max_supersteps`` was reached; ``error.result`` is the partial result.
    AgentError
        The run cannot continue, for example because no worker can load its functions.
    ArgumentError, ArgumentTypeError, CodecError
        Invalid arguments, such as duplicate ids or values that cannot be encoded; raised before any work.

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
    return finish(_start("run", vertices, compute, options))


def finish(agents: AgentRun) -> AgentResult:
    """Run to the end."""
    with agents:
        with stop_on_interrupt(agents.stop):
            while agents.step():
                pass
        result = agents.result()
    return _conclude(result, agents._options)


def _conclude(result: AgentResult, options: RunOptions) -> AgentResult:
    """Return the result of a run that has ended or is held, or raise the error that has it."""
    if result.status == "failed":
        raise AgentsFailedError(result)
    if result.status == "max_supersteps" and options.on_limit == "raise":
        raise SuperstepLimitError(options.max_supersteps, result)
    return result


@takes_options(RunOptions)
async def arun(vertices: Iterable[Vertex] | bytes, compute: Compute | None = None, **options: Any) -> AgentResult:
    """Run like :func:`run`, without blocking the event loop.

    An ``async`` function runs on the caller's event loop, so that it can use the caller's connections and keep its own
    from one superstep to the next. Ordinary functions, stores, observers and the functions of the master run on a
    thread of the run.

    Cancellation, for example by ``asyncio.wait_for``, takes effect at once: attempts of ``async`` functions are
    cancelled, workers end, completed attempts of the superstep are stored, and :func:`resume` can continue the run. An
    ordinary function that is running in this process cannot be interrupted: the call returns without it, and drops
    its outcome.

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
    checked = make_options("arun", compute, options)
    is_small = isinstance(vertices, (list, tuple)) and len(vertices) < FEW
    return await finish_on_loop(checked, lambda: AgentRun(checked, begin(vertices, checked)), is_small=is_small)


async def finish_on_loop(options: RunOptions, start: Callable[[], AgentRun], *, is_small: bool = False) -> AgentResult:
    """Start a run and run to the end on the running event loop; ``is_small`` says that starting takes little time."""
    from gpu_pregel.host.agents.async_driver import AsyncDriver

    return _conclude(await AsyncDriver(options).run(start, is_small, AgentRun.result), options)


@takes_options(RunOptions)
def start(vertices: Iterable[Vertex] | bytes, compute: Compute | None = None, **options: Any) -> AgentRun:
    """Start a run without computing anything yet; the parameters are those of :func:`run`.

    Returns
    -------
    AgentRun

    Raises
    ------
    ArgumentError, ArgumentTypeError, CodecError, AgentError
        As for :func:`run`.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> def count(ctx):
    ...     ctx.value += 1
    >>> with gp.agents.start([gp.agents.Vertex("a", 0)], count) as agents:
    ...     _ = agents.step(), agents.step()
    ...     agents.result().values
    {'a': 2}
    """
    return _start("start", vertices, compute, options)


def _start(
    caller: str, vertices: Iterable[Vertex] | bytes, compute: Compute | None, options: dict[str, Any]
) -> AgentRun:
    checked = make_options(caller, compute, options)
    return AgentRun(checked, begin(vertices, checked))
