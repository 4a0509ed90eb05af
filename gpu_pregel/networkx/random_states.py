"""The states of random generators, from which kernels draw the numbers that NetworkX would draw."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


def check_generator(seed: Any) -> None:
    """Raise NotImplementedError unless the generator is Python's own: kernels draw from no other."""
    if type(seed) is not random.Random:
        raise NotImplementedError(f"the seed is a {type(seed).__name__}, not an integer or a random.Random")


@contextmanager
def drawing(seed: random.Random) -> Iterator[Array]:
    """Lend the state of a generator to a kernel, uint32[625]; the generator then goes on where the kernel ended."""
    version, words, following = seed.getstate()
    state = np.array(words, np.uint32)
    try:
        yield state
    finally:
        seed.setstate((version, tuple(state.tolist()), following))
