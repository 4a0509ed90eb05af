"""Runs in a store: resume them, read past states, fork them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, RunExistsError, StoreError, UnknownRunError
from gpu_pregel.host.agents.agent_run import AgentRun
from gpu_pregel.host.agents.codec import decode, encode, id_key
from gpu_pregel.host.agents.observers.timeline import copy_events
from gpu_pregel.host.agents.options import (
    Compute,
    RunOptions,
    check_store,
    make_options,
    new_run_id,
    show_options,
    takes_options,
)
from gpu_pregel.host.agents.records import VertexData
from gpu_pregel.host.agents.recovery import begin, begin_from_store, read_run, read_values
from gpu_pregel.host.agents.results import (
    AgentResult,
    VertexMapping,
    decode_aggregates,
    decode_failures,
    decode_interrupts,
)
from gpu_pregel.host.agents.run import finish, finish_on_loop
from gpu_pregel.host.agents.state_format import pack_state
from gpu_pregel.host.agents.vertices import Vertex
from gpu_pregel.host.arguments import check_flag
from gpu_pregel.host.superstep.trace import Trace

if TYPE_CHECKING:
    from gpu_pregel.host.stores.store import Store


@show_options
def resume(
    store: Store,
    run_id: str,
    compute: Compute | None = None,
    *,
    answers: Mapping[Any, Any] | None = None,
    retry_failed: bool = False,
    takeover: bool = False,
    **options: Any,
) -> AgentResult:
    """Resume a run from a store, as if it had never stopped.

    Vertices that have completed in the unfinished superstep are not computed again. Earlier failed attempts count, so
    that a vertex that kills each of its workers finally fails; with ``workers=0`` such attempts cannot be counted.
    The result's trace begins with the superstep after the last base.

    Parameters
    ----------
    store : SQLiteStore, PostgresStore or MemoryStore
    run_id : str
    compute : callable
        And all other arguments of :func:`run` except ``vertices``, ``run_id`` and ``store``. Those that change results
        are stored and need not be passed again, except functions; see ``override``.
    answers : mapping, optional
        The answers to interrupts that the run waits for, by vertex. Repeating a vertex's last answer has no effect
        unless the vertex is interrupted again, in which case it answers that interrupt, or the store was pruned.
    retry_failed : bool, default False
        Give failed vertices of the held superstep a fresh set of attempts.
    takeover : bool, default False
        Take the run even while another program's lease is valid; none of that program's later writes are accepted.

    Returns
    -------
    AgentResult

    Raises
    ------
    ClaimedError
        Another program has the run.
    StoreError
        The store cannot be read or is damaged; names run, superstep and segment.
    CheckpointError
        The run has more supersteps than ``max_supersteps``, or was started with other options.
    AgentsFailedError, SuperstepLimitError, AgentError, ArgumentError
        As for :func:`run`.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> def compute(ctx):
    ...     ctx.value = ctx.interrupt("how much?")
    ...     ctx.vote_to_halt()
    >>> store = gp.MemoryStore()
    >>> gp.agents.run([gp.agents.Vertex("a")], compute, store=store, run_id="tuesday").status
    'interrupted'
    >>> gp.agents.resume(store, "tuesday", compute, answers={"a": 42}).values
    {'a': 42}
    """
    checked = _options("resume", store, run_id, compute, options)
    return finish(_reopen(checked, takeover, answers, retry_failed))


@show_options
async def aresume(
    store: Store,
    run_id: str,
    compute: Compute | None = None,
    *,
    answers: Mapping[Any, Any] | None = None,
    retry_failed: bool = False,
    takeover: bool = False,
    **options: Any,
) -> AgentResult:
    """Resume like :func:`resume`, without blocking the event loop; see :func:`arun`.

    Examples
    --------
    >>> import asyncio
    >>> import gpu_pregel as gp
    >>> async def ask(ctx):
    ...     ctx.value = ctx.interrupt("how much?")
    ...     ctx.vote_to_halt()
    >>> async def main(store):
    ...     first = await gp.agents.arun([gp.agents.Vertex("a")], ask, store=store, run_id="tuesday")
    ...     return await gp.agents.aresume(store, "tuesday", ask, answers=dict.fromkeys(first.interrupts, 42))
    >>> asyncio.run(main(gp.MemoryStore())).values
    {'a': 42}
    """
    checked = _options("aresume", store, run_id, compute, options)
    return await finish_on_loop(checked, lambda: _reopen(checked, takeover, answers, retry_failed))


@takes_options(RunOptions)
def start_or_resume(vertices: Iterable[Vertex], compute: Compute | None = None, **options: Any) -> AgentResult:
    """Run vertices in a store or, if the store has a run with this id, resume that run to its end.

    A program that is started again after a crash, or twice, computes its run once. A run that has ended, or that was
    cancelled, is not computed again: its result is returned.

    Parameters
    ----------
    vertices : iterable of Vertex
        Not read if the run exists.
    compute : callable
        And all other arguments of :func:`run`; ``store`` and ``run_id`` are required. ``override`` has no effect on a
        new run.

    Returns
    -------
    AgentResult

    Raises
    ------
    ClaimedError
        Another program has the run.
    StoreError, CheckpointError, AgentsFailedError, SuperstepLimitError, AgentError, ArgumentError
        As for :func:`run` and :func:`resume`.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> def count(ctx):
    ...     ctx.value += 1
    ...     ctx.vote_to_halt()
    >>> store = gp.MemoryStore()
    >>> for _ in range(2):
    ...     gp.agents.start_or_resume([gp.agents.Vertex("a", 0)], count, store=store, run_id="tuesday").values
    {'a': 1}
    {'a': 1}
    """
    return finish(_start_or_reopen(vertices, make_options("start_or_resume", compute, options)))


@takes_options(RunOptions)
async def astart_or_resume(vertices: Iterable[Vertex], compute: Compute | None = None, **options: Any) -> AgentResult:
    """Start or resume like :func:`start_or_resume`, without blocking the event loop; see :func:`arun`.

    Examples
    --------
    >>> import asyncio
    >>> import gpu_pregel as gp
    >>> async def count(ctx):
    ...     ctx.value += 1
    ...     ctx.vote_to_halt()
    >>> store, vertices = gp.MemoryStore(), [gp.agents.Vertex("a", 0)]
    >>> for _ in range(2):
    ...     asyncio.run(gp.agents.astart_or_resume(vertices, count, store=store, run_id="tuesday")).values
    {'a': 1}
    {'a': 1}
    """
    checked = make_options("astart_or_resume", compute, options)
    return await finish_on_loop(checked, lambda: _start_or_reopen(vertices, checked))


def _start_or_reopen(vertices: Iterable[Vertex], options: RunOptions) -> AgentRun:
    """Start the run that ``options`` name or, if the store has it, reopen it; one that was cancelled has ended."""
    store, run_id = options.store, options.run_id
    if store is None or run_id is None:
        raise ArgumentError("the run is found by store= and run_id=: pass both")
    try:
        store.run(run_id)
    except UnknownRunError:
        override, options.override = options.override, ()  # a new run has nothing to override
        with suppress(RunExistsError):  # another program has begun it meanwhile
            return AgentRun(options, begin(vertices, options))
        options.override = override
    agents = _reopen(options, takeover=False)
    if store.run(run_id).status == "cancelled":
        agents._master.end("cancelled")
    return agents


def _was_given(store: Store, run_id: str, vertex: Any, answer: Any) -> bool:
    """Whether this was the last answer to a vertex, which has continued since."""
    last = store.last_answer(run_id, id_key(vertex))
    return last is not None and last.data == encode(answer, name="answer")


@show_options
def reopen(
    store: Store, run_id: str, compute: Compute | None = None, *, takeover: bool = False, **options: Any
) -> AgentRun:
    """Resume a run from a store step by step: the counterpart of :func:`start` for :func:`resume`.

    The parameters and errors are those of :func:`resume`. Failed vertices are retried, and interrupts answered, by the
    methods of the run.

    Returns
    -------
    AgentRun

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> def ask(ctx):
    ...     ctx.value = ctx.interrupt("how much?")
    ...     ctx.vote_to_halt()
    >>> store = gp.MemoryStore()
    >>> gp.agents.run([gp.agents.Vertex("a")], ask, store=store, run_id="tuesday").status
    'interrupted'
    >>> with gp.agents.reopen(store, "tuesday", ask) as agents:
    ...     agents.answer("a", 42)
    ...     while agents.step():
    ...         pass
    ...     agents.result().values
    {'a': 42}
    """
    return _reopen(_options("reopen", store, run_id, compute, options), takeover)


def _options(caller: str, store: Store, run_id: str, compute: Compute | None, options: dict[str, Any]) -> RunOptions:
    return make_options(caller, compute, {**options, "store": check_store(store), "run_id": run_id})


def _reopen(
    options: RunOptions, takeover: bool, answers: Mapping[Any, Any] | None = None, retry_failed: bool = False
) -> AgentRun:
    """Claim a run, answer its interrupts, and retry its failed vertices."""
    store, run_id = options.store, options.run_id
    assert store is not None
    assert run_id is not None
    if answers is not None and not isinstance(answers, Mapping):
        raise ArgumentTypeError(f"answers must be a mapping from ids of vertices, not {answers!r:.80}")
    check_flag("takeover", takeover)
    check_flag("retry_failed", retry_failed)
    agents = AgentRun(options, begin_from_store(store, run_id, options, takeover=takeover))
    try:
        for vertex, answer in (answers or {}).items():
            if agents._is_asking(vertex) or not _was_given(store, run_id, vertex, answer):
                agents.answer(vertex, answer)
        if retry_failed:
            agents.retry()
    except BaseException:
        agents.__exit__()
        raise
    return agents


def state_at(store: Store, run_id: str, superstep: int | None = None) -> AgentResult:
    """The state of a run after a superstep.

    Parameters
    ----------
    store : SQLiteStore, PostgresStore or MemoryStore
    run_id : str
    superstep : int, optional
        One that ``store.history(run_id)`` lists, or -1 for the initial vertices. Default: the last one.

    Returns
    -------
    AgentResult
        Its trace begins with the superstep after the last base. If no superstep is given and one is held, ``failed``,
        ``cancelled`` and ``interrupts`` include its failed vertices, its cancelled ones and its questions. The status
        of former supersteps is "running".
        Values of types that are not registered in this process raise CodecError when they are read.

    Raises
    ------
    ArgumentError
        There is no such run, or no such superstep of it.
    StoreError
        The store cannot be read or is damaged.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> def count(ctx):
    ...     ctx.value += 1
    ...     if ctx.superstep == 2:
    ...         ctx.vote_to_halt()
    >>> store = gp.MemoryStore()
    >>> gp.agents.run([gp.agents.Vertex("a", 0)], count, store=store, run_id="tuesday").values
    {'a': 3}
    >>> gp.agents.state_at(store, "tuesday", 0).values
    {'a': 1}
    """
    found = read_run(check_store(store), run_id, superstep)
    state, ledger = found.state, found.ledger()
    return AgentResult(
        vertices=VertexMapping(state.vertices),
        status=found.status,
        failed=decode_failures({**state.failed, **ledger.failures(state.vertices)}),
        superstep=found.superstep,
        aggregates=decode_aggregates(state.aggregates),
        interrupts=decode_interrupts(ledger.interrupts()),
        trace=Trace(found.rows),
        timers={decode(vertex): when for vertex, when in state.timers.items()},
        cancelled=list(map(decode, found.cancelled())),
        arrays=read_values(store, found),
    )


def fork(
    store: Store,
    run_id: str,
    superstep: int,
    new_id: str | None = None,
    *,
    values: Mapping[Any, Any] | None = None,
) -> str:
    """Start a new run from the state of another one after a superstep; :func:`resume` continues it.

    The fork has its own keys and random numbers, and does not depend on the other run afterwards.

    Parameters
    ----------
    store : SQLiteStore, PostgresStore or MemoryStore
    run_id : str
    superstep : int
        -1 for the initial vertices.
    new_id : str, optional
    values : mapping, optional
        New values of vertices by id, which the fork starts from. These vertices are active in its first superstep even
        if they had voted to halt.

    Returns
    -------
    str
        The id of the new run.

    Raises
    ------
    ArgumentError
        There is no such run, superstep or vertex, or the new run exists.
    CodecError
        A value cannot be encoded.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> def double(ctx):
    ...     ctx.value *= 2
    ...     ctx.vote_to_halt()
    >>> store = gp.MemoryStore()
    >>> gp.agents.run([gp.agents.Vertex("a", 1)], double, store=store, run_id="tuesday").values
    {'a': 2}
    >>> new = gp.agents.fork(store, "tuesday", 0, values={"a": 50})
    >>> gp.agents.resume(store, new, double).values
    {'a': 100}
    """
    found = read_run(check_store(store), run_id, superstep)
    if values is not None and not isinstance(values, Mapping):
        raise ArgumentTypeError(f"values must be a mapping from ids of vertices, not {values!r}")
    for vertex, value in (values or {}).items():
        key = id_key(vertex)
        if key not in found.state.vertices:
            raise ArgumentError(f"there is no vertex {vertex!r} in run {run_id!r} after superstep {superstep}")
        edges = found.state.vertices[key].edges
        found.state.vertices[key] = VertexData(encode(value, name=f"the value of vertex {vertex!r}"), edges)
    new = new_run_id() if new_id is None else new_id
    store.fork(run_id, superstep, new, pack_state(found.state), meta=store.run(run_id).meta or b"", blobs=found.blobs)
    with suppress(StoreError, ArgumentError):  # the fork does not need them
        copy_events(store, run_id, new, superstep)
    return new
