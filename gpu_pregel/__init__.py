"""GPU-accelerated graph processing on one superstep clock.

Names are loaded on first use, so that importing the package costs little and touches no device.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gpu_pregel.host.graphs.writers import register_writer

if TYPE_CHECKING:
    from gpu_pregel import agents as agents
    from gpu_pregel import errors as errors
    from gpu_pregel.algorithms.connected_components import Components as Components
    from gpu_pregel.algorithms.connected_components import connected_components as connected_components
    from gpu_pregel.host.graphs.generators import grid as grid
    from gpu_pregel.host.graphs.generators import kronecker as kronecker
    from gpu_pregel.host.graphs.generators import uniform as uniform
    from gpu_pregel.host.graphs.graph import Graph as Graph
    from gpu_pregel.host.programs.checkpoints import Checkpoint as Checkpoint
    from gpu_pregel.host.programs.operators import Frontier as Frontier
    from gpu_pregel.host.programs.operators import process_edges as process_edges
    from gpu_pregel.host.programs.operators import process_vertices as process_vertices
    from gpu_pregel.host.programs.program import Combiner as Combiner
    from gpu_pregel.host.programs.program import VertexProgram as VertexProgram
    from gpu_pregel.host.programs.run import run as run
    from gpu_pregel.host.stores.memory import MemoryStore as MemoryStore
    from gpu_pregel.host.stores.postgres import PostgresStore as PostgresStore
    from gpu_pregel.host.stores.sqlite import SQLiteStore as SQLiteStore
    from gpu_pregel.host.superstep.aggregators import Aggregator as Aggregator
    from gpu_pregel.io import read_graph as read_graph

__version__ = "0.1.0.dev0"

_HOME = {
    "Aggregator": "gpu_pregel.host.superstep.aggregators",
    "Checkpoint": "gpu_pregel.host.programs.checkpoints",
    "Combiner": "gpu_pregel.host.programs.program",
    "Components": "gpu_pregel.algorithms.connected_components",
    "Frontier": "gpu_pregel.host.programs.operators",
    "Graph": "gpu_pregel.host.graphs.graph",
    "MemoryStore": "gpu_pregel.host.stores.memory",
    "PostgresStore": "gpu_pregel.host.stores.postgres",
    "SQLiteStore": "gpu_pregel.host.stores.sqlite",
    "VertexProgram": "gpu_pregel.host.programs.program",
    "agents": "gpu_pregel",
    "connected_components": "gpu_pregel.algorithms.connected_components",
    "errors": "gpu_pregel",
    "grid": "gpu_pregel.host.graphs.generators",
    "kronecker": "gpu_pregel.host.graphs.generators",
    "process_edges": "gpu_pregel.host.programs.operators",
    "process_vertices": "gpu_pregel.host.programs.operators",
    "read_graph": "gpu_pregel.io",
    "run": "gpu_pregel.host.programs.run",
    "uniform": "gpu_pregel.host.graphs.generators",
}

__all__ = sorted(_HOME)

register_writer("graph", "gpu_pregel.io", "save_graph")
register_writer("result", "gpu_pregel.io", "save_result")


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'gpu_pregel' has no attribute {name!r}")
    if _HOME[name] == __name__:
        return import_module(f"{__name__}.{name}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
