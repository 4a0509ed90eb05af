"""Faults in the CUDA kernels of triangles."""

from __future__ import annotations

from tests.mutants.fault import faults_in

_KERNELS = "tests/kernels/algorithms/test_triangles_cuda.py::"
_FULL = f"{_KERNELS}test_cliques[65-0]"
_OVERFULL = f"{_KERNELS}test_cliques[67-0]"
_HUB = f"{_KERNELS}test_hubs[True-1025]"
_LARGE_HUB = f"{_KERNELS}test_hubs[True-2053]"
_SHORT_HUB = f"{_KERNELS}test_pieces_of_a_hub_with_a_short_forward_row"
_ROWS = f"{_KERNELS}test_forward_rows[random-2048-uint32]"
_ONE_MORE = f"{_KERNELS}test_forward_rows[random-2049-uint32]"
_WORD = f"{_KERNELS}test_forward_rows[random-32-uint32]"
_STAR = f"{_KERNELS}test_forward_rows[star-33-uint32]"
_ORDERS = f"{_KERNELS}test_any_order_of_the_vertices_gives_the_same_counts[0]"
_FAR = f"{_KERNELS}test_far_edges[32 bits]"
_KNOWN = "tests/gpu_pregel/algorithms/test_triangle_count.py::test_known_answers[emulated]"

_SEARCHING = faults_in(
    "kernels/traverse/rows_cuda.py",
    ("the first edge of a row is in the row before", "np.uint64(indptr[middle]) <= e", "indptr[middle] < e", _ROWS),
)
_MARKING = faults_in(
    "kernels/algorithms/forward_rows_cuda.py",
    (
        "repeated edges are marked",
        "(e == np.uint64(indptr[u]) or indices[e - np.uint64(1)] != v)",
        "True",
        _KNOWN,
    ),
    (
        "the first neighbour of a row is compared with the last one of another",
        "(e == np.uint64(indptr[u]) or indices[e - np.uint64(1)] != v)",
        "(e == np.uint64(0) or indices[e - np.uint64(1)] != v)",
        _STAR,
    ),
    ("edges between equal degrees lead nowhere", "(degree == other and u < v)", "False", _KNOWN),
    ("no word after the last full one", "np.uint32(0) and e <= m:", "np.uint32(0) and e < m:", _WORD),
)

_COUNTING = faults_in(
    "kernels/algorithms/triangles_cuda.py",
    (
        "neighbours of a row are counted to the end of the warp",
        "            upto = np.int32(cuda.ffs(following) - 1)\n",
        "            upto = np.int32(WARP)\n",
        _ONE_MORE,
    ),
    (
        "a row with one entry more than a warp's table",
        "length > np.uint32(WARP_ENTRIES)",
        "length > np.uint32(WARP_ENTRIES + 1)",
        f"{_KERNELS}test_cliques[67-1]",
    ),
    ("a warp counts rows of hubs too", " or degree > np.uint64(PIECE)", "", _SHORT_HUB),
    ("the last piece of a hub is missing", "(degree + np.uint64(PIECE - 1)) //", "degree //", _HUB),
    ("a piece begins where its row does", " + np.uint64(number) * np.uint64(PIECE)", "", _HUB),
    (
        "a piece ends where its row does",
        "np.uint32(min(end - _edge_at(indptr, piece, np.uint32(0)), np.uint64(PIECE)))",
        "np.uint32(end - _edge_at(indptr, piece, np.uint32(0)))",
        _LARGE_HUB,
    ),
    (
        "vertices are inserted by plain writes",
        "while compare_and_swap(keys, np.uint32(table + slot), _EMPTY, vertex) != _EMPTY:",
        "while keys[np.uint32(table + slot)] != _EMPTY:",
        _FULL,
    ),
    (
        "a look-up ends at the first other key",
        "while key != vertex and key != _EMPTY:",
        "while False:",
        _ORDERS,
    ),
    (
        "hits are counted by plain writes",
        "        fetch_and_add(hits, np.uint32(table + slot), 1)\n",
        "        hits[np.uint32(table + slot)] += 1\n",
        _OVERFULL,
    ),
    (
        "hits of the lane with the first part of a row are those of others",
        "_lanes_from(np.int32(upto - length - base), np.int32(upto - base))",
        "_lanes_from(np.int32(0), np.int32(upto - base))",
        _ORDERS,
    ),
    ("pairs of equal rows are counted twice", " or (length == size and y > x)", "", _HUB + " " + _ORDERS),
    ("the table is not cleared", "            keys[np.uint32(slot)] = _EMPTY\n", "            pass\n", _LARGE_HUB),
    (
        "the hits of a part are counted again",
        "            hits[np.uint32(slot)] = 0\n",
        "            hits[np.uint32(slot)] = part\n",
        _LARGE_HUB,
    ),
    ("only the first part of a row is counted", "    while part < size:\n", "    if part < size:\n", _LARGE_HUB),
    (
        "positions in forward rows have 32 bits",
        "np.uint64(begins[x]) + np.uint64(part)",
        "np.uint64(np.uint32(begins[x])) + np.uint64(part)",
        _FAR,
    ),
)

FAULTS = (*_SEARCHING, *_MARKING, *_COUNTING)
