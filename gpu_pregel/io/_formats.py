"""The table of formats, and ``read_graph`` and ``save_graph``, which select a format by name or suffix."""

from __future__ import annotations

import os
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any

import numpy as np

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, FormatError
from gpu_pregel.host.arguments import check_choice, check_flag, check_integer
from gpu_pregel.host.devices.threads import thread_count
from gpu_pregel.host.graphs.combine import check_combine
from gpu_pregel.host.graphs.csr import WEIGHT_DTYPES
from gpu_pregel.host.graphs.edge_arrays import check_num_vertices
from gpu_pregel.host.graphs.numbering import check_renumber
from gpu_pregel.io._files import as_path, check_source, check_target, suffixes
from gpu_pregel.io._formulas import check_formulas, escape_formulas
from gpu_pregel.io._losses import DIRECTED, without_losses

if TYPE_CHECKING:
    from gpu_pregel.host.graphs.graph import Graph


@dataclass(frozen=True)
class GraphFormat:
    """A format: its module, its suffixes, the options that only some formats have, and what it can hold.

    ``undirected`` formats cannot hold directed graphs.
    """

    module: str
    suffixes: tuple[str, ...]
    options: tuple[str, ...] = ()
    compressible: bool = True
    undirected: bool = False


FORMATS = {
    "edgelist": GraphFormat(
        "edgelist",
        (".txt", ".el", ".wel", ".edges", ".edgelist", ".tsv", ".csv", ".snap"),
        options=("num_vertices", "renumber", "source", "target", "header", "comments", "separator", "id_type"),
    ),
    "matrix-market": GraphFormat("matrix_market", (".mtx",)),
    "metis": GraphFormat("metis", (".graph",), undirected=True),
    "graphalytics": GraphFormat("graphalytics", (".v", ".e"), compressible=False),
    "gemini": GraphFormat("gemini", (".bin",), options=("num_vertices", "renumber")),
    "gemini-weighted": GraphFormat("gemini", (".wbin",), options=("num_vertices", "renumber")),
    "gapbs": GraphFormat("gapbs", (".sg", ".wsg")),
    "parquet": GraphFormat(
        "parquet", (".parquet", ".pq"), options=("num_vertices", "renumber", "source", "target"), compressible=False
    ),
    "pregel": GraphFormat("native", (".pregel",), compressible=False),
}


def choose_format(path: str, format: str | None) -> str:
    """Return ``format`` if it is given, otherwise the name of the format with the suffix of ``path``."""
    suffix, compression = suffixes(path)
    if format is not None:
        named = [name for name, entry in FORMATS.items() if f".{format}" in entry.suffixes and name != format]
        if named:
            raise ArgumentError(
                f"format={format!r} is a suffix: omit it for .{format} files, or pass format={named[0]!r}"
            )
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
    source: str | int | None = None,
    target: str | int | None = None,
    weight: str | int | None = "auto",
    weight_dtype: Any = None,
    header: bool | str = "auto",
    comments: bool | str = "auto",
    separator: str | None = None,
    id_type: str = "auto",
    num_vertices: int | None = None,
    renumber: bool | str = "auto",
    combine: str | None = None,
    self_loops: str = "keep",
    max_line_bytes: int = 1 << 20,
    mmap: bool = True,
    threads: int | None = None,
    progress: bool = False,
) -> Graph:
    r"""Read a graph from a file.

    ======================  ==================================  =====================================================
    format                  suffixes                            holds
    ======================  ==================================  =====================================================
    edgelist                .txt .el .wel .edges .edgelist      lines ``source target [weight]``, separated by blanks,
                            .tsv .csv .snap                     tabs, commas or semicolons, with or without a header;
                                                                ``#`` and ``%`` start comments (see ``comments``)
    matrix-market           .mtx                                a square sparse matrix (coordinate)
    metis                   .graph                              the neighbours of each vertex, undirected; sizes and
                                                                weights of vertices are ignored
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
        The file. A .pregel file stays mapped into memory, unless ``mmap=False``, and must not be modified while the
        graph is in use: a truncated one is a ``GraphError`` when an algorithm or a run begins, and ends the process
        later.
    format : str, optional
        A name from the table. Default: selected by the suffix.
    directed : bool, optional
        Whether edges are directed. Default: as stated in the file, otherwise False; of comments in text, only the first
        line that :meth:`Graph.save` writes counts, not those of SNAP. False adds the reverse of each edge of a directed
        file; True keeps both directions of each edge of an undirected file.
    source, target : str or int, optional
        The columns of the ends, by name or by position from 0; for edgelist and parquet. Default: the columns
        ``source`` and ``target``, ``src`` and ``dst``, or ``from`` and ``to``, in any case. A table of exactly two
        columns needs no names, and in text without a header the first two of at most three columns are the ends.
        Anything else is an error, with the call that names columns.
    weight : str, int or None, default "auto"
        The column of weights, for edgelist and parquet; None ignores the weights of any file. "auto" reads the column
        called ``weight``, ``weights`` or ``value``, and the third column of text without a header. Columns with other
        names are not read.
    weight_dtype : dtype, optional
        int32, int64, uint32, uint64, float32 or float64. A weight that does not fit is an error, as is an integer that
        a float dtype cannot hold exactly; numbers with fractions are rounded. Default: float64 for text (int64 for
        METIS and integer matrices), otherwise as in the file.
    header : {"auto", True, False}
        Whether the first row of a text file names the columns. "auto" recognizes usual names, and other names above
        integer ids or above numbers in the third column. A .csv or .tsv file whose first row may be either is an error.
    comments : {"auto", True, False}
        Whether lines that start with ``#`` or ``%`` are comments; for edgelist. "auto": they are, but in .csv and .tsv
        files only before the first row; a later one is an error there, as it may be a row.
    separator : {None, ",", ";", "\t", " "}
        What separates the columns, for edgelist; " " stands for runs of blanks and tabs. Default: what the first line
        has; an error if it has commas and semicolons.
    id_type : {"auto", "int", "str"}
        What the ids of an edgelist are. "auto": integers if all of them are, otherwise strings; integers with leading
        zeros, as in postal codes, are an error then.
    num_vertices : int, optional
        The ids are 0 to ``num_vertices - 1``; only for edgelist, gemini and parquet, which do not store the number.
    renumber : {"auto", False}
        As in :meth:`Graph.from_edgelist`; for edgelist, gemini and parquet.
    combine : {None, "sum", "min", "max", "mean", "first", "count"}
        Whether and how parallel edges become one, as in :meth:`Graph.from_edgelist`. "first" is in the order of the
        file; metis, gapbs and pregel files hold no order of edges with weights.
    self_loops : {"keep", "drop"}
    max_line_bytes : int, default 2**20
        A longer line of text is an error, except in metis files, where a line is the row of a vertex.
    mmap : bool, default True
        Whether the graph of a .pregel file uses the mapped file instead of a copy in memory.
    threads : int, optional
        Number of threads. Default: the processors available to this process.
    progress : bool, default False
        Show progress bars on stderr.

    Notes
    -----
    If every id of a text file is an integer, the ids are integers; otherwise all of them are strings, unless
    ``id_type`` says what they are. Blanks and tabs around an id are ignored, also in quotes. In .csv and .tsv files,
    and wherever commas or semicolons separate the columns, ids may be quoted; in .tsv files, ids may contain blanks.

    Raises
    ------
    FormatError
        The file does not conform to its format; the message names the file and, for text, the line.
    ArgumentTypeError
        ``path`` is not a path.
    MissingFileError, NotAFileError, UnreadableFileError
        The file cannot be opened.
    ArgumentError
        The format does not support an option, or it is not certain which columns hold the edges.
    NotEnoughMemoryError
        The graph does not fit in memory.

    Examples
    --------
    >>> import gpu_pregel as gp, pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp(), "triangle.el")
    >>> _ = path.write_text("0 1\n1 2\n2 0\n")
    >>> gp.read_graph(path)
    <Graph: 3 vertices, 6 stored edges, undirected>
    >>> paid = path.with_name("paid.csv")
    >>> _ = paid.write_text("id,from_account,to_account,amount\n1,ann,bob,5\n")
    >>> gp.read_graph(paid, source="from_account", target="to_account", weight="amount")
    <Graph: 2 vertices, 2 stored edges, undirected, float64 weights>
    """
    from gpu_pregel.io._options import ReadOptions

    name = as_path(path)
    chosen = _format_to_read(name, format)
    if directed is not None:
        check_flag("directed", directed)
    check_combine(combine)
    check_choice("self_loops", self_loops, ("keep", "drop"))
    check_renumber(renumber)
    for option, given in (
        ("num_vertices", num_vertices is not None),
        ("renumber", renumber != "auto"),
        ("source", source is not None),
        ("target", target is not None),
        ("header", header != "auto"),
        ("comments", comments != "auto"),
        ("separator", separator is not None),
        ("id_type", id_type != "auto"),
    ):
        if given and option not in FORMATS[chosen].options:
            raise ArgumentError(f"the format {chosen} does not support {option}=: omit it")
    if header != "auto" or not isinstance(header, str):
        check_flag("header", header)
    if separator is not None:
        check_choice("separator", separator, (",", ";", "\t", " "))
    check_choice("id_type", id_type, ("auto", "int", "str"))
    if comments != "auto" or not isinstance(comments, str):
        check_flag("comments", comments)
    options = ReadOptions(
        format=chosen,
        directed=directed,
        weight=_weight_column(weight, chosen),
        weight_dtype=None if weight_dtype is None else _weight_dtype(weight_dtype),
        num_vertices=None if num_vertices is None else check_num_vertices(num_vertices),
        renumber=renumber,
        combine=combine,
        self_loops=self_loops,
        threads=thread_count(threads),
        progress=progress,
        source=_end_column("source", source),
        target=_end_column("target", target),
        header=header,
        comments=comments,
        separator=separator,
        id_type=id_type,
        max_line_bytes=check_integer("max_line_bytes", max_line_bytes, 1),
        mmap=check_flag("mmap", mmap),
    )
    check_source(name)
    graph: Graph = _module(chosen).read(name, options)
    return graph


def save_graph(
    graph: Graph,
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    lossy: bool = False,
    formulas: str = "keep",
) -> None:
    """Write a graph to a file, completely or not at all, and without losing anything unless ``lossy``.

    ======================  =========================================  ================  ========================
    format                  ids                                        isolated          weights
                                                                       vertices
    ======================  =========================================  ================  ========================
    .csv .tsv               integers or strings                        refused           yes
    .txt .snap .edges       integers, or strings without blanks        unless there are  yes
    .edgelist .wel                                                     ids [1]_
    .el                     as .txt                                    as .txt           refused
    matrix-market           refused                                    yes               yes
    metis                   refused                                    yes               positive integers
    graphalytics            integers                                   yes               yes
    gemini                  refused                                    refused           refused
    gemini-weighted         refused                                    refused           float32
    gapbs                   refused                                    yes               int32 (.wsg), else refused
    parquet                 integers, strings, floats, datetime64      yes               yes, with their dtype
    pregel                  integers, strings                          yes               yes, with their dtype
    ======================  =========================================  ================  ========================

    "Refused" is an error that names a format that can hold the graph. No format holds tuples or ids of several types;
    convert them to strings. Only .txt and .snap (in the first line, as a comment), matrix-market, graphalytics, gapbs,
    parquet and pregel files hold the direction; pass ``directed=True`` to read a directed graph from the others. (metis
    files hold undirected graphs without self-loops.)
    Text holds no dtype of weights; pass ``weight_dtype=``. An undirected edge is written once if the format allows it.
    The vertices of a file other than .pregel may be numbered in another order than those of the graph; their ids are
    the same.

    .. [1] Their number is written to the last line, as a comment.

    Parameters
    ----------
    graph : Graph
    path : path
        An existing file is replaced.
    format : str, optional
        See :func:`read_graph`. Default: selected by the suffix.
    lossy : bool, default False
        Write what the format can hold: vertex numbers instead of ids, no isolated vertices, no weights or rounded ones.
    formulas : {"keep", "escape"}
        "escape" writes an apostrophe before ids that a spreadsheet would compute, in .csv and .tsv files: strings that
        begin with ``=``, ``+``, ``-``, ``@``, a tab or the end of a line, also after apostrophes. The file is read
        with these apostrophes. Numbers stay numbers.

    Raises
    ------
    FormatError
        The format cannot hold the graph; nothing is written.
    WriteError
        The file cannot be written; no partial file remains.

    Examples
    --------
    >>> import gpu_pregel as gp, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> graph = gp.Graph.from_edgelist(["ann"], ["bob"])
    >>> graph.save(folder / "pair.pregel")
    >>> gp.read_graph(folder / "pair.pregel")
    <Graph: 2 vertices, 2 stored edges, undirected>
    >>> graph.save(folder / "pair.mtx")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    gpu_pregel.errors.FormatError: ...pair.mtx: matrix-market files hold vertex numbers, not ids: save as .pregel, ...
    """
    name = as_path(path)
    chosen = choose_format(name, format)
    check_target(name)
    check_flag("lossy", lossy)
    escape = check_formulas(formulas, name)
    written = without_losses(graph, name, chosen, lossy=lossy)
    _module(chosen).write(_with_escaped_ids(written) if escape else written, name, chosen)


def _with_escaped_ids(graph: Graph) -> Graph:
    """Return a graph to be written whose ids are escaped for spreadsheets."""
    if graph.ids is None or graph.ids.dtype.kind in "iu":
        return graph
    import pyarrow as pa

    from gpu_pregel.host.graphs.graph import Graph

    ids = escape_formulas(pa.array(graph.ids)).to_pylist()
    return Graph(graph.to_csr(), directed=graph.is_directed, ids=np.fromiter(ids, object, len(ids)))


def check_output(
    path: str | os.PathLike[str], format: str | None = None, *, directed: bool = False, formulas: str = "keep"
) -> None:
    """Raise the errors of :func:`save_graph` for these arguments and this direction, before a graph is computed.

    Raises
    ------
    ArgumentError
        ``formulas`` is not for such a file.
    FormatError
        The suffix is unknown, or the format cannot hold directed graphs.
    WriteError
        The folder does not exist or is not writable.

    Examples
    --------
    >>> check_output("graph.docx")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    ...
    gpu_pregel.errors.FormatError: graph.docx: unknown suffix '.docx': ...
    """
    name = as_path(path)
    chosen = choose_format(name, format)
    if directed and FORMATS[chosen].undirected:
        raise FormatError(name, f"{chosen} files cannot hold directed graphs: {DIRECTED}")
    check_formulas(formulas, name)
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
    name = as_path(path)
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


def _weight_column(weight: object, format: str) -> str | int | None:
    if weight is not None and (isinstance(weight, bool) or not isinstance(weight, (str, int))):
        raise ArgumentTypeError(f"weight must be the name or position of a column, 'auto' or None, not {weight!r:.80}")
    if weight not in (None, "auto") and "source" not in FORMATS[format].options:
        raise ArgumentError(f"the format {format} has no columns to choose from: omit weight={weight!r:.80}")
    return weight


def _end_column(name: str, column: object) -> str | int | None:
    if column is not None and (isinstance(column, bool) or not isinstance(column, (str, int))):
        raise ArgumentTypeError(f"{name} must be the name or position of a column, not {column!r:.80}")
    return column
