"""Workflows of agents, and what connects them with LangGraph; names are loaded when they are used."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpu_pregel.workflows.langgraph_saver import LangGraphSaver as LangGraphSaver

_MODULES = {"LangGraphSaver": "langgraph_saver"}

__all__ = list(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
    globals()[name] = value
    return value
