"""Reads the head of a text edge list: separator, header, columns; and splits its rows by the grammar, slowly."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import chain, islice
from typing import NamedTuple

import numpy as np

from gpu_pregel.errors import FormatError
from gpu_pregel.io._columns import choose_columns, has_header, is_integer
from gpu_pregel.io._files import suffixes
from gpu_pregel.io._lines import Block, Layout, first_data_line, parse_fields
from gpu_pregel.io._options import ReadOptions

_MARKS = b"#%"
_REMEDY = "pass comments=True to skip such lines, or comments=False if they are rows"
_HEAD_BYTES = 1 << 20


class Row(NamedTuple):
    """The fields of a row, its text, and the number of its first line."""

    fields: list[bytes]
    text: bytes
    line: int


class Marks(NamedTuple):
    """The bytes that start comments, and whether comments may only stand before the first row."""

    comments: bytes
    is_strict: bool


class Head(NamedTuple):
    """The layout of the rows, whether the first one holds integer ids, and whether there are quotes; all rows.

    ``line`` is the number of the line with the first row, or 0 if there is none.
    """

    layout: Layout
    is_numeric: bool
    has_quotes: bool
    blocks: Iterator[Block]
    line: int


def read_head(path: str, options: ReadOptions, blocks: Iterator[Block]) -> Head:
    """Derive the layout from the suffix, the options, the header if there is one, and the first edge."""
    suffix = suffixes(path)[0]
    marks = Marks(_MARKS if options.comments else b"", options.comments == "auto" and suffix in (".csv", ".tsv"))
    line, number, blocks = first_data_line(blocks, marks.comments)
    separator = _separator(path, options, line, number)
    rows, blocks = _first_rows(path, blocks, separator, marks)
    shown = [_decoded(row) for row in rows]
    has_quotes = any(b'"' in row.text for row in rows)
    names = None
    if rows and has_header(path, options, shown, number, table=suffix in (".csv", ".tsv")):
        names, header = shown.pop(0), rows.pop(0)
        blocks = _without_lines(blocks, header.text.count(b"\n") + 1)
        number = rows[0].line if rows else header.line
        if shown and len(shown[0]) != len(names):
            problem = f"the header names {len(names)} columns, but the first edge has {len(shown[0])}"
            raise FormatError(path, problem, header.line)
    width = len(names or (shown[0] if shown else ())) or (3 if suffix == ".wel" else 2)
    if rows and (width < 2 or (suffix == ".wel" and width == 2)):
        if width == 2:
            raise FormatError(path, "2 columns, but .wel files have a weight in a third column", number)
        _parse_row(path, rows[0], Layout(columns=2, reason=""), names=True)
    chosen = choose_columns(path, options, names, width, header.line if names else number or None)
    weight = None if chosen.weight is None else options.weight_dtype or np.dtype(np.float64)
    layout = Layout(
        columns=width,
        reason=f"the first edge (line {number}) has {width}",
        weight=weight,
        separator=separator,
        has_exact_ids=options.id_type == "auto",
        comments=marks.comments,
        is_strict=marks.is_strict,
        first=None if options.num_vertices is None else 0,
        last=None if options.num_vertices is None else options.num_vertices - 1,
        last_reason=f"num_vertices is {options.num_vertices}; raise it, or omit it to number the ids that occur",
        positions=(chosen.source, chosen.target)
        if chosen.weight is None
        else (chosen.source, chosen.target, chosen.weight),
        names=None if names is None else tuple(names),
    )
    is_numeric = not rows or (
        options.id_type != "str"
        and b'"' not in rows[0].text
        and all(is_integer(shown[0][position]) for position in chosen[:2])
    )
    return Head(layout, is_numeric, has_quotes, blocks, number if rows else 0)


def _separator(path: str, options: ReadOptions, line: bytes, number: int) -> bytes | None:
    """Return the separator of the columns, ignoring quoted text; None stands for runs of blanks and tabs."""
    if options.separator is not None:
        return None if options.separator == " " else options.separator.encode()
    bare = re.sub(rb'"[^"]*"', b"", line)
    suffix = suffixes(path)[0]
    marks = {".tsv": (b"\t", b",", b";"), ".csv": (b",", b";", b"\t")}.get(suffix, (b",", b";"))
    found = [mark for mark in marks if mark in bare]
    if found[:1] != [b"\t"] and b"," in found and b";" in found:
        problem = "commas and semicolons may separate the columns: pass separator=',' or separator=';'"
        raise FormatError(path, problem, number)
    return found[0] if found else None


def _decoded(row: Row) -> list[str]:
    return [field.decode("utf-8", "replace") for field in row.fields]


def _first_rows(
    path: str, blocks: Iterator[Block], separator: bytes | None, marks: Marks
) -> tuple[list[Row], Iterator[Block]]:
    """Return up to two rows, and the blocks unchanged."""
    taken: list[Block] = []
    text = b""
    while len(text) < _HEAD_BYTES:
        block = next(blocks, None)
        if block is None:
            break
        taken.append(block)
        text += block[0]
        # If there is a third row, the second one is complete.
        with suppress(FormatError):
            if len(list(islice(split_rows(path, numbered_lines(iter(taken)), separator, marks), 3))) == 3:
                break
    return list(islice(split_rows(path, numbered_lines(iter(taken)), separator, marks), 2)), chain(taken, blocks)


def _without_lines(blocks: Iterator[Block], count: int) -> Iterator[Block]:
    """Yield the blocks without their first lines."""
    for block, number in blocks:
        start = 0
        while count and start < len(block):
            start = block.find(b"\n", start) + 1 or len(block)
            count, number = count - 1, number + 1
        yield block[start:], number


def numbered_lines(blocks: Iterator[Block]) -> Iterator[tuple[bytes, int]]:
    """Yield each line with its number."""
    for block, number in blocks:
        start = 0
        while start < len(block):
            end = block.find(b"\n", start) + 1 or len(block)
            yield block[start:end].removesuffix(b"\n"), number
            start, number = end, number + 1


def split_rows(
    path: str, lines: Iterator[tuple[bytes, int]], separator: bytes | None, marks: Marks, *, is_first: bool = True
) -> Iterator[Row]:
    """Yield all rows but comments and blank lines; with a separator, quoted fields may span lines.

    ``is_first``: whether no row is before these lines.
    """

    def is_comment(line: bytes, number: int) -> bool:
        if not line or line[:1] not in marks.comments:
            return not line
        if marks.is_strict and not is_first:
            problem = f"the line starts with {line[:1].decode()!r}: {_REMEDY}"
            raise FormatError(path, problem, number)
        return True

    if separator is None:
        for raw, number in lines:
            line = raw.strip()
            if not is_comment(line, number):
                is_first = False
                yield Row(line.split(), line, number)
        return
    pending: list[tuple[bytes, int]] = []

    def text_lines() -> Iterator[str]:
        for raw, number in lines:
            if not pending and is_comment(raw.strip(), number):
                continue
            pending.append((raw, number))
            yield raw.decode("utf-8", "surrogateescape") + "\n"

    try:
        for fields in csv.reader(text_lines(), delimiter=separator.decode(), strict=True):
            text, number = b"\n".join(raw for raw, _ in pending), pending[0][1]
            pending.clear()
            is_first = False
            yield Row([field.encode("utf-8", "surrogateescape") for field in fields], text, number)
    except csv.Error as error:
        problem = f"is not CSV ({error}): check the quotes"
        if "new-line" in str(error):
            problem = "a carriage return alone does not end a line: use line feeds"
        raise FormatError(path, problem, pending[0][1] if pending else None) from None


def check_rows(path: str, blocks: Iterator[Block], layout: Layout, *, names: bool) -> None:
    """Raise ``FormatError`` with the line and the problem of the first faulty row, if any."""
    marks = Marks(layout.comments, layout.is_strict)
    for row in split_rows(path, numbered_lines(blocks), layout.separator, marks, is_first=False):
        try:
            row.text.decode()
        except UnicodeDecodeError as error:
            problem = f"is not UTF-8 ({error.reason} at byte {error.start + 1} of the line): convert the file to UTF-8"
            raise FormatError(path, problem, row.line) from None
        _parse_row(path, row, layout, names=names)


def _parse_row(path: str, row: Row, layout: Layout, *, names: bool) -> None:
    try:
        parse_fields(row.fields, row.text.strip(), layout, names=names)
    except ValueError as error:
        raise FormatError(path, str(error), row.line) from None
