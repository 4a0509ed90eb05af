"""Which graphs are handed over to NetworkX, as it is faster there. This imports neither NumPy nor NetworkX."""

from __future__ import annotations

import sys
from typing import Any

from gpu_pregel.networkx.sizes import DENSE, NEVER, SIZES, SPARSE

_KERNELS = "gpu_pregel.kernels.library.jit_cpu"
"""The module that loads Numba."""

_seconds_handed_over = 0.0


def too_small(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """Return why NetworkX is expected to be faster at this call, or None.

    A process that has not loaded Numba, which takes about a second, hands over what NetworkX computes within a second
    in all.
    """
    graph = args[0] if args else kwargs.get("G", kwargs.get("B"))
    adjacency = getattr(graph, "_adj", None)
    if adjacency is None or name not in SIZES:
        return None
    converted = conversion_of(graph)
    limits, second = [limits[converted is None] for limits in SIZES[name][:3]], SIZES[name][3]
    which = "" if converted is not None else " that are not converted"
    if min(limits) == NEVER:
        return f"NetworkX is faster at graphs of every size{which}"
    size = n = len(adjacency)
    # Counting edges takes long in a large graph, where the answer may be known without.
    if n < max(limits) or (n < second and _KERNELS not in sys.modules):
        edges = sum(map(len, adjacency.values())) if converted is None else converted.topology.m
        size += edges
        limit = limits[0 if edges < SPARSE * n else 2 if edges > DENSE * n else 1]
        if limit == NEVER:
            return f"NetworkX is faster at graphs{which} with {edges / max(n, 1):.1f} edges a node"
        if size < limit:
            return f"the graph's size of {size:,} is below {limit:,}"
    return _too_early(size / second)


def _too_early(seconds: float) -> str | None:
    """Return why it does not pay yet to load Numba for a call for which NetworkX takes so many seconds, or None."""
    global _seconds_handed_over
    if _KERNELS in sys.modules:
        return None
    _seconds_handed_over += seconds
    if _seconds_handed_over >= 1:
        return None
    return "NetworkX takes less time than loading Numba, as far as this process has called it"


def conversion_of(graph: Any) -> Any:
    """Return a conversion that NetworkX keeps with a graph, or None."""
    cache = getattr(graph, "__networkx_cache__", None) or {}
    kept = cache.get("backends", {}).get("gpu_pregel", {})
    # Beside them NetworkX keeps which conversions failed.
    return next((one for one in kept.values() if hasattr(one, "topology")), None)
