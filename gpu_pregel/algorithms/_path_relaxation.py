"""Shortest paths on other devices than the CPU: all paths are shortened at once, or those to near vertices first."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from gpu_pregel.algorithms._driver import AlgorithmRun
from gpu_pregel.algorithms._paths import UNREACHED
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.programs.program import VertexProgram
from gpu_pregel.host.superstep.advance import Advance
from gpu_pregel.host.traverse.frontier import Frontier
from gpu_pregel.host.traverse.operators import process_edges, process_vertices
from gpu_pregel.kernels.library import atomics

Array = np.ndarray[Any, Any]


@cache
def _program(dtype: Any) -> VertexProgram:
    """Return the program that shortens all paths from one source; ``dtype`` is that of the distances."""
    unreached, longer = _unreached(dtype), _longer(dtype)
    return VertexProgram(
        value=dtype,
        parameters={"source": np.int64},
        init=lambda ctx: 0 if ctx.vertex == ctx.parameters.source else unreached,
        initially_active=lambda ctx: ctx.vertex == ctx.parameters.source,
        message=lambda value, weight, ctx: longer(value, weight),  # noqa: ARG005
        combine="min",
        apply=lambda value, incoming, ctx: min(value, incoming),  # noqa: ARG005
    )


@cache
def _longer(dtype: Any) -> Any:
    """Return the function that adds a weight to a distance; sums beyond the range of floats are infinite.

    The device "python" raises an error where the arithmetic of floats overflows.
    """
    if np.dtype(dtype).kind != "f":
        return lambda distance, weight: distance + np.int64(weight)
    half, infinite = dtype(0.5), dtype(np.inf)
    most = half * np.finfo(dtype).max

    def longer(distance: Any, weight: Any) -> Any:
        return infinite if half * distance + half * weight > most else distance + weight

    return longer


def shorten(run: AlgorithmRun, sources: Array, delta: float | None, limit: float) -> tuple[float, Any]:
    """Return delta and the distances; a finite one shortens the paths to near vertices first."""
    if delta is None or delta == np.inf:
        return np.inf, _shorten_all(run, sources)
    return delta, _shorten_near(run.frontier(sources), delta)


def _shorten_all(run: AlgorithmRun, sources: Array) -> Any:
    """Run the vertex program until no distance changes."""
    start: dict[str, Any] = {"parameters": {"source": int(sources[0])}}
    if len(sources) > 1:
        start.update(initial=_start(run.graph, sources), frontier=sources)
    return run.program(_program(_distance_type(run.graph)), phase="shorten paths", **start).values


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


@cache
def _relax(dtype: Any) -> Any:
    """Return the body that shortens the distance of the end of an edge."""
    longer = _longer(dtype)

    def relax(u: Any, v: Any, weight: Any, distances: Any) -> Any:
        distance = longer(atomics.load(distances, u), weight)
        return distance < atomics.min(distances, v, distance)

    return relax


def _is_near(v: Any, limit: Any, distances: Any) -> Any:
    return distances[v] <= limit


def _is_far(v: Any, limit: Any, distances: Any) -> Any:
    return distances[v] > limit


def _find_least(v: Any, least: Any, distances: Any) -> Any:
    atomics.min(least, 0, distances[v])
    return 0


def _set_source(v: Any, distances: Any) -> None:
    distances[v] = 0


def _shorten_near(near: Frontier, delta: float) -> Any:
    """Relax the edges of near vertices until none is left, then make the next far ones near."""
    n, dtype = near.graph.num_vertices, _distance_type(near.graph)
    is_float, unreached = np.dtype(dtype).kind == "f", _unreached(dtype)
    # Limits beyond the dtype would overflow in comparisons with distances.
    largest = float(np.finfo(dtype).max) if is_float else UNREACHED - 1
    width: Any = min(delta, largest) if is_float else max(1, int(min(delta, largest)))
    relax = _relax(dtype)
    distances = near.full(unreached, dtype)
    process_vertices(_set_source, near, [distances], returns=None)
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
        limit = min(near.download(least)[0].item() + width, largest)
        near = process_vertices(_is_near, far, [limit, distances], returns="frontier")
        far = process_vertices(_is_far, far, [limit, distances], returns="frontier")
