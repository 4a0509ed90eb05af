"""Workflows: models, tools and ready agent loops on the agent runtime.

Names are loaded on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_HOMES = {
    "ChatModel": "models",
    "ScriptedModel": "scripted_model",
    "Tool": "tools",
    "ToolContext": "tools",
    "mcp_tools": "mcp_functions",
    "tool": "tools",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
