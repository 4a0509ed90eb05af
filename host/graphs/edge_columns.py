"""The one rule by which columns of tables and of text files are sources, targets and weights."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import product
from typing import Any, NamedTuple

from gpu_pregel.errors import ArgumentError

END_NAMES = (("source", "target"), ("src", "dst"), ("from", "to"))
"""Names of the columns of sources and targets, without regard to case."""
WEIGHT_NAMES = ("weight", "weights", "value")
"""Names of the column of weights, in the same way."""


class NamedColumns(NamedTuple):
    """The columns that the caller names: sources and targets, or None for both, and weights, None or "auto"."""

    source: Any
    target: Any
    weight: Any


class Columns(NamedTuple):
    """The positions of the columns to read."""

    source: int
    target: int
    weight: int | None


def find_columns(
    names: Sequence[Any] | None,
    count: int | None,
    choice: NamedColumns,
    call: str,
    *,
    place: str = "",
    numbered: bool = False,
) -> Columns:
    """Return the columns that the caller names, or those that are certain.

    Certain are a single pair of ``END_NAMES``, a table of exactly two columns, and of text without a header the first
    two of at most three columns. Weights are in the only column with one of ``WEIGHT_NAMES``, or in the third one of
    text without a header.

    Parameters
    ----------
    names : sequence, optional
        The names of the columns; None for text without a header, which has ``count`` columns.
    call : str
        The beginning of the call that names columns, for errors.
    place : str
        Where the columns are, for errors.
    numbered : bool
        Whether the caller may name columns by position, also if there are names.

    Raises
    ------
    ArgumentError
        There is no such column, or no columns are certain; the message has a call that names them.
    """
    table = _Table(names, count or len(names or ()), call, f"{place}: " if place else "", numbered or names is None)
    source, target, weight = choice
    if (source is None) != (target is None):
        raise ArgumentError(f"{table.place}source= and target= belong together: pass both")
    ends = table.certain_ends(weight) if source is None else (table.position(source), table.position(target))
    if weight is None:
        return Columns(*ends, None)
    columns = Columns(*ends, table.certain_weight(ends) if _is_auto(weight) else table.position(weight))
    if len(set(columns)) < 3:
        named = ", ".join(f"{role}={name!r}" for role, name in choice._asdict().items() if name is not None)
        raise ArgumentError(f"{table.place}source, target and weight must be different columns, not {named}")
    return columns


def suggested_ends(names: Sequence[Any] | None, count: int, choice: NamedColumns) -> dict[str, Any] | None:
    """Return the ends to suggest where they are not certain; nothing where they are, and None if there can be none."""
    table = _Table(names, count, "", "", numbered=True)
    if choice.source is not None:
        return {}
    try:
        table.certain_ends(choice.weight)
    except ArgumentError:
        pair = table.suggestion()
        return None if pair is None else {"source": pair[0], "target": pair[1]}
    return {}


def has_usual_names(names: Sequence[Any]) -> bool:
    """Return whether columns have usual names of a source and a target, or of one of these and of weights."""
    found = set(_lower(names))
    sources, targets = (found.intersection(ends) for ends in zip(*END_NAMES, strict=True))
    return bool(sources and targets) or bool((sources or targets) and found.intersection(WEIGHT_NAMES))


class _Table:
    """The columns of a table, and what to say about them."""

    def __init__(self, names: Sequence[Any] | None, count: int, call: str, place: str, numbered: bool) -> None:
        self.place = place
        self._names = names if names is None else [one.strip() if isinstance(one, str) else one for one in names]
        self._count, self._call, self._numbered = count, call, numbered

    def position(self, column: Any) -> int:
        """Return the position of a column given by name or position."""
        names = [] if self._names is None else self._names
        if names.count(column) == 1 and not isinstance(column, bool):
            return names.index(column)
        if names.count(column) > 1:
            raise ArgumentError(f"{self.place}{names.count(column)} columns have the name {column!r}: rename them")
        if self._numbered and isinstance(column, int) and 0 <= column < self._count:
            return column
        raise ArgumentError(f"{self.place}no column {column!r}; available {self._available()}")

    def certain_ends(self, weight: Any) -> tuple[int, int]:
        """Return the columns of sources and targets if there can be no others."""
        if self._count < 2:
            raise ArgumentError(f"{self.place}edges need a source and a target; available {self._available()}")
        if self._names is None:
            if self._count == 2 or (self._count == 3 and (weight is None or _is_auto(weight) or weight == 2)):
                return 0, 1
            raise ArgumentError(
                f"{self.place}{self._count} columns without a header: say which are meant by position, as in "
                f"{self._call}source=0, target=1), and weight= if one holds weights"
            )
        pairs = _end_pairs(self._names)
        if len(pairs) == 1:
            source, target = pairs[0]
            return self.position(self._names[source]), self.position(self._names[target])
        is_pair = self._count == 2 and (weight is None or (_is_auto(weight) and not _weights(self._names)))
        if not pairs and is_pair and not _is_reversed(self._names):
            if not str(self._names[0]).strip():
                raise ArgumentError(
                    f"{self.place}the first column has no name: if it holds row numbers, write the table without them"
                )
            self.position(self._names[0])
            return 0, 1
        suggestion = self.suggestion()
        if suggestion is None:
            raise ArgumentError(
                f"{self.place}edges need two columns of ids, beside weights and with different names; available "
                f"{self._available()}: add the missing one, or name both by source= and target="
            )
        found = "several pairs of columns have" if pairs else "no columns have"
        raise ArgumentError(
            f"{self.place}{found} the names source and target, src and dst, or from and to; available "
            f"{self._available()}: say which are meant, as in {self._call}source={suggestion[0]!r}, "
            f"target={suggestion[1]!r}), and weight= if one holds weights"
        )

    def certain_weight(self, ends: tuple[int, int]) -> int | None:
        """Return the column of weights if there can be no other; None if none has such a name."""
        if self._names is None:
            return 2 if self._count == 3 and set(ends) == {0, 1} else None
        found = [position for position in _weights(self._names) if position not in ends]
        if len(found) > 1:
            names = [self._names[position] for position in found]
            raise ArgumentError(
                f"{self.place}the columns {', '.join(map(repr, names))} may hold weights: pass weight={names[0]!r}, "
                "another one, or weight=None"
            )
        return found[0] if found else None

    def _available(self) -> str:
        if self._names is None:
            return f"positions: 0 to {self._count - 1}"
        return f"columns: {', '.join(map(repr, self._names)) or 'none'}"

    def suggestion(self) -> tuple[Any, Any] | None:
        """Return the columns with ``from`` and ``to`` or such words in their names, else the first two without weights.

        None if fewer than two are left.
        """
        if self._names is None:
            return (0, 1) if self._count > 1 else None
        weights = [self._names[position] for position in _weights(self._names)]
        names = [name for name in self._names if str(name) and self._names.count(name) == 1 and name not in weights]
        if len(names) == 2 and _is_reversed(names):
            return names[1], names[0]
        words = [re.findall("[a-z]+", re.sub("([a-z])([A-Z])", r"\1 \2", str(name)).lower()) for name in names]
        for source, target in (*END_NAMES, *product(*zip(*END_NAMES, strict=True))):
            one = [name for name, parts in zip(names, words, strict=True) if source in parts]
            other = [name for name, parts in zip(names, words, strict=True) if target in parts and name not in one]
            if one and other:
                return one[0], other[0]
        return (names[0], names[1]) if len(names) > 1 else None


def _end_pairs(names: Sequence[Any]) -> list[tuple[int, int]]:
    lower = list(enumerate(_lower(names)))
    return [(i, j) for u, v in END_NAMES for i, one in lower if one == u for j, other in lower if other == v]


def _is_reversed(names: Sequence[Any]) -> bool:
    """Return whether the first of two columns has the name of a target, or the second one that of a source."""
    first, second = _lower(names)
    sources, targets = zip(*END_NAMES, strict=True)
    return (first in targets and second not in targets) or (second in sources and first not in sources)


def _weights(names: Sequence[Any]) -> list[int]:
    return [position for position, name in enumerate(_lower(names)) if name in WEIGHT_NAMES]


def _lower(names: Sequence[Any]) -> list[str]:
    return [str(name).strip().lower() for name in names]


def _is_auto(weight: Any) -> bool:
    return isinstance(weight, str) and weight == "auto"
