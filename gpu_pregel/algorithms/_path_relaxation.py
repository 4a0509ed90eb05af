"""Shortest paths on other devices than the CPU: all paths are shortened at once, or those to near vertices first."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from gpu_pregel.algorithms._paths import UNREACHED
from gpu_pregel.host.devices import DeviceName
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.programs.frontier import Frontier
from gpu_pregel.host.programs.operators import process_edges, process_vertices
from gpu_pregel.host.programs.program import VertexProgram
from gpu_pregel.host.programs.run import ProgramResult, run
from gpu_pregel.host.superstep.advance import Advance
from gpu_pregel.kernels.library import atomics

Array = np.ndarray[Any, Any]


@cache
def _program(dtype: Any) -> VertexProgram:
    """Return the program that shortens all paths from one source; ``dtype`` is that of the distances."""
    unreached = _unreached(dtype)
    is_float = np.dtype(dtype).kind == "f"
    return VertexProgram(
        value=dtype,
        parameters={"source": np.int64},
        init=lambda ctx: 0 if ctx.vertex == ctx.parameters.source else unreached,
        initially_active=lambda ctx: ctx.vertex == ctx.parameters.source,
        message=_longer_float if is_float else _longer_integer,
        combine="min",
        apply=lambda value, incoming, ctx: min(value, incoming),  # noqa: ARG005
    )


def _longer_float(value: Any, weight: Any, ctx: Any) -> Any:
    return value + weight


def _longer_integer(value: Any, weight: Any, ctx: Any) -> Any:
    return value + np.int64(weight)


def shorten_all(graph: Graph, sources: Array, device: DeviceName, progress: bool) -> ProgramResult:
    """Run the vertex program until no distance changes."""
    start: dict[str, Any] = {"parameters": {"source": int(sources[0])}}
    if len(sources) > 1:
        start.update(initial=_start(graph, sources), frontier=sources)
    return run(graph, _program(_distance_type(graph)), **start, device=device, progress=progress)


def _distance_type(graph: Graph) -> Any:
    assert graph.weights is not None
    return graph.weights.dtype.type if graph.weights.dtype.kind == "f" else np.int64


def _unreached(dtype: Any) -> Any:
    return np.inf if np.dtype(dtype).kind == "f" else UNREACHED


def _start(graph: Graph, sources: Array) -> Array:
    """Return the distances before the search."""
    dtype = _distance_type(graph)
    distances: Array = np.full(graph.num_vertices, _unreached(dtype), dtype)
    distances[sources] = 0
    return distances


def _relax_floats(u: Any, v: Any, weight: Any, distances: Any) -> Any:
    longer = atomics.load(distances, u) + weight
    return longer < atomics.min(distances, v, longer)


def _relax_integers(u: Any, v: Any, weight: Any, distances: Any) -> Any:
    longer = atomics.load(distances, u) + np.int64(weight)
    return longer < atomics.min(distances, v, longer)


def _is_near(v: Any, limit: Any, distances: Any) -> Any:
    return distances[v] <= limit


def _is_far(v: Any, limit: Any, distances: Any) -> Any:
    return distances[v] > limit


def _find_least(v: Any, least: Any, distances: Any) -> Any:
    atomics.min(least, 0, distances[v])
    return 0


def shorten_near(near: Frontier, sources: Array, delta: float) -> Any:
    """Relax the edges of near vertices until none is left, then make the next far ones near."""
    n, dtype = near.graph.num_vertices, _distance_type(near.graph)
    is_float, unreached = np.dtype(dtype).kind == "f", _unreached(dtype)
    width: Any = delta if is_float else max(1, int(min(delta, UNREACHED - 1)))
    relax = _relax_floats if is_float else _relax_integers
    distances = near.upload(_start(near.graph, sources))
    far, limit = near.chosen([]), width
    # Each bucket settles a vertex; within it, paths have less than n edges.
    buckets = Advance("settling vertices", near.device, n)
    while True:
        buckets.take()
        rounds = Advance("shortening paths", near.device, n)
        while near:
            rounds.take()
            improved = process_edges(relax, near, [distances])
            near = process_vertices(_is_near, improved, [limit, distances], returns="frontier")
            far = far | improved
        # The near ones have been processed.
        far = process_vertices(_is_far, far, [limit, distances], returns="frontier")
        if not far:
            return distances
        least = near.full(unreached, dtype, 1)
        process_vertices(_find_least, far, [least, distances])
        limit = near.download(least)[0].item() + width
        if not is_float:
            limit = min(limit, UNREACHED - 1)
        near = process_vertices(_is_near, far, [limit, distances], returns="frontier")
        far = process_vertices(_is_far, far, [limit, distances], returns="frontier")
