"""Finds the vertex numbers of the user's ids; a graph builds its index on first use."""

from __future__ import annotations

from functools import cached_property
from itertools import repeat
from numbers import Integral
from typing import Any, Protocol

import numpy as np

from gpu_pregel.errors import ArgumentTypeError, UnknownVertexError
from gpu_pregel.host.graphs.id_columns import DISTINCT, as_ids, as_strings, key, to_list

Array = np.ndarray[Any, Any]

_DENSE = 4
"""Integer ids have a table by id if it has at most this many entries per vertex."""
_MANY = 8
"""Strings are looked up in an Arrow array if there is at least one for this many vertices."""


class IdIndex(Protocol):
    """The vertex numbers of a graph's ids."""

    def number(self, value: object) -> int:
        """Return the vertex number of an id; raise ``UnknownVertexError`` if no vertex has it."""
        ...

    def numbers(self, values: Any) -> Array:
        """Return the vertex number of each id, int64[k]; raise ``UnknownVertexError`` for the first unknown one."""
        ...


def make_index(ids: Array | None, n: int) -> IdIndex:
    """Return the index of a graph with these ids; None if they are the vertex numbers."""
    if ids is None or ids.dtype.kind in "iu":
        return _IntegerIndex(np.arange(0) if ids is None else ids, n, is_identity=ids is None)
    return _HashIndex(ids)


class _IntegerIndex:
    """Integer ids: the vertex numbers themselves, a table by id, or a binary search."""

    def __init__(self, ids: Array, n: int, *, is_identity: bool) -> None:
        self._lowest = 0 if is_identity or n == 0 else int(ids.min())
        self._highest = n - 1 if is_identity or n == 0 else int(ids.max())
        self._wide = np.dtype(np.int64 if self._highest < 1 << 63 else np.uint64)
        self._is_identity = is_identity
        self._n = n
        self._table: Array | None = None
        self._order: Array | None = None
        self._ids = ids
        if is_identity or n == 0:
            return
        span = self._highest - self._lowest + 1
        if span <= _DENSE * n:
            self._table = np.full(span, n, np.uint32)
            self._table[self._positions(ids)] = np.arange(n, dtype=np.uint32)
        elif not bool((ids[1:] > ids[:-1]).all()):
            self._order = np.argsort(ids)
            self._ids = ids[self._order]

    def number(self, value: object) -> int:
        # bool is a subclass of int, but True is not the id 1.
        if isinstance(value, (int, Integral)) and not isinstance(value, bool):
            found = self._find(int(value))
            if found >= 0:
                return found
        raise _unknown(value, self._alternative(value))

    def numbers(self, values: Any) -> Array:
        array = _as_column(values)
        if not isinstance(array, np.ndarray) or array.dtype.kind not in "iu":
            return np.fromiter(map(self.number, to_list(array)), np.int64, len(array))
        inside = (array >= self._lowest) & (array <= self._highest)
        first = len(array) if inside.all() else int(inside.argmin())
        found = self._find_all(array[:first])
        if (found < 0).any():
            first = int((found < 0).argmax())
        if first < len(array):
            self.number(array[first])
        return found

    def _find(self, value: int) -> int:
        """Return the number of an id, or -1."""
        if not self._lowest <= value <= self._highest:
            return -1
        return int(self._find_all(np.array([value], np.int64 if value < 1 << 63 else np.uint64))[0])

    def _find_all(self, values: Array) -> Array:
        """Return the numbers of ids between the lowest and the highest one; -1 for those that no vertex has."""
        if self._is_identity:
            return values.astype(np.int64)
        if self._table is not None:
            found = self._table[self._positions(values)].astype(np.int64)
            found[found == self._n] = -1
            return found
        values = values.astype(self._ids.dtype, copy=False)
        # A binary search for ascending values finds its part of the table in the cache.
        order = np.argsort(values)
        ascending = values[order]
        places = np.searchsorted(self._ids, ascending)
        places[self._ids[places] != ascending] = -1
        if self._order is not None:
            places = np.where(places < 0, -1, self._order[places])
        found = np.empty(len(values), np.int64)
        found[order] = places
        return found

    def _positions(self, values: Array) -> Array:
        """Return the positions of ids in the table."""
        return values.astype(self._wide, copy=False) - self._wide.type(self._lowest)

    def _alternative(self, value: object) -> int | None:
        """Return the id that is written like ``value``."""
        try:
            number = int(value) if isinstance(value, str) else -1
        except ValueError:
            return None
        return number if self._find(number) >= 0 else None


class _HashIndex:
    """Ids of any hashable type."""

    def __init__(self, ids: Array) -> None:
        self._ids = ids

    @cached_property
    def _numbers(self) -> dict[Any, int]:
        values = self._ids.tolist()
        keys = values if set(map(type, values)) <= DISTINCT else map(key, values)
        return dict(zip(keys, range(len(values)), strict=True))

    @cached_property
    def _strings(self) -> Any:
        """The ids as an Arrow array; None if they are not all strings."""
        return as_strings(self._ids)

    def number(self, value: object) -> int:
        try:
            found = self._numbers.get(key(value))
        except TypeError:  # not hashable
            found = None
        if found is None:
            raise _unknown(value, self._alternative(value))
        return found

    def numbers(self, values: Any) -> Array:
        column = _as_column(values)
        if len(column) * _MANY >= len(self._ids) and self._strings is not None:
            strings = as_strings(column) if isinstance(column, np.ndarray) else column
            if strings is not None:
                return self._find_strings(strings)
        values = to_list(column)
        if not set(map(type, values)) <= DISTINCT:
            return np.fromiter(map(self.number, values), np.int64, len(values))
        return self._checked(np.fromiter(map(self._numbers.get, values, repeat(-1)), np.int64, len(values)), values)

    def _find_strings(self, strings: Any) -> Array:
        """Return the numbers of many ids by a hash table of Arrow, which is built anew but is faster than a dict."""
        import pyarrow.compute

        found = pyarrow.compute.index_in(strings.cast(self._strings.type), self._strings).fill_null(-1)
        return self._checked(found.to_numpy().astype(np.int64), strings)

    def _checked(self, found: Array, values: Any) -> Array:
        """Return vertex numbers, or raise ``UnknownVertexError`` for the first one that is -1."""
        if (found < 0).any():
            value = values[int((found < 0).argmax())]
            self.number(value if isinstance(values, list) else value.as_py())
        return found

    def _alternative(self, value: object) -> object | None:
        """Return the id that is written like ``value``, but is a string instead of an integer or vice versa."""
        try:
            if isinstance(value, Integral) and str(value) in self._numbers:
                return str(value)
            if isinstance(value, str) and value.isdecimal() and int(value) in self._numbers:
                return int(value)
        except ValueError:  # thousands of digits, which Python does not convert
            pass
        return None


def _as_column(values: Any) -> Any:
    """Return a collection of ids as a column; see ``as_ids``."""
    if isinstance(values, (str, bytes)) or not (hasattr(values, "__iter__") or hasattr(values, "__array__")):
        raise ArgumentTypeError(f"ids must be a list or an array of ids, not {values!r:.80}")
    return as_ids("ids", values if hasattr(values, "__array__") else list(values))


def _unknown(value: object, alternative: object | None) -> UnknownVertexError:
    if alternative is not None:
        kinds = {int: "an integer", str: "a string"}
        given = kinds.get(type(value), f"of type {type(value).__name__}")
        hint = f"which is {given}; there is the id {alternative!r}, which is {kinds[type(alternative)]}"
        return UnknownVertexError(f"no vertex has the id {value!r:.80}, {hint}")
    plain = value.item() if isinstance(value, np.generic) else value
    try:
        shown = f"{plain!r:.80}"
    except ValueError:  # thousands of digits
        shown = f"of type {type(plain).__name__}"
    return UnknownVertexError(f"no vertex has the id {shown}: `id in graph` tells whether an id exists")
