"""State graphs on the agent runtime: nodes that share a state, a ready agent loop, and the page of a run."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False

if TYPE_CHECKING:
    from gpu_pregel.host.agents.retry import RetryPolicy as RetryPolicy
    from gpu_pregel.workflows.agent_loop import create_agent as create_agent
    from gpu_pregel.workflows.agent_state import AgentState as AgentState
    from gpu_pregel.workflows.agent_tools import agent_tool as agent_tool
    from gpu_pregel.workflows.cache_policy import CachePolicy as CachePolicy
    from gpu_pregel.workflows.commands import END as END
    from gpu_pregel.workflows.commands import START as START
    from gpu_pregel.workflows.commands import Command as Command
    from gpu_pregel.workflows.commands import Interrupt as Interrupt
    from gpu_pregel.workflows.commands import Send as Send
    from gpu_pregel.workflows.compiled_graph import CompiledGraph as CompiledGraph
    from gpu_pregel.workflows.langgraph_import import from_langgraph as from_langgraph
    from gpu_pregel.workflows.langgraph_saver import LangGraphSaver as LangGraphSaver
    from gpu_pregel.workflows.mcp_functions import mcp_tools as mcp_tools
    from gpu_pregel.workflows.message_graph import GraphResult as GraphResult
    from gpu_pregel.workflows.message_graph import MessagePassingGraph as MessagePassingGraph
    from gpu_pregel.workflows.message_graph import NodeResult as NodeResult
    from gpu_pregel.workflows.models import ChatModel as ChatModel
    from gpu_pregel.workflows.node_context import NodeContext as NodeContext
    from gpu_pregel.workflows.node_context import interrupt as interrupt
    from gpu_pregel.workflows.reducers import add_messages as add_messages
    from gpu_pregel.workflows.reducers import append as append
    from gpu_pregel.workflows.reducers import increment as increment
    from gpu_pregel.workflows.reducers import last as last
    from gpu_pregel.workflows.reducers import merge as merge
    from gpu_pregel.workflows.scripted_model import ScriptedModel as ScriptedModel
    from gpu_pregel.workflows.snapshots import StateSnapshot as StateSnapshot
    from gpu_pregel.workflows.state_graph import StateGraph as StateGraph
    from gpu_pregel.workflows.state_messages import GraphState as GraphState
    from gpu_pregel.workflows.state_messages import activated as activated
    from gpu_pregel.workflows.state_messages import aggregate_state_messages as aggregate_state_messages
    from gpu_pregel.workflows.state_messages import initial_state as initial_state
    from gpu_pregel.workflows.state_messages import inject_initial_state as inject_initial_state
    from gpu_pregel.workflows.tools import Tool as Tool
    from gpu_pregel.workflows.tools import ToolContext as ToolContext
    from gpu_pregel.workflows.tools import tool as tool

_HOMES = {
    "AgentState": "agent_state",
    "CachePolicy": "cache_policy",
    "ChatModel": "models",
    "Command": "commands",
    "CompiledGraph": "compiled_graph",
    "END": "commands",
    "GraphResult": "message_graph",
    "GraphState": "state_messages",
    "Interrupt": "commands",
    "LangGraphSaver": "langgraph_saver",
    "MessagePassingGraph": "message_graph",
    "NodeContext": "node_context",
    "NodeResult": "message_graph",
    "RetryPolicy": "state_graph",
    "START": "commands",
    "ScriptedModel": "scripted_model",
    "Send": "commands",
    "StateGraph": "state_graph",
    "StateSnapshot": "snapshots",
    "Tool": "tools",
    "ToolContext": "tools",
    "activated": "state_messages",
    "add_messages": "reducers",
    "agent_tool": "agent_tools",
    "aggregate_state_messages": "state_messages",
    "append": "reducers",
    "create_agent": "agent_loop",
    "from_langgraph": "langgraph_import",
    "increment": "reducers",
    "initial_state": "state_messages",
    "inject_initial_state": "state_messages",
    "interrupt": "node_context",
    "last": "reducers",
    "mcp_tools": "mcp_functions",
    "merge": "reducers",
    "tool": "tools",
}
"""The module that defines each public name; all are also names of ``gpu_pregel.agents``."""

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name == "__all__":
            return sorted(_HOMES)
        if name not in _HOMES:
            raise AttributeError(f"module 'gpu_pregel.workflows' has no attribute {name!r}")
        value = getattr(import_module(f"gpu_pregel.workflows.{_HOMES[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return [*_HOMES, "__all__"]
