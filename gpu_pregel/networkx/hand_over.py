"""Which graphs are handed over to NetworkX, as it is faster there. This imports neither NumPy nor NetworkX."""

from __future__ import annotations

import sys
from typing import Any

from gpu_pregel.networkx.sizes import SIZES

_KERNELS = "gpu_pregel.kernels.library.jit_cpu"
"""The module that loads Numba."""

_seconds_handed_over = 0.0


def too_small(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """Return why NetworkX is expected to be faster at this call, or None.

    A process that has not loaded Numba, which takes about a second, hands over what NetworkX computes within a second
    in all.
    """
    graph = args[0] if args else next(iter(kwargs.values()), None)
    adjacency = getattr(graph, "_adj", None)
    if adjacency is None or name not in SIZES:
        return None
    cached, converting, second = SIZES[name]
    limit = cached if is_converted(graph) else converting
    # Counting edges takes long in a large graph, and is needed in a small one only.
    size = len(adjacency)
    if size < limit or (size < second and _KERNELS not in sys.modules):
        size += sum(map(len, adjacency.values()))
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


def is_converted(graph: Any) -> bool:
    """Return whether NetworkX keeps a conversion with a graph."""
    cache = getattr(graph, "__networkx_cache__", None) or {}
    return bool(cache.get("backends", {}).get("gpu_pregel"))
