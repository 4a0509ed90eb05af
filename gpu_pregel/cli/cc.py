"""``gpu-pregel cc``: the connected components of a graph."""

from __future__ import annotations

import argparse
from statistics import median
from typing import TYPE_CHECKING, Any

from gpu_pregel.cli import _common

if TYPE_CHECKING:
    from gpu_pregel.algorithms.connected_components import Components
    from gpu_pregel.host.graphs.graph import Graph


def add_parser(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "cc",
        help="find the connected components of a graph",
        description="Find the connected components (weak ones of a directed graph) of a file or a generated graph.",
        epilog="example: gpu-pregel cc -f wiki-Vote.txt -v -o components.parquet",
    )
    _common.add_generator_options(parser, files=True)
    _common.add_read_options(parser)
    _common.add_run_options(parser)
    _common.add_device_option(parser)
    parser.add_argument("-n", type=_common.whole_number(1), default=1, metavar="TRIALS", help="run so often (1)")
    parser.add_argument("-v", action="store_true", help="verify the result with the reference checker")
    parser.add_argument(
        "-o", metavar="FILE", help="write each vertex's component: .parquet, .csv, .npy, or - for CSV on stdout"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Carry the command out."""
    import gpu_pregel as gp

    device = _common.chosen_device(options)
    _common.check_files(options)
    with _common.announce_compilation():
        with _common.stopwatch() as preparing:
            _prepare(device)
        _common.say_seconds("prepare", preparing.seconds)
        with _common.stopwatch() as loading:
            graph, name = _common.load_graph(options)
        _common.say("graph", f"{name}: {graph.describe()}")
        _common.say_seconds("load", loading.seconds)
        trials = []
        for _ in range(options.n):
            components = gp.connected_components(graph, **device, progress=_common.show_progress())
            trials.append(components.stats["seconds"])
            _common.say_seconds("components", trials[-1], _phases(components))
        if options.n > 1:
            _common.say_seconds("median", median(trials), f" of {options.n} trials")
    sizes = components.sizes()
    largest = int(sizes.max(initial=0))
    share = f" ({largest / graph.num_vertices:.1%} of the vertices)" if graph.num_vertices else ""
    _common.say("answer", f"{components.count:,} components, the largest of {largest:,} vertices{share}")
    if options.v:
        _verify(graph, components)
    _common.write_result(components, options.o)
    if options.json:
        _common.print_json(
            {
                "graph": name,
                **_common.summary(graph),
                "components": components.count,
                "largest": largest,
                "verified": bool(options.v),
                "device": components.stats["device"],
                "threads": components.stats["threads"],
                "seconds": {
                    "prepare": preparing.seconds,
                    "load": loading.seconds,
                    "trials": trials,
                    "phases": components.trace,
                },
            }
        )


def _prepare(device: dict[str, Any]) -> None:
    """Compile the kernels, or load them from the cache, so that the times of the phases are theirs alone."""
    import numpy as np

    import gpu_pregel as gp

    ids = np.arange(2, dtype=np.uint32)
    gp.connected_components(gp.Graph.from_edgelist(ids, ids[::-1]), **device)


def _phases(components: Components) -> str:
    parts = (f"{row['phase']} {1000 * row['seconds']:.2f}" for row in components.trace)
    return f"  ({', '.join(parts)} ms)"


def _verify(graph: Graph, components: Components) -> None:
    from gpu_pregel.algorithms.checkers.connected_components import check_connected_components

    with _common.stopwatch() as checking:
        check_connected_components(graph, components.to_numpy())
    _common.say_seconds("verified", checking.seconds)
