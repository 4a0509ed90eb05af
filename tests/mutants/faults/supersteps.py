"""Faults of the kernels over vertices, of the figures of a superstep and of the state on CUDA."""

from __future__ import annotations

from tests.mutants.fault import faults_in

_SIZES = "tests/kernels/programs/test_sizes_cuda.py::"
_AGGREGATES = f"{_SIZES}test_aggregates_of_more_warps_than_a_block_has_threads[full blocks-emulated]"
_WATCHED = "tests/conformance/test_shapes.py::test_aggregates_of_every_superstep[emulated-push]"
_BLOCKS = "tests/conformance/test_shapes.py::test_numbers_of_vertices_around_block_boundaries[emulated-513-pull]"
_TURNS = "tests/conformance/test_shapes.py::test_the_direction_can_change_within_a_batch[emulated-50]"
_RECEIVERS = "tests/conformance/test_receivers.py::test_receivers_are_those_of_the_superstep_that_applies"
_COUNTS = "tests/kernels/programs/test_counts.py::"
_COSTS = f"{_COUNTS}test_what_a_vertex_costs"
_FAILURES = "tests/host/programs/test_failures.py::"
_RAISES_IN_APPLY = f"{_FAILURES}test_the_error_names_function_vertex_and_line[4-emulated]"
_RAISES_IN_MESSAGE = f"{_FAILURES}test_the_error_names_function_vertex_and_line[2-emulated]"
_STATE = "tests/host/programs/test_cuda_state.py::"
_BATCHES = f"{_STATE}test_pushes_to_partitions_are_launched_in_batches_and_end_with_the_frontier"
_CHAIN = "tests/host/programs/test_cuda_chains.py::"
_RESULTS = f"{_CHAIN}test_results_and_figures_equal_those_of_the_cpu[emulated-150]"
_FENCED = (
    "        fence()\n"
    "        is_last[0] = fetch_and_add(control, FINISHED, 1) == np.uint64(blocks - np.uint32(1))\n"
    "        fence()\n"
)
_LAST = _FENCED.splitlines(keepends=True)[1]

_FIGURES = faults_in(
    "kernels/programs/figures_cuda.py",
    ("no fence before the counter of blocks", _FENCED, _LAST + "        fence()\n", _AGGREGATES),
    ("no fence after the counter of blocks", _FENCED, "        fence()\n" + _LAST, _AGGREGATES),
    ("no fence beside the counter of blocks", _FENCED, _LAST, _AGGREGATES),
    (
        "the fence before the counter of blocks is a block's",
        "        fence()\n        is_last",
        "        cuda.threadfence_block()\n        is_last",
        _AGGREGATES,
    ),
    (
        "both fences beside the counter are a block's",
        _FENCED,
        _FENCED.replace("fence()", "cuda.threadfence_block()"),
        _AGGREGATES,
    ),
    (
        "no barrier before the counter of blocks",
        "    cuda.syncthreads()\n    if thread == np.uint32(0):\n        # Release",
        "    if thread == np.uint32(0):\n        # Release",
        _AGGREGATES,
    ),
    (
        "no barrier after the counter of blocks",
        "    cuda.syncthreads()\n    return is_last",
        "    return is_last",
        _AGGREGATES,
    ),
    (
        "no barrier before a block's figures are summed",
        "    cuda.syncthreads()\n    if thread < np.uint32(FIGURES):\n        counts",
        "    if thread < np.uint32(FIGURES):\n        counts",
        _BLOCKS,
    ),
    (
        "no barrier before the row of figures is written",
        "            sum_warps(partials)\n        cuda.syncthreads()",
        "            sum_warps(partials)",
        _AGGREGATES,
    ),
    (
        "the last block is one that does not exist",
        "np.uint64(blocks - np.uint32(1))",
        "np.uint64(blocks)",
        f"{_COUNTS}test_what_a_vertex_costs",
    ),
    ("the counter of blocks is not reset", "            control[np.uint32(FINISHED)] = 0\n", "", _BLOCKS),
    ("rows of figures are not counted", "            control[np.uint32(ROWS)] += 1\n", "", _BLOCKS),
    (
        "only the first blocks are summed",
        "    while block < blocks:",
        "    if block < blocks:",
        "tests/conformance/test_shapes.py::test_blocks_with_more_than_one_tile[emulated]",
    ),
    (
        "the figures of the last warp of a block are left out",
        "range(k, WARP_FIGURES, FIGURES)",
        "range(k, WARP_FIGURES - FIGURES, FIGURES)",
        _BLOCKS,
    ),
    ("active edges of lane 0 only", "    edges = sum_of_warp(edges)\n", "    edges += 0\n", _RESULTS),
    ("the last warp is left out of aggregates", "range(1, WARPS)", "range(1, WARPS - 1)", _AGGREGATES),
    (
        "the last partial aggregate is left out",
        "        while place < count:",
        "        while place + np.uint32(1) < count:",
        _AGGREGATES,
    ),
    (
        "only the first partial aggregates are folded",
        "        while place < count:",
        "        if place < count:",
        f"{_SIZES}test_aggregates_of_more_warps_than_a_block_has_threads[one more-emulated]",
    ),
    (
        "aggregates of lane 0 only",
        "        sums = over_warp(sums)\n        if has_aggregates and",
        "        if has_aggregates and",
        _AGGREGATES,
    ),
    (
        "senders do not see the last aggregates",
        "    seen[{k}][0] = totals[{k}][0]\\n    totals",
        "    totals",
        _WATCHED,
    ),
    (
        "the first row cannot end a batch",
        "row > 0 and",
        "row > 1 and",
        f"{_STATE}test_a_batch_continues_while_the_rule_would_push",
    ),
    (
        "a batch ends at the limit of edges, not beyond it",
        "edges > edge_limit",
        "edges >= edge_limit",
        f"{_STATE}test_a_batch_continues_while_the_rule_would_push",
    ),
    (
        "a batch goes on without active vertices",
        "is_last = active == 0 or edges > edge_limit",
        "is_last = edges > edge_limit",
        _BATCHES,
    ),
    (
        "a batch goes on beyond the limit of edges",
        "is_last = active == 0 or edges > edge_limit",
        "is_last = active == 0",
        f"{_STATE}test_a_batch_continues_while_the_rule_would_push",
    ),
    (
        "a batch goes on after a function has raised",
        "is_last or control[np.uint32(FAILURE)] != 0",
        "is_last",
        f"{_RAISES_IN_APPLY} {_FAILURES}test_the_error_names_function_vertex_and_line[6-emulated]",
    ),
)
_VERTICES = faults_in(
    "kernels/programs/program_cuda.py",
    (
        "a block has too few tiles",
        "(tiles + blocks - np.uint32(1)) // blocks",
        "tiles // blocks",
        "tests/conformance/test_shapes.py::test_blocks_with_more_than_one_tile[emulated]",
    ),
    (
        "init writes the frontier before all lanes have read it",
        "is_active))\n            cuda.syncwarp()\n            word",
        "is_active))\n            word",
        "",
        "A lane's vote depends on the bit that it has read.",
    ),
    (
        "marks are cleared before all lanes have read them",
        "has_message))\n            cuda.syncwarp()\n",
        "has_message))\n",
        f"{_COUNTS}test_an_apply_after_a_push_reads_only_inboxes_with_messages",
    ),
    (
        "marks of receivers are not cleared",
        "                    touched[word] = 0\n",
        "",
        f"{_STATE}test_a_superstep_leaves_nothing_in_the_inboxes[emulated-push]",
    ),
    (
        "init does not count edges",
        "is_first(ctx):\n                    is_active = True\n                    edges += ctx.out_degree\n",
        "is_first(ctx):\n                    is_active = True\n",
        _RESULTS,
    ),
    (
        "init counts the active vertices of the last tile",
        "active = np.uint32(active + np.uint32(cuda.popc(bits)))\n                if word < np.uint32(len(frontier)):\n"
        "                    frontier[word] = bits\n        finish",
        "active = np.uint32(cuda.popc(bits))\n                if word < np.uint32(len(frontier)):\n"
        "                    frontier[word] = bits\n        finish",
        "tests/conformance/test_shapes.py::test_blocks_with_more_than_one_tile[emulated]",
    ),
    ("a vertex beyond the last one applies", "if v < n and (every or", "if v <= n and (every or", _BLOCKS),
    (
        "after a push all inboxes are read",
        "if v < n and (every or get_bit(touched, v)):",
        "if v < n:",
        f"{_COUNTS}test_an_apply_after_a_push_reads_only_inboxes_with_messages",
    ),
    (
        "apply sees the aggregates of senders",
        "aggregates[1])\n                has_message, message = accept",
        "aggregates[0])\n                has_message, message = accept",
        _WATCHED,
    ),
    (
        "inactive vertices have a signal",
        "            if get_bit(frontier, v):\n                ctx",
        "            if True:\n                ctx",
        f"{_SIZES}test_a_pull_of_a_path_that_fills_its_words tests/conformance/test_program_semantics.py::"
        "test_messages_of_a_superstep_are_applied_in_the_next[emulated-pull]",
    ),
    (
        "the message of a function that raised is lost",
        "                        put(inbox, v, message)\n",
        "                        pass\n",
        _RAISES_IN_APPLY,
    ),
    (
        "messages are applied after a message has raised",
        "            end_without_row(control)\n            return\n",
        "            pass\n",
        _RAISES_IN_MESSAGE,
    ),
)
_FAILING = (
    *faults_in(
        "kernels/programs/failures_cuda.py",
        (
            "the largest of the vertices that fail is named",
            "(np.int64(NO_VERTEX) - vertex)",
            "vertex",
            f"{_FAILURES}test_the_smallest_of_the_vertices_that_fail_is_named[0-emulated]",
        ),
    ),
    *faults_in(
        "kernels/traverse/failures_cuda.py",
        (
            "failures of edges are compared as signed numbers",
            "fetch_and_umax(failures, 0, word)",
            "fetch_and_max(failures, 0, np.int64(word))",
            "tests/conformance/test_operator_failures.py::test_a_body_that_raises_for_an_edge_is_an_error[push-emulated]",
        ),
    ),
    *faults_in(
        "kernels/programs/guards_cuda.py",
        (
            "a function that raises is not recorded",
            'failure = "record(ctx.failures, ctx.vertex, bits, status)"',
            'failure = "pass"',
            _RAISES_IN_MESSAGE,
        ),
    ),
    *faults_in(
        "kernels/programs/apply.py",
        (
            "a vertex whose aggregator raises keeps its new value",
            "        sums = fold(sums, old, new, ctx)\n        # Last, so that a function that raises leaves the old "
            "value.\n        put(values, v, new)\n",
            "        put(values, v, new)\n        sums = fold(sums, old, new, ctx)\n",
            f"{_FAILURES}test_the_error_names_function_vertex_and_line[6-emulated]",
        ),
    ),
)
_CUDA_STATE = faults_in(
    "host/programs/cuda_state.py",
    (
        "no warp for the last words of the frontier",
        "-(-words // WORDS_PER_WARP) +",
        "words // WORDS_PER_WARP +",
        "tests/conformance/test_far_edges.py::test_vertex_programs[per source-31 bits]",
    ),
    (
        "no warp for the last rows",
        "-(-count // WARP) +",
        "count // WARP +",
        "tests/conformance/test_program_semantics.py::"
        "test_messages_of_a_superstep_are_applied_in_the_next[emulated-pull]",
    ),
    (
        "batches do not know the limit of edges",
        "edge_limit=self._push_limit",
        "edge_limit=int(NO_LIMIT)",
        f"{_STATE}test_a_batch_continues_while_the_rule_would_push",
    ),
    (
        "a launch runs more supersteps than the limit",
        "min(limit, CHAIN)",
        "CHAIN",
        "tests/conformance/test_shapes.py::test_batches_of_supersteps_end_at_the_limit[emulated-2]",
    ),
    (
        "with one inactive vertex all are taken as active",
        "activity.active_vertices == self._n",
        "activity.active_vertices >= self._n - 1",
        f"{_SIZES}test_the_only_inactive_vertex_sends_nothing[pull]",
    ),
    (
        "a push asks receivers of the superstep before",
        "own, receivers = self.vertices, self._receivers(superstep + 1)\n",
        "own, receivers = self.vertices, self._receivers(superstep)\n",
        f"{_RECEIVERS}[emulated-push]",
    ),
    (
        "a pull asks receivers of the superstep before",
        "own, receivers = self._program, self.vertices, self._receivers(superstep + 1)\n",
        "own, receivers = self._program, self.vertices, self._receivers(superstep)\n",
        f"{_RECEIVERS}[emulated-pull]",
    ),
    ("a launch does not know the limit of edges", "min(self._push_limit, _BATCH_EDGES)", "_BATCH_EDGES", _TURNS),
    (
        "a queue is used beyond its capacity",
        "min(self._push_limit, _BATCH_EDGES)",
        "self._push_limit",
        f"{_CHAIN}test_a_launch_ends_before_a_large_frontier",
    ),
    (
        "the queue is made before each launch",
        "        if not self._is_queued:\n",
        "        if True:\n",
        f"{_CHAIN}test_a_launch_ends_after_its_rows_and_leaves_the_frontier[4]",
    ),
    (
        "a queue from before a push is used",
        "        self._is_queued = False\n        if direction",
        "        if direction",
        f"{_CHAIN}test_a_hub_sends_in_pieces",
    ),
    (
        "supersteps of a launch lack the last",
        "[: max(0, written)]",
        "[: max(0, written - 1)]",
        f"{_CHAIN}test_a_launch_ends_after_its_rows_and_leaves_the_frontier[1]",
    ),
    (
        "apply sees the restored aggregates of senders",
        'self._totals = self._restored_aggregates("total", arrays)',
        'self._totals = self._restored_aggregates("aggregate", arrays)',
        "tests/conformance/test_checkpoints.py::test_resuming_after_any_superstep_gives_the_same_result[pairs-emulated-1]",
    ),
    (
        "pulls into several partitions do not accumulate",
        "accumulate = in_place and len(self.partitions) > 1",
        "accumulate = False",
        "tests/conformance/test_shapes.py::test_rows_of_every_length[emulated-pull-2]",
    ),
    (
        "a pull into one partition reads inboxes",
        "accumulate = in_place and len(self.partitions) > 1",
        "accumulate = in_place",
        _COSTS,
    ),
    (
        "a batch is longer than the limit of supersteps",
        "batch = min(limit, _WIDE_BATCH if self._can_chain else BATCH)",
        "batch = _WIDE_BATCH if self._can_chain else BATCH",
        _BATCHES,
    ),
)
FAULTS = (*_FIGURES, *_VERTICES, *_FAILING, *_CUDA_STATE)
