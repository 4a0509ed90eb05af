"""Options and output shared by the commands."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any

from gpu_pregel.errors import ArgumentError, FormatError, WriteError

if TYPE_CHECKING:
    from gpu_pregel.host.graphs.graph import Graph
    from gpu_pregel.host.graphs.results import Result


def whole_number(low: int) -> Callable[[str], int]:
    """Return an argparse type that accepts whole numbers from ``low``."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            raise argparse.ArgumentTypeError(f"{text!r} is not a whole number") from None
        if value < low:
            raise argparse.ArgumentTypeError(f"{value} is below {low}")
        return value

    return parse


def grid_shape(text: str) -> tuple[int, int]:
    """Parse ``ROWSxCOLUMNS``, or ``ROWS`` for a square; an argparse type."""
    rows, _, columns = text.lower().partition("x")
    try:
        return int(rows), int(columns or rows)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form ROWSxCOLUMNS, such as 2048x2048") from None


def column(text: str) -> str | int:
    """Parse the name of a column, or its position from 0; an argparse type."""
    return int(text) if text.isascii() and text.isdigit() else text


def column_list(text: str) -> list[str | int]:
    """Parse two or three columns separated by commas; an argparse type."""
    columns = [column(part.strip()) for part in text.split(",")]
    if len(columns) not in (2, 3):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form SOURCE,TARGET or SOURCE,TARGET,WEIGHT")
    return columns


def add_generator_options(parser: argparse.ArgumentParser, *, files: bool, positional: bool = False) -> None:
    """Add the options that specify a graph: the generators', and ``-f`` if ``files``, or also without it."""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("-g", type=whole_number(0), metavar="SCALE", help="Kronecker graph with 2^SCALE vertices")
    source.add_argument("-u", type=whole_number(0), metavar="SCALE", help="uniform random graph with 2^SCALE vertices")
    source.add_argument("--grid", type=grid_shape, metavar="ROWSxCOLUMNS", help="road-like grid with holes")
    if files:
        source.add_argument("-f", metavar="FILE", help="read the graph from FILE")
        if positional:  # a default would replace the value of -f
            source.add_argument("f", nargs="?", metavar="FILE", default=argparse.SUPPRESS, help="the same as -f FILE")
    parser.add_argument("-k", type=whole_number(0), default=16, metavar="DEGREE", help="edges per vertex (default 16)")
    parser.add_argument(
        "--holes", type=float, default=0.1, metavar="SHARE", help="fraction of holes in a grid (default 0.1)"
    )
    parser.add_argument("--seed", type=whole_number(0), metavar="SEED", help="seed of the random graph")


_SEPARATORS = {",": ",", ";": ";", "tab": "\t", "blanks": " "}


def add_read_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for reading a file."""
    parser.add_argument("--format", metavar="NAME", help="format of the file (default: by suffix)")
    direction = parser.add_mutually_exclusive_group()
    direction.add_argument("--directed", dest="directed", action="store_true", default=None, help="edges are directed")
    direction.add_argument("--undirected", dest="directed", action="store_false", help="edges are undirected")
    parser.add_argument("--num-vertices", type=whole_number(0), metavar="N", help="ids are 0 to N - 1")
    parser.add_argument(
        "--columns",
        type=column_list,
        metavar="SOURCE,TARGET[,WEIGHT]",
        help="columns of a text or Parquet file, by name or by position from 0",
    )
    weight = parser.add_mutually_exclusive_group()
    weight.add_argument(
        "--weight", type=column, default="auto", metavar="COLUMN", help="column of weights (default: weight or value)"
    )
    weight.add_argument("--no-weights", dest="weight", action="store_const", const=None, help="ignore the weights")
    parser.add_argument("--weight-dtype", metavar="DTYPE", help="type of the weights, such as int32 or float32")
    parser.add_argument(
        "--header", action=argparse.BooleanOptionalAction, default=None, help="the first row names the columns, or not"
    )
    parser.add_argument("--separator", choices=tuple(_SEPARATORS), help="what separates the columns of a text file")
    parser.add_argument(
        "--id-type", choices=("int", "str"), help="what the ids of a text file are (default: by the ids)"
    )
    parser.add_argument(
        "--comments",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="lines that start with # or %% are comments, or not",
    )
    parser.add_argument(
        "--combine",
        choices=("sum", "min", "max", "mean", "first", "count"),
        help="make parallel edges one, with this of their weights (default: keep all edges)",
    )
    parser.add_argument("--max-line-bytes", type=int, metavar="N", help="longest line of a text file (default 1 MiB)")


def add_write_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for writing a graph."""
    parser.add_argument("--to", metavar="NAME", help="format of the output (default: by suffix)")
    parser.add_argument(
        "--lossy",
        action="store_true",
        help="write what the format can hold, even if ids, isolated vertices or weights are lost",
    )
    _add_formulas_option(parser)


def _add_formulas_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--escape-formulas",
        dest="formulas",
        action="store_const",
        const="escape",
        default="keep",
        help="in .csv and .tsv files, write an apostrophe before ids that a spreadsheet would compute, such as =1+1",
    )


def reading_options(options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments of ``read_graph`` that :func:`add_read_options` adds."""
    source, target, *weight = options.columns or (None, None)
    return {
        "directed": options.directed,
        "num_vertices": options.num_vertices,
        "source": source,
        "target": target,
        "weight": weight[0] if weight and options.weight == "auto" else options.weight,
        "weight_dtype": options.weight_dtype,
        "header": "auto" if options.header is None else options.header,
        "comments": "auto" if options.comments is None else options.comments,
        "separator": _SEPARATORS.get(options.separator),
        "id_type": options.id_type or "auto",
        "combine": options.combine,
        **({} if options.max_line_bytes is None else {"max_line_bytes": options.max_line_bytes}),
    }


def add_run_options(parser: argparse.ArgumentParser) -> None:
    """Add the options common to all commands that process a graph."""
    parser.add_argument(
        "--threads", type=whole_number(1), metavar="T", help="threads (default: all available processors)"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON on stdout")


def add_device_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that selects the device."""
    parser.add_argument(
        "--device",
        default="auto",
        metavar="NAME",
        help="auto (default: the CPU or a GPU, whichever is faster), cpu, cuda, cuda:N, emulated or emulated:SEED; "
        "python, for a debugger, runs functions uncompiled",
    )


def add_trials_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that repeats a run."""
    parser.add_argument("-n", type=whole_number(1), default=1, metavar="TRIALS", help="number of trials (default 1)")


def add_result_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that writes the result of a run."""
    parser.add_argument("-o", metavar="FILE", help="write the result: .parquet, .csv, .npy, or - for CSV on stdout")
    _add_formulas_option(parser)


def chosen_device(options: argparse.Namespace) -> dict[str, Any]:
    """Return the arguments ``device`` and ``threads`` of a run; ``threads`` only applies to the CPU.

    "auto" is left to the run, which knows the size of the graph.
    """
    from gpu_pregel.host.devices import DEVICE_VARIABLE, get_device

    if options.device == "auto" and not os.environ.get(DEVICE_VARIABLE):
        return {"device": "auto", "threads": options.threads}
    name = get_device(options.device).name
    return {"device": name, "threads": options.threads if name == "cpu" else None}


def check_before_work(check: Callable[..., object], *arguments: Any, **options: Any) -> None:
    """Check the name of an output file, and report an unusable one as a usage error."""
    try:
        check(*arguments, **options)
    except (FormatError, WriteError) as error:
        raise ArgumentError(str(error)) from error


def check_graph_and_output(options: argparse.Namespace) -> None:
    """Raise, before any work begins, if the graph cannot be read or generated, or the result cannot be written."""
    from gpu_pregel.io.results import check_result_path

    if options.o == "-" and options.json:
        raise ArgumentError("-o - and --json both write to stdout: pass a file to -o, or omit one of them")
    if options.o not in (None, "-"):
        check_before_work(check_result_path, options.o, options.formulas)
    if options.o is None and options.formulas != "keep":
        raise ArgumentError("--escape-formulas requires -o")
    check_graph(options)


def check_graph(options: argparse.Namespace) -> None:
    """Raise, before any work begins, if the graph cannot be read or generated."""
    from gpu_pregel.io import check_input

    if options.f is not None:
        check_input(options.f, options.format)
    elif any(value not in (None, "auto") for value in reading_options(options).values()) or options.weight is None:
        raise ArgumentError("the options for reading a file, such as --directed, require -f")
    else:
        check_generator(options)


def check_generator(options: argparse.Namespace) -> None:
    """Raise if the graph to be generated is too large, or its options are invalid."""
    from gpu_pregel.host.graphs import generators

    seed = generators.DEFAULT_SEED if options.seed is None else options.seed
    if options.grid is not None:
        rows, columns = options.grid
        generators.check_grid(rows, columns, options.holes, seed)
    else:
        generators.check_random_graph(options.u if options.g is None else options.g, options.k, seed)


def check_cache_limit() -> None:
    """Raise if the limit of the cache, an environment variable, is malformed; compiling would fail halfway."""
    from gpu_pregel.kernels.library.cache import cache_limit

    try:
        cache_limit()
    except ValueError as error:
        raise ArgumentError(str(error)) from None


def load_graph(options: argparse.Namespace) -> tuple[Graph, str]:
    """Generate or read the graph specified by the options; return it and its name."""
    import gpu_pregel as gp

    common: dict[str, Any] = {"threads": options.threads, "progress": show_progress()}
    if getattr(options, "f", None) is not None:
        return gp.read_graph(options.f, options.format, **reading_options(options), **common), options.f
    if options.seed is not None:
        common["seed"] = options.seed
    if options.g is not None:
        return gp.kronecker(options.g, options.k, **common), f"kronecker {options.g}"
    if options.u is not None:
        return gp.uniform(options.u, options.k, **common), f"uniform {options.u}"
    rows, columns = options.grid
    return gp.grid(rows, columns, holes=options.holes, **common), f"grid {rows} x {columns}"


def show_progress() -> bool:
    """Return whether stderr is a terminal."""
    return sys.stderr.isatty()


def example(command: str) -> str:
    """Return the text below the help of a command."""
    return f"example: gpu-pregel {command}"


def printable(text: object) -> str:
    """Return text in which control characters are escaped, as a terminal would obey them."""
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in str(text))


def print_line(label: str, text: str) -> None:
    """Print a labelled line on stderr; control characters are escaped."""
    print(f"{label:<12}{printable(text)}", file=sys.stderr)


def print_seconds(label: str, seconds: float, more: str = "") -> None:
    """Print the duration of a step on stderr."""
    print_line(label, f"{seconds:.3f} s{more}" if seconds >= 1 else f"{1000 * seconds:.2f} ms{more}")


def print_json(data: dict[str, Any]) -> None:
    """Print data as JSON on stdout."""
    print(json.dumps(data, indent=2))


class Stopwatch:
    """The duration of a block, in seconds."""

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
    """Report on stderr, once, that kernels are being compiled."""
    check_cache_limit()
    from gpu_pregel.host.superstep.progress import announce_compilation

    return announce_compilation(shown=True)


def save_graph(graph: Graph, options: argparse.Namespace) -> None:
    """Write a graph, as the options of :func:`add_write_options` say, and report the time."""
    with stopwatch() as writing:
        graph.save(options.o, options.to, lossy=options.lossy, formulas=options.formulas)
    print_seconds("write", writing.seconds, f"  {options.o}")


def write_result(result: Result, options: argparse.Namespace) -> None:
    """Write a result, as the options of :func:`add_result_option` say; "-" writes CSV to stdout."""
    path = options.o
    if path is None:
        return
    with stopwatch() as writing:
        if path == "-":
            from pyarrow import csv

            from gpu_pregel.io._formulas import escape_table

            table = result.to_arrow()
            csv.write_csv(escape_table(table) if options.formulas == "escape" else table, sys.stdout.buffer)
        else:
            result.save(path, formulas=options.formulas)
    print_seconds("write", writing.seconds, f"  {path}")


def summary(graph: Graph) -> dict[str, Any]:
    """Return the size and kind of a graph as JSON data."""
    return {
        "num_vertices": graph.num_vertices,
        "num_edges": graph.num_edges,
        "num_stored_edges": graph.num_stored_edges,
        "directed": graph.is_directed,
        "weights": None if graph.weights is None else str(graph.weights.dtype),
    }
