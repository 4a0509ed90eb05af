"""Reads text edge lists whose ids may be names: by kernels, or through Arrow's CSV reader what they cannot handle."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, TypeAlias

import numpy as np

from gpu_pregel.errors import FormatError
from gpu_pregel.host.devices.threads import thread_count
from gpu_pregel.host.graphs.string_table import StringTable
from gpu_pregel.host.superstep.progress import ProgressBar
from gpu_pregel.io._files import Source
from gpu_pregel.io._head import Head, check_rows, read_head
from gpu_pregel.io._lines import line_blocks, may_be_inexact, normalize, parse_weight
from gpu_pregel.io._names import NumberedIds, as_integers, has_odd_integers, number_ids
from gpu_pregel.io._options import ReadOptions, cast_weights, weight_fault
from gpu_pregel.io._rows import RowParser, can_parse, text_parts

if TYPE_CHECKING:
    import pyarrow

Array = np.ndarray[Any, Any]

Parsed: TypeAlias = "tuple[NumberedIds | None, Array | None]"

_BLOCK_BYTES = 1 << 20


class TextEdges(NamedTuple):
    """Sources and destinations, arrays of integers, and the weights if any.

    With ``names``, the integers are positions among them.
    """

    src: Any
    dst: Any
    weight: Array | None
    names: pyarrow.Array | None = None


class TableReader:
    """Reads one file; faults are located by reading it again, line by line."""

    def __init__(self, source: Source, options: ReadOptions) -> None:
        self._source = source
        self._options = options
        self._threads = thread_count(options.threads)

    def read(self, head: Head) -> TextEdges:
        """Read all rows. If every id is an integer, the ids are integers; otherwise all of them are strings."""
        layout = head.layout
        ids, weight = self._parse(head)
        if ids is None:
            empty = np.empty(0, np.uint32)
            return TextEdges(empty, empty, weight)
        if ids.names.index("").as_py() >= 0:
            self._fail("an id is missing", names=True)
        wanted = self._options.id_type
        try:
            integers = None if wanted == "str" else as_integers(ids.names)
        except ValueError as error:
            self._fail(str(error), names=False)
        if integers is None and wanted == "int":
            self._fail("id_type='int', but an id is a name", names=False)
        if integers is not None and layout.has_exact_ids and has_odd_integers(ids.names):
            self._fail("an id has leading zeros or a sign: pass id_type='str' or id_type='int'", names=False)
        if integers is None and layout.last is not None:
            self._fail(f"num_vertices= requires integer ids, but there are names: {layout.last_reason}", names=False)
        if integers is None:
            return TextEdges(ids.src, ids.dst, weight, ids.names)
        if layout.last is not None and (integers.min() < 0 or integers.max() > layout.last):
            self._fail("an id is out of range", names=False)
        return TextEdges(integers[ids.src], integers[ids.dst], weight)

    def _parse(self, head: Head) -> Parsed:
        """Return the ids, None if there are no rows, and the weights."""
        import pyarrow as pa

        path, dtype = self._source.path, head.layout.weight
        as_text = dtype is not None and dtype.kind in "iu"
        if not self._source.is_regular:
            try:
                return self._parse_by_arrow(head, as_text=as_text, quotes=head.has_quotes)
            except (pa.ArrowInvalid, ValueError) as error:
                raise FormatError(path, f"{error}: save the text to a regular file to learn the line") from error
        if can_parse(head.layout):
            parsed = self._parse_by_kernels(head)
            if parsed is not None:
                return parsed
        # Arrow takes quoted line feeds and quotes, but fewer forms of numbers than the grammar.
        for is_last in (as_text, True) if not as_text else (True,):
            try:
                with Source(path) as source:
                    again = read_head(path, self._options, line_blocks(source, longest=self._options.max_line_bytes))
                    return self._parse_by_arrow(again, as_text=is_last, quotes=True)
            except (pa.ArrowInvalid, ValueError) as error:
                if is_last:
                    self._fail(str(error), names=True)
        raise AssertionError("the last attempt returns or raises")

    def _parse_by_kernels(self, head: Head) -> Parsed | None:
        """Parse all rows; return None if a row is faulty or not simple enough for the kernels."""
        import pyarrow as pa

        parser = RowParser(head.layout, self._threads)
        with ProgressBar("reading", shown=self._options.progress) as bar:
            for text, done in text_parts(self._source, head, self._options.max_line_bytes):
                if not parser.parse(text):
                    return None
                bar.update(done, self._source.size)
        dtype = head.layout.weight
        src, dst, values = parser.columns()
        weight = None
        if dtype is not None:
            # The kernels accept finite float64 only.
            weight, fault = (values, -1) if dtype == np.float64 else cast_weights(values, dtype)
            if fault >= 0 or may_be_inexact(values, dtype):
                return None
        try:
            return (number_ids(parser.table, src, dst) if len(src) else None), weight
        except pa.ArrowInvalid:  # not UTF-8
            return None

    def _parse_by_arrow(self, head: Head, *, as_text: bool, quotes: bool) -> Parsed:
        """Parse all rows, or raise ``ValueError``; ``as_text`` parses the weights in a second step.

        Without ``quotes``, which make Arrow slower as quoted fields may span lines, a quote is a ``ValueError``.
        """
        import pyarrow as pa
        import pyarrow.csv

        layout = head.layout
        columns = [str(position) for position in range(layout.columns)]
        used = {columns[position]: pa.large_string() for position in layout.positions}
        if layout.weight is not None and not as_text:
            used[columns[layout.positions[2]]] = pa.float64()
        with ProgressBar("reading", shown=self._options.progress) as bar:
            table = pa.csv.read_csv(
                pa.PythonFile(_TableText(self._source, head, bar, quotes=quotes), "r"),
                pa.csv.ReadOptions(use_threads=self._threads > 1, block_size=_BLOCK_BYTES, column_names=columns),
                pa.csv.ParseOptions(
                    delimiter=(layout.separator or b" ").decode(),
                    quote_char=False if layout.separator is None else '"',
                    newlines_in_values=quotes and layout.separator is not None,
                    invalid_row_handler=_skip_blank_rows if layout.comments else _skip_blank_lines,
                ),
                pa.csv.ConvertOptions(column_types=used, include_columns=list(used), null_values=[]),
            )
        weight = None if layout.weight is None else _weights(table.column(2), layout.weight)
        if table.num_rows == 0:
            return None, weight
        strings = StringTable(self._threads)
        src, dst = (strings.add(table.column(end), end, 2) for end in range(2))
        return number_ids(strings, src, dst), weight

    def _fail(self, problem: str, *, names: bool) -> NoReturn:
        """Raise ``FormatError`` with the line of the first faulty row, which is found by reading the file again."""
        path = self._source.path
        if self._source.is_regular:
            with Source(path) as source:
                head = read_head(path, self._options, line_blocks(source, longest=self._options.max_line_bytes))
                check_rows(path, head.blocks, head.layout, names=names)
        raise FormatError(path, problem)


def _weights(column: pyarrow.ChunkedArray, dtype: np.dtype[Any]) -> Array:
    """Return the weights, or raise ``ValueError``."""
    import pyarrow as pa

    if pa.types.is_large_string(column.type):
        values = _integers(column)
        if values is None or dtype.kind == "f":
            return np.array([parse_weight(text.strip().encode(), dtype) for text in column.to_pylist()], dtype)
    else:
        values = _joined(column, np.float64)
        if may_be_inexact(values, dtype):
            raise ValueError("a weight may be rounded")
    cast, fault = cast_weights(values, dtype)
    if fault >= 0:
        raise ValueError(weight_fault(values[fault], dtype))
    return cast


def _integers(column: pyarrow.ChunkedArray) -> Array | None:
    """Return the strings as int64, or None if one is not a decimal integer of 64 bits."""
    import pyarrow as pa
    import pyarrow.compute

    if pa.compute.any(pa.compute.match_substring(column, "x", ignore_case=True)).as_py():
        return None  # Arrow accepts hexadecimal numbers.
    try:
        return _joined(column.cast(pa.int64()), np.int64)
    except pa.ArrowInvalid:
        return None


def _joined(column: pyarrow.ChunkedArray, dtype: Any) -> Array:
    # Arrow's to_numpy would import pandas.
    return np.concatenate([np.empty(0, dtype), *(np.from_dlpack(chunk) for chunk in column.chunks if len(chunk))])


def _skip_blank_lines(row: Any) -> str:
    return "error" if row.text.strip() else "skip"


def _skip_blank_rows(row: Any) -> str:
    text = row.text.strip()
    return "skip" if not text or text[0] in "#%" else "error"


class _TableText:
    """A file object for Arrow: the text of a table without comments."""

    closed = False

    def __init__(self, source: Source, head: Head, bar: ProgressBar, *, quotes: bool) -> None:
        self._source = source
        self._layout = head.layout
        self._blocks = head.blocks
        self._bar = bar
        self._rest = memoryview(b"")
        self._quotes = quotes
        self._in_quotes = False

    def read(self, size: int = -1) -> memoryview:
        """Return up to ``size`` bytes; empty at the end."""
        while not self._rest:
            block = next(self._blocks, None)
            if block is None:
                if self._in_quotes:
                    raise ValueError("a quote is not closed, or the number of quotes is odd: check the quotes")
                return self._rest
            self._rest = memoryview(self._clean(block[0]))
            if self._source.size:
                self._bar.update(self._source.position, self._source.size)
        part, self._rest = self._rest[:size], self._rest[size:]
        return part

    def _clean(self, block: bytes) -> bytes:
        if b"\r" in block and block.count(b"\r") != block.count(b"\r\n"):
            raise ValueError("a carriage return alone does not end a line: use line feeds")
        if self._layout.separator is None:
            return normalize(block, self._layout)
        if self._layout.comments and (b"#" in block or b"%" in block):
            block = self._without_comments(block)
        if b'"' in block:
            if not self._quotes:
                raise ValueError("there are quotes")
            self._in_quotes ^= block.count(b'"') % 2 == 1
        return block

    def _without_comments(self, block: bytes) -> bytes:
        """Remove the lines that start with a comment mark outside quotes."""
        letters = np.frombuffer(block, np.uint8)
        marks = np.flatnonzero((letters == ord("#")) | (letters == ord("%")))
        kept, begin, in_quotes = [], 0, self._in_quotes
        for mark in marks[(marks == 0) | (letters[marks - 1] <= ord(" "))].tolist():
            start = block.rfind(b"\n", 0, mark) + 1
            if start < begin or block[start:mark].strip():
                continue
            in_quotes ^= block.count(b'"', begin, start) % 2 == 1
            if self._layout.is_strict and not in_quotes:
                raise ValueError("a line starts with a comment mark: pass comments=True or comments=False")
            kept.append(block[begin:start])
            begin = start
            if not in_quotes:
                begin = block.find(b"\n", mark) + 1 or len(block)
        return b"".join([*kept, block[begin:]])
