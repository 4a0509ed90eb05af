"""The table of formats, and ``read_graph`` and ``save_graph``, which select a format by name or suffix."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, FormatError
from gpu_pregel.host.arguments import check_choice
from gpu_pregel.host.devices.threads import thread_count
from gpu_pregel.host.graphs.csr import WEIGHT_DTYPES
from gpu_pregel.host.graphs.edge_arrays import check_num_vertices
from gpu_pregel.host.graphs.numbering import check_renumber
from gpu_pregel.io._files import check_source, check_target, suffixes

if TYPE_CHECKING:
    from gpu_pregel.host.graphs.graph import Graph


@dataclass(frozen=True)
class GraphFormat:
    """A format: its module, its suffixes, the options that only some formats have, and whether it may be compressed."""

    module: str
    suffixes: tuple[str, ...]
    options: tuple[str, ...] = ()
    compressible: bool = True


FORMATS = {
    "edgelist": GraphFormat(
        "edgelist",
        (".txt", ".el", ".wel", ".edges", ".edgelist", ".tsv", ".csv", ".snap"),
        options=("num_vertices", "renumber"),
    ),
    "matrix-market": GraphFormat("matrix_market", (".mtx",)),
    "metis": GraphFormat("metis", (".graph",)),
    "graphalytics": GraphFormat("graphalytics", (".v", ".e"), compressible=False),
    "gemini": GraphFormat("gemini", (".bin",), options=("num_vertices", "renumber")),
    "gemini-weighted": GraphFormat("gemini", (".wbin",), options=("num_vertices", "renumber")),
    "gapbs": GraphFormat("gapbs", (".sg", ".wsg")),
    "parquet": GraphFormat(
        "parquet", (".parquet", ".pq"), options=("num_vertices", "renumber", "columns"), compressible=False
    ),
    "pregel": GraphFormat("native", (".pregel",), compressible=False),
}


def choose_format(path: str, format: str | None) -> str:
    """Return ``format`` if it is given, otherwise the name of the format with the suffix of ``path``."""
    suffix, compression = suffixes(path)
    if format is not None:
        check_choice("format", format, tuple(FORMATS))
        chosen = format
    else:
        names = [name for name, entry in FORMATS.items() if suffix in entry.suffixes]
        if not names:
            known = "; ".join(f"{name}: {' '.join(entry.suffixes)}" for name, entry in FORMATS.items())
            raise FormatError(path, f"unknown suffix {suffix!r}: pass format=, or use one of {known}")
        chosen = names[0]
    if compression and not FORMATS[chosen].compressible:
        raise FormatError(
            path, f"{chosen} files cannot be compressed as a whole: decompress the file, or use another suffix"
        )
    return chosen


def read_graph(
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    directed: bool | None = None,
    weighted: bool | None = None,
    weight_dtype: Any = None,
    num_vertices: int | None = None,
    renumber: bool | str = "auto",
    duplicates: str = "keep",
    self_loops: str = "keep",
    threads: int | None = None,
    progress: bool = False,
    columns: Sequence[str] | None = None,
) -> Graph:
    r"""Read a graph from a file.

    ======================  ==================================  =====================================================
    format                  suffixes                            holds
    ======================  ==================================  =====================================================
    edgelist                .txt .el .wel .edges .edgelist      lines ``source destination [weight]``, separated by
                            .tsv .csv .snap                     blanks, tabs, commas or semicolons; ``#`` and ``%``
                                                                start comments; .csv and .tsv may have a header
    matrix-market           .mtx                                a square sparse matrix (coordinate)
    metis                   .graph                              the neighbours of each vertex, undirected
    graphalytics            .v .e                               two files, vertices and edges, and ``.properties``
    gemini                  .bin                                pairs of uint32
    gemini-weighted         .wbin                               uint32, uint32, float32
    gapbs                   .sg .wsg                            GAPBS's serialized CSR, int32 weights
    parquet                 .parquet .pq                        a table of edges
    pregel                  .pregel                             the format of this package: a memory-mapped CSR
    ======================  ==================================  =====================================================

    Files of all formats but graphalytics, parquet and pregel may be compressed; append ``.gz``, ``.zst`` or ``.zstd``.

    Parameters
    ----------
    path : path
        The file. A .pregel file stays mapped into memory and must not be modified while the graph is in use.
    format : str, optional
        A name from the table. Default: selected by the suffix.
    directed : bool, optional
        Whether edges are directed. Default: as stated in the file, otherwise False. False adds the reverse of each edge
        of a directed file; True keeps both directions of each edge of an undirected file.
    weighted : bool, optional
        Default: read weights if the file has them. True rejects a file without weights, False ignores them.
    weight_dtype : dtype, optional
        int32, int64, uint32, uint64, float32 or float64. A weight that does not fit is an error. Default: float64 for
        text (int64 for METIS and integer matrices), otherwise as in the file.
    num_vertices : int, optional
        The ids are 0 to ``num_vertices - 1``; only for edgelist, gemini and parquet, which do not store the number.
    renumber : {"auto", False}
        As in :meth:`Graph.from_edgelist`; for edgelist, gemini and parquet.
    duplicates, self_loops : {"keep", "drop"}
        For duplicates, "drop" keeps the edge of smallest weight.
    threads : int, optional
        Number of threads. Default: the processors available to this process.
    progress : bool, default False
        Show progress bars on stderr.
    columns : sequence of str, optional
        Only for parquet: the columns of source, destination and, optionally, weight. Default: ``src`` and ``dst`` (or
        source and target, from and to), otherwise the first two, and ``weight``, ``weights`` or ``value``.

    Raises
    ------
    FormatError
        The file does not conform to its format; the message names the file and, for text, the line.
    MissingFileError, NotAFileError, UnreadableFileError
        The file cannot be opened.
    ArgumentError
        The format does not support an option.
    NotEnoughMemoryError
        The graph does not fit in memory.

    Examples
    --------
    >>> import gpu_pregel as gp, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "triangle.el")
    >>> _ = path.write_text("0 1\n1 2\n2 0\n")
    >>> gp.read_graph(path)
    <Graph: 3 vertices, 6 stored edges, undirected>
    """
    from gpu_pregel.io._options import ReadOptions

    name = os.fspath(path)
    chosen = _format_to_read(name, format)
    check_choice("duplicates", duplicates, ("keep", "drop"))
    check_choice("self_loops", self_loops, ("keep", "drop"))
    check_renumber(renumber)
    for option, given in (
        ("num_vertices", num_vertices is not None),
        ("renumber", renumber != "auto"),
        ("columns", columns is not None),
    ):
        if given and option not in FORMATS[chosen].options:
            raise ArgumentError(f"the format {chosen} does not support {option}=: omit it")
    options = ReadOptions(
        format=chosen,
        directed=directed,
        weighted=weighted,
        weight_dtype=None if weight_dtype is None else _weight_dtype(weight_dtype),
        num_vertices=None if num_vertices is None else check_num_vertices(num_vertices),
        renumber=renumber,
        duplicates=duplicates,
        self_loops=self_loops,
        threads=thread_count(threads),
        progress=progress,
        columns=None if columns is None else _column_names(columns),
    )
    check_source(name)
    graph: Graph = _module(chosen).read(name, options)
    return graph


def save_graph(graph: Graph, path: str | os.PathLike[str], format: str | None = None) -> None:
    """Write a graph to a file, completely or not at all.

    Undirected edges are written once if the format allows it. edgelist, graphalytics, parquet and pregel files store
    the user's ids, the other formats vertex numbers. edgelist and gemini files only store edges, so isolated vertices
    at the end of the numbering are lost. gemini-weighted files round float64 weights to float32. edgelist and
    graphalytics files lose the weights of a graph without edges. .pregel files preserve everything if the ids are
    64-bit integers or strings.

    Parameters
    ----------
    graph : Graph
    path : path
        An existing file is replaced.
    format : str, optional
        See :func:`read_graph`. Default: selected by the suffix.

    Raises
    ------
    WriteError
        The file cannot be written; no partial file remains.
    ArgumentError
        The format cannot represent the graph, for example its weights, ids or direction.

    Examples
    --------
    >>> import gpu_pregel as gp, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "pair.pregel")
    >>> gp.Graph.from_edgelist([0], [1]).save(path)
    >>> gp.read_graph(path)
    <Graph: 2 vertices, 2 stored edges, undirected>
    """
    name = os.fspath(path)
    chosen = choose_format(name, format)
    _module(chosen).write(graph, name, chosen)


def check_output(path: str | os.PathLike[str], format: str | None = None) -> None:
    """Raise the errors of :func:`save_graph` for this path and format, before a graph is computed.

    Raises
    ------
    FormatError
        The suffix is unknown.
    WriteError
        The folder does not exist or is not writable.

    Examples
    --------
    >>> check_output("graph.docx")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    gpu_pregel.errors.FormatError: graph.docx: unknown suffix '.docx': ...
    """
    name = os.fspath(path)
    choose_format(name, format)
    check_target(name)


def check_input(path: str | os.PathLike[str], format: str | None = None) -> None:
    """Raise the errors of :func:`read_graph` for this path and format, before other work.

    Raises
    ------
    FormatError
        The suffix is unknown.
    MissingFileError, NotAFileError, UnreadableFileError
        The file cannot be opened.

    Examples
    --------
    >>> check_input("nowhere.el")
    Traceback (most recent call last):
    ...
    gpu_pregel.errors.MissingFileError: nowhere.el: no such file
    """
    name = os.fspath(path)
    _format_to_read(name, format)
    check_source(name)


def _format_to_read(path: str, format: str | None) -> str:
    """Choose the format as :func:`choose_format` does, but report first if the file cannot be opened."""
    try:
        return choose_format(path, format)
    except FormatError:
        check_source(path)
        raise


def _module(format: str) -> Any:
    return import_module(f"gpu_pregel.io.{FORMATS[format].module}")


def _weight_dtype(weight_dtype: Any) -> np.dtype[Any]:
    try:
        dtype: np.dtype[Any] = np.dtype(weight_dtype)
    except TypeError:
        dtype = np.dtype(object)
    if dtype not in WEIGHT_DTYPES:
        raise ArgumentTypeError(f"weight_dtype must be {', '.join(map(str, WEIGHT_DTYPES))}, not {weight_dtype!r}")
    return dtype


def _column_names(columns: Sequence[str]) -> tuple[str, ...]:
    if isinstance(columns, str) or not all(isinstance(column, str) for column in columns):
        raise ArgumentTypeError(f"columns must be a sequence of names, not {columns!r}")
    if len(columns) not in (2, 3):
        raise ArgumentError(f"columns must name source, destination and optionally weight, not {len(columns)} columns")
    return tuple(columns)
