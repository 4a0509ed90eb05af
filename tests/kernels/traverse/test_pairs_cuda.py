"""Pairs are checked and measured before any function of a user is called."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gpu_pregel.host.devices import get_device
from gpu_pregel.kernels.traverse.pairs_cuda import PIECE, PIECES, WRONG, make_measure
from tests.devices import EMULATED

pytestmark = EMULATED
LENGTHS = [0, 1, PIECE - 1, PIECE, PIECE + 1, 2 * PIECE, 2 * PIECE + 1, 40 * PIECE]


def measured(first: Any, second: Any) -> tuple[list[int], int, int]:
    """Return the pieces of each pair of rows of these lengths, their number, and that of invalid pairs."""
    device = get_device("emulated")
    indptr = device.upload(np.cumsum([0, *LENGTHS]).astype(np.uint32))
    sizes, control = device.zeros(len(first), np.uint32), device.zeros(2, np.int64)
    kernel = make_measure((first.dtype, second.dtype))
    device.launch(kernel, len(first), device.upload(first), device.upload(second), indptr, sizes, control)
    figures = device.download(control)
    return device.download(sizes).tolist(), int(figures[PIECES]), int(figures[WRONG])


def test_pieces_are_those_of_the_shorter_row() -> None:
    count = len(LENGTHS)
    first, second = np.repeat(np.arange(count), count).astype(np.uint32), np.tile(np.arange(count), count)
    shorter = np.minimum(np.array(LENGTHS)[first], np.array(LENGTHS)[second])
    wanted = np.where(shorter > PIECE, -(-shorter // PIECE), 0)
    assert measured(first, second) == (wanted.tolist(), wanted.sum(), 0)


@pytest.mark.parametrize(
    ("numbers", "wrong"),
    [
        pytest.param(np.array([0, 7, 8, 9], np.uint8), 2, id="too large"),
        pytest.param(np.array([-1, 0, -128, 7], np.int8), 2, id="negative"),
        pytest.param(np.array([2**63, 2**64 - 1, 2**32, 7], np.uint64), 3, id="64 bits"),
        pytest.param(np.full(300, 8), 300, id="many"),
    ],
)
def test_numbers_of_no_vertex_are_counted(numbers: Any, wrong: int) -> None:
    good = np.ones(len(numbers), np.int64)
    for first, second in ((numbers, good), (good, numbers)):
        assert measured(first, second) == ([0] * len(numbers), 0, wrong)
