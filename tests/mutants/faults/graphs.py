"""Faults of partitions and their copies on devices."""

from __future__ import annotations

from tests.mutants.fault import faults_in

_TESTS = "tests/host/graphs/test_partitions.py::"
_STORED = f"{_TESTS}test_each_edge_is_stored_once_with_the_owner_of_its_other_end[3]"
_PIECES = f"{_TESTS}test_pieces_of_hubs_make_up_their_rows"
_WORDS = f"{_TESTS}test_pieces_of_hubs_name_the_words_of_their_sources"
_DEVICE = "tests/host/graphs/test_device_graph.py::test_edges_are_rows_and_the_pieces_of_long_rows"
_KEPT = "tests/host/graphs/test_device_arrays.py::test_only_arrays_of_other_dtypes_are_uploaded_again"
_ROWS = "tests/conformance/test_shapes.py::test_rows_of_every_length[emulated-pull-2]"

_PARTITIONS = faults_in(
    "host/graphs/partitions.py",
    (
        "a vertex counts for one partition too many",
        "ALPHA_PER_PARTITION * (partitions - 1)",
        "ALPHA_PER_PARTITION * partitions",
        f"{_TESTS}test_a_vertex_counts_as_eight_edges_for_each_additional_partition",
    ),
    ("the first word of sources is left out", "prepend=words[:1] + 1", "prepend=words[:1]", _STORED),
    (
        "the last piece of a hub is too long",
        "np.minimum(begins + hub_edges, edges.ends[rows])",
        "begins + hub_edges",
        _PIECES,
    ),
    (
        "a hub is in the word after its own",
        'side="right") - 1',
        'side="left")',
        f"{_TESTS}test_a_hub_need_not_be_the_first_source_of_its_word",
    ),
    (
        "a hub's bit is that of its row",
        "np.uint64(1) << (vertices % WORD_BITS)",
        "np.uint64(1) << (hubs.rows % WORD_BITS)",
        _WORDS,
    ),
    (
        "a row as long as a piece is a hub",
        "np.flatnonzero(lengths > hub_edges)",
        "np.flatnonzero(lengths >= hub_edges)",
        f"{_TESTS}test_a_row_of_exactly_the_length_of_a_piece_is_no_hub",
    ),
    (
        "ranges are cut at the word before",
        "WORD_BITS * round(int(np.searchsorted(load, target)) / WORD_BITS)",
        "WORD_BITS * (int(np.searchsorted(load, target)) // WORD_BITS)",
        f"{_TESTS}test_ranges_are_balanced_by_edges",
    ),
    ("one bit beyond the last vertex is set", "if n % WORD_BITS:", "if n % WORD_BITS > 1:", f"{_TESTS}test_bitmaps"),
)
_COPIES = faults_in(
    "host/graphs/device_graph.py",
    ("hubs are numbered by their rows", "hubs=hub_rows if is_whole else rows[hub_rows]", "hubs=hub_rows", _ROWS),
    (
        "the pieces of the last hub have no end",
        "np.append(firsts, len(pieces.rows))",
        "np.append(firsts, len(hub_rows))",
        _DEVICE,
    ),
    (
        "pieces are numbered by their rows",
        "pieces.rows if is_whole else rows[pieces.rows]",
        "pieces.rows",
        "tests/conformance/test_shapes.py::test_rows_of_every_length[emulated:1-push-2]",
    ),
    (
        "a copy is made again for another dtype of the same array",
        "return array.ctypes.data, len(array), np.dtype(dtype or array.dtype)",
        "return array.ctypes.data, len(array), np.dtype(array.dtype)",
        "tests/host/graphs/test_device_graph.py::test_copies_have_the_given_dtype",
    ),
    (
        "bounds of a whole graph are copied twice",
        "if len(begins) == 0 or begins.ctypes.data + begins.itemsize != ends.ctypes.data:",
        "if True:",
        "tests/host/graphs/test_device_graph.py::test_no_array_is_copied_twice",
    ),
    ("ends of rows are their begins", "bounds[0][1 : n + 1]", "bounds[0][:n]", _DEVICE),
    (
        "arrays of users are kept whatever their size",
        "array.dtype.itemsize == dtype.itemsize and ",
        "",
        f"{_KEPT}[i8 u4 f8-2]",
    ),
    (
        "arrays of users are never kept",
        "        self._copies[_key(host, dtype)] = host, array\n",
        "        pass\n",
        f"{_KEPT}[i4 i4 f8-3]",
    ),
    (
        "arrays of users are copied where they may be shared",
        "if not shared or array.dtype != dtype:",
        "if True:",
        "tests/host/graphs/test_device_arrays.py::test_copy_false_uses_the_given_arrays",
    ),
    (
        "arrays of users are not copied",
        "if not shared or array.dtype != dtype:",
        "if array.dtype != dtype:",
        "tests/host/graphs/test_device_arrays.py::test_results_and_copies_do_not_depend_on_the_given_arrays",
    ),
)
_CUTS = faults_in(
    "kernels/graphs/partition_cpu.py",
    (
        "the last vertex of a block is not counted",
        "min((b + 1) * block, len(indptr) - 1)):\n                e = indptr[u]\n                while e < indptr[u + 1]:\n                    part = _partition_of(np.int64(indices[e]), bounds)\n                    counts",
        "min((b + 1) * block - 1, len(indptr) - 1)):\n                e = indptr[u]\n                while e < indptr[u + 1]:\n                    part = _partition_of(np.int64(indices[e]), bounds)\n                    counts",
        _STORED,
    ),
    (
        "the last vertex of a block is not cut",
        "min((b + 1) * block, len(indptr) - 1)):\n                e = indptr[u]\n                while e < indptr[u + 1]:\n                    part = _partition_of(np.int64(indices[e]), bounds)\n                    end",
        "min((b + 1) * block - 1, len(indptr) - 1)):\n                e = indptr[u]\n                while e < indptr[u + 1]:\n                    part = _partition_of(np.int64(indices[e]), bounds)\n                    end",
        _STORED,
    ),
    (
        "a row is cut after the first vertex of the next partition",
        "        if np.int64(indices[middle]) < v:\n",
        "        if np.int64(indices[middle]) <= v:\n",
        _STORED,
    ),
)
FAULTS = (*_PARTITIONS, *_COPIES, *_CUTS)
