"""Options and output that the commands share."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any

from gpu_pregel.errors import ArgumentError, FormatError, WriteError

if TYPE_CHECKING:
    from gpu_pregel.host.graphs.graph import Graph
    from gpu_pregel.host.graphs.results import VertexResult


def whole_number(low: int) -> Callable[[str], int]:
    """An argparse type: a whole number from ``low``."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is no whole number") from None
        if value < low:
            raise argparse.ArgumentTypeError(f"{value} is below {low}")
        return value

    return parse


def grid_shape(text: str) -> tuple[int, int]:
    """An argparse type: ``ROWSxCOLUMNS``, or ``ROWS`` for a square."""
    rows, _, columns = text.lower().partition("x")
    try:
        return int(rows), int(columns or rows)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form ROWSxCOLUMNS, such as 2048x2048") from None


def add_generator_options(parser: argparse.ArgumentParser, *, files: bool) -> None:
    """Add the options that name a graph: a generator's, and ``-f`` if ``files``."""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("-g", type=whole_number(0), metavar="SCALE", help="Kronecker graph of 2^SCALE vertices")
    source.add_argument("-u", type=whole_number(0), metavar="SCALE", help="uniform random graph of 2^SCALE vertices")
    source.add_argument("--grid", type=grid_shape, metavar="ROWSxCOLUMNS", help="road-like grid with holes")
    if files:
        source.add_argument("-f", metavar="FILE", help="read the graph from FILE")
    parser.add_argument("-k", type=whole_number(0), default=16, metavar="DEGREE", help="edges drawn per vertex (16)")
    parser.add_argument("--holes", type=float, default=0.1, metavar="SHARE", help="share of holes in a grid (0.1)")
    parser.add_argument("--seed", type=whole_number(0), metavar="SEED", help="another seed gives another graph")


def add_read_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of reading a file."""
    parser.add_argument("--format", metavar="NAME", help="format of the file, if its suffix does not tell")
    direction = parser.add_mutually_exclusive_group()
    direction.add_argument(
        "--directed", dest="directed", action="store_true", default=None, help="edges have a direction"
    )
    direction.add_argument("--undirected", dest="directed", action="store_false", help="edges have none")
    parser.add_argument("--num-vertices", type=whole_number(0), metavar="N", help="ids are the numbers 0 to N - 1")


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of every command that computes."""
    parser.add_argument("--threads", type=whole_number(1), metavar="T", help="default: all available processors")
    parser.add_argument("--json", action="store_true", help="print the answer as JSON on stdout")


def add_device_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that says where an algorithm or program runs."""
    parser.add_argument(
        "--device",
        default="auto",
        metavar="NAME",
        help="auto (default: a GPU, or else the CPU), cpu, cuda, cuda:N, emulated or emulated:SEED",
    )


def chosen_device(options: argparse.Namespace) -> dict[str, Any]:
    """The arguments ``device`` and ``threads`` of a run; on other devices than the CPU threads only load the graph."""
    from gpu_pregel.host.devices import get_device

    name = get_device(options.device).name
    return {"device": name, "threads": options.threads if name == "cpu" else None}


def check_before_work(check: Callable[..., object], *arguments: Any) -> None:
    """Run a check of the output's name; what it refuses is a wrong call."""
    try:
        check(*arguments)
    except (FormatError, WriteError) as error:
        raise ArgumentError(str(error)) from error


def check_files(options: argparse.Namespace) -> None:
    """Refuse, before any work, a graph that cannot be read, and results that cannot be written where they are to be."""
    from gpu_pregel.io import check_input
    from gpu_pregel.io.results import check_result_path

    if options.o == "-" and options.json:
        raise ArgumentError("-o - and --json are both for stdout: give -o a file, or leave one of them out")
    if options.o not in (None, "-"):
        check_before_work(check_result_path, options.o)
    if options.f is not None:
        check_input(options.f, options.format)
    elif options.directed is not None or options.num_vertices is not None:
        raise ArgumentError("--directed, --undirected and --num-vertices go with -f: generated graphs are undirected")


def load_graph(options: argparse.Namespace) -> tuple[Graph, str]:
    """Generate or read the graph that the options name; return it and its name."""
    import gpu_pregel as gp

    common: dict[str, Any] = {"threads": options.threads, "progress": show_progress()}
    if getattr(options, "f", None) is not None:
        reading = {"directed": options.directed, "num_vertices": options.num_vertices}
        return gp.read_graph(options.f, options.format, **reading, **common), options.f
    if options.seed is not None:
        common["seed"] = options.seed
    if options.g is not None:
        return gp.kronecker(options.g, options.k, **common), f"kronecker {options.g}"
    if options.u is not None:
        return gp.uniform(options.u, options.k, **common), f"uniform {options.u}"
    rows, columns = options.grid
    return gp.grid(rows, columns, holes=options.holes, **common), f"grid {rows} x {columns}"


def show_progress() -> bool:
    """Whether somebody watches stderr."""
    return sys.stderr.isatty()


def say(label: str, text: str) -> None:
    """Write a line for people on stderr."""
    print(f"{label:<12}{text}", file=sys.stderr)


def say_seconds(label: str, seconds: float, more: str = "") -> None:
    """Write the time of a phase for people on stderr."""
    say(label, f"{seconds:.3f} s{more}" if seconds >= 1 else f"{1000 * seconds:.2f} ms{more}")


def print_json(answer: dict[str, Any]) -> None:
    """Write data on stdout."""
    print(json.dumps(answer, indent=2))


class Stopwatch:
    """How long a block took."""

    seconds = 0.0


@contextmanager
def stopwatch() -> Iterator[Stopwatch]:
    """Time a block."""
    watch = Stopwatch()
    begin = perf_counter()
    try:
        yield watch
    finally:
        watch.seconds = perf_counter() - begin


def announce_compilation() -> AbstractContextManager[None]:
    """Say on stderr, once, that kernels are being compiled."""
    from gpu_pregel.host.superstep.progress import announce_compilation

    return announce_compilation(shown=True)


def save_graph(graph: Graph, path: str, format: str | None) -> None:
    """Write a graph, and say so."""
    with stopwatch() as writing:
        graph.save(path, format)
    say_seconds("write", writing.seconds, f"  {path}")


def write_result(result: VertexResult, path: str | None) -> None:
    """Write the values of a result, if there is a path; "-" is CSV on stdout."""
    if path is None:
        return
    with stopwatch() as writing:
        if path == "-":
            from pyarrow import csv

            csv.write_csv(result.to_arrow(), sys.stdout.buffer)
        else:
            result.save(path)
    say_seconds("write", writing.seconds, f"  {path}")


def summary(graph: Graph) -> dict[str, Any]:
    """The size and kind of a graph, as data."""
    return {
        "num_vertices": graph.num_vertices,
        "num_edges": graph.num_edges,
        "directed": graph.is_directed,
        "weights": None if graph.weights is None else str(graph.weights.dtype),
    }
