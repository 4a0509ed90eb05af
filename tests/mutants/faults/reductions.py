"""Faults of the kernels on CUDA that reduce rows and count labels."""

from __future__ import annotations

from tests.mutants.fault import faults_in

_REDUCE = "tests/conformance/test_reduce_rows.py::"
_ROWS = f"{_REDUCE}test_rows_are_combined_as_by_numpy[emulated-directed-sum]"
_LABELS = "tests/conformance/test_count_labels.py::test_the_most_frequent_label_is_found[emulated-"
_TABLES = "tests/conformance/test_count_labels.py::test_tables_of_many_lengths[emulated]"
_SCORES = "tests/conformance/test_count_labels.py::test_largest_label_and_negative_scores[emulated]"
_FAR = "tests/conformance/test_far_edges.py::test_rows["
_FAR_ROWS, _FAR_LABELS = f"{_FAR}reduce_rows-32 bits]", f"{_FAR}count_labels-32 bits]"
_PTX = "tests/kernels/test_ptx.py::test_the_kernels_over_rows"
_FEW, _MANY, _DIFFERENT = f"{_LABELS}undirected-few]", f"{_LABELS}directed-many]", f"{_LABELS}undirected-different]"

_REDUCTIONS = faults_in(
    "kernels/traverse/reduce_cuda.py",
    (
        "a hub takes the pieces of those after it",
        "                last = firsts[np.uint32(i + np.uint32(1))]\n",
        "                pass\n",
        _ROWS,
    ),
    (
        "weights of rows have positions of 32 bits",
        "weight_of(weights, e)",
        "weight_of(weights, np.uint32(e))",
        _FAR_ROWS,
    ),
    (
        "warps beyond the hubs finish vertex 0",
        "return v, i < hub_count and lane_number()",
        "return v, lane_number()",
        _ROWS,
    ),
)
_PIECES = faults_in(
    "kernels/traverse/combining_cuda.py",
    (
        "pieces beyond the last are stored",
        "        if is_piece and lane_number()",
        "        if True and lane_number()",
        _ROWS,
    ),
    (
        "the result of a piece is that of another row",
        "is_piece and lane_number() == np.uint32(0):",
        "is_piece and lane_number() == np.uint32(1):",
        _ROWS,
    ),
    ("a hub begins with the first piece of all", "np.uint32(first + lane_number())", "lane_number()", _ROWS),
    (
        "a hub has every other group of pieces",
        "piece = np.uint32(piece + np.uint32(WARP))",
        "piece = np.uint32(piece + np.uint32(2 * WARP))",
        "tests/kernels/traverse/test_row_counts.py::test_the_longest_lane_is_near_the_mean[star-reduce_rows]",
    ),
    (
        "a hub has the pieces of one lane",
        "        return up_to(message, np.uint32(0))\n",
        "        return message\n",
        _ROWS,
    ),
)
_SENDER = faults_in(
    "kernels/traverse/edges_cuda.py",
    (
        "hubs are finished as rows, too",
        "                    length, is_row = np.uint32(degree), True\n",
        "                    length = np.uint32(degree)\n                is_row = True\n",
        _ROWS,
    ),
)
_KERNELS = faults_in(
    "host/traverse/operator_kernels_cuda.py",
    (
        "a message has the vertex of its lane",
        '        takes_first=bodies.combine == "any",\n        tracks=False,\n        by_row=True,',
        '        takes_first=bodies.combine == "any",\n        tracks=False,\n        by_row=False,',
        _ROWS,
    ),
    (
        "tables are read as if nobody wrote them",
        ", load=labels_cuda.load_key)",
        ")",
        _PTX,
    ),
    (
        "rows of any order are summed",
        "    ordered = rounds or (",
        "    ordered = (",
        f"{_REDUCE}test_sums_of_floats_are_the_same_to_the_bit[emulated]",
    ),
)
_COUNTING = faults_in(
    "kernels/traverse/labels_cuda.py",
    (
        "tables of rows keep their keys",
        "                keys[i], sums[i] = _FREE, 0\n            place",
        "                sums[i] = 0\n            place",
        _FEW,
    ),
    (
        "lanes count before others have cleared",
        "        cuda.syncwarp()\n        insert(",
        "        insert(",
        _FEW,
    ),
    (
        "tables are looked through before all have counted",
        "        cuda.syncwarp()\n        return best(",
        "        return best(",
        _PTX,
    ),
    ("a table goes on in the next one", "if slot == position(places):", "if False:", _TABLES),
    ("equal labels have places of their own", "while seen != _FREE and seen != key:", "while seen != _FREE:", _FEW),
    (
        "tables of a warp reach into those of the next",
        "<= np.uint32(PLACES):",
        "<= np.uint32(PLACES + 4 * WARP):",
        _TABLES,
    ),
    ("the largest of the best labels is taken", "*arrays), -label, total)", "*arrays), label - EMPTY, total)", _MANY),
    (
        "tables of hubs are not cleared",
        "            while i < length:\n",
        "            while i < np.uint32(0):\n",
        _FEW,
    ),
    (
        "tables of hubs are cleared at positions of 32 bits",
        "                keys[begin + position(i)], sums[begin + position(i)] = _FREE, 0\n",
        "                keys[np.uint32(begin + position(i))] = _FREE\n",
        _FAR_LABELS,
    ),
    (
        "tables of rows have positions of 32 bits",
        "before = position(table - position(upto - length))",
        "before = np.uint32(table - position(upto - length))",
        _FAR_LABELS,
    ),
    (
        "labels are summed at positions of 32 bits",
        "fetch_and_add(sums, first + slot,",
        "fetch_and_add(sums, np.uint32(first + slot),",
        _FAR_LABELS,
    ),
    (
        "pieces of tables have positions of 32 bits",
        "best(keys, sums, v, begin, length, arrays)",
        "best(keys, sums, v, np.uint32(begin), length, arrays)",
        _FAR_LABELS,
    ),
    (
        "labels are summed without an atomic operation",
        "            fetch_and_add(sums, first + slot, amount_of(own, u, weight, arrays))\n",
        "            sums[first + slot] += amount_of(own, u, weight, arrays)\n",
        _FEW,
    ),
    ("a free place has the label 0", "return False, cast(identity)", "return False, cast((0, 0, 0))", _SCORES),
    ("free places are labels", "        if key == _FREE:\n", "        if False:\n", _SCORES),
    (
        "a hub has as many places as a piece",
        "size = position(position(indptr[np.uint32(v + np.uint32(1))]) - table)",
        "size = position(length)",
        _DIFFERENT,
    ),
    ("pieces beyond the last are looked through", "if follows_rows and piece < pieces:", "if follows_rows:", _FEW),
    (
        "the best of a piece is that of another lane",
        "            if lane_number() == np.uint32(0):\n                put(partials",
        "            if lane_number() == np.uint32(1):\n                put(partials",
        _FEW,
    ),
)
FAULTS = (*_REDUCTIONS, *_PIECES, *_SENDER, *_KERNELS, *_COUNTING)
