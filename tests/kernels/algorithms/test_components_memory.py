"""Tests of single CUDA kernels of connected components on trees and rows that whole runs rarely have."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu_pregel.host.devices.emulated import EmulatedDevice
from gpu_pregel.kernels.algorithms import components_cuda as kernels
from gpu_pregel.kernels.library.jit_cuda import BLOCK
from tests.devices import EMULATED, SEEDS

pytestmark = EMULATED


@pytest.mark.parametrize("seed", SEEDS)
def test_compress_flattens_long_chains(seed: int) -> None:
    """While some threads walk up a chain, others have already found its root."""
    device: Any = EmulatedDevice(seed)
    n = 4 * BLOCK
    for length in (n, 40):
        parents = np.maximum(np.arange(n, dtype=np.uint32), 1) - 1
        roots = np.arange(n) // length * length
        parents = np.maximum(parents, roots).astype(np.uint32)
        labels = device.upload(parents)
        device.launch(kernels.compress, n, labels)
        np.testing.assert_array_equal(labels.get(), roots)


def test_threads_that_link_the_same_root() -> None:
    """One of their swaps succeeds; the others link what they find instead."""
    device: Any = EmulatedDevice()
    n, rows = 9 * BLOCK, 8 * BLOCK
    labels, indices = device.upload(np.arange(n, dtype=np.uint32)), device.full(rows, n - 1, np.uint32)
    indptr = device.upload(np.minimum(np.arange(n + 1), rows))
    device.launch(kernels.link, n, indptr, indices, False, device.zeros(1, np.uint32), labels)
    device.launch(kernels.compress, n, labels)
    expected = np.arange(n)
    expected[[*range(rows), n - 1]] = 0
    np.testing.assert_array_equal(labels.get(), expected)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("rows", [129, BLOCK])
def test_a_block_of_long_rows(rows: int, seed: int) -> None:
    """Each of them links its vertex with its own last neighbour."""
    device: Any = EmulatedDevice(seed)
    length = kernels.WARP_EDGES + 2
    n = 2 * BLOCK
    indptr = np.minimum(np.arange(n + 1), rows) * length
    indices = np.repeat(np.arange(rows), length)
    indices[length - 1 :: length] += BLOCK
    labels = device.upload(np.arange(n, dtype=np.uint32))
    arrays = device.upload(indptr), device.upload(indices.astype(np.uint32))
    device.launch(kernels.link, n, *arrays, False, device.full(1, n, np.uint32), labels)
    expected = np.arange(n)
    expected[BLOCK : BLOCK + rows] -= BLOCK
    np.testing.assert_array_equal(labels.get(), expected)
