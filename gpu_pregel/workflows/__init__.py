"""State graphs on the agent runtime: nodes that share a state, a ready agent loop, and the page of a run."""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False

if TYPE_CHECKING:
    from gpu_pregel.workflows.commands import END as END
    from gpu_pregel.workflows.commands import START as START
    from gpu_pregel.workflows.commands import Command as Command
    from gpu_pregel.workflows.commands import Interrupt as Interrupt
    from gpu_pregel.workflows.commands import Send as Send
    from gpu_pregel.workflows.compiled_graph import CompiledGraph as CompiledGraph
    from gpu_pregel.workflows.langgraph_import import from_langgraph as from_langgraph
    from gpu_pregel.workflows.langgraph_saver import LangGraphSaver as LangGraphSaver
    from gpu_pregel.workflows.node_cache import CachePolicy as CachePolicy
    from gpu_pregel.workflows.node_context import NodeContext as NodeContext
    from gpu_pregel.workflows.node_context import interrupt as interrupt
    from gpu_pregel.workflows.reducers import add_messages as add_messages
    from gpu_pregel.workflows.reducers import append as append
    from gpu_pregel.workflows.reducers import increment as increment
    from gpu_pregel.workflows.reducers import last as last
    from gpu_pregel.workflows.reducers import merge as merge
    from gpu_pregel.workflows.snapshots import StateSnapshot as StateSnapshot
    from gpu_pregel.workflows.state_graph import StateGraph as StateGraph

_HOMES = {
    "END": "commands",
    "START": "commands",
    "CachePolicy": "node_cache",
    "Command": "commands",
    "CompiledGraph": "compiled_graph",
    "Interrupt": "commands",
    "LangGraphSaver": "langgraph_saver",
    "NodeContext": "node_context",
    "Send": "commands",
    "StateGraph": "state_graph",
    "StateSnapshot": "snapshots",
    "add_messages": "reducers",
    "append": "reducers",
    "from_langgraph": "langgraph_import",
    "increment": "reducers",
    "interrupt": "node_context",
    "last": "reducers",
    "merge": "reducers",
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
