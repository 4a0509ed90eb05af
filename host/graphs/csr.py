"""Building, transposing and checking CSR on the host, with the kernels of ``gpu_pregel.kernels.graphs.csr_cpu``."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from gpu_pregel.errors import GraphError
from gpu_pregel.host.devices.memory import require_memory
from gpu_pregel.host.devices.threads import Tick, parallel
from gpu_pregel.host.graphs.combine import Combination, prepare
from gpu_pregel.kernels.graphs import combine_cpu, csr_cpu

Array = np.ndarray[Any, Any]

INDEX_DTYPE = np.dtype(np.uint32)
INDPTR_DTYPE = np.dtype(np.int64)
MAX_VERTICES = int(np.iinfo(INDEX_DTYPE).max) - 1
"""Largest n: the largest number of the index dtype is not used as a vertex."""

WEIGHT_DTYPES = tuple(np.dtype(name) for name in ("int32", "int64", "uint32", "uint64", "float32", "float64"))

_EDGES_PER_BUCKET = 1 << 15
"""At 16 bytes per edge during sorting, a bucket and its copy fit into the second-level cache."""
_MAX_BUCKETS = 1 << 12
_LOCAL_BITS = 16
"""The source's number within its bucket takes two bytes."""
_VERTEX_CHUNK = 1 << 14
_EDGES_PER_PART = 1 << 22
"""Edges of the input that one task distributes; the delay of Ctrl-C and the step of a progress bar."""
_EDGES_PER_THREAD = 1 << 15
"""Fewer are dealt and sorted by one thread in less time than a second one takes to be woken."""
_SORTING_BYTES = 16
"""Bytes per edge of a bucket during sorting; with weights, 8 more and the weight."""


class CSR(NamedTuple):
    """Rows of edges: ``indptr`` int64[n+1], ``indices`` uint32[m] and optional ``weights`` [m]."""

    indptr: Array
    indices: Array
    weights: Array | None


def read_only(array: Array) -> Array:
    """Return a read-only view, so that kernels are compiled for one kind of array only."""
    view = array.view()
    view.flags.writeable = False
    return view


def _bucket_shift(n: int, edges: int) -> int:
    """Return the binary logarithm of the number of consecutive sources per bucket."""
    buckets = min(_MAX_BUCKETS, max(1, edges // _EDGES_PER_BUCKET))
    return min(_LOCAL_BITS, max(0, _id_bits(n) - (buckets - 1).bit_length()))


def _id_bits(n: int) -> int:
    return max(1, (n - 1).bit_length())


def building_memory(n: int, edges: int, weight_bytes: int = 0) -> int:
    """Return the peak memory of :func:`build_csr` in bytes for ``edges`` stored edges, without its input."""
    return edges * (INDEX_DTYPE.itemsize + 2 + weight_bytes) + (n + 1) * INDPTR_DTYPE.itemsize


def build_csr(
    src: Array,
    dst: Array,
    weight: Array | None,
    n: int,
    *,
    symmetric: bool,
    combine: str | None = None,
    drop_self_loops: bool = False,
    ids: Array | None = None,
    threads: int,
    tick: Tick | None = None,
) -> CSR:
    """Build the CSR of an edge list with ids in ``range(n)``; rows are sorted by (destination, weight).

    Parameters
    ----------
    src, dst : uint32[k] or int64[k]
        Contiguous and of one dtype. The caller has checked that every id is below ``n``.
    weight : [k], optional
        Its dtype is one of ``WEIGHT_DTYPES``.
    symmetric : bool
        Store each edge in both directions, and a self-loop once.
    combine : str, optional
        How to combine the weights of edges with the same source and destination, in the order of the list, into one
        edge; see ``Graph.from_edgelist``. Default: all edges are kept.
    drop_self_loops : bool
        Keep no self-loops.
    ids : [n], optional
        The users' ids of the vertices, for errors.
    """
    stored = len(src) * (2 if symmetric else 1)
    combination = prepare(combine, weight, len(src))
    weight = combination.weights
    weight_bytes = 0 if weight is None else weight.dtype.itemsize
    require_memory(building_memory(n, stored, weight_bytes), f"building a graph of {n:,} vertices, {stored:,} edges")
    if n == 0 or len(src) == 0:
        empty = None if weight is None else np.empty(0, combination.dtype)
        return CSR(np.zeros(n + 1, INDPTR_DTYPE), np.empty(0, INDEX_DTYPE), empty)
    threads = min(threads, max(1, stored // _EDGES_PER_THREAD))
    edges = (read_only(src), read_only(dst), None if weight is None else read_only(weight))
    shift = _bucket_shift(n, stored)
    buckets = _deal_to_buckets(edges, n, shift, (symmetric, not drop_self_loops), threads, tick)
    csr, fault = _sort_buckets(buckets, n, shift, combination, threads, _stage(tick, 2, 2))
    return finish_sums(csr, combination, fault, ids)


class _Buckets(NamedTuple):
    """Edges by buckets of consecutive sources, unsorted within each; bucket b begins at ``starts[b]``."""

    starts: Array
    local: Array
    """Each edge's source, as its number within the bucket, uint16."""
    indices: Array
    weights: Array | None


def _deal_to_buckets(
    edges: tuple[Array, Array, Array | None],
    n: int,
    shift: int,
    options: tuple[bool, bool],
    threads: int,
    tick: Tick | None,
) -> _Buckets:
    """Pass 1: count the edges of each bucket, then distribute them; each part of the input has its own positions.

    ``options`` are ``symmetric`` and whether self-loops are kept.
    """
    src, dst, weight = edges
    buckets = ((n - 1) >> shift) + 1
    parts = min(len(src), max(threads, -(-len(src) // _EDGES_PER_PART)))
    counts = np.zeros((parts, buckets), np.int64)
    arguments = (src, dst, *options, shift, counts)
    parallel(csr_cpu.count_buckets, parts, 1, *arguments, threads=threads, tick=_stage(tick, 0, 1))
    ends = np.cumsum(counts.T.reshape(-1))
    positions = np.ascontiguousarray((ends - counts.T.reshape(-1)).reshape(buckets, parts).T)
    starts = np.append(positions[0], ends[-1])
    total = int(ends[-1])
    _require_sorting_memory(n, total, np.diff(starts), 0 if weight is None else weight.dtype.itemsize, threads)
    indices = np.empty(total, INDEX_DTYPE)
    weights = None if weight is None else np.empty(total, weight.dtype)
    local = np.empty(total, np.uint16)
    arrays = (src, dst, weight, *options, shift, positions, indices, weights, local)
    parallel(csr_cpu.deal_to_buckets, parts, 1, *arrays, threads=threads, tick=_stage(tick, 1, 1))
    return _Buckets(starts, local, indices, weights)


def _sort_buckets(
    buckets: _Buckets, n: int, shift: int, combination: Combination, threads: int, tick: Tick | None
) -> tuple[CSR, int]:
    """Pass 2: sort each bucket in place; return also the key of edges whose weights do not add up, or -1."""
    starts, local, indices, weights = buckets
    indptr = np.zeros(n + 1, INDPTR_DTYPE)
    kept, faults = np.empty((2, len(starts) - 1), np.int64)
    largest = int(np.diff(starts).max())
    options = (starts, shift, _id_bits(n), combination.code, combination.limits, largest)
    parallel(
        csr_cpu.sort_buckets,
        len(kept),
        1,
        *(*options, local, indices, weights, indptr[1:], kept, faults),
        threads=threads,
        tick=tick,
    )
    np.cumsum(indptr, out=indptr)
    if int(kept.sum()) < int(starts[-1]):
        _close_gaps(starts, kept, indices)
        if weights is not None:
            _close_gaps(starts, kept, weights)
    bucket = int((faults >= 0).argmax())
    fault = -1 if faults[bucket] < 0 else int(faults[bucket]) + (bucket << (shift + 32))
    return CSR(indptr, indices, weights), fault


def combine_rows(csr: CSR, combine: str | None, *, keep_loops: bool, ids: Array | None, threads: int) -> CSR:
    """Return the CSR with one edge for all of a row to one destination; ``ids`` and ``combine`` as in `build_csr`.

    The order of weights in a row is that of the rows of graphs: they ascend.
    """
    indptr, indices = read_only(csr.indptr), read_only(csr.indices)
    n = len(indptr) - 1
    combination = prepare(combine, csr.weights, len(indices))
    new_indptr = np.zeros(n + 1, INDPTR_DTYPE)
    arguments = (indptr, indices, keep_loops, new_indptr[1:])
    parallel(combine_cpu.count_targets, n, _VERTEX_CHUNK, *arguments, threads=threads)
    np.cumsum(new_indptr, out=new_indptr)
    weights, total = combination.weights, int(new_indptr[-1])
    require_memory(total * (INDEX_DTYPE.itemsize + 8), f"a graph of {n:,} vertices, {total:,} edges")
    new_indices = np.empty(total, INDEX_DTYPE)
    new_weights = None if weights is None else np.empty(total, weights.dtype)
    faults = np.full(max(1, -(-n // _VERTEX_CHUNK)), -1)
    parallel(
        combine_cpu.combine_rows,
        n,
        _VERTEX_CHUNK,
        *(indptr, indices, None if weights is None else read_only(weights), combination.code, combination.limits),
        *(keep_loops, new_indptr, new_indices, new_weights, faults),
        threads=threads,
    )
    return finish_sums(CSR(new_indptr, new_indices, new_weights), combination, int(faults[(faults >= 0).argmax()]), ids)


def finish_sums(csr: CSR, combination: Combination, fault: int, ids: Array | None) -> CSR:
    """Return the CSR with combined weights in the dtype of the result; raise ``GraphError`` if one does not fit.

    ``fault`` is the key of edges whose sum is out of range, or -1: the source above the destination.
    """
    weights, dtype = csr.weights, combination.dtype
    if weights is None or dtype is None or combination.code < combine_cpu.SUM:
        return csr
    end = (fault >> 32, fault & 0xFFFFFFFF)
    if dtype.kind == "f":
        with np.errstate(over="ignore"):
            weights = weights.astype(dtype, copy=False)
        wrong = np.isnan(weights)
        if combination.weights is not None and np.isfinite(combination.weights).all():
            wrong |= np.isinf(weights)
        if wrong.any():
            e = int(wrong.argmax())
            fault, end = e, (int(np.searchsorted(csr.indptr, e, "right")) - 1, int(csr.indices[e]))
    if fault >= 0:
        source, target = end if ids is None else (ids[[end[0]]].tolist()[0], ids[[end[1]]].tolist()[0])
        raise GraphError(
            f"the weights of the parallel edges from {source!r} to {target!r} have a sum that {dtype} cannot hold: "
            f"{'use smaller weights' if dtype.itemsize == 8 and dtype.kind == 'f' else 'pass weights of float64'}, or "
            "another combine="
        )
    return CSR(csr.indptr, csr.indices, weights)


def _stage(tick: Tick | None, before: int, share: int) -> Tick | None:
    """Return ``tick`` for a stage that is ``share`` quarters of the work and begins after ``before`` quarters."""
    if tick is None:
        return None
    return lambda done, size: tick(before * size + share * done, 4 * size)


def _require_sorting_memory(n: int, edges: int, sizes: Array, weight_bytes: int, threads: int) -> None:
    """Also require memory for buckets that are sorted at the same time: that of a hub may hold half of all edges."""
    sorted_at_once = int(np.sort(sizes)[-threads:].sum())
    each = _SORTING_BYTES + (8 + weight_bytes if weight_bytes else 0)
    needed = building_memory(n, edges, weight_bytes) + sorted_at_once * each
    require_memory(needed, f"building a graph of {n:,} vertices, {edges:,} edges")


def _close_gaps(starts: Array, kept: Array, array: Array) -> None:
    """Move the kept edges of all buckets together and release the rest of the memory."""
    ends = np.cumsum(kept)
    for begin, size, end in zip(starts.tolist(), kept.tolist(), ends.tolist(), strict=False):
        array[end - size : end] = array[begin : begin + size]
    array.resize(int(ends[-1]), refcheck=False)


def sources(csr: CSR, *, threads: int) -> Array:
    """Return the source of every stored edge, uint32[m]."""
    src = np.empty(len(csr.indices), INDEX_DTYPE)
    parallel(csr_cpu.expand_sources, len(csr.indptr) - 1, _VERTEX_CHUNK, read_only(csr.indptr), src, threads=threads)
    return src


def transpose(csr: CSR, *, threads: int) -> CSR:
    """Return the CSC of a CSR: the same edges by destination, as rows of in-edges."""
    n = len(csr.indptr) - 1
    return build_csr(csr.indices, sources(csr, threads=threads), csr.weights, n, symmetric=False, threads=threads)


def check_csr(csr: CSR, *, symmetric: bool, threads: int) -> bool:
    """Raise ``GraphError`` if ``csr`` is invalid, or not symmetric where it must be; return whether rows are sorted.

    Reads the arrays once. Symmetry is checked by sums of hashes, which miss 1 in 2^64 asymmetric graphs.
    """
    _check_lengths(csr)
    indptr, indices, weights = csr
    n = len(indptr) - 1
    faults, (forward, backward) = _check_rows(csr, threads=threads)
    decreasing, outside, unsorted = faults
    if decreasing < n:
        raise GraphError(
            f"indptr decreases or leaves the edges at vertex {decreasing:,}: "
            f"its row is {indptr[decreasing]:,} to {indptr[decreasing + 1]:,}"
        )
    if outside < n:
        row = indices[indptr[outside] : indptr[outside + 1]]
        raise GraphError(f"vertex {outside:,} has an edge to {row[row >= n][0]:,}, but there are only {n:,} vertices")
    if weights is not None and weights.dtype.kind == "f" and np.isnan(weights).any():
        raise GraphError(f"the weight of stored edge {int(np.isnan(weights).argmax()):,} is NaN: use a number")
    if symmetric and forward != backward:
        asymmetry = _asymmetry(csr, threads=threads)
        if asymmetry is not None:
            raise GraphError(asymmetry)
    return bool(unsorted == n)


def _check_lengths(csr: CSR) -> None:
    """Raise ``GraphError`` if the lengths of the arrays do not fit together."""
    indptr, indices, weights = csr
    n = len(indptr) - 1
    if n < 0:
        raise GraphError("indptr is empty: it needs n + 1 entries, [0] for a graph without vertices")
    if n > MAX_VERTICES:
        raise GraphError(f"{n:,} vertices exceed the maximum of {MAX_VERTICES:,} for 32-bit vertex numbers")
    if indptr[0] != 0 or indptr[-1] != len(indices):
        raise GraphError(
            f"indptr must begin with 0 and end with the number of stored edges, {len(indices):,}, "
            f"but runs from {indptr[0]:,} to {indptr[-1]:,}"
        )
    if weights is not None and len(weights) != len(indices):
        raise GraphError(f"weights has {len(weights):,} entries and indices {len(indices):,}: one weight per edge")


def hash_edges(csr: CSR, *, threads: int) -> int:
    """Return the 64-bit sum of a hash of each stored edge and its weight. Reads the arrays once."""
    return _check_rows(csr, threads=threads)[1][0]


def is_symmetric(csr: CSR, *, threads: int) -> bool:
    """Return whether every edge is stored in both directions with the same weight; by hashes, as in ``check_csr``."""
    forward, backward = _check_rows(csr, threads=threads)[1]
    if forward == backward:
        return True
    # Zeros of either sign are equal, but not their hashes.
    zeros = csr.weights is not None and csr.weights.dtype.kind == "f" and not csr.weights.all()
    return zeros and _asymmetry(csr, threads=threads) is None


def _check_rows(csr: CSR, *, threads: int) -> tuple[list[int], list[int]]:
    """Run ``check_rows`` over the whole CSR; return the first vertex with each fault, and both sums of hashes."""
    indptr, indices, weights = csr
    n = len(indptr) - 1
    chunks = -(-n // _VERTEX_CHUNK)
    faults = np.full((chunks, 3), n, np.int64)
    hashes = np.zeros((chunks, 2), np.uint64)
    bits = None if weights is None else read_only(weights).view(f"uint{8 * weights.dtype.itemsize}")
    arrays = (read_only(indptr), read_only(indices), None if weights is None else read_only(weights), bits)
    parallel(csr_cpu.check_rows, n, _VERTEX_CHUNK, *arrays, faults, hashes, threads=threads)
    return faults.min(axis=0, initial=n).tolist(), hashes.sum(axis=0, dtype=np.uint64).tolist()


def _asymmetry(csr: CSR, *, threads: int) -> str | None:
    """Describe an edge that is missing in the other direction; None if only the sign of a zero weight differs."""
    n = len(csr.indptr) - 1
    back = transpose(csr, threads=threads)
    rows = build_csr(sources(csr, threads=threads), csr.indices, csr.weights, n, symmetric=False, threads=threads)
    advice = "store every undirected edge in both directions with the same weight, or pass directed=True"
    for u in np.flatnonzero(np.diff(rows.indptr) != np.diff(back.indptr))[:1].tolist():
        return (
            f"the graph is undirected but not symmetric: vertex {u:,} has {np.diff(rows.indptr)[u]:,} out-edges and "
            f"{np.diff(back.indptr)[u]:,} in-edges; {advice}"
        )
    differs = rows.indices != back.indices
    if rows.weights is not None and back.weights is not None:
        differs = differs | (rows.weights != back.weights)
    if not differs.any():
        return None
    e = int(differs.argmax())
    u = int(np.searchsorted(rows.indptr, e, side="right")) - 1
    return f"the graph is undirected but not symmetric at vertex {u:,}, neighbour {rows.indices[e]:,}; {advice}"
