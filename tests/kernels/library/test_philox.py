"""Tests of the counter-based random numbers."""

from __future__ import annotations

import numpy as np
import pytest

from gpu_pregel.kernels.library.philox import key_of, philox, philox4, uniform


@pytest.mark.parametrize(
    ("key", "first", "second", "expected"),
    [
        (0, 0, 0, 0xFF1DAE596CD10DF2),
        (0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0x2C3F628BAB4FD7AD),
        (0x13198A2E, 0x243F6A88, 0x85A308D3, 0xDD7CE038F62A4C12),
    ],
)
def test_the_known_answers_of_random123(key: int, first: int, second: int, expected: int) -> None:
    assert int(philox(key, first, second)) == expected


def test_numbers_are_from_0_to_1_and_keys_below_2_to_the_32() -> None:
    numbers = np.array([uniform(key_of(1), i, 7) for i in range(4000)])
    assert numbers.min() >= 0
    assert numbers.max() < 1
    assert abs(numbers.mean() - 0.5) < 4.5 / (12 * 4000) ** 0.5
    assert len({key_of(seed) for seed in (0, 1, 1 << 32, 1 << 80)}) == 4


@pytest.mark.parametrize(
    ("key", "counters", "expected"),
    [
        ((0, 0), (0, 0, 0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
        (
            (0xFFFFFFFF, 0xFFFFFFFF),
            (0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF),
            (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
        ),
        (
            (0xA4093822, 0x299F31D0),
            (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
            (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
        ),
    ],
)
def test_the_known_answers_of_random123_for_four_counters(
    key: tuple[int, int], counters: tuple[int, int, int, int], expected: tuple[int, ...]
) -> None:
    assert tuple(int(word) for word in philox4(*key, *counters)) == expected
