"""The command of an algorithm, such as ``gpu-pregel cc``, made from its entry in the registry."""

from __future__ import annotations

import argparse
from statistics import median
from typing import TYPE_CHECKING, Any

from gpu_pregel.algorithms._entry import Algorithm
from gpu_pregel.cli import _arguments, _common

if TYPE_CHECKING:
    from gpu_pregel.host.graphs.graph import Graph
    from gpu_pregel.host.graphs.results import Result

_SHOWN_PHASES = 12


def add_parser(commands: Any, algorithm: Algorithm) -> None:
    """Add the command of an algorithm to the command line."""
    note = f" ({algorithm.note})" if algorithm.note else ""
    parser = commands.add_parser(
        algorithm.command,
        help=f"find {algorithm.purpose}",
        description=f"Find {algorithm.purpose}{note}. The graph is read from a file or generated.",
        epilog=_common.example(_arguments.example(algorithm)),
    )
    _arguments.add_options(parser, algorithm)
    _common.add_generator_options(parser, files=True)
    _common.add_read_options(parser)
    _common.add_run_options(parser)
    _common.add_device_option(parser)
    _common.add_trials_option(parser)
    parser.add_argument("-v", action="store_true", help="verify the result with the algorithm's checker")
    _common.add_result_option(parser)
    parser.set_defaults(run=lambda options: run(options, algorithm))


def run(options: argparse.Namespace, algorithm: Algorithm) -> None:
    """Load a graph, run the algorithm, verify its result and write it, as the options say."""
    device = _common.chosen_device(options)
    _common.check_graph_and_output(options)
    with _common.announce_compilation():
        with _common.stopwatch() as preparing:
            _prepare(algorithm, device)
        _common.print_seconds("prepare", preparing.seconds)
        with _common.stopwatch() as loading:
            graph, name = _common.load_graph(options)
            arguments = _arguments.given_arguments(options, algorithm, graph)
        _common.print_line("graph", f"{name}: {graph.describe()}")
        _common.print_seconds("load", loading.seconds)
        trials, compiling = [], 0.0
        for _ in range(options.n):
            result = algorithm.load()(graph, **arguments, **device, progress=_common.show_progress())
            trials.append(result.stats["seconds"])
            compiling += result.stats["compile_seconds"]
            _common.print_seconds("run", trials[-1], _details(result))
        if compiling:
            _common.print_seconds("compile", compiling, "  (not part of the trials)")
        if options.n > 1:
            _common.print_seconds("median", median(trials), f" of {options.n} trials")
    _common.print_line("answer", result.describe())
    if options.v:
        _verify(algorithm, graph, result)
    _common.write_result(result, options)
    if options.json:
        seconds = {"prepare": preparing.seconds, "load": loading.seconds, "compile": compiling, "trials": trials}
        _common.print_json(
            {
                "graph": name,
                **_common.summary(graph),
                "algorithm": algorithm.name,
                "arguments": arguments,
                **result.summary(),
                "verified": bool(options.v),
                "device": result.stats["device"],
                "device_reason": result.stats["device_reason"],
                "threads": result.stats["threads"],
                "seconds": {**seconds, "phases" if _has_phases(result) else "supersteps": list(result.trace)},
            }
        )


def _prepare(algorithm: Algorithm, device: dict[str, Any]) -> None:
    """Compile the kernels, or load them from the cache, so that the trials do not include the time."""
    import gpu_pregel as gp

    src, dst = ([0], [1]) if "acyclic" in algorithm.requires else ([0, 1], [1, 0])
    weight = [1.0] * len(src) if "weights" in algorithm.requires else None
    graph = gp.Graph.from_edgelist(src, dst, weight, directed=bool({"directed", "acyclic"} & set(algorithm.requires)))
    arguments = algorithm.sample_arguments(graph) or {}
    algorithm.load()(graph, **arguments, **device)


def _has_phases(result: Result) -> bool:
    return bool(result.trace) and "phase" in result.trace[0]


def _details(result: Result) -> str:
    if not _has_phases(result):
        return f"  ({len(result.trace):,} supersteps)"
    if len(result.trace) > _SHOWN_PHASES:
        return f"  ({len(result.trace):,} phases)"
    parts = (f"{row['phase']} {1000 * row['seconds']:.2f}" for row in result.trace)
    return f"  ({', '.join(parts)} ms)"


def _verify(algorithm: Algorithm, graph: Graph, result: Result) -> None:
    with _common.stopwatch() as checking:
        algorithm.load_checker()(graph, result)
    _common.print_seconds("verified", checking.seconds)
