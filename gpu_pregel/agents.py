"""Agent vertices: Python values computed by ordinary functions in worker processes, superstep by superstep.

:func:`run` runs to the end; :func:`start` returns an :class:`AgentRun`, which runs step by step. The names of
:mod:`gpu_pregel.workflows`, such as :class:`StateGraph`, are names of this module, too.
"""

from gpu_pregel.host.agents.agent_run import AgentRun
from gpu_pregel.host.agents.codec import register
from gpu_pregel.host.agents.combiners import TopK
from gpu_pregel.host.agents.context import Context
from gpu_pregel.host.agents.master_context import MasterContext
from gpu_pregel.host.agents.observers.events import Event, LogObserver, ProgressObserver
from gpu_pregel.host.agents.observers.telemetry import OpenTelemetryObserver
from gpu_pregel.host.agents.observers.timeline import Timeline
from gpu_pregel.host.agents.requests import answer, cancel, retry, send
from gpu_pregel.host.agents.results import AgentResult, VertexFailure
from gpu_pregel.host.agents.retry import RetryPolicy
from gpu_pregel.host.agents.run import arun, run, start
from gpu_pregel.host.agents.stored_runs import (
    aresume,
    astart_or_resume,
    fork,
    reopen,
    resume,
    start_or_resume,
    state_at,
)
from gpu_pregel.host.agents.superstep_state import SuperstepState, VertexProgress
from gpu_pregel.host.agents.supervisor import serve
from gpu_pregel.host.agents.vertices import Edge, Vertex
from gpu_pregel.host.superstep.aggregators import Aggregator

TYPE_CHECKING = False

if TYPE_CHECKING:
    from gpu_pregel.workflows import END as END
    from gpu_pregel.workflows import START as START
    from gpu_pregel.workflows import AgentState as AgentState
    from gpu_pregel.workflows import CachePolicy as CachePolicy
    from gpu_pregel.workflows import ChatModel as ChatModel
    from gpu_pregel.workflows import Command as Command
    from gpu_pregel.workflows import CompiledGraph as CompiledGraph
    from gpu_pregel.workflows import GraphResult as GraphResult
    from gpu_pregel.workflows import GraphState as GraphState
    from gpu_pregel.workflows import Interrupt as Interrupt
    from gpu_pregel.workflows import LangGraphSaver as LangGraphSaver
    from gpu_pregel.workflows import MessagePassingGraph as MessagePassingGraph
    from gpu_pregel.workflows import NodeContext as NodeContext
    from gpu_pregel.workflows import NodeResult as NodeResult
    from gpu_pregel.workflows import ScriptedModel as ScriptedModel
    from gpu_pregel.workflows import Send as Send
    from gpu_pregel.workflows import StateGraph as StateGraph
    from gpu_pregel.workflows import StateSnapshot as StateSnapshot
    from gpu_pregel.workflows import Tool as Tool
    from gpu_pregel.workflows import ToolContext as ToolContext
    from gpu_pregel.workflows import activated as activated
    from gpu_pregel.workflows import add_messages as add_messages
    from gpu_pregel.workflows import agent_tool as agent_tool
    from gpu_pregel.workflows import aggregate_state_messages as aggregate_state_messages
    from gpu_pregel.workflows import append as append
    from gpu_pregel.workflows import create_agent as create_agent
    from gpu_pregel.workflows import from_langgraph as from_langgraph
    from gpu_pregel.workflows import increment as increment
    from gpu_pregel.workflows import initial_state as initial_state
    from gpu_pregel.workflows import inject_initial_state as inject_initial_state
    from gpu_pregel.workflows import interrupt as interrupt
    from gpu_pregel.workflows import last as last
    from gpu_pregel.workflows import mcp_tools as mcp_tools
    from gpu_pregel.workflows import merge as merge
    from gpu_pregel.workflows import tool as tool

__all__ = [
    "END",
    "START",
    "AgentResult",
    "AgentRun",
    "AgentState",
    "Aggregator",
    "CachePolicy",
    "ChatModel",
    "Command",
    "CompiledGraph",
    "Context",
    "Edge",
    "Event",
    "GraphResult",
    "GraphState",
    "Interrupt",
    "LangGraphSaver",
    "LogObserver",
    "MasterContext",
    "MessagePassingGraph",
    "NodeContext",
    "NodeResult",
    "OpenTelemetryObserver",
    "ProgressObserver",
    "RetryPolicy",
    "ScriptedModel",
    "Send",
    "StateGraph",
    "StateSnapshot",
    "SuperstepState",
    "Timeline",
    "Tool",
    "ToolContext",
    "TopK",
    "Vertex",
    "VertexFailure",
    "VertexProgress",
    "activated",
    "add_messages",
    "agent_tool",
    "aggregate_state_messages",
    "answer",
    "append",
    "aresume",
    "arun",
    "astart_or_resume",
    "cancel",
    "create_agent",
    "fork",
    "from_langgraph",
    "increment",
    "initial_state",
    "inject_initial_state",
    "interrupt",
    "last",
    "mcp_tools",
    "merge",
    "register",
    "reopen",
    "resume",
    "retry",
    "run",
    "send",
    "serve",
    "start",
    "start_or_resume",
    "state_at",
    "tool",
]

if not TYPE_CHECKING:  # with a module's __getattr__, type checkers accept misspelt names

    def __getattr__(name: str) -> object:
        from gpu_pregel import workflows

        if name not in __all__:
            raise AttributeError(f"module 'gpu_pregel.agents' has no attribute {name!r}")
        value = globals()[name] = getattr(workflows, name)
        return value


def __dir__() -> list[str]:
    return __all__
