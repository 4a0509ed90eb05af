"""A 64-bit hash, for random numbers that do not depend on the order of draws."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.kernels.library.jit_cuda import device


@device
def mix(x: Any) -> Any:
    """Mix 64 bits, so that each output bit depends on all input bits.

    The finalizer of splitmix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
    """
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
