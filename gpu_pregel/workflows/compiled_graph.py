"""``CompiledGraph``: a state graph that can be called, streamed, continued, and asked for its state."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from gpu_pregel.errors import ArgumentError
from gpu_pregel.host.arguments import check_integer
from gpu_pregel.workflows.calls import finish, finish_on_loop, open_run
from gpu_pregel.workflows.function_threads import THREADS
from gpu_pregel.workflows.graph_runs import CompileOptions, GraphRuns
from gpu_pregel.workflows.graph_spec import GraphSpec
from gpu_pregel.workflows.streams import Stream, check_modes

if TYPE_CHECKING:
    from gpu_pregel.workflows.snapshots import StateSnapshot

Config = Mapping[str, Any]
Modes = str | Sequence[str]


class CompiledGraph:
    """A state graph that runs; made by :meth:`StateGraph.compile`.

    ``config`` is a dict as in LangGraph: ``config["configurable"]["thread_id"]`` names the thread, a series of calls
    that continue one state and are kept in the store; ``config["configurable"]["checkpoint_id"]`` names one of its
    states, from which a call goes on instead of the last one; ``config["recursion_limit"]`` limits the supersteps of a
    call. Nodes find what else is in ``config["configurable"]`` as ``context.config``.

    Attributes
    ----------
    graph : GraphSpec
    """

    def __init__(self, graph: GraphSpec, options: CompileOptions) -> None:
        self.graph, self.options = graph, options
        self._runs = self._make_runs()

    def _make_runs(self) -> GraphRuns:
        return GraphRuns(self.graph, self.options)

    @property
    def name(self) -> str:
        """The name of the graph."""
        return self.options.name

    def __call__(self, given: Any, config: Config | None = None) -> Any:
        """Run to the end, as :meth:`invoke`."""
        return self.invoke(given, config)

    def invoke(self, given: Any, config: Config | None = None) -> dict[str, Any]:
        """Run to the end, or until the run waits for a person.

        Parameters
        ----------
        given : mapping, state, Command or None
            Updates of the state. A thread that has ended continues with them from its last state; tasks that it had not
            finished are dropped. None continues a run that was stopped, crashed or failed; ``Command(resume=answer)``
            answers its question. ``Command(update=..., goto=...)`` starts at other nodes.
        config : mapping, optional

        Returns
        -------
        dict
            The values of the keys of the output. Open questions are under ``"__interrupt__"``, as a list of
            :class:`Interrupt`, and the values are then those of the present state.

        Raises
        ------
        NodesFailedError
            A node failed. With a store, ``invoke(None, config)`` continues once its cause is mended.
        SuperstepLimitError
            ``max_supersteps`` was reached.
        ArgumentError, ArgumentTypeError, CodecError
            Invalid arguments; raised before any work.
        """
        return finish(self._runs, open_run(self._runs, given, config), config)

    async def ainvoke(self, given: Any, config: Config | None = None) -> dict[str, Any]:
        """Run like :meth:`invoke`, without blocking the event loop, on which ``async`` nodes run."""
        output: dict[str, Any] = await finish_on_loop(self._runs, given, config)
        return output

    def stream(
        self, given: Any, config: Config | None = None, *, stream_mode: Modes = "updates", subgraphs: bool = False
    ) -> Iterator[Any]:
        """Run, and yield what happens.

        Parameters
        ----------
        given, config
            As for :meth:`invoke`.
        stream_mode : str or sequence of str
            "values" (the state after each superstep), "updates" (those of each node), "messages" (``(token, metadata)``
            of what nodes emit), "custom" (what nodes write), "tasks" (their starts and ends), "checkpoints" (a snapshot
            of each superstep), "debug" (the last two). With several, items are ``(mode, item)``.
        subgraphs : bool
            Yield what happens in subgraphs, too: items are ``(namespace, item)`` or ``(namespace, mode, item)``.

        Yields
        ------
        item
        """
        modes = check_modes(stream_mode)
        stream = Stream(self._runs, modes, single=isinstance(stream_mode, str), subgraphs=subgraphs)
        return stream.items(given, config)

    def astream(
        self, given: Any, config: Config | None = None, *, stream_mode: Modes = "updates", subgraphs: bool = False
    ) -> AsyncIterator[Any]:
        """Run like :meth:`stream`, without blocking the event loop."""
        modes = check_modes(stream_mode)
        stream = Stream(self._runs, modes, single=isinstance(stream_mode, str), subgraphs=subgraphs)
        return stream.items_on_loop(given, config)

    def batch(
        self, given: Iterable[Any], config: Config | Sequence[Config] | None = None, *, max_concurrency: int = THREADS
    ) -> list[dict[str, Any]]:
        """Run for several inputs side by side, and return the outputs in their order."""
        calls = _batched(given, config, max_concurrency)
        with ThreadPoolExecutor(min(max_concurrency, len(calls)) or 1, "batch") as pool:
            return list(pool.map(self.invoke, *zip(*calls, strict=True)) if calls else ())

    async def abatch(
        self, given: Iterable[Any], config: Config | Sequence[Config] | None = None, *, max_concurrency: int = THREADS
    ) -> list[dict[str, Any]]:
        """Run like :meth:`batch`, on the running event loop."""
        calls, turns = _batched(given, config, max_concurrency), asyncio.Semaphore(max_concurrency)

        async def run(one: Any, its_config: Any) -> dict[str, Any]:
            async with turns:
                return await self.ainvoke(one, its_config)

        outputs = await asyncio.gather(*(run(*call) for call in calls), return_exceptions=True)
        for output in outputs:
            if isinstance(output, BaseException):
                raise output
        return outputs  # type: ignore[return-value]

    def as_agent(self, read: Callable[[Any], Any], write: Callable[[Any, dict[str, Any]], Any]) -> Callable[[Any], Any]:
        """Return a compute function for agents, each of whose computations is a run of this graph.

        It is for ``gp.Agents(compute=...)`` and :func:`gpu_pregel.agents.run`. Questions of nodes are asked by
        ``ctx.interrupt``, one at a time; with each answer the vertex is computed again from its start. What nodes emit
        is emitted by the vertex, as ``(mode, item)``. ``context.config["vertex_id"]`` tells nodes the vertex.

        Parameters
        ----------
        read : callable
            ``read(ctx)`` returns the input.
        write : callable
            ``write(ctx, output)`` returns what the compute function returns, and may send messages.

        Raises
        ------
        ArgumentError
            The graph was compiled with a store, with breakpoints, or with ``carry="messages"``.

        Examples
        --------
        >>> from typing import TypedDict
        >>> import gpu_pregel as gp
        >>> from gpu_pregel.workflows import START, StateGraph
        >>> class State(TypedDict):
        ...     x: int
        >>> graph = StateGraph(State).add_node("double", lambda state: {"x": 2 * state["x"]})
        >>> def write(ctx, output):
        ...     ctx.value = output["x"]
        ...     ctx.vote_to_halt()
        >>> compute = graph.add_edge(START, "double").compile().as_agent(lambda ctx: {"x": ctx.value}, write)
        >>> gp.agents.run([gp.agents.Vertex("a", 1), gp.agents.Vertex("b", 2)], compute).values
        {'a': 2, 'b': 4}
        """
        from gpu_pregel.workflows.graph_agents import as_agent

        return as_agent(self._runs, read, write)

    # The states of threads.

    def get_state(self, config: Config) -> StateSnapshot:
        """Return the present state of a thread, or the one that ``checkpoint_id`` names.

        The present state has what tasks of the next superstep have done, although others ask or have failed. That of a
        thread that does not exist is empty, and its ``metadata`` None.

        Raises
        ------
        ArgumentError
            There is no store, or no such state of the thread.
        """
        from gpu_pregel.workflows.snapshots import get_state

        return get_state(self._runs, config)

    def get_state_history(
        self, config: Config, *, limit: int | None = None, before: Config | None = None
    ) -> Iterator[StateSnapshot]:
        """Yield the states of a thread, the latest first, through the runs that it was forked from.

        They are as supersteps left them, with the state before each input. Unlike in LangGraph, where a thread has gone
        on from a former state, those that came after it are left out: they are in the history of the run that it was.

        Parameters
        ----------
        config : mapping
            With ``checkpoint_id``, the states from that one on.
        limit : int, optional
            Maximum number of states.
        before : mapping, optional
            The config of a state: those before it.
        """
        from gpu_pregel.workflows.snapshots import get_history

        return get_history(self._runs, config, limit, before)

    def update_state(self, config: Config, values: Any, as_node: str | None = None) -> dict[str, Any]:
        """Update the state of a thread as if a node had returned the values.

        The next tasks are those that the edges of that node lead to; those that were waiting are dropped, except for
        deferred nodes and complete joins of other nodes than ``as_node``, which LangGraph runs all the same.

        Parameters
        ----------
        config : mapping
            With ``checkpoint_id``, the thread continues from that state: what came after it stays in the history of the
            run that it was. A thread that does not exist begins with the update.
        values : mapping, state or None
        as_node : str, optional
            Default: the node that ran last, if it was a single one; the start after an input, and of a thread that does
            not exist.

        Returns
        -------
        dict
            The config of the new state.
        """
        from gpu_pregel.workflows.updates import update_state

        return update_state(self._runs, config, values, as_node)

    async def aget_state(self, config: Config) -> StateSnapshot:
        """Return what :meth:`get_state` does, without blocking the event loop."""
        return await asyncio.to_thread(self.get_state, config)

    async def aget_state_history(
        self, config: Config, *, limit: int | None = None, before: Config | None = None
    ) -> AsyncIterator[StateSnapshot]:
        """Yield what :meth:`get_state_history` does, without blocking the event loop."""
        states = await asyncio.to_thread(self.get_state_history, config, limit=limit, before=before)
        while (state := await asyncio.to_thread(next, states, None)) is not None:
            yield state

    async def aupdate_state(self, config: Config, values: Any, as_node: str | None = None) -> dict[str, Any]:
        """Do what :meth:`update_state` does, without blocking the event loop."""
        return await asyncio.to_thread(self.update_state, config, values, as_node)

    # Pictures.

    def draw_mermaid(self) -> str:
        """Return the graph in the language of Mermaid."""
        from gpu_pregel.workflows.drawing import draw_mermaid

        return draw_mermaid(self.graph)

    def _repr_html_(self) -> str:
        from gpu_pregel.workflows.drawing import draw_svg

        return draw_svg(self.graph)

    def __repr__(self) -> str:
        return f"<CompiledGraph {self.name!r}: {len(self.graph.nodes)} nodes>"


def _batched(given: Iterable[Any], config: Any, max_concurrency: int) -> list[tuple[Any, Any]]:
    """Return the inputs and configs of the calls of a batch."""
    inputs = list(given)
    check_integer("max_concurrency", max_concurrency, 1, 1 << 16)
    several = config is not None and not isinstance(config, Mapping)
    configs = list(config) if several else [config] * len(inputs)
    if len(configs) != len(inputs):
        raise ArgumentError(f"batch got {len(inputs)} inputs and {len(configs)} configs: pass one for each, or one")
    return list(zip(inputs, configs, strict=True))
