"""Which graphs are handed over to NetworkX, as it is faster there. This imports neither NumPy nor NetworkX."""

from __future__ import annotations

from typing import Any

from gpu_pregel.networkx.sizes import NEVER, SIZES


def too_small(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """Return why NetworkX is expected to be faster at this call, or None."""
    graph = args[0] if args else next(iter(kwargs.values()), None)
    adjacency = getattr(graph, "_adj", None)
    if adjacency is None:
        return None
    cached, converting = SIZES.get(name, (0, 0))
    converted = converted_form(graph)
    limit = converting if converted is None else cached
    if limit == NEVER:
        return "NetworkX is faster at graphs of every size" + (" that are not converted" if cached < NEVER else "")
    # Counting edges takes long in a large graph, and is needed in a small one only.
    size = len(adjacency)
    if size < limit:
        size += sum(map(len, adjacency.values())) if converted is None else converted.topology.m
    return f"the graph's size of {size:,} is below {limit:,}" if size < limit else None


def converted_form(graph: Any) -> Any:
    """Return a conversion that NetworkX keeps with a graph, or None."""
    cache = getattr(graph, "__networkx_cache__", None) or {}
    known = cache.get("backends", {}).get("gpu_pregel", {})
    # A conversion that failed is a string.
    return next((one for one in list(known.values()) if hasattr(one, "topology")), None)
