"""Faults of the launches that run many supersteps, and of the barrier of all blocks."""

from __future__ import annotations

from tests.mutants.fault import faults_in

_CHAIN = "tests/host/programs/test_cuda_chains.py::"
_RESULTS = f"{_CHAIN}test_results_and_figures_equal_those_of_the_cpu"
_ROWS = f"{_CHAIN}test_a_launch_ends_after_its_rows_and_leaves_the_frontier[4]"
_HUB = f"{_CHAIN}test_a_hub_sends_in_pieces"
_BARRIER = (
    "tests/kernels/library/test_grid_barrier.py::test_all_blocks_see_what_the_others_wrote_before_the_barrier[emulated]"
)

_BLOCKS = faults_in(
    "kernels/library/grid_barrier_cuda.py",
    (
        "no fence before the barrier of all blocks",
        "        cuda.threadfence()\n        before",
        "        before",
        _BARRIER,
    ),
    (
        "the fence before the barrier of all blocks is a block's",
        "        cuda.threadfence()\n        before",
        "        cuda.threadfence_block()\n        before",
        _BARRIER,
    ),
    ("threads of a block do not wait before its arrival", "    cuda.syncthreads()\n    if", "    if", _BARRIER),
    (
        "threads of a block do not wait for the others",
        "        cuda.threadfence()\n    cuda.syncthreads()\n",
        "        cuda.threadfence()\n",
        _BARRIER,
    ),
    ("the barrier does not wait", "        while before ^", "        if before ^", _BARRIER),
    (
        "no fence after the barrier of all blocks",
        "                cuda.nanosleep(pause)\n        cuda.threadfence()\n",
        "                cuda.nanosleep(pause)\n",
        _BARRIER,
    ),
)
_SUPERSTEPS = faults_in(
    "kernels/programs/chain_cuda.py",
    (
        "receivers apply before all have sent",
        "                _wait(alone, state)\n                receive",
        "                receive",
        f"{_RESULTS}[emulated-0]",
    ),
    (
        "figures are read before all have applied",
        "                _wait(alone, state)\n                row += 1",
        "                row += 1",
        f"{_RESULTS}[emulated-0]",
    ),
    (
        "warps of the block that is alone do not wait",
        "        cuda.syncthreads()\n    else:",
        "        cuda.syncwarp()\n    else:",
        f"{_RESULTS}[emulated-150]",
    ),
    (
        "the first superstep begins before the frontier is cleared",
        "np.uint32(active))\n            grid_barrier(state, ARRIVALS)\n        while",
        "np.uint32(active))\n        while",
        f"{_RESULTS}[emulated-0]",
    ),
    (
        "marks of receivers stay",
        "                store_relaxed(touched, v >> np.uint32(5), np.uint32(0))\n",
        "",
        f"{_RESULTS}[emulated-0]",
    ),
    (
        "figures of the next superstep are not cleared",
        "            _clear_next(counters, np.uint32(np.uint32(np.uint32(SET) - place) + thread))\n",
        "            pass\n",
        f"{_RESULTS}[emulated-0]",
    ),
    (
        "both kinds of supersteps share a turn",
        "(own_rows if alone else all_rows) & np.uint32(1)",
        "np.uint32(row) & np.uint32(1)",
        f"{_RESULTS}[emulated-150]",
    ),
    (
        "places in a queue count the lane itself",
        "among & np.uint32(bit(lane) - np.uint32(1))",
        "among & np.uint32(bit(lane))",
        f"{_RESULTS}[emulated-0]",
    ),
    (
        "active edges of lane 0 only in a launch",
        "            edges = sum_of_warp(edges)\n",
        "",
        f"{_RESULTS}[emulated-0]",
    ),
    (
        "messages see the superstep of apply",
        "superstep - 1, parameters",
        "superstep, parameters",
        f"{_RESULTS}[emulated-0]",
    ),
    ("two warps send a row", "if lane < share and i < active:", "if i < active:", f"{_RESULTS}[emulated-0]"),
    ("a launch goes on beyond its rows", " or row == limit", "", _ROWS),
    (
        "a launch goes on with a large frontier",
        " or edges > edge_limit or",
        " or",
        f"{_CHAIN}test_a_launch_ends_before_a_large_frontier",
    ),
    (
        "a hub in the middle of a launch is not noticed",
        "if ctx.out_degree > HUB_EDGES:",
        "if ctx.out_degree < 0:",
        _HUB,
    ),
    (
        "a hub at the begin of a launch is not noticed",
        "            if degrees[v] > HUB_EDGES:\n",
        "            if degrees[v] < 0:\n",
        _HUB,
    ),
    (
        "the frontier after a launch is written plainly",
        "        fetch_and_or(frontier, v >> np.uint32(5), bit(v))\n",
        "        frontier[v >> np.uint32(5)] |= bit(v)\n",
        f"{_RESULTS}[emulated-0]",
    ),
    (
        "the frontier is not left as a bitmap",
        "            _set_bits(frontier, queue, np.uint32(active))\n",
        "            pass\n",
        _ROWS,
    ),
    ("the frontier before a launch stays", "            _clear_bits(frontier, queue, np.uint32(active))\n", "", _ROWS),
    (
        "vertices that applied are not counted",
        "                _add(counters, np.uint32(place + np.uint32(APPLIED)), np.uint64(applied))\n",
        "",
        f"{_RESULTS}[emulated-0]",
    ),
    (
        "a queue is listed with the word's own place",
        "np.uint32(upto - count))\n        while word",
        "upto)\n        while word",
        _ROWS,
    ),
    (
        "the next launch does not know of a hub",
        "                        if stops:\n                            state",
        "                        if False:\n                            state",
        _HUB,
    ),
)
FAULTS = (*_BLOCKS, *_SUPERSTEPS)
