"""``gpu-pregel generate``: write a random graph to a file."""

from __future__ import annotations

import argparse
from typing import Any

from gpu_pregel.cli import _common


def add_parser(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "generate",
        help="write a random graph to a file",
        description="Generate a graph and write it in the format given by the suffix of FILE.",
        epilog=_common.example("generate -g 20 -o kron20.sg"),
    )
    _common.add_generator_options(parser, files=False)
    _common.add_run_options(parser)
    parser.add_argument("-o", required=True, metavar="FILE", help="the output file")
    _common.add_write_options(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Generate the graph and write it."""
    from gpu_pregel.io import check_output

    _common.check_before_work(check_output, options.o, options.to, formulas=options.formulas)
    _common.check_generator(options)
    with _common.announce_compilation(), _common.stopwatch() as generating:
        graph, name = _common.load_graph(options)
    _common.print_line("graph", f"{name}: {graph.describe()}")
    _common.print_seconds("generate", generating.seconds)
    _common.save_graph(graph, options)
    if options.json:
        _common.print_json({**_common.summary(graph), "graph": name, "file": options.o})
