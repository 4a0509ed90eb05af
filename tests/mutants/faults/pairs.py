"""Faults of the kernels that intersect rows, and of those that list edges."""

from __future__ import annotations

from tests.mutants.fault import faults_in

_FILE = "tests/conformance/test_intersect_rows.py::"
_SETS = f"{_FILE}test_common_neighbours_are_those_of_sets[emulated-undirected]"
_WEIGHTS = f"{_FILE}test_common_neighbours_are_those_of_sets[emulated-directed-int64]"
_RANDOM = f"{_FILE}test_random_graphs_with_repeated_edges_and_self_loops[emulated]"
_EDGES = f"{_FILE}test_edges_are_listed_once[emulated]"
_HUBS = f"{_FILE}test_edges_of_hubs_and_of_many_words[emulated]"
_FINISHED = f"{_FILE}test_a_pair_is_finished_once[emulated]"
_MANY = f"{_FILE}test_a_row_of_many_pieces[emulated]"
_VISITS = f"{_FILE}test_a_common_neighbour_is_visited_once[emulated]"
_MEASURES = "tests/kernels/traverse/test_pairs_cuda.py::"
_PIECES = f"{_MEASURES}test_pieces_are_those_of_the_shorter_row"
_NEGATIVE = f"{_MEASURES}test_numbers_of_no_vertex_are_counted[negative]"
_TOO_LARGE = f"{_MEASURES}test_numbers_of_no_vertex_are_counted[too large]"
_COUNTS = "tests/kernels/traverse/test_row_counts.py::test_pairs_are_shared_by_the_shorter_rows"
_FAR = "tests/conformance/test_far_edges.py::test_pairs[32 bits]"
_CPU = f"{_FILE}test_random_graphs_with_repeated_edges_and_self_loops[cpu]"

_KERNELS = faults_in(
    "kernels/traverse/pairs_cuda.py",
    ("a negative number is a vertex", "u < np.int64(0) or u >= n", "u >= n", _NEGATIVE),
    ("the number of vertices is a vertex", "v < np.int64(0) or v >= n", "v < np.int64(0) or v > n", _TOO_LARGE),
    (
        "long rows are walked by their warp too",
        "is_long = length > position(PIECE)",
        "is_long = False",
        f"{_COUNTS}[star]",
    ),
    (
        "a row of exactly a piece is long to the pairs",
        "length > position(PIECE)",
        "length >= position(PIECE)",
        _WEIGHTS,
    ),
    ("a row of exactly a piece has one", "if length > np.int64(PIECE):", "if length >= np.int64(PIECE):", _PIECES),
    ("the last piece of a row is missing", "(length + np.int64(PIECE - 1)) //", "length //", _SETS),
    ("the longer row is walked", "if length <= size:", "if length > size:", f"{_COUNTS}[star]"),
    ("a search ends one vertex too early", "while size > position(0):", "while size > position(1):", _RANDOM),
    (
        "the vertex after a row is in it",
        "if place == position(other + size) or indices[place] != w:",
        "if indices[place] != w:",
        _RANDOM,
    ),
    ("every vertex that is searched for is found", " or indices[place] != w:", ":", _RANDOM),
    (
        "repeated edges are visited each",
        "if e > position(indptr[walked]) and indices[position(e - position(1))] == w:",
        "if False:",
        _RANDOM,
    ),
    ("the first edge of a row repeats the last one of another", "if e > position(indptr[walked]) and", "if", _RANDOM),
    (
        "a repeated edge is looked for where another row begins",
        "walked, of_first, of_second = u, e, place",
        "walked, of_first, of_second = v, e, place",
        _SETS,
    ),
    (
        "weights are those of the other vertex",
        "weight_of(weights, of_first), weight_of(weights, of_second)",
        "weight_of(weights, of_second), weight_of(weights, of_first)",
        _WEIGHTS,
    ),
    ("a piece belongs to the pair before", "<= np.uint64(piece):", "< np.uint64(piece):", _SETS),
    ("every piece is the first one of its row", "            begin = position(begin + before)\n", "", _SETS),
    (
        "the last piece goes on to the next row",
        "np.uint32(min(position(length - before), position(PIECE)))",
        "np.uint32(PIECE)",
        _SETS,
    ),
    (
        "all lanes have a piece",
        "if lane == np.uint32(0):\n                part =",
        "if True:\n                part =",
        _VISITS,
    ),
    (
        "a pair takes the pieces of those after it",
        "                last = np.uint32(firsts[np.uint32(pair + np.uint32(1))])\n",
        "                pass\n",
        _SETS,
    ),
    (
        "a pair has every other group of pieces",
        "piece = np.uint32(piece + np.uint32(WARP))",
        "piece = np.uint32(piece + np.uint32(2 * WARP))",
        _MANY,
    ),
    (
        "a pair has the pieces of one lane",
        "shuffle(up_to(part, np.uint32(0)), WARP - 1)",
        "shuffle(part, 0)",
        _FINISHED,
    ),
    ("the sum of a long row is given to all lanes", "            if lane == owner:\n", "            if True:\n", _SETS),
    (
        "positions of edges have 32 bits",
        "begin = position(position(begin + half) + position(1))",
        "begin = np.uint32(begin + half + 1)",
        _FAR,
    ),
    ("edges between two vertices of a frontier are listed twice", "once and v < u", "False", _EDGES),
    ("an edge that leaves the frontier to a lower number is missing", "v < u and _has(words, v)", "v < u", _EDGES),
    ("edges of vertices outside the frontier are listed", "_has(words, u) and not", "not", _HUBS),
    ("the edges of a word have one place", "+ np.uint64(rank_in(word, lane))", "+ np.uint64(0)", _EDGES),
)
_CPU_BODY = faults_in(
    "host/traverse/pairs.py",
    ("the CPU visits repeated edges each", "e > begin and indices[e] == indices[e - 1]", "False", _CPU),
    ("the CPU passes the weights of the other vertex", "(e, other) if is_first", "(e, other) if not is_first", _CPU),
    (
        "the CPU lists edges twice",
        "(first <= second) if flags is None",
        "True if flags is None",
        f"{_FILE}test_edges_are_listed_once[cpu]",
    ),
)
FAULTS = (*_KERNELS, *_CPU_BODY)
