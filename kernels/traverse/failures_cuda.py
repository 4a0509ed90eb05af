"""What a CUDA kernel records of a body that raises: the ends of the smallest edge, and the exception."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from gpu_pregel.kernels.library.atomics_cuda import fetch_and_max, fetch_and_umax
from gpu_pregel.kernels.library.attempts_cuda import EXCEPTIONS
from gpu_pregel.kernels.library.jit_cuda import device

NO_VERTEX = 0xFFFFFFFF
"""In place of the second vertex, if a function of one vertex fails."""


class EdgeFailure(NamedTuple):
    """A body, or a ``receives`` of an operator, that raised; ``other`` is None for a function of one vertex."""

    vertex: int
    other: int | None
    exception: str


@device
def record_edge(failures, u, v, status):
    """Record the failure of an operator's body for an edge; for a vertex ``v`` is ``NO_VERTEX``."""
    word = ~((np.uint64(u) << np.uint64(32)) | np.uint64(v))
    fetch_and_umax(failures, 0, word)
    fetch_and_max(failures, 1, np.int64(status))


def read_edge_failure(word: int, status: int) -> EdgeFailure | None:
    """Return the failure that an operator recorded; None if there is none."""
    if not word:
        return None
    key = ~word & 0xFFFFFFFFFFFFFFFF
    other = key & NO_VERTEX
    return EdgeFailure(key >> 32, None if other == NO_VERTEX else other, exception_name(status))


def exception_name(status: int) -> str:
    """Return the name of the class of exception that a status stands for; "Exception" if it is not known."""
    return EXCEPTIONS[status - 1] if 0 < status <= len(EXCEPTIONS) else EXCEPTIONS[0]
