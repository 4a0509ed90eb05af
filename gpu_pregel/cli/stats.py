"""``gpu-pregel stats``: degrees, density, components and the diameter of a graph, and the plot of its degrees."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from gpu_pregel.cli import _common
from gpu_pregel.errors import ArgumentError

if TYPE_CHECKING:
    import numpy as np

    from gpu_pregel.host.graphs.graph import Graph

    Array = np.ndarray[Any, Any]

_QUANTILES = (25, 50, 75, 90, 99)
_EDGES_AT_ONCE = 1 << 24


def add_parser(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "stats",
        help="print degrees, density, components and diameter of a graph",
        description="Print the size, density, degrees, connected components and a lower bound of the diameter of a "
        "graph. The data goes to stdout.",
        epilog=_common.example("stats wiki-Vote.txt --directed --plot degrees.png"),
    )
    _common.add_generator_options(parser, files=True, positional=True)
    _common.add_read_options(parser)
    _common.add_run_options(parser)
    _common.add_device_option(parser)
    parser.add_argument("--plot", metavar="FILE", help="draw the degree distribution: .png or .svg")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Load the graph, print its statistics and draw its degrees."""
    device = _common.chosen_device(options)
    _common.check_graph(options)
    if options.plot is not None:
        _check_plot(options.plot)
    with _common.announce_compilation():
        with _common.stopwatch() as loading:
            graph, name = _common.load_graph(options)
        _common.print_line("graph", f"{name}: {graph.describe()}")
        _common.print_seconds("load", loading.seconds)
        with _common.stopwatch() as computing:
            statistics = collect(graph, device)
        _common.print_seconds("stats", computing.seconds)
    if options.plot is not None:
        from gpu_pregel.cli._degree_plot import draw

        with _common.stopwatch() as drawing:
            draw(graph, name, options.plot)
        _common.print_seconds("plot", drawing.seconds, f"  {options.plot}")
    if options.json:
        _common.print_json({"graph": name, **statistics})
        return
    for key, value in statistics.items():
        print(f"{key.replace('_', ' '):<26}{_format(value)}")


def _check_plot(path: str) -> None:
    """Raise, before any work begins, if the plot cannot be drawn."""
    from gpu_pregel.host.arguments import require
    from gpu_pregel.io._files import check_target

    if not path.endswith((".png", ".svg")):
        raise ArgumentError(f"--plot {path}: unsupported suffix: use .png or .svg")
    _common.check_before_work(check_target, path)
    require("matplotlib", "--plot", "gpu-pregel[plot]")


def collect(graph: Graph, device: dict[str, Any]) -> dict[str, Any]:
    """Return the statistics of a graph.

    An undirected edge counts once. The density is that of NetworkX: edges divided by pairs of vertices. A degree is a
    number of stored edges, so a self-loop of an undirected graph counts once.
    """
    n, directed = graph.num_vertices, graph.is_directed
    loops, duplicates = _count_loops_and_duplicates(graph)
    found: dict[str, Any] = {
        "vertices": n,
        "edges": graph.num_edges,
        "stored_edges": graph.num_stored_edges,
        "directed": directed,
        "density": graph.num_edges * (1 if directed else 2) / (n * (n - 1)) if n > 1 else 0.0,
        "self_loops": loops,
        "duplicate_edges": duplicates,
        "weights": _summarise_weights(graph),
    }
    if directed:
        isolated = int(((graph.out_degrees == 0) & (graph.in_degrees == 0)).sum())
        found |= {"out_degree": _summarise(graph.out_degrees), "in_degree": _summarise(graph.in_degrees)}
    else:
        isolated = int((graph.out_degrees == 0).sum())
        found |= {"degree": _summarise(graph.out_degrees)}
    return {**found, "isolated_vertices": isolated, **_components(graph, device), **_diameter(graph, device)}


def _components(graph: Graph, device: dict[str, Any]) -> dict[str, Any]:
    import gpu_pregel as gp

    found = gp.connected_components(graph, **device)
    if not graph.is_directed:
        return {"components": found.count, "largest_component": int(found.sizes().max(initial=0))}
    strong = gp.strongly_connected_components(graph, **device)
    return {
        "weak_components": found.count,
        "largest_weak_component": int(found.sizes().max(initial=0)),
        "strong_components": strong.count,
        "largest_strong_component": int(strong.sizes().max(initial=0)),
    }


def _diameter(graph: Graph, device: dict[str, Any]) -> dict[str, Any]:
    """Return a lower bound of the longest shortest path by a double sweep from the vertex with most out-edges.

    The second search starts from the last vertex that the first one reaches and, if the graph is directed, follows
    edges backwards.
    """
    import numpy as np

    import gpu_pregel as gp

    if graph.num_vertices == 0:
        return {"diameter_at_least": 0}
    start, longest = int(graph.out_degrees.argmax()), 0
    for searched in (graph, graph.transpose()):
        hops = gp.bfs(searched, graph.to_ids(np.array([start])).tolist()[0], **device).to_numpy()
        start, longest = int(hops.argmax()), max(longest, int(hops.max()))
    return {"diameter_at_least": longest}


def _count_loops_and_duplicates(graph: Graph) -> tuple[int, int]:
    """Count self-loops, and edges that are equal to an earlier one; rows are sorted by destination."""
    loops = repeats = 0
    for src, dst in _edges(graph):
        loops += int((src == dst).sum())
        is_repeat = (src[1:] == src[:-1]) & (dst[1:] == dst[:-1])
        if not graph.is_directed:
            is_repeat &= src[1:] <= dst[1:]
        repeats += int(is_repeat.sum())
    return loops, repeats


def _edges(graph: Graph) -> Iterator[tuple[Array, Array]]:
    """Yield the stored edges in pieces of whole rows."""
    import numpy as np

    first, n, indptr = 0, graph.num_vertices, graph.indptr
    while first < n:
        last = max(first + 1, int(np.searchsorted(indptr, indptr[first] + _EDGES_AT_ONCE, "right")) - 1)
        src = np.repeat(np.arange(first, last, dtype=np.uint32), np.diff(indptr[first : last + 1]))
        yield src, graph.indices[indptr[first] : indptr[last]]
        first = last


def _summarise(degrees: Array) -> dict[str, float]:
    """Return minimum, mean, maximum and quantiles."""
    import numpy as np

    if len(degrees) == 0:
        return {}
    quantiles = np.percentile(degrees, _QUANTILES).tolist()
    return {
        "min": int(degrees.min()),
        "mean": float(degrees.mean()),
        "max": int(degrees.max()),
        **{f"{share}%": quantile for share, quantile in zip(_QUANTILES, quantiles, strict=True)},
    }


def _summarise_weights(graph: Graph) -> dict[str, Any] | None:
    weights = graph.weights
    if weights is None or len(weights) == 0:
        return None
    low, high = weights.min().item(), weights.max().item()
    return {"dtype": str(weights.dtype), "min": low, "mean": float(weights.mean()), "max": high}


def _format(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {_format(item)}" for key, item in value.items()) or "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:,.0f}" if value.is_integer() and value else f"{value:.4g}"
    return "none" if value is None else f"{value:,}" if isinstance(value, int) else str(value)
