"""How the threads of one parallel region share its work: they claim ranges from a common cursor.

``work`` is the int64 array that ``gpu_pregel.host.devices.threads`` makes for a region: the next index to hand out, the
size, the length of a chunk and, on a cache line of its own, the number of workers that have arrived.
"""

from __future__ import annotations

from typing import Any

from gpu_pregel.kernels.library.atomics_cpu import fetch_and_add
from gpu_pregel.kernels.library.jit_cpu import inline

NEXT, SIZE, CHUNK, WORKERS = 0, 1, 2, 8
WORK_LENGTH = 16


@inline
def claim(work: Any) -> Any:
    """Take the next range ``first, last`` of the region; it is empty when nothing is left."""
    first = min(fetch_and_add(work, NEXT, work[CHUNK]), work[SIZE])
    return first, min(first + work[CHUNK], work[SIZE])


@inline
def worker_number(work: Any) -> Any:
    """Number this worker 0, 1, … in order of arrival."""
    return fetch_and_add(work, WORKERS, 1)
