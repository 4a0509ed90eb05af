"""Assigns the vertex numbers 0 to n - 1 to the user's ids."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, GraphError
from gpu_pregel.host.devices.memory import require_memory
from gpu_pregel.host.devices.threads import parallel
from gpu_pregel.host.graphs.csr import CSR, INDEX_DTYPE, MAX_VERTICES, read_only
from gpu_pregel.host.graphs.edge_arrays import check_num_vertices
from gpu_pregel.host.graphs.id_columns import Columns, as_ids, number_by_appearance, to_list
from gpu_pregel.kernels.graphs import numbering_cpu

Array = np.ndarray[Any, Any]

_CHUNK = 1 << 16
_INSERT_CHUNK = 1 << 12
_FIRST_TABLE = 1 << 18
"""Number of slots of the hash table at first; it grows by a factor of eight."""
_LARGEST_KEY = (1 << 64) - 2
_DENSE = 1 << 16
"""Ids below this, or below twice the number of edges, are taken as vertex numbers at first."""


class Numbering(NamedTuple):
    """The edges of a list by vertex number.

    Attributes
    ----------
    src, dst : uint32[k] or int64[k]
        Contiguous and of one dtype.
    n : int
        The numbers are below ``n``.
    ids : array[n] or None
        The id of each vertex; None if the ids are the numbers.
    used : bool[n] or None
        If some of the numbers may be no ids at all: those that the argument ``vertices`` names.
    """

    src: Array
    dst: Array
    n: int
    ids: Array | None = None
    used: Array | None = None


def check_renumber(renumber: object) -> None:
    """Raise ``ArgumentError`` unless ``renumber`` is "auto" or False; 0 is not accepted."""
    if renumber is not False and not (isinstance(renumber, str) and renumber == "auto"):
        raise ArgumentError(f"renumber must be 'auto' or False, not {renumber!r}")


def number_vertices(
    src: Any, dst: Any, *, vertices: Any, num_vertices: int | None, renumber: bool | str, threads: int
) -> Numbering:
    """Number the vertices of an edge list; see ``Graph.from_edgelist`` for the rules."""
    check_renumber(renumber)
    n = None if num_vertices is None else check_num_vertices(num_vertices)
    columns: Columns = {} if vertices is None else {"vertices": as_ids("vertices", vertices)}
    columns |= {"src": as_ids("src", src), "dst": as_ids("dst", dst)}
    _check_kinds({"src": src, "dst": dst} if vertices is None else {"src": src, "dst": dst, "vertices": vertices})
    edges = len(columns["src"])
    if edges != len(columns["dst"]):
        raise GraphError(f"src has {edges:,} entries and dst {len(columns['dst']):,}: their lengths must be equal")
    if any(_kind(column) not in "iu" for column in columns.values()):
        return _number_others(columns, n, renumber, threads)
    columns = {name: _native(column) for name, column in columns.items()}
    smallest, largest = _id_range(columns, threads)
    if n is not None or renumber is False:
        _check_numbers(columns, n, smallest, largest)
        return Numbering(*_as_numbers(columns), largest + 1 if n is None else n)
    if smallest >= 0 and largest < number_limit(sum(map(len, columns.values()))):
        used = np.zeros(largest + 1, bool)
        used[columns.get("vertices", [])] = True
        return Numbering(*_as_numbers(columns), largest + 1, None, used)
    if largest - smallest > _LARGEST_KEY or (smallest < 0 and largest > np.iinfo(np.int64).max):
        return _number_others(columns, n, renumber, threads)
    return _number_by_hash(columns, smallest, largest, threads)


def number_limit(count: int) -> int:
    """Return the limit below which ``count`` ids are taken as vertex numbers at first."""
    return min(max(_DENSE, count), MAX_VERTICES)


def _kind(column: Any) -> str:
    return column.dtype.kind if isinstance(column, np.ndarray) else "O"


def _check_kinds(given: dict[str, Any]) -> None:
    """Raise ``ArgumentTypeError`` if one array has integers and another floats: no id could be equal to another's."""
    dtypes = {name: getattr(array, "dtype", None) for name, array in given.items() if len(array)}
    floats = [name for name, dtype in dtypes.items() if getattr(dtype, "kind", "") == "f"]
    integers = [name for name, dtype in dtypes.items() if getattr(dtype, "kind", "") in ("i", "u")]
    if floats and integers:
        raise ArgumentTypeError(
            f"{integers[0]} has dtype {dtypes[integers[0]]} and {floats[0]} has dtype {dtypes[floats[0]]}, and ids of "
            f"different types never agree: convert {floats[0]} with astype({str(dtypes[integers[0]])!r})"
        )


def _native(column: Array) -> Array:
    """Return integers as contiguous, read-only int64, uint64 or uint32, copying only arrays of other dtypes."""
    column = np.ascontiguousarray(column, column.dtype.newbyteorder("="))
    if column.dtype not in (np.int64, np.uint64, np.int32, np.uint32):
        column = column.astype(np.int64)
    return read_only(column)


def _id_range(columns: Columns, threads: int) -> tuple[int, int]:
    """Return the smallest and the largest id; 0 and -1 if there are none."""
    smallest, largest = [], []
    for column in columns.values():
        if len(column):
            limits = np.empty((-(-len(column) // _CHUNK), 2), column.dtype)
            parallel(numbering_cpu.find_range, len(column), _CHUNK, column, limits, threads=threads)
            smallest.append(int(limits[:, 0].min()))
            largest.append(int(limits[:, 1].max()))
    return min(smallest, default=0), max(largest, default=-1)


def _check_numbers(columns: Columns, n: int | None, smallest: int, largest: int) -> None:
    """Raise ``GraphError`` unless every id may be a vertex number below ``n`` or, if it is None, below 2^32 - 2."""
    limit = MAX_VERTICES if n is None else n
    if smallest >= 0 and largest < limit:
        return
    for name, column in columns.items():
        outside = (column >= limit) | (column < 0)
        if outside.any():
            e = int(outside.argmax())
            place = f"{name}[{e:,}] is {column[e]:,}"
            if n is None:
                raise GraphError(
                    f"{place}, but renumber=False takes ids as vertex numbers, which range from 0 to "
                    f"{MAX_VERTICES - 1:,}: omit renumber=False"
                )
            raise GraphError(_not_a_number(place, n))


def _not_a_number(place: str, n: int) -> str:
    allowed = f"range from 0 to {n - 1:,}" if n else "do not exist"
    return f"{place}, but num_vertices is {n:,}, so ids {allowed}: raise num_vertices, or omit it if ids may have gaps"


def _as_numbers(columns: Columns) -> tuple[Array, Array]:
    """Return sources and destinations, all below 2^32, as two arrays of one dtype; copies only if dtypes differ."""
    src, dst = columns["src"], columns["dst"]
    if src.dtype.itemsize == dst.dtype.itemsize:
        dtype = np.uint32 if src.dtype.itemsize == 4 else np.int64
        return src.view(dtype), dst.view(dtype)
    return src.astype(np.int64), dst.astype(np.int64)


def _number_by_hash(columns: Columns, smallest: int, largest: int, threads: int) -> Numbering:
    """Number integers in ascending order, by a hash table of their distances from the smallest."""
    dtype = np.int64 if largest <= np.iinfo(np.int64).max else np.uint64
    words = {name: read_only(column.astype(dtype, copy=False).view(np.uint64)) for name, column in columns.items()}
    origin = np.uint64(smallest % (1 << 64))
    table = _hash_table(list(words.values()), origin, threads)
    slots = np.flatnonzero(table != numbering_cpu.EMPTY)
    _check_count(len(slots))
    slots = slots[np.argsort(table[slots])]
    ids = (table[slots] + origin).view(dtype)
    ranks = np.empty(len(table), INDEX_DTYPE)
    ranks[slots] = np.arange(len(slots), dtype=INDEX_DTYPE)
    numbers = []
    for name in ("src", "dst"):
        numbers.append(np.empty(len(words[name]), INDEX_DTYPE))
        arguments = (words[name], origin, table, ranks, numbers[-1])
        parallel(numbering_cpu.look_up_ids, len(words[name]), _CHUNK, *arguments, threads=threads)
    return Numbering(numbers[0], numbers[1], len(ids), ids)


def _hash_table(words: list[Array], origin: np.uint64, threads: int) -> Array:
    """Return a table with the distance of each id from ``origin`` in one slot."""
    slots = max(_FIRST_TABLE, 1 << (4 * threads * _INSERT_CHUNK - 1).bit_length())
    slots = min(slots, 1 << (2 * sum(map(len, words))).bit_length())
    while True:
        require_memory(12 * slots, "numbering the ids")
        table = np.full(slots, numbering_cpu.EMPTY)
        count = np.zeros(1, np.int64)
        for column in words:
            arguments = (column, origin, table, count)
            parallel(numbering_cpu.insert_ids, len(column), _INSERT_CHUNK, *arguments, threads=threads)
        if count[0] <= slots // 2:
            return table
        slots *= 8


def _number_others(columns: Columns, n: int | None, renumber: bool | str, threads: int) -> Numbering:
    """Number ids that are no integers of 64 bits."""
    if n is not None or renumber is False:
        name, e, value = _first_other(columns)
        if n is not None:
            raise GraphError(
                f"{name}[{e:,}] is {value!r:.80}, but num_vertices is {n:,}, so ids are integers: omit num_vertices"
            )
        raise ArgumentError(f"{name}[{e:,}] is {value!r:.80}, but renumber=False requires integer ids")
    numbers, ids = number_by_appearance(columns, threads)
    _check_count(len(ids))
    return Numbering(numbers["src"], numbers["dst"], len(ids), ids)


def _first_other(columns: Columns) -> tuple[str, int, Any]:
    """Return the name of the column, the position and the value of an id that is no integer of 64 bits."""
    name = next(name for name, column in columns.items() if _kind(column) not in "iu")
    for e, value in enumerate(to_list(columns[name])):
        if type(value) is bool or not isinstance(value, (int, np.integer)) or not -(1 << 63) <= value < 1 << 63:
            return name, e, value
    raise AssertionError("a column of integers has an integer dtype")


def _check_count(n: int) -> None:
    if n > MAX_VERTICES:
        raise GraphError(f"{n:,} distinct ids exceed the {MAX_VERTICES:,} that 32-bit vertex numbers allow")


def remove_unused(csr: CSR, numbering: Numbering, *, rows_name_all: bool, threads: int) -> tuple[CSR, Array | None]:
    """Remove the numbers that are no ids from a CSR that was built by them; return it with the ids of its vertices.

    Parameters
    ----------
    csr : CSR
        Its ``indices`` are overwritten.
    numbering : Numbering
    rows_name_all : bool
        Whether each vertex of an edge has a stored out-edge.
    """
    used = numbering.used
    if used is None:
        return csr, numbering.ids
    np.logical_or(used, csr.indptr[1:] != csr.indptr[:-1], out=used)
    if not rows_name_all and not used.all():
        # The source of a self-loop is a destination too.
        parallel(numbering_cpu.mark_used, len(numbering.dst), _CHUNK, read_only(numbering.dst), used, threads=threads)
    if used.all():
        return csr, None
    ids = np.flatnonzero(used)
    ranks = np.cumsum(used, dtype=INDEX_DTYPE)
    ranks -= INDEX_DTYPE.type(1)
    parallel(numbering_cpu.renumber, len(csr.indices), _CHUNK, ranks, csr.indices, threads=threads)
    return CSR(np.append(csr.indptr[ids], csr.indptr[-1]), csr.indices, csr.weights), ids
