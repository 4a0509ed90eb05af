"""Random orders of vertices that depend on the seed only, not on the device or the number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.host.arguments import check_integer
from gpu_pregel.host.traverse.frontier import Frontier
from gpu_pregel.host.traverse.operators import process_vertices

Array = np.ndarray[Any, Any]

_INCREMENT = 0x9E3779B97F4A7C15
_MASK = (1 << 64) - 1


def check_seed(seed: int) -> int:
    """Return ``seed``, or raise unless it is a whole number of at most 64 bits."""
    return check_integer("seed", seed, 0, _MASK)


def seed_offset(seed: int) -> Any:
    """Return the uint64 that is added to a vertex before it is hashed."""
    return _mix(np.array([(seed + 1) * _INCREMENT & _MASK], np.uint64))[0]


def random_keys(n: int, seed: int) -> Array:
    """Return n different random numbers, uint64[n], in whose order the vertices are.

    They are those of ``kernels.library.hash_cpu.mix``, which kernels compute instead of loading them.
    """
    keys: Array = _mix(np.arange(n, dtype=np.uint64) + seed_offset(seed))
    return keys


def keys_on_device(everyone: Frontier, seed: int) -> Any:
    """Return ``random_keys`` in the memory of a frontier's device, made there."""
    keys = everyone.full(0, np.uint64)
    process_vertices(_set_key, everyone, (seed_offset(seed), keys), returns=None)
    return keys


def _set_key(v: Any, offset: Any, keys: Any) -> None:
    keys[v] = _mix(np.uint64(v) + offset)


def _mix(x: Any) -> Any:
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
