"""Faults of the push and pull of vertex programs on CUDA."""

from __future__ import annotations

from tests.mutants.fault import faults_in

_SHAPES = "tests/conformance/test_shapes.py::"
_ROWS = f"{_SHAPES}test_rows_of_every_length"
_COUNTS = "tests/kernels/programs/test_counts.py::"
_READ_ONCE = f"{_COUNTS}test_each_edge_is_read_once"
_SIZES = "tests/kernels/programs/test_sizes_cuda.py::"
_COMBINERS = "tests/conformance/test_combiners.py::"
_HUBS = f"{_SIZES}test_more_hubs_than_a_block_has_warps"
_FAR = "tests/conformance/test_far_edges.py::test_vertex_programs"
_WORDS = "(words + np.uint32(WORDS_PER_WARP - 1)) // np"

_WORDS_OF_PUSH = faults_in(
    "kernels/traverse/rows_cuda.py",
    (
        "the rank of a source counts the source",
        "rank_in(shuffle(among, owner), lane)",
        "rank_in(shuffle(among, owner), lane) + np.uint32(1)",
        f"{_ROWS}[emulated:1-push-2]",
    ),
    (
        "vertices without a row in the partition send",
        "frontier[number] & among",
        "frontier[number]",
        f"{_ROWS}[emulated:1-push-2]",
    ),
    ("a word beyond the frontier is read", "and k < words:", "and k <= words:", f"{_ROWS}[emulated-push-1]"),
    ("the warps of hubs overlap those of words", _WORDS, "words // np", f"{_ROWS}[emulated-push-1]"),
    (
        "the last piece of a hub is not sent",
        "if piece < np.uint32(len(hub_rows))",
        "if piece + np.uint32(1) < np.uint32(len(hub_rows))",
        f"{_READ_ONCE}[labels-push-hub]",
    ),
    (
        "inactive hubs send",
        "        busy = np.uint32(get_bit(frontier, u))\n",
        "        busy = np.uint32(1)\n",
        f"{_SIZES}test_the_only_inactive_vertex_sends_nothing[push]",
    ),
    (
        "sources are numbered by the lane of their word",
        "np.uint32(WARP) + lane)\n                own_row",
        "np.uint32(WARP) + owner)\n                own_row",
        f"{_ROWS}[emulated-push-1]",
    ),
    (
        "bounds of rows are read by inactive lanes",
        "            begin, length = offset(0), np.uint32(0)\n",
        "            begin, length = offset(rows[0][np.uint32(0)]), np.uint32(0)\n",
        f"{_COUNTS}test_a_push_reads_the_bitmap_and_the_rows_of_its_vertices[4]",
    ),
)
_SHARED = faults_in(
    "kernels/traverse/walks_cuda.py",
    (
        "positions of a push have 32 bits",
        "before = offset(begin - offset(upto - length))",
        "before = np.uint32(begin - offset(upto - length))",
        f"{_FAR}[per source-32 bits]",
    ),
    (
        "positions of a push are signed",
        "e = offset(shuffle(before, owner) + offset(place))\n            row",
        "e = np.int32(shuffle(before, owner) + offset(place))\n            row",
        f"{_FAR}[per source-31 bits]",
    ),
    (
        "the last row of a warp sends nothing",
        "total = shuffle(upto, 31)\n        before",
        "total = shuffle(upto, 30)\n        before",
        f"{_READ_ONCE}[distances-push-short]",
    ),
    (
        "an edge beyond the last one of a warp is read",
        "if place < total and (going",
        "if place <= total and (going",
        f"{_READ_ONCE}[labels-pull-short]",
    ),
    (
        "pulled rows end one edge early",
        "and upto > base and not is_final(kept)",
        "and upto > base + np.uint32(1) and not is_final(kept)",
        f"{_ROWS}[emulated:1-pull-1] tests/conformance/test_receivers.py::test_hops_are_those_of_networkx[emulated-pull-1]",
    ),
)
_PUSH = faults_in(
    "kernels/programs/push_cuda.py",
    (
        "lanes without a row compute a message",
        "        if length > np.uint32(0):\n            ctx",
        "        if True:\n            ctx",
        f"{_COUNTS}test_a_push_reads_the_bitmap_and_the_rows_of_its_vertices[4]",
    ),
    (
        "messages are sent twice",
        "            return deliver(",
        "            deliver(inbox, touched, v, message_of(sender, v, e, senders))\n            return deliver(",
        f"{_READ_ONCE}[labels-push-short]",
    ),
    (
        "messages reach those who take none",
        "if is_receiver(receivers, v, len(senders[1])):",
        "if True:",
        f"{_READ_ONCE}[search-push-short]",
    ),
)
_COMBINE = faults_in(
    "kernels/programs/combine_cuda.py",
    (
        "receivers are marked by plain writes",
        "            return fetch_and_or(touched, v >> np.uint32(5), own) & own == np.uint32(0)\n",
        "            touched[v >> np.uint32(5)] |= own\n            return True\n",
        f"{_READ_ONCE}[labels-push-short]",
    ),
    (
        "every message marks its receiver",
        "if combine_at(inbox, v, message) == nothing and not always:",
        "combine_at(inbox, v, message)\n        if not always:",
        f"{_READ_ONCE}[labels-push-short] {_SHAPES}test_stars[emulated-5000 push 1]",
    ),
    (
        "floats are ordered as signed bits",
        "if signed(bits) >= 0:",
        "if True:",
        f"{_COMBINERS}test_extreme_messages[emulated:1-min of float32]",
    ),
)
_PULL = faults_in(
    "kernels/programs/pull_cuda.py",
    (
        "rows of vertices that take nothing are read",
        "wanted = (is_row or is_piece) and wants(receivers, rows, row, piece, is_row, n)",
        "wanted = is_row or is_piece",
        "tests/conformance/test_receivers.py::test_rows_of_other_vertices_are_not_read[emulated]",
    ),
    (
        "the frontier is read where all are active",
        "is_sent = all_active or get_bit(frontier, u)",
        "is_sent = get_bit(frontier, u)",
        f"{_READ_ONCE}[distances-pull-short]",
    ),
    (
        "inactive neighbours send in a pull",
        "is_sent = all_active or get_bit(frontier, u)",
        "is_sent = True",
        f"{_SIZES}test_the_only_inactive_vertex_sends_nothing[pull]",
    ),
    (
        "a listed row is taken as its vertex",
        "            if len(rows):\n                row = rows[row]\n            if accumulate",
        "            if accumulate",
        f"{_ROWS}[emulated-pull-2]",
    ),
    (
        "pieces of hubs are combined without their number of items",
        ", items=WARPS)",
        ")",
        f"{_HUBS}[9]",
    ),
)
_COMBINING = faults_in(
    "kernels/traverse/combining_cuda.py",
    (
        "a row takes the message of the next 32 edges",
        "and start < base + np.uint32(WARP):",
        "and start <= base + np.uint32(WARP):",
        f"{_ROWS}[emulated:1-pull-1]",
    ),
    (
        "rows are read on after a message that no other changes",
        "        return kept[1] == absorbing\n",
        "        return False\n",
        f"{_COUNTS}test_rows_are_left_when_their_message_is_the_smallest[medium]",
    ),
    (
        "the first edge of a row is left out of its combination",
        "if lane >= first + distance:",
        "if lane > first + distance:",
        f"{_ROWS}[emulated:1-pull-1]",
    ),
)
_RANGES = faults_in(
    "kernels/traverse/rows_cuda.py",
    (
        "pieces of hubs overlap rows that fill their warps",
        "np.uint32(np.uint32(count + np.uint32(WARP - 1)) >> np.uint32(5))",
        "np.uint32(np.uint32(count >> np.uint32(5)) + np.uint32(1))",
        f"{_SHAPES}test_hubs_beside_full_warps_of_rows[emulated-pull-1]",
    ),
    (
        "rows as long as a piece are lost",
        "if end - begin <= offset(HUB_EDGES):",
        "if end - begin < offset(HUB_EDGES):",
        f"{_READ_ONCE}[labels-push-medium]",
    ),
    (
        "hubs are read as rows and in pieces",
        "        if end - begin <= offset(HUB_EDGES):\n",
        "        if True:\n",
        f"{_READ_ONCE}[labels-pull-hub]",
    ),
    (
        "begins of rows have 32 bits",
        "offset(begins[row])",
        "offset(np.uint32(begins[row]))",
        f"{_FAR}[per source-32 bits]",
    ),
    (
        "begins of pieces have 32 bits",
        "offset(begins[piece])",
        "offset(np.uint32(begins[piece]))",
        f"{_FAR}[per source-32 bits]",
    ),
)
FAULTS = (*_WORDS_OF_PUSH, *_SHARED, *_PUSH, *_COMBINE, *_PULL, *_COMBINING, *_RANGES)
