"""Kernels draw the numbers of Python's generator, and the generator goes on where they ended."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

from gpu_pregel.kernels.library.jit_cpu import jit
from gpu_pregel.kernels.networkx.random_cpu import next_below, next_float
from gpu_pregel.networkx.random_states import drawing


@jit
def _draw(state: Any, floats: Any, bounds: Any, integers: Any) -> None:
    for i in range(len(floats)):
        floats[i] = next_float(state)
        integers[i] = next_below(state, bounds[i])


def test_numbers_are_those_of_python() -> None:
    ours, theirs = random.Random(6), random.Random(6)
    bounds = [1, 2, 3, 1000, (1 << 32) - 1] * 200
    floats, integers = np.empty(len(bounds)), np.empty(len(bounds), np.int64)
    with drawing(ours) as state:
        _draw(state, floats, np.array(bounds), integers)
    expected = [(theirs.random(), theirs.choice(range(bound))) for bound in bounds]
    assert list(zip(floats.tolist(), integers.tolist(), strict=True)) == expected
    assert ours.getstate() == theirs.getstate()
