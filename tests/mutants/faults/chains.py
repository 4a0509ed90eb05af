"""Faults of the launches that run many supersteps, and of the barrier of all blocks."""

from __future__ import annotations

from tests.mutants.fault import faults_in

_CHAIN = "tests/host/programs/test_cuda_chains.py::"
_RESULTS = f"{_CHAIN}test_results_and_figures_equal_those_of_the_cpu"
_BARRIER = (
    "tests/kernels/library/test_grid_barrier.py::test_all_blocks_see_what_the_others_wrote_before_the_barrier[emulated]"
)

_BLOCKS = faults_in(
    "kernels/library/grid_barrier_cuda.py",
    (
        "no fence before the barrier of all blocks",
        "        fence()\n        before",
        "        before",
        _BARRIER,
    ),
    (
        "the fence before the barrier of all blocks is a block's",
        "        fence()\n        before",
        "        cuda.threadfence_block()\n        before",
        _BARRIER,
    ),
    ("threads of a block do not wait before its arrival", "    cuda.syncthreads()\n    if", "    if", _BARRIER),
    (
        "threads of a block do not wait for the others",
        "        fence()\n    cuda.syncthreads()\n",
        "        fence()\n",
        _BARRIER,
    ),
    ("the barrier does not wait", "        while before ^", "        if before ^", _BARRIER),
    (
        "no fence after the barrier of all blocks",
        "                cuda.nanosleep(pause)\n        fence()\n",
        "                cuda.nanosleep(pause)\n",
        _BARRIER,
    ),
)
_SUPERSTEPS = faults_in(
    "kernels/programs/chain_cuda.py",
    (
        "warps of the block that is alone do not wait",
        "        cuda.syncthreads()\n    else:",
        "        cuda.syncwarp()\n    else:",
        f"{_RESULTS}[emulated-150]",
    ),
    (
        "places in a queue of a chain count the lane itself",
        "shuffle(first, 0) + rank_in(among, lane))",
        "shuffle(first, 0) + rank_in(among, lane) + np.uint32(1))",
        f"{_RESULTS}[emulated-0]",
    ),
    (
        "a queue of a chain has gaps",
        "np.uint64(cuda.popc(among)))",
        "np.uint64(WARP))",
        f"{_RESULTS}[emulated-0]",
    ),
    (
        "a list of a frontier has gaps",
        "np.uint32(fetch_and_add(state, LISTED, total))",
        "np.uint32(fetch_and_add(state, LISTED, np.uint32(WARP)))",
        f"{_CHAIN}test_a_hub_sends_in_pieces[1]",
    ),
    (
        "a lane's vertices are listed after their place",
        "np.uint32(upto - count))",
        "upto)",
        f"{_RESULTS}[emulated-0]",
    ),
    (
        "a hub that sends first is not noted",
        "            if degrees[v] > HUB_EDGES:\n",
        "            if False:\n",
        f"{_CHAIN}test_a_hub_sends_in_pieces[1]",
    ),
    (
        "a row of as many edges as a piece ends a list",
        "            if degrees[v] > HUB_EDGES:\n",
        "            if degrees[v] >= HUB_EDGES:\n",
        f"{_CHAIN}test_a_row_as_long_as_a_piece_ends_no_chain",
    ),
    (
        "a row of as many edges as a piece ends a chain",
        "                    if ctx.out_degree > HUB_EDGES:\n",
        "                    if ctx.out_degree >= HUB_EDGES:\n",
        f"{_CHAIN}test_a_row_as_long_as_a_piece_ends_no_chain",
    ),
    (
        "rows of the launch before are counted again",
        "            control[np.uint32(ROWS)] = 0\n",
        "",
        f"{_CHAIN}test_a_hub_sends_in_pieces[1]",
    ),
    (
        "a list continues that of the launch before",
        "            state[np.uint32(LISTED)] = 0\n",
        "",
        f"{_CHAIN}test_a_hub_sends_in_pieces[1]",
    ),
    (
        "a block's own figures are not cleared at first",
        "            own[thread] = 0\n            if",
        "            if",
        f"{_RESULTS}[emulated-150]",
    ),
    (
        "figures of the launch before stay",
        "            if is_first_block:\n                state[np.uint32(SETS) + thread] = 0\n",
        "            pass\n",
        f"{_CHAIN}test_blocks_that_wait_resume_at_the_right_superstep[3-emulated]",
    ),
    (
        "the bits of the first frontier stay",
        "            _clear_bits(frontier, queue, np.uint32(active))\n",
        "",
        f"{_CHAIN}test_a_launch_ends_after_its_rows_and_leaves_the_frontier[1]",
    ),
    (
        "supersteps begin before all blocks have cleared bits and figures",
        "np.uint32(active))\n            grid_barrier(state, ARRIVALS)\n",
        "np.uint32(active))\n",
        f"{_RESULTS}[emulated-0]",
    ),
    (
        "blocks that wait miss supersteps of the first",
        "                row = state[np.uint32(DONE_ROWS)]\n",
        "                row += 1\n",
        f"{_CHAIN}test_blocks_that_wait_resume_at_the_right_superstep[1024-emulated]",
    ),
    (
        "blocks that wait know the frontier of the superstep before",
        "                at = np.uint32(ROW + (row - 1) * FIGURES)\n                active",
        "                at = np.uint32(ROW + (row - 2) * FIGURES)\n                active",
        f"{_CHAIN}test_blocks_that_wait_resume_at_the_right_superstep[1024-emulated]",
    ),
    (
        "blocks that wait do not see a hub",
        "                stops = state[np.uint32(HUB_STEP)] == superstep + row\n            elif",
        "                stops = False\n            elif",
        f"{_CHAIN}test_a_hub_sends_in_pieces[1]",
    ),
    (
        "one warp takes more vertices than it has lanes",
        "max(active, edges) <= WARP:",
        "edges <= WARP:",
        f"{_CHAIN}test_one_warp_runs_supersteps_of_up_to_32_vertices",
    ),
    (
        "one warp does not know the limit of edges",
        "most = min(edge_limit, WARP)",
        "most = WARP",
        f"{_CHAIN}test_a_launch_ends_before_a_large_frontier",
    ),
    (
        "what one warp found is read before it is written",
        "                cuda.syncthreads()\n                row,",
        "                row,",
        f"{_RESULTS}[emulated-150]",
    ),
    (
        "a hub that one warp finds is not noted",
        "                        if stops:\n                            state",
        "                        if False:\n                            state",
        f"{_CHAIN}test_a_hub_sends_in_pieces[1]",
    ),
    (
        "a hub that blocks find is not noted",
        "                    if stops:\n                        state",
        "                    if False:\n                        state",
        f"{_CHAIN}test_a_hub_sends_in_pieces[40]",
    ),
    (
        "a hub that blocks find does not end a chain",
        "                stops = _figure(counters, np.uint32(place + np.uint32(HUBS))) != 0\n",
        "                stops = False\n",
        f"{_CHAIN}test_a_hub_sends_in_pieces[40]",
    ),
    (
        "both kinds of sets of figures take turns together",
        "(own_rows if alone else all_rows)",
        "np.uint32(row)",
        f"{_CHAIN}test_blocks_that_wait_resume_at_the_right_superstep[1024-emulated]",
    ),
    (
        "messages are applied before all are sent",
        "                _wait(alone, state)\n                receive",
        "                receive",
        f"{_RESULTS}[emulated-0]",
    ),
    (
        "figures are read before all have applied",
        "                _wait(alone, state)\n                row += 1\n",
        "                row += 1\n",
        f"{_RESULTS}[emulated-0]",
    ),
    (
        "senders of a chain know the next superstep",
        "senders = (weights, out_degrees, in_degrees, superstep - 1, parameters",
        "senders = (weights, out_degrees, in_degrees, superstep, parameters",
        f"{_RESULTS}[emulated-0]",
    ),
    (
        "receivers of a chain know the last superstep",
        "return (np.uint32(0), superstep, out_degrees",
        "return (np.uint32(0), superstep - 1, out_degrees",
        f"{_RESULTS}[emulated-0]",
    ),
    (
        "a chain does not write how many vertices applied",
        "                    control[np.uint32(at + np.uint32(APPLIED))] = _figure(\n"
        "                        counters, np.uint32(place + np.uint32(APPLIED))\n                    )\n",
        "",
        f"{_RESULTS}[emulated-0]",
    ),
    (
        "a chain goes on without active vertices",
        "stops = stops or active == 0 or edges > edge_limit or row == limit",
        "stops = stops or edges > edge_limit or row == limit",
        f"{_RESULTS}[emulated-0]",
    ),
    (
        "a chain goes on beyond the limit of edges",
        "stops = stops or active == 0 or edges > edge_limit or row == limit",
        "stops = stops or active == 0 or row == limit",
        f"{_CHAIN}test_a_launch_ends_before_a_large_frontier",
    ),
    (
        "a chain ends at the limit of edges, not beyond it",
        "stops = stops or active == 0 or edges > edge_limit or row == limit",
        "stops = stops or active == 0 or edges >= edge_limit or row == limit",
        f"{_CHAIN}test_a_launch_ends_before_a_large_frontier",
    ),
    (
        "a chain goes on beyond the limit of supersteps",
        "stops = stops or active == 0 or edges > edge_limit or row == limit",
        "stops = stops or active == 0 or edges > edge_limit",
        f"{_RESULTS}[emulated-0]",
    ),
    (
        "the last frontier of a chain is not written",
        "        if row > 0:\n            _set_bits",
        "        if False:\n            _set_bits",
        f"{_CHAIN}test_a_launch_ends_after_its_rows_and_leaves_the_frontier[1]",
    ),
    (
        "lanes send rows of the next warp",
        "            if lane < share and i < active:\n",
        "            if i < active:\n",
        f"{_RESULTS}[emulated-0]",
    ),
    (
        "blocks send the same rows",
        "            warps = np.uint32(warps * np.uint32(cuda.gridDim.x))\n",
        "            pass\n",
        f"{_RESULTS}[emulated-0]",
    ),
    (
        "the figures of the next superstep are not cleared",
        "            _clear_next(counters, np.uint32(np.uint32(np.uint32(SET) - place) + thread))\n",
        "            pass\n",
        f"{_RESULTS}[emulated-0]",
    ),
    (
        "marks of receivers of a chain stay",
        "                store_relaxed(touched, v >> np.uint32(5), np.uint32(0))\n",
        "",
        f"{_RESULTS}[emulated-0]",
    ),
    (
        "inactive vertices of a chain count edges",
        "                if is_active:\n                    edges += ctx.out_degree\n",
        "                if True:\n                    edges += ctx.out_degree\n",
        f"{_RESULTS}[emulated-0]",
    ),
    (
        "edges of lane 0 of a chain only",
        "            edges = sum_of_warp(edges)\n            if",
        "            if",
        f"{_RESULTS}[emulated-0]",
    ),
    (
        "vertices without a message count as applied",
        "ballot_sync(ALL, has_message)",
        "ballot_sync(ALL, thread < count)",
        f"{_RESULTS}[emulated-0]",
    ),
)
FAULTS = (*_BLOCKS, *_SUPERSTEPS)
