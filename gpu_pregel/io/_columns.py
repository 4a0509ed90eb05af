"""Chooses the columns of sources, targets and weights, and recognizes the header of a text file."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from gpu_pregel.errors import ArgumentError, FormatError
from gpu_pregel.host.graphs.interchange import default_ends, named_ends, named_weight
from gpu_pregel.io._options import ReadOptions

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?inf", re.IGNORECASE)
_INTEGER = re.compile(r"[+-]?[0-9]+")


class Columns(NamedTuple):
    """The positions of the columns to read."""

    source: int
    target: int
    weight: int | None


def is_number(field: str) -> bool:
    """Return whether a field is a decimal number."""
    return _NUMBER.fullmatch(field.strip()) is not None


def is_integer(field: str) -> bool:
    """Return whether a field is a decimal integer."""
    return _INTEGER.fullmatch(field.strip()) is not None


def choose_columns(
    path: str, options: ReadOptions, names: Sequence[str] | None, first: Sequence[str] | None, line: int | None = None
) -> Columns:
    """Return the columns that the options name, those with common names, or the first ones.

    Parameters
    ----------
    names : sequence of str, optional
        The names of the columns, unless the file has none.
    first : sequence of str, optional
        The fields of the first edge of a text file, where a third column may hold weights whatever its name.
    line : int, optional
        The line of the header, or of the first edge if there is no header.
    """
    width = len(first) if names is None else len(names)  # type: ignore[arg-type]
    resolve = _Resolver(path, names, width, line)
    weight = None if options.weight in (None, "auto") else resolve(options.weight)
    if options.columns is not None:
        source, target, *rest = (resolve(column) for column in options.columns)
        if len({source, target, *rest}) < 2 + len(rest):
            raise ArgumentError(f"columns must be different, not {options.columns!r}")
        if weight is None and options.weight is not None:
            weight = rest[0] if rest else named_weight(names or (), (source, target))
        return Columns(source, target, weight)
    usual = named_weight(names or ())
    ignored = usual if options.weight == "auto" or width > 2 else None
    ends = default_ends(names or [""] * width, ignored if weight is None else weight)
    if ends is None:
        raise FormatError(path, "edges need a source and a target besides the weight: pass columns=", line)
    if names is not None and not names[0].strip() and ends[0] == 0:
        problem = "the first column has no name: if it holds row numbers, write the table without them"
        raise FormatError(path, problem, line)
    if options.weight == "auto":
        weight = usual if usual is not None or ends != (0, 1) else _third_column(names, first)
    return Columns(*ends, weight)


def _third_column(names: Sequence[str] | None, first: Sequence[str] | None) -> int | None:
    """Return the third column of a text file as the weights, unless there is none or its name and contents are others.

    ``first`` is None for other files.
    """
    if first is None or len(first) < 3:
        return None
    return 2 if names is None or is_number(first[2]) else None


class _Resolver:
    """Finds the position of a column given by name or position."""

    def __init__(self, path: str, names: Sequence[str] | None, count: int, line: int | None) -> None:
        self._names = None if names is None else [name.strip() for name in names]
        self._count = count
        self._place = path if line is None else f"{path}, line {line}"

    def __call__(self, column: str | int) -> int:
        if self._names is None:
            available = f"positions: 0 to {self._count - 1}"
        else:
            available = f"columns: {', '.join(map(repr, self._names))}"
        if isinstance(column, str) and self._names is not None and self._names.count(column) == 1:
            return self._names.index(column)
        if isinstance(column, int) and 0 <= column < self._count:
            return column
        problem = "no column" if self._names is None or column not in self._names else "more than one column"
        raise ArgumentError(f"{self._place}: {problem} {column!r}; available {available}")


def has_header(path: str, options: ReadOptions, rows: Sequence[Sequence[str]], line: int, *, table: bool) -> bool:
    """Return whether the first of the first two rows names the columns; raise if that cannot be told in a table.

    A header has no number in its first three columns. It is recognized by the usual names of the columns, or because
    the row below it begins with two integers or has a number in the third column.
    """
    named = any(isinstance(column, str) for column in options.columns or ())
    if options.weight not in (None, "auto") and isinstance(options.weight, str):
        named = True
    if options.header != "auto":
        if named and not options.header:
            raise ArgumentError("header=False leaves the columns without names: pass positions such as columns=(0, 1)")
        return bool(options.header)
    if named:
        return True
    first = list(rows[0][:3])
    if any(map(is_number, first)):
        return False
    if named_ends(rows[0]) is not None:
        return True
    below = rows[1][:3] if len(rows) > 1 else []
    if len(below) > 1 and (all(map(is_integer, below[:2])) or (len(below) > 2 and is_number(below[2]))):
        return True
    if table and len(rows[0]) > 1:
        if any(mark in field for mark in "\0\ufffd" for field in first):
            raise FormatError(path, "is not text in UTF-8: convert the file, or pass format=", line)
        shown = ", ".join(map(repr, first))
        raise FormatError(path, f"{shown} may be names of columns or ids: pass header=True or header=False", line)
    return False
