"""Faults of the kernels of operators over edges on CUDA."""

from __future__ import annotations

from tests.mutants.fault import faults_in

_COUNTS = "tests/kernels/traverse/test_operator_counts.py::"
_CUDA = "tests/conformance/test_operators_cuda.py::"
_EACH = f"{_CUDA}test_each_edge_of_the_frontier_is_processed_once[emulated-directed]"
_PIECE = f"{_CUDA}test_rows_of_as_many_edges_as_a_piece[out]"
_ENDS = f"{_CUDA}test_rows_end_where_their_vertex_stops_receiving[emulated]"
_FLOATS = f"{_CUDA}test_sums_of_floats_are_the_same_to_the_bit_whatever_the_order_of_a_queue"

_EDGES_CUDA = faults_in(
    "kernels/traverse/edges_cuda.py",
    ("a piece belongs to the hub before", "if firsts[middle] <= piece:", "if firsts[middle] < piece:", _EACH),
    (
        "a queued row as long as a piece is not pushed",
        "if degree <= position(HUB_EDGES):",
        "if degree < position(HUB_EDGES):",
        _PIECE,
    ),
    ("the last piece is pushed twice", "elif piece < pieces:", "elif piece <= pieces:", _EACH),
    (
        "a piece begins at its own number",
        "position(np.uint32(piece - firsts[hub])) *",
        "position(np.uint32(piece)) *",
        _EACH,
    ),
    (
        "vertices found twice are listed twice",
        "& bit(v) == np.uint32(0)\n        return False",
        "& bit(v) == np.uint32(0) or True\n        return False",
        _EACH,
    ),
    ("a buffer overflows", "if held > np.uint32(WARP) or", "if held > np.uint32(2 * WARP - 2) or", _EACH),
    ("a buffer is not emptied at the end", "np.uint32(0) and is_last):", "np.uint32(0) and False):", _EACH),
    (
        "positions of pushed edges have 32 bits",
        "return types.uint32 if offset.itemsize == 4 else types.uint64",
        "return types.uint32",
        f"{_CUDA}test_edge_positions_of_64_bits",
    ),
    (
        "a push for a sum reaches those who take nothing",
        "        if receives(v, arrays):\n            return call(",
        "        if True:\n            return call(",
        "tests/conformance/test_operators.py::test_sums_over_edges[emulated-push]",
    ),
    ("a push sums the last edge only", "return number(kept + result)", "return number(result)", _FLOATS),
    (
        "a push for a frontier reaches those who take nothing",
        "if receives(v, arrays) and call(",
        "if call(",
        _ENDS,
    ),
)
_PULL_EDGES_CUDA = faults_in(
    "kernels/traverse/edges_cuda.py",
    ("indptr is read beyond its end by a pull", "position(indptr[min(v, n)])", "position(indptr[v])", _EACH),
    (
        "a pulled row ends where it begins",
        "end = position(indptr[min(np.uint32(v + np.uint32(1)), n)])",
        "end = position(indptr[min(np.uint32(v), n)])",
        _ENDS,
    ),
    (
        "a pulled row as long as a piece is lost",
        "position(end - begin) <= position(HUB_EDGES)",
        "position(end - begin) < position(HUB_EDGES)",
        _PIECE,
    ),
    (
        "rows of all vertices are pulled",
        "                if receives(v, arrays):\n",
        "                if True:\n",
        _ENDS,
    ),
    (
        "a row does not end when its vertex stops receiving",
        "                is_open = receives(v, state[2])",
        "                is_open = True",
        _ENDS,
    ),
    (
        "receivers are asked before lanes have written",
        "            cuda.syncwarp()\n",
        "",
        "tests/kernels/test_ptx.py::test_the_kernels_of_operators",
    ),
    ("a hit is forgotten by the next part", "hit = hit or hits", "hit = hits", _EACH),
    ("a pull takes messages of inactive neighbours", "if len(words) == 0 or get_bit(words, u):", "if True:", _EACH),
    (
        "degrees of the other direction are not counted",
        "if hit and (has_other_degrees or not is_row):",
        "if hit and (not is_row):",
        _EACH,
    ),
    (
        "pieces are not counted by degree",
        "if hit and (has_other_degrees or not is_row):",
        "if hit and has_other_degrees:",
        f"{_CUDA}test_edge_positions_of_64_bits",
    ),
    (
        "no barrier after a pull's words",
        "        words[thread >> np.uint32(5)] = bits\n    cuda.syncthreads()\n",
        "        words[thread >> np.uint32(5)] = bits\n",
        _EACH,
    ),
    (
        "hubs found by several pieces are counted for each",
        "hit = fetch_and_or(found, v >> np.uint32(5), bit(v)) & bit(v) == np.uint32(0)",
        "fetch_and_or(found, v >> np.uint32(5), bit(v))",
        _EACH,
    ),
    (
        "rows of vertices that take nothing are looked up",
        "if np.uint32(cuda.ballot_sync(ALL, wanted)) != np.uint32(0):",
        "if True:",
        f"{_COUNTS}test_a_pull_reads_no_rows_where_nobody_receives",
    ),
    (
        "receivers are asked after each round",
        "            if np.uint32(cuda.ballot_sync(ALL, is_called)) & lanes_of(*span) != np.uint32(0):\n",
        "            if True:\n",
        f"{_COUNTS}test_a_pull_leaves_rows_that_do_not_receive_any_more[hub]",
    ),
    (
        "the quota of edges does not grow",
        "np.uint32(quota << np.uint32(1))",
        "np.uint32(quota)",
        f"{_COUNTS}test_rows_are_read_in_parts_that_double",
    ),
)
_WALKS = faults_in(
    "kernels/traverse/walks_cuda.py",
    (
        "edges of rows that have ended are read",
        "if place < total and (going >> owner) & np.uint32(1) != np.uint32(0):",
        "if place < total:",
        "",
        "A round begins with the first open row, and no row after it has been read.",
    ),
    (
        "rows do not end early",
        "            if can_end:\n",
        "            if False:\n",
        _ENDS,
    ),
    (
        "positions of pulled edges have 32 bits",
        "before = offset(begin - offset(start))",
        "before = np.uint32(begin - offset(start))",
        "tests/conformance/test_far_edges.py::test_operators[32 bits]",
    ),
    (
        "the first quota is the whole row",
        "        part = min(length, quota)\n        upto",
        "        part = length\n        upto",
        f"{_COUNTS}test_a_pull_leaves_rows_that_do_not_receive_any_more[hub]",
    ),
)
_ROWS_CUDA = faults_in(
    "kernels/traverse/rows_cuda.py",
    (
        "a row that begins one edge into a round loses its start",
        "    if start > base:\n",
        "    if start > base + np.uint32(1):\n",
        _EACH,
    ),
    ("rows do not end within a round", "    if upto < np.uint32(base + np.uint32(WARP)):", "    if False:", _EACH),
    (
        "a row with nothing left goes on",
        " or start == upto:",
        ":",
        "",
        "The masks of the lanes from an empty row's begin and below its end have none in common.",
    ),
)
FAULTS = (*_EDGES_CUDA, *_PULL_EDGES_CUDA, *_WALKS, *_ROWS_CUDA)
