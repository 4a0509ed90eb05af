"""Runs in a store: going on with one, looking back, forking."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gpu_pregel.host.agents.agent_run import AgentRun
from gpu_pregel.host.agents.codec import decode, encode, id_key
from gpu_pregel.host.agents.formats import pack_state
from gpu_pregel.host.agents.options import Compute, check_store, make_options, new_run_id, show_options
from gpu_pregel.host.agents.recovery import begin_from_store, read_run
from gpu_pregel.host.agents.results import AgentResult, VertexMapping, decode_failures, decode_interrupts
from gpu_pregel.host.agents.run import finish
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
    """Go on with a run that a store has, as if it had never stopped.

    Vertices of the superstep under way that have completed are not computed again. Attempts that failed before count,
    so that a vertex which ends each of its workers has an end itself; with ``workers=0`` nobody is left to count those.
    The result's trace begins with the superstep after which the whole state was last kept.

    Parameters
    ----------
    store : SQLiteStore, PostgresStore or MemoryStore
    run_id : str
    compute : callable
        And all other arguments of :func:`run` but ``vertices``, ``run_id`` and ``store``: functions are not stored.
    answers : mapping, optional
        By vertex, the answers to interrupts that the run waits for. Giving a vertex its last answer again does no
        harm, as long as the vertex does not ask again, which that then answers, and nothing was pruned.
    retry_failed : bool, default False
        Give vertices that failed in the superstep that is held a fresh set of attempts.
    takeover : bool, default False
        Although another program's lease has not run out; what that one does from then on is not written.

    Returns
    -------
    AgentResult

    Raises
    ------
    ClaimedError
        Another program has the run.
    StoreError
        The store cannot be read, or is damaged: with run, superstep and segment.
    AgentsFailedError, AgentError, ArgumentError
        As from :func:`run`.

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
    agents = reopen(store, run_id, compute, takeover=takeover, **options)
    try:
        for vertex, answer in (answers or {}).items():
            if agents._is_asking(vertex) or not _was_given(store, run_id, vertex, answer):
                agents.answer(vertex, answer)
        if retry_failed:
            agents.retry()
    except BaseException:
        agents.__exit__()
        raise
    return finish(agents)


def _was_given(store: Store, run_id: str, vertex: Any, answer: Any) -> bool:
    """Whether the last answer to a vertex was this one: it has gone on since."""
    last = store.last_answer(run_id, id_key(vertex))
    return last is not None and last.data == encode(answer, name="answer")


@show_options
def reopen(
    store: Store, run_id: str, compute: Compute | None = None, *, takeover: bool = False, **options: Any
) -> AgentRun:
    """Go on with a run that a store has, step by step: this is to :func:`resume` as :func:`start` is to :func:`run`."""
    checked = make_options("reopen", compute, {**options, "store": check_store(store), "run_id": run_id})
    return AgentRun(checked, begin_from_store(store, run_id, checked, takeover=takeover))


def state_at(store: Store, run_id: str, superstep: int | None = None) -> AgentResult:
    """What a run was after a superstep.

    Parameters
    ----------
    store : SQLiteStore, PostgresStore or MemoryStore
    run_id : str
    superstep : int, optional
        One that ``store.history(run_id)`` lists, or -1 for the vertices as they were given; default: the last one.

    Returns
    -------
    AgentResult
        Its trace begins with the superstep after which the state was last kept as a whole. If no superstep is given and
        one is held, ``failed`` and ``interrupts`` say who failed in it and what waits for an answer.
    """
    found = read_run(check_store(store), run_id, superstep)
    state, ledger = found.state, found.ledger()
    return AgentResult(
        vertices=VertexMapping(state.vertices),
        status=found.status,
        failed=decode_failures({**state.failed, **ledger.failures()}),
        superstep=found.superstep,
        aggregates={name: decode(value) for name, value in state.aggregates.items()},
        interrupts=decode_interrupts(ledger.interrupts()),
        trace=Trace(found.rows),
    )


def fork(store: Store, run_id: str, superstep: int, new_id: str | None = None) -> str:
    """Begin a run in the state that another one was in after a superstep; :func:`resume` goes on with it.

    Keys and random numbers of the fork are its own. It needs nothing of the other run from then on.

    Parameters
    ----------
    store : SQLiteStore, PostgresStore or MemoryStore
    run_id : str
    superstep : int
        -1 for the vertices as they were given.
    new_id : str, optional

    Returns
    -------
    str
        The id of the new run.
    """
    found = read_run(check_store(store), run_id, superstep)
    new = new_run_id() if new_id is None else new_id
    store.fork(run_id, superstep, new, pack_state(found.state))
    return new
