"""Reads lines of numbers block by block: Arrow parses most blocks, Python irregular ones and those with errors."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import chain
from typing import Any, NoReturn

import numpy as np

from gpu_pregel.errors import FormatError
from gpu_pregel.host.devices.memory import require_memory
from gpu_pregel.host.graphs.csr import building_memory
from gpu_pregel.host.superstep.progress import ProgressBar
from gpu_pregel.io._files import Source
from gpu_pregel.io._options import cast_weights, in_range, weight_fault

Array = np.ndarray[Any, Any]
Block = tuple[bytes, int]
"""Complete lines, and the number of the first."""

_BLOCK_BYTES = 16 << 20
_ARROW_BYTES = 4 << 20
_LONGEST_ROW = 1 << 30
"""Bytes of a line where each is the row of a vertex."""
_MOST_LINES = 1 << 12
"""Almost all lines have fewer bytes."""
_BEFORE_COLUMNS = np.frombuffer(b' \t,;\n"+-', np.uint8)
_PART = 1 << 16
_LEADING_ZEROS = re.compile(rb"0[0-9]+(?![^ \t,;\r\n\"])")
_SIGNED = re.compile(rb"[+-](?<![^ \t,;\n\"][+-])(?:(?<=\+)[0-9]+|(?<=-)0)(?![^ \t,;\r\n\"])")
_EXACT = 2.0**53
"""float64 represents all integers up to this one."""
_MOST_DIGITS = 1000
"""Longer numbers are errors; Python refuses to convert several thousand digits."""
BOM = b"\xef\xbb\xbf"
"""The byte order mark of UTF-8, which may begin a text."""
_INT64 = np.iinfo(np.int64)
_UINT32_MAX = int(np.iinfo(np.uint32).max)


def line_blocks(source: Source, block_bytes: int | None = None, *, longest: int = _LONGEST_ROW) -> Iterator[Block]:
    """Yield the text of the file in blocks of complete lines, none of which has more than ``longest`` bytes."""
    size = block_bytes or _BLOCK_BYTES
    data, number = source.read(size).removeprefix(BOM), 1
    if b"\n" not in data and b"\r" in data.strip():
        raise FormatError(source.path, "a carriage return alone does not end a line: use line feeds", 1)
    line: list[bytes] = []
    length = 0
    while data:
        following = source.read(size)
        cut = data.rfind(b"\n") + 1 if following else len(data)
        if cut:
            block = b"".join([*line, data[:cut]])
            line, length = [data[cut:]], len(data) - cut
            check_lines(source.path, block, number, longest)
            yield block, number
            number += int(np.count_nonzero(np.frombuffer(block, np.uint8) == ord("\n")))
        else:
            line.append(data)
            length += len(data)
        if length > longest:
            _refuse_line(source.path, number, longest)
        data = following


def check_lines(path: str, text: Any, number: int, longest: int) -> None:
    """Raise ``FormatError`` if a line of ``text``, bytes or uint8, has too many bytes; ``number`` is the first line's.

    Such a line contains a position that is a multiple of ``longest``; only what is around these is read.
    """
    for middle in range(longest, len(text), longest):
        for width in (_MOST_LINES, longest + 1):
            begin, end = max(0, middle - width), min(len(text), middle + width)
            before, after = bytes(text[begin:middle]).rfind(b"\n"), bytes(text[middle:end]).find(b"\n")
            if (before >= 0 or begin == 0) and (after >= 0 or end == len(text)):
                break
        start = begin + before + 1
        if (middle + after if after >= 0 else end) - start > longest:
            _refuse_line(path, number + bytes(text[:start]).count(b"\n"), longest)


def _refuse_line(path: str, number: int, longest: int) -> NoReturn:
    raise FormatError(
        path, f"the line is longer than {longest:,} bytes: check that this is text, or pass max_line_bytes=", number
    )


def first_data_line(blocks: Iterator[Block], comments: bytes) -> tuple[bytes, int, Iterator[Block]]:
    """Return the first line that is neither blank nor a comment, its number, and the blocks starting with it."""
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
    """Return the non-negative numbers of a header, or None if it contains anything else."""
    fields = line.split()
    if not all(field.isdigit() and len(field) <= _MOST_DIGITS for field in fields):
        return None
    return [int(field) for field in fields]


def without_first_line(blocks: Iterator[Block]) -> Iterator[Block]:
    """Yield the blocks without their first line."""
    for block, number in blocks:
        end = block.find(b"\n") + 1 or len(block)
        yield block[end:], number + 1
        break
    yield from blocks


@dataclass(frozen=True)
class Layout:
    """The columns of a line: one or two ids, optionally a weight, and further columns, which are ignored."""

    columns: int
    reason: str
    """Why this number of columns is expected, for error messages."""
    ids: int = 2
    weight: np.dtype[Any] | None = None
    separator: bytes | None = None
    """None stands for runs of blanks and tabs."""
    comments: bytes = b""
    is_strict: bool = False
    """Whether comments may only stand before the first row."""
    has_exact_ids: bool = False
    """Whether ids that integers do not keep, such as 007, +7 and -0, are errors."""
    first: int | None = 0
    """The smallest valid id; None for no limit."""
    last: int | None = None
    last_reason: str = ""
    positions: tuple[int, ...] = (0, 1, 2)
    """Where the ids and the weight are."""
    names: tuple[str, ...] | None = None
    """The names of all columns, if the file has a header."""

    @property
    def dtypes(self) -> list[np.dtype[Any]]:
        """The initial dtypes of the arrays: one per id column and one for the weights."""
        return [np.dtype(np.uint32)] * self.ids + ([] if self.weight is None else [self.weight])

    def place(self, role: int) -> str:
        """Return the name of the column of the source, target or weight (0, 1, 2), to begin a message with."""
        return "" if self.names is None else f"column {self.names[self.positions[role]]!r}: "

    def split(self, line: bytes) -> list[bytes]:
        """Return the columns of a line."""
        return [field.strip() for field in line.split(self.separator)]


class LineParser:
    """Parses blocks of lines with one layout into arrays: one per id column (int64) and one for the weights."""

    def __init__(self, path: str, layout: Layout, *, threads: int) -> None:
        self._path = path
        self._layout = layout
        self._threads = threads
        self._irregular = False

    def parse(self, block: bytes, number: int) -> list[list[Array]]:
        """Return the columns of a block in batches, or raise ``FormatError`` with the number of the faulty line."""
        import pyarrow as pa

        batches = None
        if self._layout.has_exact_ids and has_odd_integers(block):
            return [self._parse_by_line(block, number)]
        if not self._irregular:
            try:
                batches = self._parse_by_arrow(block, self._layout.separator or _separator(block))
            except pa.ArrowInvalid:
                self._irregular = True
        if batches is None:
            text = normalize(block, self._layout)
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
        used = dict(zip(layout.positions, types, strict=False))
        return parse_by_arrow(text, separator, used, layout.columns, threads=self._threads)

    def _is_valid(self, batch: list[Array]) -> bool:
        """Return whether all ids and weights of a batch are within their limits; cast the weights in place."""
        layout = self._layout
        for ids in batch[: layout.ids] if len(batch[0]) else []:
            if layout.first is not None and ids.min() < layout.first:
                return False
            if layout.last is not None and ids.max() > layout.last:
                return False
        if layout.weight is not None:
            weights = batch[layout.ids]
            batch[layout.ids], fault = cast_weights(weights, layout.weight)
            return fault < 0 and not may_be_inexact(weights, layout.weight)
        return True

    def _parse_by_line(self, block: bytes, number: int) -> list[Array]:
        layout = self._layout
        rows: list[list[Any]] = [[] for _ in range(layout.ids + (layout.weight is not None))]
        for offset, raw in enumerate(block.split(b"\n")):
            line = raw.strip()
            if not line or (line[:1] in layout.comments and not layout.is_strict):
                continue
            try:
                fields = self._layout.split(line)
                for row, value in zip(rows, parse_fields(fields, line, layout), strict=True):
                    row.append(value)
            except ValueError as error:
                raise FormatError(self._path, str(error), number + offset) from None
        columns = [np.array(row, np.int64) for row in rows[: layout.ids]]
        return columns + [np.array(row, layout.weight) for row in rows[layout.ids :]]


def has_odd_integers(block: bytes) -> bool:
    """Return whether a column is an integer with leading zeros, a plus sign, or minus zero."""
    if (b"+" in block or b"-0" in block) and _SIGNED.search(block):
        return True
    letters = np.frombuffer(block, np.uint8)
    if _LEADING_ZEROS.match(block):
        return True
    # In parts that stay in the cache: a few passes over all bytes, which find hardly anything.
    for begin in range(0, len(letters), _PART):
        part = letters[begin : begin + _PART + 2]
        found = part[1:-1] == ord("0")
        found &= (part[2:] - np.uint8(ord("0"))) < 10
        found &= (part[:-2] < ord("0")) | (part[:-2] == ord(";"))
        places = begin + np.flatnonzero(found)
        places = places[np.isin(letters[places], _BEFORE_COLUMNS)] + 1
        if any(_LEADING_ZEROS.match(block, place) for place in places.tolist()):
            return True
    return False


def normalize(block: bytes, layout: Layout) -> bytes:
    """Remove comments and, without a separator, make runs of blanks and tabs one blank, as Arrow requires."""
    text = block.replace(b"\r\n", b"\n")
    comments = b"" if layout.is_strict else re.escape(layout.comments)
    if comments and any(bytes([mark]) in text for mark in layout.comments):
        text = re.sub(rb"(?m)^[ \t]*[" + comments + rb"][^\n]*\n?", b"", text)
    if layout.separator is not None:
        return text
    text = text.replace(b"\t", b" ")
    while b"  " in text:
        text = text.replace(b"  ", b" ")
    return text.replace(b" \n", b"\n").replace(b"\n ", b"\n").strip(b" ")


def parse_fields(fields: list[bytes], line: bytes, layout: Layout, *, names: bool = False) -> list[Any]:
    """Return the ids and the weight among the fields of a line, or raise ``ValueError`` with the problem.

    Ids are integers, or strings if ``names``.
    """
    if len(fields) < layout.ids:
        wanted = "a source and a target are" if layout.ids == 2 else "an id is"
        raise ValueError(f"{_count(len(fields), 'column')} ({_shown(line)}), but {wanted} required")
    if len(fields) != layout.columns and (names or len(fields) <= max(layout.positions[: len(layout.dtypes)])):
        raise ValueError(f"{_count(len(fields), 'column')} ({_shown(line)}), but {layout.reason}")
    chosen = [fields[position].strip() for position in layout.positions[: len(layout.dtypes)]]
    values: list[Any] = []
    for role, field in enumerate(chosen[: layout.ids]):
        if names and not field:
            what = ("source", "target")[role]
            raise ValueError(f"{layout.place(role)}the {what} is missing: every edge needs a source and a target")
        values.append(field.decode() if names else _parse_id(field, layout))
    if len(fields) != layout.columns:
        raise ValueError(f"{_count(len(fields), 'column')} ({_shown(line)}), but {layout.reason}")
    if layout.weight is not None:
        try:
            values.append(parse_weight(chosen[layout.ids], layout.weight))
        except ValueError as error:
            raise ValueError(f"{layout.place(layout.ids)}{error}") from None
    return values


def _parse_id(field: bytes, layout: Layout) -> int:
    as_text = "pass id_type='str' to read all ids as text"
    if not re.fullmatch(rb"[+-]?[0-9]+", field):
        problem = "has a fraction" if re.fullmatch(rb"[+-]?[0-9]*\.[0-9]*", field) else "is not an integer"
        required = layout.first == 0 and layout.last is not None
        remedy = ", as num_vertices= requires: omit it" if required else f": {as_text}" if layout.has_exact_ids else ""
        raise ValueError(f"the id {_shown(field)} {problem}{remedy}")
    if layout.has_exact_ids and re.match(rb"[+-]?0[0-9]|[+]|-0", field):
        signed = "has leading zeros" if re.match(rb"[+-]?0[0-9]", field) else "has a sign"
        raise ValueError(f"the id {_shown(field)} {signed}, which integers do not keep: {as_text}, or id_type='int'")
    value = int(field) if len(field) <= _MOST_DIGITS else None
    if value is None or not _INT64.min <= value <= _INT64.max:
        remedy = as_text if layout.has_exact_ids else "renumber the vertices"
        raise ValueError(f"the id {_shown(field)} does not fit in 64 bits (signed): {remedy}")
    if layout.first == 0 and value < 0:
        raise ValueError(f"the id {value} is negative: ids start at 0")
    if layout.first is not None and value < layout.first:
        raise ValueError(f"the id {value} is too small: ids start at {layout.first}")
    if layout.last is not None and value > layout.last:
        raise ValueError(f"the id {value} is too large: {layout.last_reason}")
    return value


def parse_by_arrow(
    text: bytes, separator: bytes, types: dict[int, str], columns: int, *, threads: int
) -> list[list[Array]]:
    """Parse lines of ``columns`` columns; return those at the positions in ``types`` in batches.

    Raises ``pyarrow.ArrowInvalid`` if Arrow cannot parse them, or would accept what others reject.
    """
    import pyarrow as pa
    import pyarrow.csv

    if b"x" in text or b"X" in text:
        raise pa.ArrowInvalid("Arrow would accept hexadecimal numbers")
    if b"\r" in text and text.count(b"\r") != text.count(b"\r\n"):
        raise pa.ArrowInvalid("Arrow would treat a carriage return as the end of a line")
    names = [str(column) for column in range(columns)]
    used = {names[position]: pa.type_for_alias(alias) for position, alias in types.items()}
    table = pa.csv.read_csv(
        pa.BufferReader(text),
        pa.csv.ReadOptions(use_threads=threads > 1, block_size=_ARROW_BYTES, column_names=names),
        pa.csv.ParseOptions(delimiter=separator.decode(), quote_char=False),
        pa.csv.ConvertOptions(column_types=used, include_columns=list(used), null_values=[]),
    )
    # Arrow's to_numpy would import pandas, which takes longer than reading most files.
    return [[np.from_dlpack(column) for column in batch.columns] for batch in table.to_batches()]


def line_of_row(path: str, row: int, comments: bytes, *, skip: int = 0, blank_rows: bool = False) -> int:
    """Return the number of the line that holds a row; rows count from 0, after ``skip`` lines and without comments.

    Blank lines count as rows only if ``blank_rows``.
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
    raise AssertionError("the row is beyond the end of the file")


def _separator(block: bytes) -> bytes:
    """Return the separator of the first line: a tab if it has tabs and no blanks, otherwise a blank."""
    line = block[: block.find(b"\n") + 1 or len(block)]
    return b"\t" if b"\t" in line and b" " not in line else b" "


def may_be_inexact(weights: Array, dtype: np.dtype[Any]) -> bool:
    """Return whether float64 weights are so large that ``dtype`` may not hold an integer of the text, or any number."""
    if weights.dtype != np.float64:
        return False
    if dtype != np.float32:
        return bool((np.abs(weights) >= _EXACT).any())
    with np.errstate(over="ignore"):
        rounded = weights.astype(np.float32) != weights
    return bool((np.isinf(weights) | (rounded & (np.trunc(weights) == weights))).any())


def parse_weight(field: bytes, dtype: np.dtype[Any]) -> Any:
    text = field.decode("ascii", "replace")
    try:
        if re.search(r"[^0-9a-zA-Z.+-]", text):
            raise ValueError
        value = float(text)
    except ValueError:
        raise ValueError(f"the weight {_shown(field)} is not a number: pass weight=None to ignore it") from None
    if dtype.kind in "iu" and np.isfinite(value):
        exact = Decimal(text)
        if exact != exact.to_integral_value():
            raise ValueError(weight_fault(text, dtype))
        if not in_range(exact, dtype):
            raise ValueError(weight_fault(int(exact) if len(text) <= 40 and exact.adjusted() < 40 else text, dtype))
        return int(exact)
    cast, fault = cast_weights(np.array([value]), dtype)
    if fault >= 0:
        raise ValueError(weight_fault(value, dtype))
    if np.isinf(value) and "inf" not in text.lower():
        raise ValueError(weight_fault(_shown(field), dtype))
    if np.isfinite(value) and re.fullmatch(r"[+-]?[0-9]+", text) and int(text) != int(cast[0]):
        raise ValueError(
            f"the weight {_shown(field)} does not fit {dtype} exactly: pass weight_dtype='int64' or 'uint64'"
        )
    return cast[0]


def _shown(text: bytes) -> str:
    return repr(text[:40].decode("utf-8", "backslashreplace")) + ("…" if len(text) > 40 else "")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


class GrowingArray:
    """An array that grows as values are added; ids use 32 bits until one requires 64."""

    def __init__(self, dtype: np.dtype[Any], capacity: int) -> None:
        self._array = np.empty(capacity, dtype)
        self.length = 0

    def add(self, values: Array) -> None:
        """Append values."""
        end = self.length + len(values)
        if end > len(self._array):
            self._array.resize(end + end // 8, refcheck=False)
        narrow = self._array.dtype == np.uint32 and values.dtype == np.int64 and len(values) > 0
        # Viewed as uint64, a negative number is large.
        if narrow and values.view(np.uint64).max() > _UINT32_MAX:
            self._array = self._array.astype(np.int64)
        self._array[self.length : end] = values
        self.length = end

    def finish(self) -> Array:
        """Return the array; no values can be added afterwards."""
        self._array.resize(self.length, refcheck=False)
        return self._array


def read_lines(source: Source, blocks: Iterator[Block], layout: Layout, *, threads: int, progress: bool) -> list[Array]:
    """Parse all blocks; return the id columns, uint32 or int64, and the weights if the layout has any.

    The first block gives an estimate of the memory required for the graph, which is checked.
    """
    parser = LineParser(source.path, layout, threads=threads)
    columns: list[GrowingArray] = []
    with ProgressBar("reading", shown=progress) as bar:
        for block, number in blocks:
            batches = parser.parse(block, number)
            if not columns:
                columns = _allocate(source, layout, sum(len(batch[0]) for batch in batches), len(block))
            for batch in batches:
                for column, values in zip(columns, batch, strict=True):
                    column.add(values)
            if source.size:
                bar.update(source.position, source.size)
    return [column.finish() for column in columns or _allocate(source, layout, 0, 0)]


def _allocate(source: Source, layout: Layout, rows: int, block_bytes: int) -> list[GrowingArray]:
    """Allocate the columns of a file whose first block has this number of rows and bytes."""
    expected = _expected_rows(source, rows, block_bytes, sum(dtype.itemsize for dtype in layout.dtypes))
    return [GrowingArray(dtype, expected) for dtype in layout.dtypes]


def _expected_rows(source: Source, rows: int, block_bytes: int, row_bytes: int) -> int:
    """Estimate the number of rows of the file from its first block, with a margin of 2 %."""
    if not source.position or not block_bytes:
        return rows
    text_bytes = source.delivered * source.size / source.position
    expected = int(rows * text_bytes / block_bytes * 1.02)
    if expected < 2 * rows:
        return rows
    require_memory(expected * row_bytes + building_memory(0, expected), f"reading {source.path}")
    return expected
