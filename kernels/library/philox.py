"""Counter-based random numbers for the bodies of operators, the same on every device.

Philox2x32-10 of John Salmon et al.: Parallel random numbers: as easy as 1, 2, 3, SC 2011. A number is a function of a
key and two counters, so that it does not depend on the order of draws. Its products of 32-bit words fit in 64 bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_WORD = np.uint64(0xFFFFFFFF)
_MULTIPLIER = np.uint64(0xD256D193)
_INCREMENT = np.uint64(0x9E3779B9)
_SHIFT = np.uint64(32)
_ROUNDS = 10
UNIT = 2.0**-53
"""The difference between neighbouring random floats."""


def philox(key: Any, first: Any, second: Any) -> Any:
    """Return 64 random bits, as uint64, for a key and two counters below 2^32."""
    k, a, b = np.uint64(key), np.uint64(first), np.uint64(second)
    for _ in range(_ROUNDS):
        product = a * _MULTIPLIER
        a, b = (product >> _SHIFT) ^ k ^ b, product & _WORD
        k = (k + _INCREMENT) & _WORD
    return (a << _SHIFT) | b


def uniform(key: Any, first: Any, second: Any) -> Any:
    """Return a random float64 from 0 to 1, without 1."""
    return float(philox(key, first, second) >> np.uint64(11)) * UNIT


def key_of(seed: int) -> int:
    """Return the key for a seed of any size."""
    return int(np.random.SeedSequence(seed).generate_state(1)[0])
