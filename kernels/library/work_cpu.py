"""How the threads of a parallel region share its work: each claims ranges from a common cursor.

``work`` is an int64 array that ``gpu_pregel.host.devices.threads`` creates for each region. It has the next index to
claim, the size and the length of a chunk; the rest keeps other data off the cache line that all threads write.
"""

from __future__ import annotations

from typing import Any

from gpu_pregel.kernels.library.atomics_cpu import fetch_and_add
from gpu_pregel.kernels.library.jit_cpu import inline

NEXT, SIZE, CHUNK = 0, 1, 2
WORK_LENGTH = 16


@inline
def claim(work: Any) -> Any:
    """Claim the next range ``first, last`` of the region; an empty range means that all work has been claimed."""
    first = min(fetch_and_add(work, NEXT, work[CHUNK]), work[SIZE])
    return first, min(first + work[CHUNK], work[SIZE])
