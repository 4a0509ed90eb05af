"""The backend for NetworkX, which loads it by the names of its entry points; see :class:`Graph` for large graphs."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpu_pregel.networkx.graph import BackendGraph as Graph
    from gpu_pregel.networkx.registry import FUNCTIONS as FUNCTIONS

__all__ = ["FUNCTIONS", "Graph"]

_HOMES = {"Graph": ("graph", "BackendGraph"), "FUNCTIONS": ("registry", "FUNCTIONS")}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        module, attribute = _HOMES[name]
        return getattr(import_module(f"{__name__}.{module}"), attribute)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
