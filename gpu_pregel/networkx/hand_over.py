"""Which calls are handed over to NetworkX, as it is faster there. This imports neither NumPy nor NetworkX."""

from __future__ import annotations

import sys
from itertools import islice
from typing import Any

from gpu_pregel.networkx.few_nodes import measured, reads_few_nodes
from gpu_pregel.networkx.function import Function
from gpu_pregel.networkx.sizes import DENSE, NEVER, SPARSE, sizes

_KERNELS = "gpu_pregel.kernels.library.jit_cpu"
"""The module that loads Numba."""
_NODES_A_CALL = 10
"""Where NetworkX reads a part of a graph only, a conversion pays off from one call per this many nodes."""
_PATIENCE, _FEWEST, _EDGES_A_CALL = 5, 2, 2
"""Otherwise it pays off from the first number of calls, of searches from the second one, as a function may call another
of them, and from one more call per ``_EDGES_A_CALL`` edges a node. If no calls follow, a conversion makes these calls
about a fifth longer."""
_EARLY = 2_048
"""The smallest size for functions that may end early: sizes are measured with calls that end late."""
_SMALL = 64
"""A graph of fewer nodes is asked for its size first, and is not converted for later calls."""
_SAMPLE = 64
"""Number of nodes whose edges are counted to estimate those of all."""

_seconds_handed_over = 0.0


def hands_over(function: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str | None:
    """Return why NetworkX is expected to be faster at this call, or None.

    A graph is converted if that pays at once, or after some calls that would have been faster with a conversion.
    """
    graph: Any = args[0] if args else kwargs.get("G", kwargs.get("B"))
    if not hasattr(graph, "_adj"):
        return None
    timed = measured(function, args, kwargs)
    is_converted = conversion_of(graph) is not None
    # First what takes the least time to find out: an answer must not take longer than what NetworkX does meanwhile.
    if len(graph) < _SMALL and (reason := _too_small(timed, graph, is_converted=is_converted)) is not None:
        return reason
    if is_converted:
        return _too_small_or_few(graph, function, timed, args, kwargs) or _too_early(timed.name, graph)
    counts = _notes(graph).setdefault("calls", {}).setdefault(timed.name, [0, 0])
    counts[0] += 1
    asked, looked = counts
    # A single call is answered at once, and only the second, fourth, eighth… of a loop takes longer, for all of them.
    if asked == 1 or asked < 2 * looked:
        reason = _too_small(timed, graph, is_converted=False, is_estimate=True)
        if reason is not None:
            return reason
    counts[1] = asked
    reads_few = reads_few_nodes(graph, function, args, kwargs, is_converted=False)
    reason = reads_few or _too_small(timed, graph, is_converted=False)
    if reason is not None:
        if not _pay(graph, (asked - looked) / _calls_that_pay(timed, graph, reads_few=reads_few is not None)):
            return reason
        # A conversion is of no use where NetworkX would be faster with one, too.
        reason = _too_small_or_few(graph, function, timed, args, kwargs)
    return reason or _too_early(timed.name, graph)


def _too_small_or_few(
    graph: Any, function: Function, timed: Function, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> str | None:
    """Return why NetworkX is expected to be faster with a conversion, too, or None."""
    reason = _too_small(timed, graph, is_converted=True)
    return reason or reads_few_nodes(graph, function, args, kwargs, is_converted=True)


def _calls_that_pay(function: Function, graph: Any, *, reads_few: bool) -> float:
    """Return after how many such calls a graph is converted, although each takes less time than a conversion."""
    n = max(len(graph), 1)
    if reads_few:
        return max(1.0, n / _NODES_A_CALL)
    if not function.ends_with_last_node:
        return _PATIENCE + _edges_a_node(graph) / _EDGES_A_CALL
    edges = _edges(graph) / n / _EDGES_A_CALL
    # With an isolated node, NetworkX looks in vain for it along all edges.
    return _FEWEST if not graph.is_directed() and _notes(graph).get("isolated") else _FEWEST + edges


def _too_small(function: Function, graph: Any, *, is_converted: bool, is_estimate: bool = False) -> str | None:
    """Return why NetworkX is expected to be faster with a graph of this size, or None.

    An estimate counts no edges; it is None, too, if the graph would be large enough with twice as many as it seems to
    have.
    """
    if (limits := sizes().get(function.name)) is None:
        return None
    side = 0 if is_converted else 1
    sparse, others, dense = limits[0][side], limits[1][side], limits[2][side]
    which = "" if is_converted else " that are not converted"
    if sparse == others == dense == NEVER:
        return f"NetworkX is faster at graphs of every size{which}"
    n = len(graph)
    # Denser graphs with this number of nodes are larger: edges need not be counted to know that they are large enough.
    if not function.ends_early and n >= sparse and (SPARSE + 1) * n >= others and (DENSE + 1) * n >= dense:
        return None
    about = ""
    if is_estimate and "edges" not in _notes(graph):
        about, edges = "about ", int(n * _edges_a_node(graph))
        if n + 2 * edges >= _limit(function, n, 2 * edges, sparse, others, dense):
            return None
    else:
        edges = _edges(graph)
    limit = _limit(function, n, edges, sparse, others, dense)
    if limit == NEVER:
        return f"NetworkX is faster at graphs{which} with {about}{edges / max(n, 1):.1f} edges a node"
    return f"the graph's size of {about}{n + edges:,} is below {limit:,}" if n + edges < limit else None


def _limit(function: Function, n: int, edges: int, sparse: int, others: int, dense: int) -> int:
    """Return the size that counts for a graph of this density."""
    limit = sparse if edges < SPARSE * n else dense if edges > DENSE * n else others
    return max(limit, _EARLY) if function.ends_early else limit


def _too_early(name: str, graph: Any) -> str | None:
    """Return why it does not pay yet to load Numba, or None.

    That takes about a second: a process that has not done so hands over what NetworkX computes within a second in all.
    """
    global _seconds_handed_over
    if _KERNELS in sys.modules or name not in sizes():
        return None
    _seconds_handed_over += (len(graph) + _edges(graph)) / sizes()[name][3]
    if _seconds_handed_over >= 1:
        return None
    return "NetworkX takes less time than loading Numba, as far as this process has called it"


def conversion_of(graph: Any) -> Any:
    """Return a conversion that NetworkX keeps with a graph, or None."""
    cache = getattr(graph, "__networkx_cache__", None)
    if not cache or not (kept := cache.get("backends", {}).get("gpu_pregel")):
        return None
    # Beside them NetworkX keeps which conversions failed.
    return next((one for one in list(kept.values()) if hasattr(one, "topology")), None)


def _edges(graph: Any) -> int:
    """Return the number of stored edges, which takes long to count; that of the whole graph if this is a view."""
    while getattr(graph, "frozen", False) and hasattr(getattr(graph, "_graph", None), "_adj"):
        graph = graph._graph
    known = _notes(graph)
    if "edges" not in known:
        degrees = list(map(len, graph._adj.values()))
        known |= {"edges": sum(degrees), "isolated": 0 in degrees}
    return int(known["edges"])


def _edges_a_node(graph: Any) -> float:
    """Return the number of stored edges a node: if they have not been counted, that of the first nodes."""
    known = _notes(graph)
    if "edges" in known:
        return float(known["edges"] / max(len(graph), 1))
    degrees = list(map(len, islice(graph._adj.values(), _SAMPLE)))
    return sum(degrees) / max(len(degrees), 1)


def _pay(graph: Any, share: float) -> bool:
    """Note that a call has paid a share of the graph's conversion; return whether all of it is paid."""
    known = _notes(graph)
    known["paid"] = known.get("paid", 0.0) + share
    return bool(known["paid"] > 1 + 1e-9)


def _notes(graph: Any) -> dict[str, Any]:
    """Return what has been noted of a graph: NetworkX forgets it when the graph changes."""
    cache = getattr(graph, "__networkx_cache__", None)
    if cache is None:
        return {}
    notes: dict[str, Any] = cache.setdefault("gpu_pregel", {})
    return notes
