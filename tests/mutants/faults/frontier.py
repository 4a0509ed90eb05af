"""Faults of frontiers of operators on CUDA, and of the kernels over vertices."""

from __future__ import annotations

from tests.mutants.fault import faults_in

_ANY = "tests/conformance/test_operators.py::"
_CUDA = "tests/conformance/test_operators_cuda.py::"
_EACH = f"{_CUDA}test_each_edge_of_the_frontier_is_processed_once[emulated-directed]"
_PIECE = f"{_CUDA}test_rows_of_as_many_edges_as_a_piece[out]"
_REDUCED = "tests/conformance/test_reduce_rows.py::test_rows_are_combined_as_by_numpy[emulated-directed-sum]"
_LISTED = f"{_CUDA}test_vertices_of_many_words_are_listed_in_order"
_FLOATS = f"{_CUDA}test_sums_of_floats_are_the_same_to_the_bit_whatever_the_order_of_a_queue"
_LAUNCHES = f"{_CUDA}test_a_superstep_is_a_few_launches_and_one_readback"

_FRONTIER_CUDA = faults_in(
    "kernels/traverse/frontier_cuda.py",
    (
        "a frontier row as long as a piece has a piece of its own",
        "if degree <= np.int64(HUB_EDGES):",
        "if degree < np.int64(HUB_EDGES):",
        _PIECE,
    ),
    (
        "a row of whole pieces has one piece too many",
        "(degree + np.int64(HUB_EDGES - 1)) //",
        "(degree + np.int64(HUB_EDGES)) //",
        _PIECE,
    ),
    ("a warp's buffer has gaps", "held + rank_in(among, lane))", "held + lane)", _EACH),
    (
        "no barrier before a buffer is emptied",
        "    lane, place, edges = lane_number(), np.uint32(0), np.int64(0)\n    cuda.syncwarp()\n",
        "    lane, place, edges = lane_number(), np.uint32(0), np.int64(0)\n",
        _EACH,
    ),
    (
        "hubs are listed from the length of a piece on",
        "if degree > np.int64(HUB_EDGES):\n            before",
        "if degree >= np.int64(HUB_EDGES):\n            before",
        _PIECE,
    ),
    (
        "a frontier counts vertices as edges",
        "        edges += degree\n        if",
        "        edges += np.int64(1)\n        if",
        _EACH,
    ),
    ("a full buffer is emptied by half its vertices", "* np.uint32(2 * WARP))", "* np.uint32(WARP))", _EACH),
    (
        "a vertex of the next frontier has no bit",
        "                fetch_and_or(out[1], v >> np.uint32(5), bit(v))\n",
        "                pass\n",
        _REDUCED,
    ),
    (
        "edges of lane 0 only are counted",
        "    edges = sum_of_warp(edges)\n    if",
        "    if",
        _EACH,
    ),
    ("sums of hubs are written over those of rows", "np.uint32(first + warp_number())", "warp_number()", _REDUCED),
    (
        "sums of lane 0 only",
        "own, place = sum_of_warp(own), ",
        "own, place = own, ",
        _FLOATS,
    ),
    (
        "warps beyond the partial sums write",
        "if lane_number() == np.uint32(0) and place < np.uint32(len(sums)):",
        "if lane_number() == np.uint32(0):",
        f"{_ANY}test_sums_over_edges[emulated-push]",
    ),
    (
        "no barrier after the figures of a block are cleared",
        "        figures[thread] = 0\n    cuda.syncthreads()\n",
        "        figures[thread] = 0\n",
        _EACH,
    ),
    (
        "no barrier before the figures of a block are added",
        "            fetch_and_add(figures, HUBS, hubs)\n    cuda.syncthreads()\n",
        "            fetch_and_add(figures, HUBS, hubs)\n",
        _EACH,
    ),
    (
        "the word of the last queued vertex is not cleared",
        "        if i < count:\n            words[",
        "        if i + np.uint32(1) < count:\n            words[",
        _LAUNCHES,
    ),
    ("the last word is not cleared", "elif i < np.uint32(len(words)):", "elif i < np.uint32(len(words) - 1):", _EACH),
    ("figures of the last frontier stay", "        control[i] = 0", "        control[np.uint32(3)] = 0", _EACH),
    (
        "a union leaves out what both have",
        "one[i] | other[i]",
        "one[i] ^ other[i]",
        "tests/conformance/test_operators.py::test_unions[emulated]",
    ),
    (
        "warps without words begin beyond the last",
        "min(np.uint32(min(warp, warps) * share), words)",
        "min(np.uint32(warp * share), words)",
        "",
        "No warp is without figures: their number is a multiple of a block's warps.",
    ),
    ("hubs in words are not counted", "                hubs += pieces_of(degree)\n", "                pass\n", _EACH),
    ("a warp's place counts its own vertices", "    while other < warp:", "    while other <= warp:", _EACH),
    (
        "places count every other group of warps",
        "        other = np.uint32(other + np.uint32(WARP))",
        "        other = np.uint32(other + np.uint32(2*WARP))",
        _LISTED,
    ),
    (
        "a queue has gaps",
        "queue[np.uint32(place + rank_in(bits, lane))] = v",
        "queue[np.uint32(place + lane)] = v",
        _EACH,
    ),
    ("pieces begin at the end of their hub's", "pieces_up_to - own)", "pieces_up_to)", _LISTED),
    ("pieces of warps before are left out", "    return before + (np", "    return np.int64(0) + (np", _LISTED),
    ("hubs are not counted in a list", "for figure in range(3):", "for figure in range(2):", _LISTED),
    (
        "a sum reads every other block of partial sums",
        "i = np.uint32(i + np.uint32(BLOCK))",
        "i = np.uint32(i + np.uint32(2 * BLOCK))",
        f"{_ANY}test_process_vertices_visits_each_vertex_of_the_frontier_once[emulated-20000]",
    ),
    (
        "a sum leaves out the last warp",
        "for k in range(WARPS):",
        "for k in range(WARPS - 1):",
        f"{_ANY}test_process_vertices_visits_each_vertex_of_the_frontier_once[emulated-20000]",
    ),
    (
        "no barrier before warps are summed",
        "            shared[thread >> np.uint32(5)] = own\n        cuda.syncthreads()\n",
        "            shared[thread >> np.uint32(5)] = own\n",
        _FLOATS,
    ),
    (
        "a count of words leaves out every other word",
        "        base = np.uint32(base + np.uint32(WARP))\n    count, edges",
        "        base = np.uint32(base + np.uint32(2*WARP))\n    count, edges",
        _LISTED,
    ),
    (
        "a list of words leaves out every other word",
        "        base = np.uint32(base + np.uint32(WARP))\n    if by_degree",
        "        base = np.uint32(base + np.uint32(2*WARP))\n    if by_degree",
        _LISTED,
    ),
    ("the last groups of words have no warp", "(groups + warps - np.uint32(1)) // warps", "(groups) // warps", _EACH),
    (
        "a warp counts words of the next",
        "        if base + lane < last:\n            word = words[np.uint32(base + lane)]\n        count",
        "        if base + lane < np.uint32(len(words)):\n            word = words[np.uint32(base + lane)]\n        count",
        "",
        "A warp's share is whole groups of 32 words, so that only the last group of all ends within.",
    ),
    (
        "degrees of inactive vertices are read",
        "            if (shuffle(word, owner) >> lane) & np.uint32(1) != np.uint32(0):\n                degree = np.int64(degrees[np.uint32(np.uint32(base + owner) * np.uint32(WARP) + lane)])\n",
        "            degree = np.int64(degrees[np.uint32(np.uint32(base + owner) * np.uint32(WARP) + lane)])\n            if (shuffle(word, owner) >> lane) & np.uint32(1) != np.uint32(0):\n",
        "tests/kernels/traverse/test_operator_counts.py::test_the_words_of_a_set_are_counted_once",
    ),
    (
        "no barrier after a buffer is emptied",
        "        i = np.uint32(i + np.uint32(WARP))\n    cuda.syncwarp()\n",
        "        i = np.uint32(i + np.uint32(WARP))\n",
        "tests/kernels/test_ptx.py::test_the_kernels_of_operators",
    ),
)
_VERTICES_CUDA = faults_in(
    "kernels/traverse/vertices_cuda.py",
    (
        "a thread leaves out every other vertex",
        "stride = np.uint32(np.uint32(cuda.gridDim.x)",
        "stride = np.uint32(2 * np.uint32(cuda.gridDim.x)",
        f"{_CUDA}test_a_thread_sums_over_several_vertices",
    ),
    (
        "inactive vertices are processed",
        "if len(words) == 0 or get_bit(words, v):\n                if sums_up",
        "if True:\n                if sums_up",
        "tests/conformance/test_operators.py::test_process_vertices_visits_each_vertex_of_the_frontier_once[emulated-65]",
    ),
    (
        "a vertex beyond the queue is processed",
        "deliver(i < count, v, v, arrays, out)",
        "deliver(i <= count, v, v, arrays, out)",
        _EACH,
    ),
    (
        "a filter counts vertices as edges",
        "            degree = np.int64(degrees[v])",
        "            degree = np.int64(1)",
        _EACH,
    ),
    ("a vertex beyond the last one is processed", "v < n and (len(words)", "(len(words)", _EACH),
)
FAULTS = (*_FRONTIER_CUDA, *_VERTICES_CUDA)
