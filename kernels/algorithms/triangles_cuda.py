"""Kernels of triangles and clustering on CUDA, for undirected graphs.

Edges are directed forward, from the end of lower degree to that of higher degree, so that even hubs have short forward
rows (Thomas Schank, Dorothea Wagner: Finding, Counting and Listing All Triangles in Large Graphs, WEA 2005). The third
vertex of a triangle is in the forward rows of both others. Of each two neighbours, the one with the longer forward row
puts it into a hash table in shared memory, in which the shorter row is looked up; see Santosh Pandey et al.: TRUST:
Triangle Counting Reloaded on GPUs, TPDS 2021. A warp or a block counts the triangles of one vertex with its neighbours,
the hits of each neighbour and those of each slot of the table, and adds them to the vertices' counts at the end.
"""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.algorithms.forward_rows_cuda import degree_of, joins_another
from gpu_pregel.kernels.library.atomics_cuda import compare_and_swap, fetch_and_add
from gpu_pregel.kernels.library.bits_cuda import bit
from gpu_pregel.kernels.library.compiler_cuda import cuda, types
from gpu_pregel.kernels.library.jit_cuda import BLOCK, OFFSETS, WARP, WARPS, device, kernel
from gpu_pregel.kernels.library.warps_cuda import (
    ALL,
    lane_number,
    owner_of,
    shuffle,
    shuffle_up,
    sum_of_warp,
    sum_up_to,
)
from gpu_pregel.kernels.traverse.rows_cuda import ITEMS, TILE, row_of, rows_of_tile

WARP_ENTRIES, BLOCK_ENTRIES = 64, 1024
"""Forward neighbours in the table of a warp and of a block; longer rows are counted in several parts."""
WARP_SLOTS, BLOCK_SLOTS = 4 * WARP_ENTRIES, 4 * BLOCK_ENTRIES
"""Slots of these tables, of which at most a quarter is used."""
SLOTS_OF_WARPS = WARPS * WARP_SLOTS
PIECE = 1024
"""Neighbours with which a block counts the triangles of a vertex; a vertex with more of them has several blocks."""
PIECES = 0
"""Position in ``control``: the number of pieces."""

_VERTICES, _COUNTS, _POSITIONS = types.uint32[::1], types.int64[::1], types.uint64[::1]
_EMPTY = np.uint32(0xFFFFFFFF)
_GOLDEN = np.uint32(0x9E3779B1)
"""The golden ratio times 2^32, for Fibonacci hashing."""


@device
def _lanes_from(start, end):
    """Return the lanes from ``start`` to before ``end``, int32, as a mask; both may be below 0 or beyond 32."""
    if end <= np.int32(0) or start >= np.int32(WARP) or start >= end:
        return np.uint32(0)
    lanes = ALL
    if end < np.int32(WARP):
        lanes = np.uint32(bit(np.uint32(end)) - np.uint32(1))
    if start > np.int32(0):
        lanes &= np.uint32(~np.uint32(bit(np.uint32(start)) - np.uint32(1)))
    return lanes


@kernel(OFFSETS, _VERTICES, _VERTICES, items=TILE)
def count_neighbors(indptr, indices, neighbors):
    """Add the number of other vertices that each vertex is joined with, a work item being an edge; rows are sorted."""
    m = np.uint64(len(indices))
    e, low, high = rows_of_tile(indptr, m)
    lane = lane_number()
    for _ in range(ITEMS):
        u, counted = low, False
        if e < m:
            u = row_of(indptr, low, high, e)
            counted = joins_another(indptr, indices, u, e)
        among = np.uint32(cuda.ballot_sync(ALL, counted))
        # The first lane of those with edges of the same row adds up theirs.
        is_first = u != shuffle_up(u, 1) or lane == np.uint32(0)
        following = np.uint32(cuda.ballot_sync(ALL, is_first)) & _lanes_from(
            np.int32(lane) + np.int32(1), np.int32(WARP)
        )
        upto = np.int32(WARP)
        if following != np.uint32(0):
            upto = np.int32(cuda.ffs(following) - 1)
        among &= _lanes_from(np.int32(lane), upto)
        if is_first and among != np.uint32(0):
            fetch_and_add(neighbors, u, np.uint32(cuda.popc(among)))
        e += np.uint64(WARP)


@kernel(_COUNTS, _VERTICES, types.float64, types.float64[::1])
def divide_links(links, neighbors, orders, coefficients):
    """Divide the number of links by that of pairs of neighbours; ``orders`` is 2 for unordered links."""
    v = np.uint32(cuda.grid(1))
    if v < np.uint32(len(links)):
        degree = np.float64(neighbors[v])
        pairs = degree * (degree - 1.0)
        coefficients[v] = orders * links[v] / pairs if pairs > 0.0 else 0.0


@device
def _length(begins, v):
    """Return the length of a forward row."""
    return np.uint32(np.uint64(begins[v + np.uint32(1)]) - np.uint64(begins[v]))


@device
def _is_long(degree, length):
    """Return whether blocks, and not one warp, count the triangles of a vertex with a forward row."""
    return length > np.uint32(WARP_ENTRIES) or degree > np.uint64(PIECE)


@kernel(OFFSETS, OFFSETS, _VERTICES, _VERTICES, _POSITIONS)
def list_pieces(indptr, begins, pieces, numbers, control):
    """List the pieces of all rows that blocks count: the vertex, and the number of the piece in its row."""
    u, lane, n = np.uint32(cuda.grid(1)), lane_number(), np.uint32(np.uint32(len(indptr)) - np.uint32(1))
    count = np.uint32(0)
    if u < n:
        length, degree = _length(begins, u), degree_of(indptr, u)
        if length > np.uint32(0) and _is_long(degree, length):
            count = np.uint32((degree + np.uint64(PIECE - 1)) // np.uint64(PIECE))
    upto = sum_up_to(count)
    first = np.uint32(0)
    if lane == np.uint32(WARP - 1) and upto > np.uint32(0):
        first = np.uint32(fetch_and_add(control, PIECES, upto))
    first = np.uint32(shuffle(first, WARP - 1) + upto - count)
    for k in range(count):
        pieces[np.uint32(first + np.uint32(k))] = u
        numbers[np.uint32(first + np.uint32(k))] = np.uint32(k)


@device
def _shift_for(entries):
    """Return by how much to shift hashes for a table of 4 to 8 slots per entry, their number being a power of 2."""
    return np.uint32(cuda.clz(np.uint32(entries * np.uint32(4) - np.uint32(1))))


@device
def _slots_for(shift):
    """Return the number of slots of a table."""
    return np.uint32(np.uint32(1) << np.uint32(np.uint32(32) - shift))


@device
def _insert(keys, table, shift, vertex):
    """Put a vertex into the table that begins at the slot ``table``; other threads insert others."""
    slot = np.uint32(np.uint32(vertex * _GOLDEN) >> shift)
    while compare_and_swap(keys, np.uint32(table + slot), _EMPTY, vertex) != _EMPTY:
        slot = np.uint32((slot + np.uint32(1)) & np.uint32(_slots_for(shift) - np.uint32(1)))


@device
def _look_up(keys, hits, table, shift, vertex):
    """Return whether the table has a vertex, and count the hit."""
    slot = np.uint32(np.uint32(vertex * _GOLDEN) >> shift)
    key = keys[np.uint32(table + slot)]
    while key != vertex and key != _EMPTY:
        slot = np.uint32((slot + np.uint32(1)) & np.uint32(_slots_for(shift) - np.uint32(1)))
        key = keys[np.uint32(table + slot)]
    if key == vertex:
        fetch_and_add(hits, np.uint32(table + slot), 1)
    return key == vertex


@device
def _look_up_rows(begin, length, heads, keys, hits, table, shift):
    """Look up a forward row for each lane of a warp; return the number of its vertices that the table has."""
    lane, found, base = lane_number(), np.uint32(0), np.uint32(0)
    waiting = np.uint32(cuda.ballot_sync(ALL, length > np.uint32(0)))
    upto = sum_up_to(length)
    total = shuffle(upto, WARP - 1)
    if total >= np.uint32(np.uint32(cuda.popc(waiting)) * np.uint32(WARP)):
        # Long rows, one after the other.
        while waiting != np.uint32(0):
            owner = np.uint32(cuda.ffs(waiting) - 1)
            waiting &= np.uint32(waiting - np.uint32(1))
            first, size, of_row = shuffle(begin, owner), shuffle(length, owner), np.uint32(0)
            base = np.uint32(0)
            while base < size:
                hit, place = False, np.uint32(base + lane)
                if place < size:
                    hit = _look_up(keys, hits, table, shift, heads[first + np.uint64(place)])
                of_row = np.uint32(of_row + np.uint32(cuda.popc(np.uint32(cuda.ballot_sync(ALL, hit)))))
                base = np.uint32(base + np.uint32(WARP))
            if lane == owner:
                found = of_row
        return found
    # Short rows: the lanes share what all of them have.
    before = np.uint64(begin - np.uint64(upto - length))
    while base < total:
        hit, place = False, np.uint32(base + lane)
        first = shuffle(before, owner_of(place, upto))
        if place < total:
            hit = _look_up(keys, hits, table, shift, heads[first + np.uint64(place)])
        lanes = _lanes_from(np.int32(upto - length - base), np.int32(upto - base))
        found = np.uint32(found + np.uint32(cuda.popc(np.uint32(np.uint32(cuda.ballot_sync(ALL, hit)) & lanes))))
        base = np.uint32(base + np.uint32(WARP))
    return found


@device
def _edge_at(indptr, piece, place):
    """Return the edge at a place of a piece, which is a vertex and the number of the piece in its row."""
    x, number = piece
    return np.uint64(indptr[x]) + np.uint64(number) * np.uint64(PIECE) + np.uint64(place)


@device
def _edges_in(indptr, piece):
    """Return the number of edges of a piece."""
    end = np.uint64(indptr[piece[0] + np.uint32(1)])
    return np.uint32(min(end - _edge_at(indptr, piece, np.uint32(0)), np.uint64(PIECE)))


@device
def _count_with(piece, place, edges, rows, tables, counts):
    """Count the triangles of a vertex with the neighbour of each lane, that at ``place`` of a piece of its row.

    The neighbour must have a shorter forward row, or one as long and a lower number. The table has the forward row of
    the vertex, or a part of it.
    """
    indptr, indices, begins, heads = rows
    keys, hits, table, shift = tables
    begin, length = np.uint64(0), np.uint32(0)
    if place < edges:
        x, e = piece[0], _edge_at(indptr, piece, place)
        if joins_another(indptr, indices, x, e):
            y, size = indices[e], _length(begins, x)
            begin, length = np.uint64(begins[y]), _length(begins, y)
            if length > size or (length == size and y > x):
                length = np.uint32(0)
    found = _look_up_rows(begin, length, heads, keys, hits, table, shift)
    if found > np.uint32(0):
        # Positions and neighbours are read again, which saves registers.
        fetch_and_add(counts, indices[_edge_at(indptr, piece, place)], found)


@device
def _add_hits(keys, hits, place, counts):
    """Add the hits of a slot to the count of its vertex, and return them."""
    number = hits[place]
    if number > np.uint32(0):
        fetch_and_add(counts, keys[place], number)
    return number


@device
def _add_found(x, found, counts):
    """Add the sum of what the lanes of a warp found to the count of x."""
    found = np.uint32(sum_of_warp(found))
    if lane_number() == np.uint32(0) and found > np.uint32(0):
        fetch_and_add(counts, x, found)


@device
def _claim(claimed):
    """Return the first of 32 neighbours that no other warp of the block has claimed."""
    first = np.uint32(0)
    if lane_number() == np.uint32(0):
        first = np.uint32(fetch_and_add(claimed, 0, WARP))
    return shuffle(first, 0)


@kernel(OFFSETS, _VERTICES, OFFSETS, _VERTICES, _VERTICES, _VERTICES, _COUNTS, items=1)
def count_long(indptr, indices, begins, heads, pieces, numbers, counts):
    """Add the triangles of long rows to the counts of their vertices; each block has one piece."""
    keys = cuda.shared.array(BLOCK_SLOTS, types.uint32)
    hits = cuda.shared.array(BLOCK_SLOTS, types.uint32)
    claimed = cuda.shared.array(1, types.uint32)
    thread, lane, block = np.uint32(cuda.threadIdx.x), lane_number(), np.uint32(cuda.blockIdx.x)
    x, number = pieces[block], numbers[block]
    size, part, found = _length(begins, x), np.uint32(0), np.uint32(0)
    while part < size:
        entries = min(np.uint32(size - part), np.uint32(BLOCK_ENTRIES))
        shift = _shift_for(entries)
        for slot in range(thread, _slots_for(shift), np.uint32(BLOCK)):
            keys[np.uint32(slot)] = _EMPTY
            hits[np.uint32(slot)] = 0
        if thread == np.uint32(0):
            claimed[0] = 0
        cuda.syncthreads()
        for k in range(thread, entries, np.uint32(BLOCK)):
            vertex = heads[np.uint64(begins[x]) + np.uint64(part) + np.uint64(k)]
            _insert(keys, np.uint32(0), shift, vertex)
        cuda.syncthreads()
        place, edges = _claim(claimed), _edges_in(indptr, (x, number))
        while place < edges:
            rows, tables = (indptr, indices, begins, heads), (keys, hits, np.uint32(0), shift)
            _count_with((x, number), np.uint32(place + lane), edges, rows, tables, counts)
            place = _claim(claimed)
        cuda.syncthreads()
        for slot in range(thread, _slots_for(shift), np.uint32(BLOCK)):
            found = np.uint32(found + _add_hits(keys, hits, np.uint32(slot), counts))
        cuda.syncthreads()
        part = np.uint32(part + np.uint32(BLOCK_ENTRIES))
    _add_found(x, found, counts)


@kernel(OFFSETS, _VERTICES, OFFSETS, _VERTICES, _COUNTS, items=WARPS)
def count_short(indptr, indices, begins, heads, counts):
    """Add the triangles of all other rows; each warp has one vertex."""
    keys = cuda.shared.array(SLOTS_OF_WARPS, types.uint32)
    hits = cuda.shared.array(SLOTS_OF_WARPS, types.uint32)
    lane, warp = lane_number(), np.uint32(cuda.threadIdx.x) >> np.uint32(5)
    x = np.uint32(np.uint32(cuda.blockIdx.x) * np.uint32(WARPS) + warp)
    if x >= np.uint32(len(counts)):
        return
    size = _length(begins, x)
    if size == np.uint32(0) or _is_long(degree_of(indptr, x), size):
        return
    shift, table = _shift_for(size), np.uint32(warp * np.uint32(WARP_SLOTS))
    for slot in range(lane, _slots_for(shift), np.uint32(WARP)):
        keys[np.uint32(table + np.uint32(slot))] = _EMPTY
        hits[np.uint32(table + np.uint32(slot))] = 0
    cuda.syncwarp()
    for k in range(lane, size, np.uint32(WARP)):
        _insert(keys, table, shift, heads[np.uint64(begins[x]) + np.uint64(k)])
    cuda.syncwarp()
    place, edges = np.uint32(0), _edges_in(indptr, (x, np.uint32(0)))
    while place < edges:
        rows, tables = (indptr, indices, begins, heads), (keys, hits, table, shift)
        _count_with((x, np.uint32(0)), np.uint32(place + lane), edges, rows, tables, counts)
        place = np.uint32(place + np.uint32(WARP))
    cuda.syncwarp()
    found = np.uint32(0)
    for slot in range(lane, _slots_for(shift), np.uint32(WARP)):
        found = np.uint32(found + _add_hits(keys, hits, np.uint32(table + np.uint32(slot)), counts))
    _add_found(x, found, counts)
