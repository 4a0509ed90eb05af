"""The compute function of the agents of a mixed run: calls the user's with an ``AgentContext``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpu_pregel.host.agents.context import Context
from gpu_pregel.host.agents.partition_options import is_async
from gpu_pregel.host.mixed.agent_context import AgentContext, AgentTypes


def make_compute(compute: Callable[[AgentContext], Any], types: AgentTypes) -> Callable[[Context], Any]:
    """Return the compute function of the agent runtime for that of ``gp.Agents``, ordinary or ``async``."""
    return (_AsyncAgentVertex if is_async(compute) else _AgentVertex)(compute, types)


class _AgentVertex:
    """Computes an agent in a superstep; called with its context."""

    def __init__(self, compute: Callable[[AgentContext], Any], types: AgentTypes) -> None:
        self._compute, self._types = compute, types

    def __call__(self, agent: Context) -> Any:
        context = AgentContext(agent, self._types)
        context.conclude(self._compute(context))


class _AsyncAgentVertex(_AgentVertex):
    """The same for an ``async`` function."""

    async def __call__(self, agent: Context) -> None:
        context = AgentContext(agent, self._types)
        context.conclude(await self._compute(context))
