"""``from_langgraph``: a builder of LangGraph as a ``StateGraph``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, get_args

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, GpuPregelError
from gpu_pregel.host.arguments import require
from gpu_pregel.workflows.commands import END
from gpu_pregel.workflows.graph_spec import Router
from gpu_pregel.workflows.schemas import Key
from gpu_pregel.workflows.state_graph import StateGraph

if TYPE_CHECKING:
    from gpu_pregel.workflows.compiled_graph import CompiledGraph

Problems = list[str]


def from_langgraph(builder: Any, *, store: Any = None) -> StateGraph:
    """Return a graph that does what a ``StateGraph`` of LangGraph does.

    Nodes are called as LangGraph calls them: with ``config``, ``runtime``, ``writer`` and ``store`` if they have such
    parameters. They may return LangGraph's ``Command`` and ``Send``, and call ``langgraph.types.interrupt`` and
    ``get_stream_writer``. What LangChain's models stream in them comes in the stream mode "messages".
    ``runtime.context`` is ``config["configurable"]["context"]``. Compiled graphs that are nodes are taken over, too.

    Parameters
    ----------
    builder : langgraph.graph.StateGraph
        Not compiled.
    store : langgraph.store.base.BaseStore, optional
        What nodes get as ``store``, in this process.

    Returns
    -------
    StateGraph

    Raises
    ------
    ArgumentError
        The builder uses features that are not supported; the message lists all of them with their nodes and keys.
    """
    _check_builder(builder)
    problems: Problems = []
    graph = _empty_graph(builder, problems)
    if graph is not None:
        _add_nodes(graph, builder, store, problems)
        _add_edges(graph, builder, problems)
    if problems:
        raise ArgumentError(
            "this graph of LangGraph has what is not supported:\n" + "\n".join(f"- {one}" for one in problems)
        )
    assert graph is not None
    return graph


def _check_builder(builder: Any) -> None:
    """Refuse what is no builder of LangGraph."""
    module = require("langgraph.graph", "from_langgraph", "gpu-pregel[langgraph]")
    if isinstance(builder, module.StateGraph):
        return
    if hasattr(builder, "builder"):
        raise ArgumentTypeError("from_langgraph takes a StateGraph before compile(): pass graph.builder")
    raise ArgumentTypeError(f"from_langgraph takes a StateGraph of LangGraph, not {builder!r:.200}")


# The state.


def _empty_graph(builder: Any, problems: Problems) -> StateGraph | None:
    """Return a graph with the state of a builder, or None if it cannot be taken."""
    problems += list(_managed_problems(builder))
    defaults = getattr(builder, "_node_defaults", None)
    for name in ("cache_policy", "error_handler"):
        if getattr(defaults, name, None) is not None:
            problems.append(f"set_node_defaults({name}=...): pass it to each node")
    graph = None
    try:
        graph = StateGraph(builder.state_schema, input=builder.input_schema, output=builder.output_schema)
        graph.may_go_anywhere = True
        for schema in builder.schemas:
            graph._schema(schema)
    except GpuPregelError as error:
        problems.append(f"the state: {error}")
        return None
    for name in builder.managed:
        graph._keys.pop(name, None)
        for known in graph._schemas.values():
            known.keys.pop(name, None)
    for name, channel in builder.channels.items():
        key = _key(name, channel)
        if key is None:
            problems.append(f"key {name!r}: a channel of type {type(channel).__name__}: use a reducer")
        elif name in graph._keys:
            graph._keys[name] = key
    return graph


def _managed_problems(builder: Any) -> Iterator[str]:
    """Yield the managed values that are not supported."""
    from langgraph.managed import IsLastStep, RemainingSteps

    known = {get_args(one)[1] for one in (IsLastStep, RemainingSteps)}
    for name, cls in builder.managed.items():
        if cls not in known:
            yield f"key {name!r}: a managed value of type {getattr(cls, '__name__', cls)}"
        for schema in builder.schemas:
            if name in builder.schemas[schema] and not issubclass(schema, dict):
                yield f"key {name!r}: a managed value in {schema.__name__}: make that a TypedDict"


def _managed(builder: Any, schema: Any) -> dict[str, Any]:
    """Return the managed values of the state that a function takes."""
    return {name: cls for name, cls in builder.managed.items() if name in builder.schemas.get(schema, ())}


def _key(name: str, channel: Any) -> Key | None:
    """Return the key that a channel stands for, or None for channels of other kinds."""
    from langgraph.channels import BinaryOperatorAggregate, LastValue

    if type(channel) is LastValue:
        return Key(name, None, ())
    if type(channel) is BinaryOperatorAggregate:
        return Key(name, channel.operator, (channel.get(),) if channel.is_available() else ())
    return None


# Nodes.


def _add_nodes(graph: StateGraph, builder: Any, store: Any, problems: Problems) -> None:
    from gpu_pregel.workflows.langgraph_nodes import (
        AsyncLangGraphNode,
        AsyncLangGraphRouter,
        Environment,
        LangGraphNode,
        LangGraphRouter,
        cache_policy,
    )

    environment = Environment(store, builder.context_schema, frozenset(_message_keys(builder)))
    for name, spec in builder.nodes.items():
        if spec.is_error_handler:
            continue
        found = list(_node_problems(spec, store))
        if found:
            problems += [f"node {name!r}: {one}" for one in found]
            continue
        kind = AsyncLangGraphNode if _is_async(spec.runnable) else LangGraphNode
        try:
            graph.add_node(
                name,
                _subgraph(spec.runnable, store)
                or kind(name, spec.runnable, environment, spec.metadata or {}, _managed(builder, spec.input_schema)),
                input=spec.input_schema,
                retry=_retry(builder, spec),
                cache=None if spec.cache_policy is None else cache_policy(spec.cache_policy),
                timeout=_seconds(_timeout(builder, spec)),
                defer=spec.defer,
                destinations=tuple(spec.ends or ()),
                metadata=spec.metadata,
            )
        except GpuPregelError as error:
            problems.append(f"node {name!r}: {error}")
    for source, branches in builder.branches.items():
        for name, branch in branches.items():
            problems += [f"router {name!r} of node {source!r}: {one}" for one in _function_problems(branch.path, store)]
            kind_of_router = AsyncLangGraphRouter if _is_async(branch.path) else LangGraphRouter
            reads = branch.input_schema or getattr(builder.nodes.get(source), "input_schema", None)
            managed = _managed(builder, reads or builder.state_schema)
            router = kind_of_router(name, branch.path, environment, {}, managed)
            made = Router(
                router, name, branch.ends or None, True, _is_async(branch.path), reads and graph._schema(reads)
            )
            graph.branches.setdefault(source, []).append(made)


def _message_keys(builder: Any) -> Iterator[str]:
    """Yield the keys whose reducer is LangGraph's ``add_messages``."""
    from langgraph.graph.message import add_messages

    for name, channel in builder.channels.items():
        reducer = getattr(channel, "operator", None)
        if reducer is add_messages or getattr(reducer, "func", None) is add_messages:
            yield name


def _is_async(runnable: Any) -> bool:
    """Whether a Runnable has a coroutine function only."""
    return getattr(runnable, "func", runnable) is None and getattr(runnable, "afunc", None) is not None


def _subgraph(runnable: Any, store: Any) -> CompiledGraph | None:
    """Return a compiled graph of LangGraph that is a node as one of this package, or None if it is something else."""
    if not hasattr(runnable, "builder"):
        return None
    return from_langgraph(runnable.builder, store=store).compile(
        interrupt_before=runnable.interrupt_before_nodes,
        interrupt_after=runnable.interrupt_after_nodes,
        name=runnable.name,
    )


def _node_problems(spec: Any, store: Any) -> Iterator[str]:
    """Yield the features of a node that are not supported."""
    if spec.error_handler_node is not None:
        yield "error_handler"
    if getattr(spec, "trace_policy", None) is not None:
        yield "trace_policy"
    policies = spec.retry_policy
    several = isinstance(policies, (list, tuple)) and not hasattr(policies, "max_attempts")
    if several and len(policies) != 1:
        yield f"{len(policies)} retry policies: pass one"
    timeout = getattr(spec, "timeout", None)
    if timeout is not None and timeout.idle_timeout is not None:
        yield "TimeoutPolicy(idle_timeout=...): use run_timeout"
    if getattr(spec.runnable, "checkpointer", None) not in (None, False):
        yield "a compiled graph with a checkpointer of its own: compile it without"
    yield from _function_problems(spec.runnable, store)


def _function_problems(runnable: Any, store: Any) -> Iterator[str]:
    """Yield the parameters of a function for which there is no argument."""
    accepted = getattr(runnable, "func_accepts", {})
    if "previous" in accepted:
        yield "the parameter 'previous', which is of LangGraph's functional interface"
    if "store" in accepted and store is None and accepted["store"][1] is not None:
        yield "the parameter 'store': pass from_langgraph(builder, store=...)"


def _retry(builder: Any, spec: Any) -> Any:
    from gpu_pregel.workflows.langgraph_nodes import retry_policy

    given = spec.retry_policy or getattr(getattr(builder, "_node_defaults", None), "retry_policy", None)
    if given is None:
        return None
    return retry_policy(given if hasattr(given, "max_attempts") else given[0])


def _timeout(builder: Any, spec: Any) -> Any:
    return getattr(spec, "timeout", None) or getattr(getattr(builder, "_node_defaults", None), "timeout", None)


def _seconds(policy: Any) -> float | None:
    """Return the seconds of a timeout of LangGraph."""
    seconds: Any = None if policy is None else policy.run_timeout
    if hasattr(seconds, "total_seconds"):
        seconds = seconds.total_seconds()
    return None if seconds is None else float(seconds)


# Edges.


def _add_edges(graph: StateGraph, builder: Any, problems: Problems) -> None:
    """Add the edges, sorted, because a builder has them as sets."""
    for source, target in sorted(builder.edges):
        try:
            graph.add_edge(source, target)
        except GpuPregelError as error:
            problems.append(f"the edge from {source!r} to {target!r}: {error}")
    for sources, target in sorted(builder.waiting_edges):
        if target != END:
            graph.add_edge(list(sources), target)
