"""Faults of operators over several partitions: of the edges, the masters, the mirrors and what is gathered."""

from __future__ import annotations

from tests.mutants.fault import faults_in

_TESTS = "tests/conformance/test_partitioned_operators.py::"
_VERTICES = f"{_TESTS}test_vertices_are_processed_by_their_owners[cpu-copying]"
_SEARCH = f"{_TESTS}test_a_search_finds_what_one_partition_finds[cpu-copying-push]"
_PULL = f"{_TESTS}test_a_search_finds_what_one_partition_finds[cpu-copying-pull]"
_SUMS = f"{_TESTS}test_sums_over_edges_have_each_edge_once[cpu-copying]"
_ROWS = f"{_TESTS}test_rows_are_reduced_with_the_mirrors_of_neighbours[cpu-copying-min]"
_UNION = f"{_TESTS}test_frontiers_of_partitions_are_united[cpu-copying]"
_WRITES = f"{_TESTS}test_writes_to_what_others_own_are_errors[cpu-copying]"
_TWICE = f"{_TESTS}test_one_array_given_twice_stays_one"
_SHARED = f"{_TESTS}test_partitions_that_share_memory_take_the_arrays_themselves"
_READ = f"{_TESTS}test_arrays_that_are_only_read_are_not_copied[cpu-copying]"

FAULTS = (
    *faults_in(
        "host/traverse/operators_partitioned.py",
        (
            "masters of a bitmap begin a word late",
            "self._device.move(own[begin:end], words[begin:end])",
            "self._device.move(own[begin + 1 : end], words[begin + 1 : end])",
            _VERTICES,
        ),
        (
            "masters of all vertices end a word early",
            "operators.chosen((first <= vertices) & (vertices < last))",
            "operators.chosen((first <= vertices) & (vertices < last - 64))",
            _VERTICES,
        ),
        (
            "mirrors are not refreshed",
            "            return self.exchange.gather_masters(self._device, [array] * len(self._numbers), self._bounds)",
            "            return [self._device.full(len(array), 1, array.dtype) for _ in self._numbers]",
            _ROWS,
        ),
        (
            "a partition runs over mirrors too",
            "words = self._masters(number, active.bitmaps[number]) if is_own else active.bitmaps[number]",
            "words = active.bitmaps[number]",
            _VERTICES,
        ),
        (
            "only masters send",
            "operators, known = self._of(number, transpose), self._known(active, number, transpose)",
            "operators, known = self._of(number, transpose), self._owned(active, number, transpose)",
            _SUMS,
        ),
        (
            "writes beyond the own range are not noticed",
            "        if not changed.any():",
            "        if True:",
            _WRITES,
        ),
        (
            "arrays of another length are taken for those of the vertices",
            "return bool(len(array) == self._graph.num_vertices)",
            "return True",
            _WRITES,
        ),
        (
            "an owner's elements are taken from the first partition",
            "self._device.move(arrays[k][first:last], lent[k][first:last])",
            "self._device.move(arrays[k][first:last], given[0][k][first:last])",
            _VERTICES,
        ),
        (
            "an array given twice is copied twice",
            "            if id(array) not in lent:\n                lent[id(array)] = self._copies(array)\n"
            "        return [tuple(lent[id(array)][number] for array in arrays) for number in self._numbers]",
            "            lent[len(lent)] = self._copies(array)\n"
            "        return [tuple(lent[k][number] for k in range(len(arrays))) for number in self._numbers]",
            _TWICE,
        ),
        (
            "arrays are copied though partitions share memory",
            "        if self.exchange.shares_memory:\n            return [arrays]",
            "        if False:\n            return [arrays]",
            _SHARED,
        ),
        (
            "arrays that are only read are copied",
            "return array.ndim == 1 and array.flags.writeable",
            "return array.ndim == 1",
            _READ,
        ),
        (
            "the number of active vertices is that of one partition",
            "count = self._total([result.count for result in results])",
            "count = results[0].count",
            _SEARCH,
        ),
        (
            "a union has one partition's masters only",
            "self._of(k).union(self._owned(one, k, False), self._owned(other, k, False)) for k in self._numbers]",
            "self._of(k).union(self._owned(one, 0, False), self._owned(other, 0, False)) for k in self._numbers]",
            _UNION,
        ),
    ),
    *faults_in(
        "host/traverse/residency.py",
        (
            "rows of a partition begin a row late",
            "np.clip(csr.indptr, begin, end) - begin",
            "np.clip(csr.indptr, int(csr.indptr[first + 1]), end) - begin",
            _PULL,
        ),
        (
            "shares of rows are those of the first partition",
            "part, (first, last) = parts[number], self.bounds[number : number + 2]",
            "part, (first, last) = parts[0], self.bounds[number : number + 2]",
            _SEARCH,
        ),
        (
            "a row's share begins at the row",
            "starts = np.repeat(edges.begins - (np.cumsum(lengths) - lengths), lengths)",
            "starts = np.repeat(edges.begins[0] - (np.cumsum(lengths) - lengths), lengths)",
            _SEARCH,
        ),
    ),
    *faults_in(
        "host/traverse/exchange.py",
        (
            "the local exchange gathers the first partition's words",
            "device.move(gathered[first:last], array[first:last])",
            "device.move(gathered[first:last], arrays[0][first:last])",
            "tests/conformance/test_partitioned_operators.py::test_vertices_are_processed_by_their_owners[cpu-local]",
        ),
    ),
)
