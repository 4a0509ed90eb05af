"""Interpreted functions compute as compiled ones do: with captured float32 scalars, and ``~`` of bools."""

from __future__ import annotations

import linecache
import math
import warnings
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.host.traverse.functions import interpreted_function

TENTH, LARGER, IS_SET, INTEGERS = np.float32(0.1), np.float32(3.3), True, np.arange(3)
NUMBERS: tuple[Any, ...] = (2, 0.1, True, np.float32(0.1), np.float64(0.1), np.int32(3))
ARITHMETIC: list[Callable[[Any], Any]] = [
    lambda a: TENTH * a,
    lambda a: a * TENTH,
    lambda a: TENTH + a,
    lambda a: a - TENTH,
    lambda a: TENTH / a,
    lambda a: a // TENTH,
    lambda a: LARGER % a,
    lambda a: TENTH**a,
    lambda a: a**TENTH,
    lambda a: a > TENTH,
    lambda a: a == TENTH,
    lambda a: -TENTH * abs(TENTH) * a,
    lambda a: TENTH * TENTH * a,
    lambda a: np.sqrt(TENTH) * a,
    lambda a: (TENTH if a < 1 else LARGER) * 3 + min(TENTH, LARGER) * a,
]
INVERSIONS: list[Callable[[Any], Any]] = [
    lambda a: ~a,
    lambda a: ~(a > 1),
    lambda a: ~IS_SET,
    lambda a: ~~(a == 1),
    lambda a: [~(a > k) for k in range(2)][1],
    lambda a: ~INTEGERS[int(a)],
]


def helper(x: Any) -> Any:
    return ~(x > TENTH)


@pytest.mark.parametrize("function", ARITHMETIC)
@pytest.mark.parametrize("number", NUMBERS, ids=lambda number: f"{type(number).__name__} {number}")
def test_captured_float32_scalars(function: Any, number: Any) -> None:
    assert interpreted_function(function)(number) == numba.njit(function)(number)


@pytest.mark.parametrize("function", INVERSIONS)
def test_inversions_of_bools_and_integers(function: Any) -> None:
    compiled, interpreted = numba.njit(function), interpreted_function(function)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # as Python 3.12 has for bools
        for number in (True, False, 0, 1, 2):
            found, expected = interpreted(number), compiled(number)
            assert (found, bool(found)) == (expected, bool(expected))


def test_functions_without_differences_are_called_as_they_are() -> None:
    def function(a: Any) -> Any:
        return math.sqrt(a) * 0.5

    assert interpreted_function(function) is function
    assert interpreted_function(numba.njit(function)) is function


@pytest.mark.parametrize("device", ["python", "cpu", "emulated"])
def test_devices_agree(device: Any) -> None:
    """Also in a function that is called, and in bodies of operators."""
    factor = np.float32(0.1)
    program = gp.VertexProgram(
        value={"share": np.float64, "is_small": np.bool_},
        init=lambda ctx: (factor * (ctx.vertex + 0.5), helper(ctx.vertex / 20)),
        message_type=np.float64,
        message=lambda value, ctx: value.share * factor if ~value.is_small else 0.0,
        combine="sum",
        apply=lambda value, incoming, ctx: (incoming + factor, ~value.is_small),
    )
    graph = gp.Graph.from_edgelist([0, 1, 2, 3], [1, 2, 3, 0], directed=True)
    result = gp.run(graph, program, device=device, max_supersteps=2, on_limit="return")
    tenth = float(factor)
    begun = [((v + 0.5) * tenth, not v / 20 > tenth) for v in range(4)]
    for _ in range(result.supersteps - 1):
        sent = [share * tenth if not is_small else 0.0 for share, is_small in begun]
        begun = [(sent[v - 1] + tenth, not begun[v][1]) for v in range(4)]
    assert [tuple(result[v]) for v in range(4)] == begun
    everything = gp.Frontier(graph, range(4), device=device)
    total = gp.process_vertices(lambda v: factor * (v + 0.5) if ~(v > 1) else 0.0, everything)
    assert total == 0.5 * tenth + 1.5 * tenth


def test_equal_functions_of_two_files_keep_their_files(tmp_path: Any) -> None:
    for text in ("def invert(x):\n    return ~x\n", "def keep(x):\n    return x\n"):
        for name in ("one.py", "two.py"):
            path, names = tmp_path / name, dict[str, Any]()
            path.write_text(text)
            linecache.checkcache(str(path))
            exec(compile(text, str(path), "exec"), names)
            (function,) = (value for value in names.values() if callable(value))
            assert interpreted_function(function).__code__.co_filename == str(path)
