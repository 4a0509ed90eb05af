"""Which graphs are handed over to NetworkX, as it is faster there. This imports neither NumPy nor NetworkX."""

from __future__ import annotations

from typing import Any

from gpu_pregel.networkx.sizes import SIZES


def too_small(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """Return why NetworkX is expected to be faster at this call, or None."""
    graph = args[0] if args else next(iter(kwargs.values()), None)
    adjacency = getattr(graph, "_adj", None)
    if adjacency is None:
        return None
    cached, converting = SIZES.get(name, (0, 0))
    limit = cached if _is_converted(graph) else converting
    # Counting edges takes long in a large graph, and is needed in a small one only.
    size = len(adjacency)
    if size < limit:
        size += sum(map(len, adjacency.values()))
    return f"the graph's size of {size:,} is below {limit:,}" if size < limit else None


def _is_converted(graph: Any) -> bool:
    cache = getattr(graph, "__networkx_cache__", None) or {}
    return bool(cache.get("backends", {}).get("gpu_pregel"))
