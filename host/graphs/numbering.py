"""Assigns the vertex numbers 0 to n - 1 to the user's ids."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, GraphError
from gpu_pregel.host.graphs.csr import MAX_VERTICES
from gpu_pregel.host.graphs.edge_arrays import check_num_vertices

Array = np.ndarray[Any, Any]

_SPARSE = 4
"""Ids are kept while the largest is less than this many times their number; gaps become isolated vertices."""
_FIRST_BLOCK = 1 << 20


class Numbering(NamedTuple):
    """Edges by vertex number (uint32 or int64), the number of vertices, and the id of each vertex or None."""

    src: Array
    dst: Array
    n: int
    ids: Array | None


def check_renumber(renumber: object) -> None:
    """Raise ``ArgumentError`` unless ``renumber`` is "auto", True or False; 1 and 0 are not accepted."""
    if not isinstance(renumber, bool) and not (isinstance(renumber, str) and renumber == "auto"):
        raise ArgumentError(f"renumber must be 'auto', True or False, not {renumber!r}")


def number_vertices(src: Array, dst: Array, num_vertices: int | None, renumber: bool | str) -> Numbering:
    """Number the vertices of an edge list; see ``Graph.from_edgelist`` for the rules."""
    check_renumber(renumber)
    if len(src) != len(dst):
        raise GraphError(f"src has {len(src):,} entries and dst {len(dst):,}: their lengths must be equal")
    n = None if num_vertices is None else check_num_vertices(num_vertices)
    if len(src) == 0:
        empty = np.empty(0, np.uint32)
        return Numbering(empty, empty, n or 0, None)
    if src.dtype.kind in "iu" and dst.dtype.kind in "iu":
        return _number_integers(src, dst, n, renumber)
    for name, array in (("src", src), ("dst", dst)):
        if array.dtype.kind in "fcb":
            raise ArgumentTypeError(f"{name} has dtype {array.dtype}, which ids cannot have: use integers or strings")
    if renumber is False:
        raise ArgumentError("renumber=False requires integer ids")
    codes_src, codes_dst, ids = _by_first_appearance(src, dst)
    return Numbering(codes_src, codes_dst, _renumbered_count(n, len(ids)), ids)


def _number_integers(src: Array, dst: Array, n: int | None, renumber: bool | str) -> Numbering:
    for name, array in (("src", src), ("dst", dst)):
        if array.dtype.kind == "i" and array.min() < 0:
            e = int((array < 0).argmax())
            raise GraphError(f"{name}[{e:,}] is {array[e]:,}: vertex ids must not be negative")
    largest = max(int(src.max()), int(dst.max()))
    if renumber is not True and n is not None:
        for name, array in (("src", src), ("dst", dst)):
            if int(array.max()) >= n:
                e = int((array >= n).argmax())
                raise GraphError(
                    f"{name}[{e:,}] is {array[e]:,}, but num_vertices is {n:,}, so ids range from 0 to {n - 1:,}: "
                    f"raise num_vertices, or pass renumber=True"
                )
        return Numbering(_plain(src), _plain(dst), n, None)
    if renumber is False or (renumber == "auto" and _is_dense(src, dst, largest)):
        if largest >= MAX_VERTICES:
            raise GraphError(
                f"the largest id is {largest:,}, but a graph has at most {MAX_VERTICES:,} vertices: "
                f"pass renumber=True if the ids have gaps"
            )
        return Numbering(_plain(src), _plain(dst), largest + 1, None)
    codes_src, codes_dst, ids = _ascending(src, dst)
    return Numbering(codes_src, codes_dst, _renumbered_count(n, len(ids)), ids)


def _is_dense(src: Array, dst: Array, largest: int) -> bool:
    """Return whether ``largest`` is less than four times the number of distinct ids, reading only as far as needed."""
    if largest >= _SPARSE * 2 * len(src):
        return False
    seen = np.zeros(largest + 1, bool)
    done, block = 0, _FIRST_BLOCK
    while done < len(src):
        seen[src[done : done + block]] = True
        seen[dst[done : done + block]] = True
        done, block = done + block, 2 * block
        if largest < _SPARSE * np.count_nonzero(seen):
            return True
    return False


def _plain(array: Array) -> Array:
    """Return non-negative integers as contiguous uint32 or int64, copying only arrays of other dtypes."""
    array = np.ascontiguousarray(array, array.dtype.newbyteorder("="))
    if array.dtype in (np.uint32, np.int64):
        return array
    if array.dtype == np.int32:
        return array.view(np.uint32)
    if array.dtype == np.uint64:
        return array.view(np.int64)
    return array.astype(np.uint32)


def _ascending(src: Array, dst: Array) -> tuple[Array, Array, Array]:
    """Number integers in ascending order, using Arrow's hash table."""
    import pyarrow as pa

    # No id is negative, so uint64 holds both dtypes; NumPy would promote int64 and uint64 to float64, which rounds.
    dtype = np.result_type(src, dst) if src.dtype.kind == dst.dtype.kind else np.dtype(np.uint64)
    both = pa.array(np.concatenate([src.astype(dtype), dst.astype(dtype)])).dictionary_encode()
    values = both.dictionary.to_numpy(zero_copy_only=False)
    _check_count(len(values))
    order = np.argsort(values)
    rank = np.empty(len(values), np.uint32)
    rank[order] = np.arange(len(values), dtype=np.uint32)
    codes = rank[both.indices.to_numpy()]
    return codes[: len(src)], codes[len(src) :], values[order]


def _by_first_appearance(src: Array, dst: Array) -> tuple[Array, Array, Array]:
    """Number ids of any hashable type by first appearance, each edge's source before its destination."""
    import pyarrow as pa

    mixed = np.empty(2 * len(src), object)
    mixed[0::2] = src
    mixed[1::2] = dst
    try:
        encoded = pa.array(mixed, from_pandas=True).dictionary_encode()
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError, OverflowError):
        codes, ids = _number_objects(mixed)
    else:
        if encoded.null_count:
            raise GraphError(_missing(int(np.asarray(encoded.is_null()).argmax())))
        if pa.types.is_floating(encoded.dictionary.type) or pa.types.is_boolean(encoded.dictionary.type):
            raise ArgumentTypeError(
                f"vertex ids of type {encoded.dictionary.type} are not supported: use integers or strings"
            )
        codes = encoded.indices.to_numpy().astype(np.uint32)
        ids = np.empty(len(encoded.dictionary), object)
        ids[:] = encoded.dictionary.to_pylist()
    _check_count(len(ids))
    return np.ascontiguousarray(codes[0::2]), np.ascontiguousarray(codes[1::2]), ids


def _number_objects(values: Array) -> tuple[Array, Array]:
    numbers: dict[Any, int] = {}
    codes = np.empty(len(values), np.uint32)
    for position, value in enumerate(values):
        if value is None:
            raise GraphError(_missing(position))
        try:
            codes[position] = numbers.setdefault(value, len(numbers))
        except TypeError:
            raise ArgumentTypeError(
                f"{_place(position)} is of type {type(value).__name__}, which is not hashable: use strings"
            ) from None
    ids = np.empty(len(numbers), object)
    ids[:] = list(numbers)
    return codes, ids


def check_ids(ids: Array, n: int) -> Array:
    """Return ``ids``, or raise ``GraphError`` unless they are ``n`` distinct ids."""
    if len(ids) != n:
        raise GraphError(f"ids has {len(ids):,} entries for {n:,} vertices: pass one per vertex")
    if ids.dtype.kind != "O":
        ascending = np.sort(ids)
        same = ascending[1:] == ascending[:-1]
        if same.any():
            raise GraphError(_repeated(ascending[int(same.argmax())].item()))
        return ids
    seen = set()
    for position, value in enumerate(ids):
        try:
            repeated = value in seen
            seen.add(value)
        except TypeError:
            raise ArgumentTypeError(
                f"ids[{position:,}] is of type {type(value).__name__}, which is not hashable: use strings"
            ) from None
        if repeated:
            raise GraphError(_repeated(value))
    return ids


def _repeated(value: object) -> str:
    return f"ids contains {value!r} more than once: give each vertex a distinct id"


def _place(position: int) -> str:
    return f"{'dst' if position % 2 else 'src'}[{position // 2:,}]"


def _missing(position: int) -> str:
    return f"{_place(position)} is missing: every edge needs a source and a destination"


def _check_count(n: int) -> None:
    if n > MAX_VERTICES:
        raise GraphError(f"{n:,} distinct ids exceed the {MAX_VERTICES:,} that 32-bit vertex numbers allow")


def _renumbered_count(num_vertices: int | None, named: int) -> int:
    """Return the number of renumbered ids, which must equal ``num_vertices`` if that is given."""
    if num_vertices is not None and num_vertices != named:
        raise GraphError(
            f"num_vertices is {num_vertices:,}, but the edges have {named:,} distinct ids, which were renumbered: "
            f"omit num_vertices"
        )
    return named
