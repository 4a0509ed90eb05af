"""``gpu-pregel run``: run a vertex program from a Python file on a graph."""

from __future__ import annotations

import argparse
import shlex
import sys
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from gpu_pregel.cli import _common
from gpu_pregel.cli._arguments import find_id
from gpu_pregel.cli.examples import example_names
from gpu_pregel.errors import (
    ArgumentError,
    GpuPregelError,
    MissingFileError,
    SuperstepLimitError,
)

if TYPE_CHECKING:
    from gpu_pregel.host.graphs.graph import Graph
    from gpu_pregel.host.programs.program import VertexProgram
    from gpu_pregel.host.programs.run import ProgramResult


def named_program(text: str) -> tuple[str, str]:
    """Parse ``FILE.py:PROGRAM``; an argparse type."""
    path, _, name = text.rpartition(":")
    if not path or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form FILE.py:PROGRAM, such as pagerank.py:pagerank")
    return path, name


def named_value(text: str) -> tuple[str, Any]:
    """Parse ``NAME=VALUE``, a number, ``true`` or ``false``; an argparse type."""
    name, _, value = text.partition("=")
    numbers: dict[str, Any] = {"true": True, "false": False}
    if name.isidentifier():
        for convert in (lambda word: numbers[word.lower()], int, float):
            with suppress(KeyError, ValueError):
                return name, convert(value)
    raise argparse.ArgumentTypeError(
        f"{text!r} is not of the form NAME=NUMBER, such as source=5; pass ids with --vertex"
    )


def named_vertex(text: str) -> tuple[str, str]:
    """Parse ``NAME=ID``; an argparse type."""
    name, equals, given = text.partition("=")
    if not name.isidentifier() or not equals:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=ID, such as source=ann")
    return name, given


def add_parser(commands: Any) -> None:
    """Add the command to the command line."""
    parser = commands.add_parser(
        "run",
        help="run a vertex program from a Python file",
        description="Run a gp.VertexProgram defined in a Python file on a graph that is read from a file or generated.",
        epilog=_common.example("examples bfs > bfs.py && gpu-pregel run bfs.py:hops -g 16 -o hops.parquet"),
    )
    parser.add_argument(
        "program", type=named_program, metavar="FILE.py:PROGRAM", help="the file and the program's name"
    )
    parser.add_argument(
        "--parameter",
        type=named_value,
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="value of a parameter of the program, such as source=5; may be repeated; a vertex is given by its number",
    )
    parser.add_argument(
        "--vertex",
        type=named_vertex,
        action="append",
        default=[],
        metavar="NAME=ID",
        help="a parameter that is the number of the vertex with this id, such as source=ann; may be repeated",
    )
    _common.add_generator_options(parser, files=True)
    _common.add_read_options(parser)
    _common.add_run_options(parser)
    _common.add_device_option(parser)
    parser.add_argument(
        "--mode", choices=("auto", "push", "pull"), default="auto", help="message direction (default auto)"
    )
    parser.add_argument(
        "--partitions", type=_common.whole_number(1), default=1, metavar="P", help="number of partitions (default 1)"
    )
    parser.add_argument(
        "--max-supersteps", type=_common.whole_number(1), metavar="S", help="maximum number of supersteps"
    )
    parser.add_argument(
        "--on-limit",
        choices=("raise", "return"),
        default="raise",
        help="at the limit, fail (raise, default) or keep the values (return)",
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="check indices, divisions and overflow; report the line and the vertex of a failure",
    )
    _common.add_trials_option(parser)
    _common.add_result_option(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Load a program and a graph, run the program and write its values, as the options say."""
    from gpu_pregel.host.programs.parameters import parameter_values

    device = _common.chosen_device(options)
    _common.check_graph_and_output(options)
    program = _load_program(*options.program)
    options.parameters = {**dict(options.parameter), **{key: 0 for key, _ in options.vertex}}
    parameter_values(program.declared_parameters, options.parameters)
    with _common.announce_compilation():
        with _common.stopwatch() as loading:
            graph, name = _common.load_graph(options)
            options.parameters.update(
                {key: graph.vertex(find_id(graph, f"--vertex {key}=", text)) for key, text in options.vertex}
            )
        _common.print_line("graph", f"{name}: {graph.describe()}")
        _common.print_seconds("load", loading.seconds)
        with _common.stopwatch() as preparing:
            # A function that fails, or has a breakpoint, should do so for a vertex of the given graph.
            if device["device"] != "python" and not options.check:
                _prepare(options, device, program, graph)
        _common.print_seconds("prepare", preparing.seconds)
        trials, compiling = [], 0.0
        for _ in range(options.n):
            result = _run(options, device, program, graph)
            trials.append(result.stats["seconds"])
            compiling += result.stats["compile_seconds"]
            _common.print_seconds("run", trials[-1], f"  ({len(result.trace):,} supersteps, {result.status})")
        if compiling:
            _common.print_seconds("compile", compiling, "  (not part of the trials)")
        if options.n > 1:
            _common.print_seconds("median", median(trials), f" of {options.n} trials")
    print(result.trace, file=sys.stderr)
    _common.write_result(result, options)
    if options.json:
        _common.print_json(
            {
                "graph": name,
                **_common.summary(graph),
                "program": ":".join(options.program),
                "supersteps": result.supersteps,
                "status": result.status,
                **{key: result.stats[key] for key in ("device", "threads", "partitions")},
                "seconds": {
                    "load": loading.seconds,
                    "prepare": preparing.seconds,
                    "compile": compiling,
                    "trials": trials,
                },
                "trace": list(result.trace),
            }
        )


def _load_program(path: str, name: str) -> VertexProgram:
    from gpu_pregel.cli import _programs

    try:
        return _programs.load_program(path, name)
    except MissingFileError as error:
        file = Path(path)
        if file.stem not in example_names() or file.suffix != ".py":
            raise
        remedy = f"gpu-pregel examples {file.stem} --copy {shlex.quote(str(file.parent))}"
        raise MissingFileError(f"{error}; copy the example: {remedy}") from None


def _run(options: argparse.Namespace, device: dict[str, Any], program: VertexProgram, graph: Graph) -> ProgramResult:
    import gpu_pregel as gp

    try:
        return gp.run(
            graph,
            program,
            parameters=options.parameters,
            **device,
            mode=options.mode,
            partitions=options.partitions,
            max_supersteps=options.max_supersteps,
            on_limit=options.on_limit,
            check=options.check,
            progress=_common.show_progress(),
        )
    except SuperstepLimitError as error:
        print(error.result.trace, file=sys.stderr)  # type: ignore[attr-defined]
        raise GpuPregelError(
            f"vertices were still active after {options.max_supersteps} supersteps: increase --max-supersteps, or pass "
            f"--on-limit return to keep the values"
        ) from error


def _prepare(options: argparse.Namespace, device: dict[str, Any], program: VertexProgram, graph: Graph) -> None:
    """Compile or load the program's kernels on a small graph, so that trials time only the supersteps.

    If no vertex of the small graph becomes active, some kernels are compiled in the first trial.
    """
    import numpy as np

    import gpu_pregel as gp

    ring = np.arange(64 * min(options.partitions, 3), dtype=np.uint32)
    weight = None if graph.weights is None else np.ones(len(ring), graph.weights.dtype)
    small = gp.Graph.from_edgelist(ring, np.roll(ring, 1), weight, directed=graph.is_directed)
    unhalted = replace(program, halt=None)
    common = {**device, "partitions": min(options.partitions, 3)}
    for mode in ("pull", "push") if options.mode == "auto" else (options.mode,):
        # A program that cannot push raises ArgumentError, which only matters if push is forced.
        with suppress(*() if options.mode != "auto" else (ArgumentError,)):
            gp.run(
                small,
                unhalted,
                parameters=options.parameters,
                mode=mode,
                max_supersteps=2,
                on_limit="return",
                **common,
            )
