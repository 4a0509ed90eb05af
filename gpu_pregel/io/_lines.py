"""Lines of numbers, read block by block: Arrow parses a block, Python finds the line at fault or parses odd ones."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np

from gpu_pregel.errors import FormatError
from gpu_pregel.host.devices.memory import require_memory
from gpu_pregel.host.graphs.csr import building_memory
from gpu_pregel.host.superstep.progress import ProgressBar
from gpu_pregel.io._files import Source
from gpu_pregel.io._options import cast_weights, weight_fault

Array = np.ndarray[Any, Any]
Block = tuple[bytes, int]
"""Whole lines, and the number of the first."""

_BLOCK_BYTES = 16 << 20
_ARROW_BYTES = 4 << 20
_LONGEST_LINE = 1 << 30
_MOST_DIGITS = 1000
"""Numbers of more are none that any file means, and Python refuses to convert some thousands of digits."""
_BOM = b"\xef\xbb\xbf"
_INT64 = np.iinfo(np.int64)
_UINT32_MAX = int(np.iinfo(np.uint32).max)


def line_blocks(source: Source) -> Iterator[Block]:
    """The file's text in blocks that end where a line ends."""
    rest, number = source.read(_BLOCK_BYTES).removeprefix(_BOM), 1
    if b"\n" not in rest and b"\r" in rest.strip():
        raise FormatError(source.path, "carriage returns alone end no line: end lines with line feeds", 1)
    while rest:
        data = source.read(_BLOCK_BYTES)
        cut = rest.rfind(b"\n") + 1 if data else len(rest)
        if cut:
            block, rest = (rest, data) if cut == len(rest) else (rest[:cut], rest[cut:] + data)
            yield block, number
            number += int(np.count_nonzero(np.frombuffer(block, np.uint8) == ord("\n")))
        elif len(rest) > _LONGEST_LINE:
            raise FormatError(source.path, f"is longer than {_LONGEST_LINE:,} bytes: is this text?", number)
        else:
            rest += data


def first_data_line(blocks: Iterator[Block], comments: bytes) -> tuple[bytes, int, Iterator[Block]]:
    """The first line that is neither blank nor a comment, its number, and the blocks from this line on."""
    for block, number in blocks:
        start = 0
        while start < len(block):
            end = block.find(b"\n", start) + 1 or len(block)
            line = block[start:end].strip()
            if line and line[:1] not in comments:
                return line, number, chain([(block[start:], number)], blocks)
            start, number = end, number + 1
    return b"", 0, iter(())


def header_numbers(line: bytes) -> list[int] | None:
    """The numbers of a header, none negative; None if it holds anything else."""
    fields = line.split()
    if not all(field.isdigit() and len(field) <= _MOST_DIGITS for field in fields):
        return None
    return [int(field) for field in fields]


def without_first_line(blocks: Iterator[Block]) -> Iterator[Block]:
    """The blocks less their first line."""
    for block, number in blocks:
        end = block.find(b"\n") + 1 or len(block)
        yield block[end:], number + 1
        break
    yield from blocks


@dataclass(frozen=True)
class Layout:
    """What a line holds: one or two ids, perhaps a weight, perhaps more columns, which are not looked at."""

    columns: int
    reason: str
    """Why there must be so many columns, for the message where there are not."""
    ids: int = 2
    weight: np.dtype[Any] | None = None
    separator: bytes | None = None
    """None: runs of blanks and tabs."""
    comments: bytes = b""
    first: int | None = 0
    """The smallest id; None for no limit."""
    last: int | None = None
    last_reason: str = ""

    def split(self, line: bytes) -> list[bytes]:
        """The columns of a line."""
        return [field.strip() for field in line.split(self.separator)]


class LineParser:
    """Parses blocks of lines of one layout into arrays, one per id column (int64) and one of weights."""

    def __init__(self, path: str, layout: Layout, *, threads: int) -> None:
        self._path = path
        self._layout = layout
        self._threads = threads
        self._irregular = False

    def parse(self, block: bytes, number: int) -> list[list[Array]]:
        """The columns of a block, in batches; ``FormatError`` with the line if one is at fault."""
        import pyarrow as pa

        batches = None
        if not self._irregular:
            try:
                batches = self._parse_by_arrow(block, self._layout.separator or _separator(block))
            except pa.ArrowInvalid:
                self._irregular = True
        if batches is None:
            text = self._normalised(block)
            try:
                batches = self._parse_by_arrow(text, self._layout.separator or b" ") if text.strip() else []
            except pa.ArrowInvalid:
                batches = None
        if batches is None or not all(self._is_valid(batch) for batch in batches):
            return [self._parse_by_line(block, number)]
        return batches

    def _parse_by_arrow(self, text: bytes, separator: bytes) -> list[list[Array]]:
        layout = self._layout
        types = ["int64"] * layout.ids
        if layout.weight is not None:
            types.append("int64" if layout.weight.kind in "iu" else "float64")
        return parse_by_arrow(text, separator, types, layout.columns, threads=self._threads)

    def _normalised(self, block: bytes) -> bytes:
        """The lines with one separator between columns and nothing else that Arrow does not know."""
        text = block.replace(b"\r\n", b"\n")
        comments = re.escape(self._layout.comments)
        if comments and any(bytes([mark]) in text for mark in self._layout.comments):
            text = re.sub(rb"(?m)^[ \t]*[" + comments + rb"][^\n]*\n?", b"", text)
        if self._layout.separator is not None:
            return text.replace(b'"', b"")
        text = text.replace(b"\t", b" ")
        while b"  " in text:
            text = text.replace(b"  ", b" ")
        return text.replace(b" \n", b"\n").replace(b"\n ", b"\n").strip(b" ")

    def _is_valid(self, batch: list[Array]) -> bool:
        """Whether all ids and weights of a batch are within their limits; casts the weights."""
        layout = self._layout
        for ids in batch[: layout.ids] if len(batch[0]) else []:
            if layout.first is not None and ids.min() < layout.first:
                return False
            if layout.last is not None and ids.max() > layout.last:
                return False
        if layout.weight is not None:
            batch[layout.ids], fault = cast_weights(batch[layout.ids], layout.weight)
            return fault < 0
        return True

    def _parse_by_line(self, block: bytes, number: int) -> list[Array]:
        layout = self._layout
        rows: list[list[Any]] = [[] for _ in range(layout.ids + (layout.weight is not None))]
        for offset, raw in enumerate(block.split(b"\n")):
            line = raw.strip()
            if not line or line[:1] in layout.comments:
                continue
            try:
                for row, value in zip(rows, self._parse_line(line), strict=True):
                    row.append(value)
            except ValueError as error:
                raise FormatError(self._path, str(error), number + offset) from None
        columns = [np.array(row, np.int64) for row in rows[: layout.ids]]
        return columns + [np.array(row, layout.weight) for row in rows[layout.ids :]]

    def _parse_line(self, line: bytes) -> list[Any]:
        """The ids and the weight of a line, or a ``ValueError`` that says what is wrong with it."""
        layout = self._layout
        if layout.separator is not None:
            line = line.replace(b'"', b"")
        fields = layout.split(line)
        if len(fields) < layout.ids:
            wanted = "a source and a destination" if layout.ids == 2 else "an id"
            raise ValueError(f"{_count(len(fields), 'column')} ({_shown(line)}), but {wanted} are needed")
        values: list[Any] = [self._parse_id(field) for field in fields[: layout.ids]]
        if len(fields) != layout.columns:
            raise ValueError(f"{_count(len(fields), 'column')} ({_shown(line)}), but {layout.reason}")
        if layout.weight is not None:
            values.append(_parse_weight(fields[layout.ids], layout.weight))
        return values

    def _parse_id(self, field: bytes) -> int:
        layout = self._layout
        if not re.fullmatch(rb"[+-]?[0-9]+", field):
            problem = "has a fraction" if re.fullmatch(rb"[+-]?[0-9]*\.[0-9]*", field) else "is not an integer"
            raise ValueError(f"the id {_shown(field)} {problem}: text formats hold integer ids")
        value = int(field) if len(field) <= _MOST_DIGITS else None
        if value is None or not _INT64.min <= value <= _INT64.max:
            raise ValueError(f"the id {_shown(field)} is beyond 64 bits (signed): renumber the vertices")
        if layout.first == 0 and value < 0:
            raise ValueError(f"the id {value} is negative: ids count from 0")
        if layout.first is not None and value < layout.first:
            raise ValueError(f"the id {value} is too small: ids count from {layout.first}")
        if layout.last is not None and value > layout.last:
            raise ValueError(f"the id {value} is too large: {layout.last_reason}")
        return value


def parse_by_arrow(text: bytes, separator: bytes, types: list[str], columns: int, *, threads: int) -> list[list[Array]]:
    """The first columns of lines of so many columns, in batches; ``pyarrow.ArrowInvalid`` where they are not such."""
    import pyarrow as pa
    import pyarrow.csv

    if b"x" in text or b"X" in text:
        raise pa.ArrowInvalid("Arrow would take hexadecimal numbers")
    if b"\r" in text and text.count(b"\r") != text.count(b"\r\n"):
        raise pa.ArrowInvalid("Arrow would take a carriage return for the end of a line")
    names = [str(column) for column in range(columns)]
    used = dict(zip(names, map(pa.type_for_alias, types), strict=False))
    table = pa.csv.read_csv(
        pa.BufferReader(text),
        pa.csv.ReadOptions(use_threads=threads > 1, block_size=_ARROW_BYTES, column_names=names),
        pa.csv.ParseOptions(delimiter=separator.decode(), quote_char=False),
        pa.csv.ConvertOptions(column_types=used, include_columns=list(used), null_values=[]),
    )
    # Arrow's to_numpy would import pandas, which takes longer than most files.
    return [[np.from_dlpack(column) for column in batch.columns] for batch in table.to_batches()]


def line_of_row(path: str, row: int, comments: bytes, *, skip: int = 0, blank_rows: bool = False) -> int:
    """The number of the line that holds ``row``, counted from 0 without comments and the first ``skip`` lines.

    Blank lines are rows only if ``blank_rows``.
    """
    with Source(path) as source:
        for block, number in line_blocks(source):
            for offset, raw in enumerate(block.removesuffix(b"\n").split(b"\n")):
                line = raw.strip()
                if line[:1] in comments if line else not (blank_rows and skip == 0):
                    continue
                if skip:
                    skip -= 1
                elif row == 0:
                    return number + offset
                else:
                    row -= 1
    raise AssertionError("the file has fewer rows")


def _separator(block: bytes) -> bytes:
    """What the first line has between its columns, one tab or else blanks."""
    line = block[: block.find(b"\n") + 1 or len(block)]
    return b"\t" if b"\t" in line and b" " not in line else b" "


def _parse_weight(field: bytes, dtype: np.dtype[Any]) -> Any:
    text = field.decode("ascii", "replace")
    try:
        if re.search(r"[^0-9a-zA-Z.+-]", text):
            raise ValueError
        value = int(text) if dtype.kind in "iu" and re.fullmatch(r"[+-]?[0-9]+", text) else float(text)
    except ValueError:
        raise ValueError(f"the weight {_shown(field)} is not a number") from None
    if isinstance(value, int):
        if not np.iinfo(dtype).min <= value <= np.iinfo(dtype).max:
            raise ValueError(weight_fault(value, dtype))
        return value
    cast, fault = cast_weights(np.array([value]), dtype)
    if fault >= 0:
        raise ValueError(weight_fault(value, dtype))
    return cast[0]


def _shown(text: bytes) -> str:
    shown = text[:40].decode("utf-8", "backslashreplace")
    return repr(shown) + ("…" if len(text) > 40 else "")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


class Growing:
    """An array that values are added to; ids are kept in 32 bits until one needs more."""

    def __init__(self, dtype: np.dtype[Any], room: int) -> None:
        self._array = np.empty(room, dtype)
        self.length = 0

    def add(self, values: Array) -> None:
        """Append values."""
        end = self.length + len(values)
        if end > len(self._array):
            self._array.resize(end + end // 8, refcheck=False)
        narrow = self._array.dtype == np.uint32 and values.dtype == np.int64 and len(values) > 0
        # A negative number is a large one as uint64.
        if narrow and values.view(np.uint64).max() > _UINT32_MAX:
            self._array = self._array.astype(np.int64)
        self._array[self.length : end] = values
        self.length = end

    def finish(self) -> Array:
        """The array; nothing can be added any more."""
        self._array.resize(self.length, refcheck=False)
        return self._array


def read_lines(source: Source, blocks: Iterator[Block], layout: Layout, *, threads: int, progress: bool) -> list[Array]:
    """Parse all blocks: the id columns, uint32 or int64, and the weights if the layout has any.

    The memory that the graph will take is asked for once the first block tells how long the lines are.
    """
    parser = LineParser(source.path, layout, threads=threads)
    dtypes = [np.dtype(np.uint32)] * layout.ids + ([layout.weight] if layout.weight is not None else [])
    columns: list[Growing] = []
    with ProgressBar("reading", shown=progress) as bar:
        for block, number in blocks:
            batches = parser.parse(block, number)
            if not columns:
                rows = sum(len(batch[0]) for batch in batches)
                room = _expected_rows(source, rows, len(block), sum(dtype.itemsize for dtype in dtypes))
                columns = [Growing(dtype, room) for dtype in dtypes]
            for batch in batches:
                for column, values in zip(columns, batch, strict=True):
                    column.add(values)
            if bar.tick and source.size:
                bar.tick(source.position, source.size)
    return [column.finish() for column in columns] or [np.empty(0, dtype) for dtype in dtypes]


def _expected_rows(source: Source, rows: int, block_bytes: int, row_bytes: int) -> int:
    """How many rows the file will have, told by its first block, with a little to spare."""
    if not source.position or not block_bytes:
        return rows
    text_bytes = source.delivered * source.size / source.position
    expected = int(rows * text_bytes / block_bytes * 1.02)
    if expected < 2 * rows:
        return rows
    require_memory(expected * row_bytes + building_memory(0, expected), f"reading {source.path}")
    return expected
