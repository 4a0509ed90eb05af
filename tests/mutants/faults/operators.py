"""Faults of the host's side of operators on CUDA, and of buckets."""

from __future__ import annotations

from tests.mutants.fault import faults_in

_ANY = "tests/conformance/test_operators.py::"
_CUDA = "tests/conformance/test_operators_cuda.py::"
_EACH = f"{_CUDA}test_each_edge_of_the_frontier_is_processed_once[emulated-directed]"
_PIECE = f"{_CUDA}test_rows_of_as_many_edges_as_a_piece[out]"
_LISTED = f"{_CUDA}test_vertices_of_many_words_are_listed_in_order"
_FLOATS = f"{_CUDA}test_sums_of_floats_are_the_same_to_the_bit_whatever_the_order_of_a_queue"
_LAUNCHES = f"{_CUDA}test_a_superstep_is_a_few_launches_and_one_readback"

_OPERATORS_CUDA = faults_in(
    "host/traverse/operators_cuda.py",
    (
        "unmeasured storage is cleared by its queue",
        "(self.storage, self.count if self.queued and self.is_measured else None)",
        "(self.storage, self.count)",
        _LAUNCHES,
    ),
    (
        "hubs of a measured frontier are not prepared",
        "by_degree = not is_known or active.hubs > 0",
        "by_degree = not is_known",
        f"{_CUDA}test_frontiers_do_not_change_when_their_storage_is_used_again",
    ),
    (
        "a queue of the other direction is used",
        "is_listed = active.queued and active.transposed == transpose",
        "is_listed = active.queued",
        _EACH,
    ),
    (
        "degrees of the other direction are summed",
        "if active.storage is not None and active.transposed != transposed:",
        "if False:",
        _PIECE,
    ),
    (
        "a sum of floats follows the order of a queue",
        "if not is_listed or (ordered and not active.ordered):",
        "if not is_listed:",
        _FLOATS,
    ),
    (
        "a sum over vertices of floats follows the order of a queue",
        "active.queued and (active.ordered or not _rounds(total)):",
        "active.queued:",
        _FLOATS,
    ),
    (
        "a pull's quota is always the largest",
        "quota = max(1, min(MAX_QUOTA, self._graph.num_stored_edges // max(1, active.edges)))",
        "quota = MAX_QUOTA",
        "tests/kernels/traverse/test_operator_counts.py::test_a_pull_leaves_rows_that_do_not_receive_any_more[short]",
    ),
    (
        "a pull's quota does not depend on the frontier",
        "quota = max(1, min(MAX_QUOTA, self._graph.num_stored_edges // max(1, active.edges)))",
        "quota = 64",
        "tests/kernels/traverse/test_operator_counts.py::test_a_pull_leaves_rows_that_do_not_receive_any_more[short]",
    ),
    (
        "a pull is chosen for many vertices where all receive",
        "pushes_to_all = True",
        "pushes_to_all = False",
        "tests/kernels/traverse/test_operator_counts.py::test_all_vertices_but_one_push_where_all_receive",
    ),
    (
        "a queue is not enlarged",
        "        if len(storage.queue) < active.count:\n            storage.reserve(self._capacity(active.count))\n",
        "",
        f"{_CUDA}test_frontiers_do_not_change_when_their_storage_is_used_again",
    ),
    (
        "a union has room for one set only",
        "storage = self._take(one.count + other.count)",
        "storage = self._take(one.count)",
        _LISTED,
    ),
    ("other degrees are not counted by a pull", "(self._graph.is_directed,)", "(False,)", _EACH),
    (
        "sums have too few partial sums",
        "if kept is None or len(kept.partials) < warps:",
        "if kept is None:",
        f"{_CUDA}test_a_thread_sums_over_several_vertices",
    ),
    (
        "storage is cleared by its queue where words are fewer",
        "queued * _QUEUE_COST < len(storage.words)",
        "queued < len(storage.words)",
        "tests/kernels/traverse/test_operator_counts.py::test_storage_is_cleared_by_the_shorter_of_queue_and_words",
    ),
    (
        "storage is always cleared as a whole",
        "queued * _QUEUE_COST < len(storage.words)",
        "False",
        "tests/kernels/traverse/test_operator_counts.py::test_storage_is_cleared_by_the_shorter_of_queue_and_words",
    ),
    (
        "a result has degrees of the other direction",
        "transposed=transpose == push and",
        "transposed=transpose != push and",
        _EACH,
    ),
    (
        "a sum has a thread for each vertex",
        "threads = min(count, MAX_BLOCKS * BLOCK)",
        "threads = count",
        f"{_CUDA}test_a_thread_sums_over_several_vertices",
    ),
    (
        "arrays of a superstep that raised are used again",
        "sums = self._sums.pop(kind)",
        "sums = self._sums[kind]",
        "tests/conformance/test_operator_failures.py::test_a_body_that_raises_for_a_vertex_is_an_error[sum-emulated]",
    ),
)
_BUCKETS = faults_in(
    "host/traverse/buckets.py",
    (
        "a bucket takes vertices of the one before",
        "self._near = self._between(self._near, first, self._limit)",
        "self._near = self._between(self._near, first - 1, self._limit)",
        f"{_ANY}test_a_vertex_that_moves_is_in_one_bucket[cpu]",
    ),
    (
        "a bucket at the limit is empty",
        "if first >= self._limit:",
        "if first > self._limit:",
        f"{_ANY}test_a_vertex_that_moves_is_in_one_bucket[cpu]",
    ),
    (
        "vertices that moved beyond the limit are lost",
        "        self._far |= self._between(self._near, self._limit - 1, _NONE)\n        self._near =",
        "        self._near =",
        f"{_ANY}test_a_vertex_that_moves_is_in_one_bucket[cpu]",
    ),
)
FAULTS = (*_OPERATORS_CUDA, *_BUCKETS)
