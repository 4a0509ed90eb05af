"""The kernel of ``process_vertices`` on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.kernels.library.bits_cpu import WORD_BITS, trailing_zeros
from gpu_pregel.kernels.library.work_cpu import claim


def make_process_vertices(function: Any) -> Any:
    """Return a kernel that sums ``function(vertex, *arrays)`` over a bitmap's vertices, for each block of words."""

    def process_vertices(work: Any, words_per_block: Any, frontier: Any, arrays: Any, sums: Any) -> None:
        first, last = claim(work)
        while first < last:
            for block in range(first, last):
                begin = block * words_per_block
                for word in range(begin, min(begin + words_per_block, len(frontier))):
                    bits = frontier[word]
                    while bits != np.uint64(0):
                        v = word * WORD_BITS + trailing_zeros(bits)
                        bits &= bits - np.uint64(1)
                        sums[block] += function(v, *arrays)
            first, last = claim(work)

    return process_vertices
