"""Interpreted functions compute as compiled ones do: with scalars and arrays of NumPy, ``~``, shifts and powers."""

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
from tests.devices import EXHAUSTIVE

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


FLAGS, TENTHS = np.array([True, True, False]), np.full((2, 2), 0.1, np.float32)
ELEMENTS: list[Callable[[Any], Any]] = [
    lambda a: FLAGS[0] + FLAGS[a],
    lambda a: -FLAGS[0] - FLAGS[a],
    lambda a: FLAGS[0] * 5 + ~FLAGS[a],
    lambda a: TENTHS[a, 0] * 3.0,
    lambda a: TENTHS[a][1] + a,
    lambda a: TENTHS[a, 1] == 0.1,
    lambda a: TENTHS.sum() + TENTHS[0].max() * a,
    lambda a: sum([x * 3.0 for x in TENTHS[0]]) + a,
    lambda a: FLAGS.sum() + len(FLAGS) + a,
]
BITS: list[Callable[[Any, Any], Any]] = [
    lambda a, b: a << b,
    lambda a, b: 1 << b,
    lambda a, b: (a << 3) | (1 << b),
    lambda a, b: a >> b,
    lambda a, b: a**b,
    lambda a, b: a**2 + 7**b,
]
SMALL: tuple[Any, ...] = (3, np.int8(100), np.uint8(9), np.int32(-7), np.uint32(11), np.int64(40), np.uint64(2))


def shifted_in_place(a: Any, b: Any) -> Any:
    a <<= b
    a **= 2
    return a


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


@pytest.mark.parametrize("function", ELEMENTS)
def test_elements_of_arrays(function: Any) -> None:
    for number in (0, 1):
        found, expected = interpreted_function(function)(number), numba.njit(function)(number)
        assert float(found) == float(expected)


@pytest.mark.parametrize("function", [*BITS, shifted_in_place])
def test_shifts_and_powers_of_small_integers(function: Any) -> None:
    """They have 64 bits in compiled code; NumPy drops what exceeds the dtype."""
    compiled, interpreted = numba.njit(function), interpreted_function(function)
    others: tuple[Any, ...] = (np.int8(6), np.uint8(7), np.int32(1), np.uint64(4))
    for number, a in enumerate(SMALL):
        for b in (0, 5, *(others if EXHAUSTIVE else others[number % 4 :][:1])):
            try:
                found = interpreted(a, b)
            except OverflowError:  # of numbers that wrap around in compiled code
                assert abs(int(a)) ** max(2 * int(b), 2) > 2**63
            else:
                assert int(found) == int(compiled(a, b)), (a, b)


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (lambda ctx: 5 << (ctx.vertex + 63), "a shift by 64, but compiled code shifts by 0 to 63"),
        (lambda ctx: 5 >> (63 - 64 * ctx.vertex), "a shift by -1, but"),
        (
            lambda ctx: 2 ** (-ctx.vertex),
            "an integer to the power -1, which is 0 in compiled code: convert it by float",
        ),
        (lambda ctx: INTEGERS[2] ** (ctx.vertex + 62), r"2\*\*63 exceeds 64 bits"),
    ],
)
def test_operators_that_compiled_code_computes_otherwise_are_errors(function: Any, problem: str) -> None:
    program = gp.VertexProgram(
        value=np.float64,
        init=function,
        message=lambda value, ctx: value,
        combine="min",
        apply=lambda value, incoming, ctx: value,
    )
    graph = gp.Graph.from_edgelist([0], [1], directed=True)
    with pytest.raises(gp.errors.VertexError, match=f"init fails for vertex 1 .*OverflowError: {problem}"):
        gp.run(graph, program, device="python")


def test_an_index_beyond_an_array_of_bools_names_the_expression() -> None:
    program = gp.VertexProgram(
        value=np.int64,
        init=lambda ctx: FLAGS[ctx.vertex + 2],
        message=lambda value, ctx: value,
        combine="min",
        apply=lambda value, incoming, ctx: value,
    )
    graph = gp.Graph.from_edgelist([0], [1], directed=True)
    with pytest.raises(gp.errors.VertexError, match=r"IndexError: FLAGS\[ctx.vertex \+ 2\]: index 3"):
        gp.run(graph, program, device="python")


@pytest.mark.parametrize("device", ["python", "cpu"])
def test_bodies_of_operators_widen_elements(device: Any) -> None:
    graph = gp.Graph.from_edgelist([0, 1], [1, 2], directed=True)
    everything = gp.Frontier(graph, range(3), device=device)
    flags, tenths = everything.upload(FLAGS), everything.upload(TENTHS[0])
    body = lambda v, flags, tenths: flags[0] + flags[1] + tenths[0] * 3.0
    assert gp.process_vertices(body, everything, [flags, tenths], returns="sum") == 3 * (2 + float(TENTH) * 3)


@pytest.mark.parametrize(
    "text", ["numbers = [x for x in list(~one for one in [1])]", "class Names:\n    x = [~k for k in [1]]"]
)
def test_other_operators_of_the_file_do_not_matter(text: str, tmp_path: Any) -> None:
    path, names = tmp_path / "program.py", dict[str, Any]()
    text = f"{text}\nmore = [x for x in [~len('')]]\ndef invert(x):\n    return ~x\n"
    path.write_text(text)
    exec(compile(text, str(path), "exec"), names)
    assert interpreted_function(names["invert"])(True) is False


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
