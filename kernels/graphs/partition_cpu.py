"""Kernels that cut the rows of a graph at the bounds of its partitions, on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.kernels.library.jit_cpu import jit
from gpu_pregel.kernels.library.work_cpu import claim


@jit
def cut_rows(work: Any, indptr: Any, indices: Any, bounds: Any, cuts: Any) -> None:
    """``cuts[k, u]`` becomes the first edge of row ``u`` whose other end is at or beyond ``bounds[k]``."""
    first, last = claim(work)
    while first < last:
        for u in range(first, last):
            place = indptr[u]
            for k in range(len(bounds)):
                end = indptr[u + 1]
                while place < end:
                    middle = (place + end) // 2
                    if np.int64(indices[middle]) < bounds[k]:
                        place = middle + 1
                    else:
                        end = middle
                cuts[k, u] = place
        first, last = claim(work)
