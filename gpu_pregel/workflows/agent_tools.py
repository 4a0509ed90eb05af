"""Agents as tools of other agents: a supervisor delegates tasks to them."""

from __future__ import annotations

from functools import partial
from inspect import iscoroutinefunction
from typing import Any

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, ToolError
from gpu_pregel.host.agents.retry import RetryPolicy
from gpu_pregel.workflows.compiled_graph import CompiledGraph
from gpu_pregel.workflows.function_threads import wait_for_function
from gpu_pregel.workflows.messages import text_of
from gpu_pregel.workflows.node_context import CURRENT
from gpu_pregel.workflows.subgraphs import as_node
from gpu_pregel.workflows.tools import Tool


def agent_tool(
    agent: CompiledGraph,
    description: str,
    *,
    name: str | None = None,
    timeout: float | None = None,
    retry: RetryPolicy | None = None,
) -> Tool:
    """Return a tool that gives an agent a task, and returns its answer.

    The agent runs as part of the run that calls it: its supersteps are kept in the same store, and not repeated after a
    crash; its questions are those of the caller; what it emits is streamed with ``subgraphs=True``.

    Parameters
    ----------
    agent : CompiledGraph
        Made by :func:`create_agent` without a store, or another graph with the key ``messages``.
    description : str
        What the calling model reads: which tasks the agent is for.
    name : str, optional
        Default: the agent's.
    timeout, retry
        As for :class:`Tool`.

    Examples
    --------
    >>> from gpu_pregel.workflows import ScriptedModel, agent_tool, create_agent, messages
    >>> poet = create_agent(ScriptedModel(["Roses are red."]), name="poet")
    >>> script = [messages.assistant("", [messages.tool_call("poet", {"task": "A line, please."})]), "Here it is."]
    >>> result = create_agent(ScriptedModel(script), [agent_tool(poet, "Writes poems.")]).invoke({"messages": "Hello!"})
    >>> [message["content"] for message in result["messages"]]
    ['Hello!', '', 'Roses are red.', 'Here it is.']
    """
    if not isinstance(agent, CompiledGraph):
        raise ArgumentTypeError(f"agent_tool takes an agent that create_agent has made, not {agent!r:.80}")
    if "messages" not in agent.graph.input.keys:
        raise ArgumentError(f"{agent!r} has no key 'messages', in which an agent gets its task")
    name = agent.name if name is None else name
    return Tool(AgentFunction(agent, name), name=name, description=description, timeout=timeout, retry=retry)


class AgentFunction:
    """Gives an agent a task: within a node, as a part of its run."""

    def __init__(self, agent: CompiledGraph, name: str) -> None:
        self._agent, self._node = agent, as_node(agent, name)

    async def __call__(self, task: str) -> Any:
        """Return the agent's answer."""
        given, context = {"messages": task}, CURRENT.get(None)
        if context is None:
            result = await self._agent.ainvoke(given)
        elif iscoroutinefunction(type(self._node).__call__):
            result = await self._node(given, context)
        else:
            result = await wait_for_function(partial(self._node, given, context))
        if result.get("structured_response") is not None:
            return result["structured_response"]
        text = text_of(result["messages"][-1]) if result.get("messages") else ""
        if result.get("status", "completed") != "completed":
            raise ToolError(f"the agent has ended with the status {result['status']!r}: {text}", retryable=False)
        return text
