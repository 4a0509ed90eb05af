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
        "warps of the block that is alone do not wait",
        "        cuda.syncthreads()\n    else:",
        "        cuda.syncwarp()\n    else:",
        f"{_RESULTS}[emulated-150]",
    ),
)
FAULTS = (*_BLOCKS, *_SUPERSTEPS)
