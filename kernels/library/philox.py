"""Counter-based random numbers for the bodies of operators, the same on every device.

Philox2x32-10 and 4x32-10 of John Salmon et al.: Parallel random numbers: as easy as 1, 2, 3, SC 2011. A number is a
function of a key and counters, so that it does not depend on the order of draws. Its products of 32-bit words fit in
64 bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_WORD = np.uint64(0xFFFFFFFF)
_MULTIPLIER = np.uint64(0xD256D193)
_INCREMENT = np.uint64(0x9E3779B9)
_SHIFT = np.uint64(32)
_ROUNDS = 10
_MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_INCREMENTS = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
UNIT = 2.0**-53
"""The difference between neighbouring random floats."""
ARRAYS = np.uint64(0xFFFFFFFF)
"""The last counter of random keys in arrays, which no function of a program has."""


def philox(key: Any, first: Any, second: Any) -> Any:
    """Return 64 random bits, as uint64, for a key and two counters below 2^32."""
    k, a, b = np.uint64(key), np.uint64(first), np.uint64(second)
    for _ in range(_ROUNDS):
        product = a * _MULTIPLIER
        a, b = (product >> _SHIFT) ^ k ^ b, product & _WORD
        k = (k + _INCREMENT) & _WORD
    return (a << _SHIFT) | b


def philox4(low: Any, high: Any, first: Any, second: Any, third: Any, fourth: Any) -> Any:
    """Return four random words, as uint64, for a key of two words and four counters, all below 2^32."""
    k, j = np.uint64(low), np.uint64(high)
    a, b, c, d = np.uint64(first), np.uint64(second), np.uint64(third), np.uint64(fourth)
    for _ in range(_ROUNDS):
        one, other = a * _MULTIPLIERS[0], c * _MULTIPLIERS[1]
        a, b = (other >> _SHIFT) ^ b ^ k, other & _WORD
        c, d = (one >> _SHIFT) ^ d ^ j, one & _WORD
        k, j = (k + _INCREMENTS[0]) & _WORD, (j + _INCREMENTS[1]) & _WORD
    return a, b, c, d


def uniform(key: Any, first: Any, second: Any) -> Any:
    """Return a random float64 from 0 to 1, without 1."""
    return float(philox(key, first, second) >> np.uint64(11)) * UNIT


def key_of(seed: int) -> int:
    """Return the key for a seed of any size."""
    return int(np.random.SeedSequence(seed).generate_state(1)[0])
