"""Chooses the columns of sources, targets and weights, and recognizes the header of a text file."""

from __future__ import annotations

import re
from collections.abc import Sequence

from gpu_pregel.errors import ArgumentError, FormatError
from gpu_pregel.host.graphs.edge_columns import Columns, NamedColumns, find_columns, has_usual_names, suggested_ends
from gpu_pregel.io._options import ReadOptions

_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?inf", re.IGNORECASE)
_INTEGER = re.compile(r"[+-]?[0-9]+")


def is_number(field: str) -> bool:
    """Return whether a field is a decimal number."""
    return _NUMBER.fullmatch(field.strip()) is not None


def is_integer(field: str) -> bool:
    """Return whether a field is a decimal integer."""
    return _INTEGER.fullmatch(field.strip()) is not None


def choose_columns(
    path: str, options: ReadOptions, names: Sequence[str] | None, width: int, line: int | None = None
) -> Columns:
    """Return the columns that the options name, or those that are certain; see ``find_columns``.

    Parameters
    ----------
    names : sequence of str, optional
        The names of the columns, unless the file has none.
    width : int
        The number of columns.
    line : int, optional
        The line of the header, or of the first edge if there is no header.
    """
    choice = NamedColumns(options.source, options.target, options.weight)
    place = path if line is None else f"{path}, line {line}"
    call = f"gp.read_graph({path!r}, " + ("header=False, " if options.header is False else "")
    return find_columns(names, width, choice, call, place=place, numbered=True)


def has_header(path: str, options: ReadOptions, rows: Sequence[Sequence[str]], line: int, *, table: bool) -> bool:
    """Return whether the first of the first two rows names the columns; raise if that cannot be told in a table.

    A header has no number in its first three columns. It is recognized by the usual names of the columns, or because
    the row below it begins with two integers or has a number in the third column.
    """
    named = isinstance(options.source, str) or isinstance(options.target, str)
    if options.weight not in (None, "auto") and isinstance(options.weight, str):
        named = True
    if options.header != "auto":
        if named and not options.header:
            raise ArgumentError(
                "header=False leaves the columns without names: pass positions such as source=0, target=1"
            )
        return bool(options.header)
    if named:
        return True
    first = list(rows[0][:3])
    if any(map(is_number, first)):
        return False
    if has_usual_names(rows[0]):
        return True
    below = rows[1][:3] if len(rows) > 1 else []
    if len(below) > 1 and (all(map(is_integer, below[:2])) or (len(below) > 2 and is_number(below[2]))):
        return True
    if table and len(rows[0]) > 1:
        if any(mark in field for mark in "\0\ufffd" for field in first):
            raise FormatError(path, "is not text in UTF-8: convert the file, or pass format=", line)
        raise FormatError(path, _both_calls(path, options, rows[0]), line)
    return False


def _both_calls(path: str, options: ReadOptions, row: Sequence[str]) -> str:
    """Return that a row may be a header or an edge, and the call for each."""
    choice = NamedColumns(options.source, options.target, options.weight)
    chosen = {name: value for name, value in choice._asdict().items() if name == "weight" or value is not None}
    if choice.weight == "auto":
        del chosen["weight"]
    ends = suggested_ends(None, len(row), choice) or {}
    # In three columns, the third one would hold weights, but it is not a number here.
    without = {"weight": None} if len(row) == 3 and choice.source is None else {}
    as_edge = _call(path, header=False, **{**chosen, **without}, **ends)
    shown = ", ".join(map(repr, row[:3])) + (", ..." if len(row) > 3 else "")
    named = suggested_ends([name.strip() for name in row], len(row), choice)
    if named is None:
        return f"{shown} may be ids: use {as_edge} if so; as names of columns, they lack a source or a target"
    as_names = _call(path, **({} if named else {"header": True}), **chosen, **named)
    return f"{shown} may be names of columns or ids: use {as_names} for names, or {as_edge} for ids"


def _call(path: str, **arguments: object) -> str:
    shown = ", ".join(f"{name}={value!r}" for name, value in arguments.items())
    return f"gp.read_graph({path!r}, {shown})"
