"""``gpu-pregel convert``: read a graph from a file and write it in another format."""

from __future__ import annotations

import argparse
from typing import Any

from gpu_pregel.cli import _common


def add_parser(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "convert",
        help="convert a graph to another format",
        description="Read a graph and write it in the format given by the suffix of OUTPUT.",
        epilog=_common.example("convert soc-LiveJournal1.txt.gz livejournal.pregel --directed"),
    )
    parser.add_argument("f", metavar="INPUT", help="the file to read")
    parser.add_argument("o", metavar="OUTPUT", help="the file to write")
    _common.add_read_options(parser)
    _common.add_run_options(parser)
    _common.add_write_options(parser)
    parser.add_argument("--drop-self-loops", action="store_true", help="drop edges from a vertex to itself")
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Read the graph and write it."""
    import gpu_pregel as gp
    from gpu_pregel.io import check_output

    directed = options.directed is True
    _common.check_before_work(check_output, options.o, options.to, directed=directed, formulas=options.formulas)
    with _common.announce_compilation(), _common.stopwatch() as reading:
        graph = gp.read_graph(
            options.f,
            options.format,
            **_common.reading_options(options),
            self_loops="drop" if options.drop_self_loops else "keep",
            threads=options.threads,
            progress=_common.show_progress(),
        )
    _common.print_line("graph", f"{options.f}: {graph.describe()}")
    _common.print_seconds("read", reading.seconds)
    _common.save_graph(graph, options)
    if options.json:
        _common.print_json({**_common.summary(graph), "graph": options.f, "file": options.o})
