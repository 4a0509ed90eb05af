"""Faults in a program's functions, on the device "python" and with ``check=True`` on the CPU: what the error names."""

from __future__ import annotations

import inspect
import pickle
import re
import traceback
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import (
    AgentsFailedError,
    ArgumentError,
    ArgumentTypeError,
    CompileError,
    ProgramError,
    VertexError,
)
from gpu_pregel.host.programs.run import ProgramResult
from tests.devices import EMULATED, LONG, PROGRAM_NAMES, is_emulated, on, threads_of
from tests.programs import CONTEXTS, CONTEXTS_PER_EDGE, DISTANCES, LABELS, PAIRS, RANKS

TABLE = np.arange(3)
CHECKED: list[dict[str, Any]] = [
    {"device": "python"},
    {"device": "cpu", "check": True, "mode": "pull"},
]
WAYS = pytest.mark.parametrize("way", CHECKED, ids=["python", "cpu"])


def program(value: Any = np.int64, **changes: Any) -> gp.VertexProgram:
    """Return a program that does nothing wrong and ends by itself, with these changes."""
    parts: dict[str, Any] = {
        "init": lambda ctx: 0,
        "message": lambda value, ctx: value,
        "combine": "min",
        "apply": lambda value, incoming, ctx: incoming,
    }
    return gp.VertexProgram(value=value, **{**parts, **changes})


def path() -> gp.Graph:
    """A path from "a" to "e"; vertex "d" has number 3."""
    return gp.Graph.from_edgelist(list("abcd"), list("bcde"))


def count_down(number: int) -> int:
    """Recursive: its number is the depth."""
    return 1 + count_down(number - 1) if number > 0 else 0


def look_up(vertex: int) -> Any:
    """A helper of the functions below."""
    return TABLE[vertex]


# Each function fails for vertex "d", whose number is 3: by an index, and by a division.
INDEX: dict[str, Callable[..., Any]] = {
    "init": lambda ctx: look_up(ctx.vertex),
    "initially_active": lambda ctx: TABLE[ctx.vertex] >= 0,
    "message": lambda value, ctx: TABLE[ctx.vertex],
    "apply": lambda value, incoming, ctx: TABLE[ctx.vertex],
    "receives": lambda value, ctx: TABLE[ctx.vertex] >= 0,
    "active": lambda old, new, ctx: TABLE[ctx.vertex] >= 0,
}
DIVISION: dict[str, Callable[..., Any]] = {
    "init": lambda ctx: 7 // (ctx.vertex - 3),
    "initially_active": lambda ctx: 7 % (ctx.vertex - 3) >= 0,
    "message": lambda value, ctx: 7 // (ctx.vertex - 3),
    "apply": lambda value, incoming, ctx: 7 // (ctx.vertex - 3),
    "receives": lambda value, ctx: 1.5 / (ctx.vertex - 3) < 9,
    "active": lambda old, new, ctx: 1.5 / (ctx.vertex - 3) < 9,
}


def failure(run: Callable[[], Any]) -> VertexError:
    with pytest.raises(VertexError) as caught:
        run()
    return caught.value


FAULTS = {
    **{f"index {role}": ("IndexError", role, function) for role, function in INDEX.items()},
    **{f"division {role}": ("ZeroDivisionError", role, function) for role, function in DIVISION.items()},
}
# The causes alternate, so that each role and each cause is compiled.
_COMPILED = {"index init", "index message", "index receives"}
_COMPILED |= {"division initially_active", "division apply", "division active"}


@pytest.mark.parametrize(
    ("way", "cause", "role", "function"),
    [
        pytest.param(way, *fault, id=f"{way['device']}-{name}", marks=() if quick else LONG)
        for name, fault in FAULTS.items()
        for way, quick in zip(CHECKED, (True, name in _COMPILED), strict=True)
    ],
)
def test_a_fault_is_reported_with_its_line_and_vertex(
    way: dict[str, Any], cause: str, role: str, function: Callable[..., Any]
) -> None:
    error = failure(lambda: gp.run(path(), program(**{role: function}), **way))
    expected = 0 if role in ("init", "initially_active", "message") else 1
    assert (error.role, error.vertex, error.superstep) == (role, "d", expected)
    assert cause in error.problem
    faulty = look_up if (cause, role) == ("IndexError", "init") else function
    lines, first = inspect.getsourcelines(faulty)
    line = first + len(lines) - 1
    assert f"{Path(__file__).name}, line {line}: {lines[-1].strip()}" in str(error)
    # The traceback ends there, so that a debugger does, too.
    assert traceback.extract_tb(error.__traceback__)[-1].lineno == line


@WAYS
def test_faults_of_aggregators_and_of_messages_along_edges(way: dict[str, Any]) -> None:
    edges = program(message=lambda value, weight, ctx: TABLE[ctx.vertex])
    error = failure(lambda: gp.run(path(), edges, **way))
    assert (error.role, error.vertex, error.superstep) == ("message", "d", 0)
    sums = program(aggregators={"total": gp.Aggregator("sum", lambda old, new, ctx: 7 // (ctx.vertex - 3))})
    error = failure(lambda: gp.run(path(), sums, **way))
    assert (error.role, error.vertex, error.superstep) == ("aggregator 'total'", "d", 1)


@pytest.mark.parametrize("role", ["message", "receives", "combine"])
def test_a_push_checks_too(role: str) -> None:
    faulty = program(combine="sum", init=lambda ctx: 2**62) if role == "combine" else program(**{role: DIVISION[role]})
    error = failure(lambda: gp.run(path(), faulty, device="cpu", check=True, mode="push"))
    assert (error.role, error.vertex) == (role, "b" if role == "combine" else "d")


OVERFLOWS: list[tuple[str, str, dict[str, Any], str]] = [
    ("init", "b", {"value": np.uint8, "init": lambda ctx: 255 + ctx.vertex}, "returns 256, which .* uint8 .0 to 255."),
    ("init", "b", {"value": np.uint32, "init": lambda ctx: 0 - ctx.vertex}, "returns -1, which does not fit uint32"),
    ("apply", "b", {"value": np.int32, "apply": lambda value, incoming, ctx: ctx.vertex << 31}, "not fit int32"),
    ("apply", "c", {"apply": lambda value, incoming, ctx: ctx.vertex * 2**62}, "not fit int64"),
    ("message", "a", {"message": lambda value, ctx: value + 300, "message_type": np.int8}, "returns 300, .* int8"),
    ("init", "c", {"value": np.float32, "init": lambda ctx: 1e38 * 2.0**ctx.vertex}, "not fit float32 .at most 3.4"),
    ("combine", "b", {"combine": "sum", "init": lambda ctx: 2**62}, "not fit int64"),
    (
        "combine",
        "b",
        {"combine": gp.Combiner(lambda a, b: a * b, 1), "value": np.int8, "init": lambda ctx: 50},
        "not fit int8",
    ),
    (
        "aggregator 'x'",
        "c",
        {"aggregators": {"x": gp.Aggregator("max", lambda old, new, ctx: 127 * ctx.vertex, dtype=np.int8)}},
        "returns 254, which does not fit int8",
    ),
    (
        "combine of aggregator 'x'",
        "b",
        {"aggregators": {"x": gp.Aggregator("sum", lambda old, new, ctx: 200, dtype=np.uint8)}},
        "returns 400, which does not fit uint8",
    ),
]


# Functions and dtypes of which others are compiled.
_INTERPRETED = [OVERFLOWS[number] for number in (1, 2, 7)]


@pytest.mark.parametrize(
    ("way", "role", "vertex", "changes", "problem"),
    [
        pytest.param(way, *case, id=f"{way['device']}-{number}-{case[0]}", marks=LONG if slow else ())
        for number, case in enumerate(OVERFLOWS)
        for way, slow in zip(CHECKED, (False, case in _INTERPRETED), strict=True)
    ],
)
def test_a_result_that_does_not_fit_is_an_error(
    way: dict[str, Any], role: str, vertex: str, changes: dict[str, Any], problem: str
) -> None:
    if role == "combine" and isinstance(changes["combine"], gp.Combiner):
        changes = {**changes, "init": lambda ctx: 50, "message": lambda value, ctx: 50}
    with pytest.raises(VertexError, match=problem) as caught:
        gp.run(path(), program(**changes), **way)
    assert (caught.value.role, caught.value.vertex) == (role, vertex)


@WAYS
def test_the_largest_and_smallest_results_fit(way: dict[str, Any]) -> None:
    dtypes = (np.int8, np.uint16, np.int32, np.uint32, np.int64, np.uint64)
    a, b, c, d, e, f = (np.array([np.iinfo(t).min, np.iinfo(t).max, 0, 1], t) for t in dtypes)

    def init(ctx: Any) -> Any:
        k = ctx.vertex % 4
        return a[k], b[k], c[k], d[k], e[k], f[k]

    extreme = program(value=dtypes, init=init, active=lambda old, new, ctx: False)
    found = gp.run(path(), extreme, **way, max_supersteps=1, on_limit="return").to_numpy()
    for number, bounds in enumerate((a, b, c, d, e, f)):
        assert found[f"value{number}"].tolist() == [*bounds.tolist(), bounds[0]]


@pytest.mark.parametrize("way", [*CHECKED, {"device": "cpu"}], ids=["python", "cpu", "unchecked"])
def test_floats_are_not_stored_as_integers(way: dict[str, Any]) -> None:
    for result in (0.5, np.nan):
        with pytest.raises(ProgramError, match=r"init .*int64 is declared, and floats are not converted .* silently"):
            gp.run(path(), program(init=_constant(result)), **way)
    with pytest.raises(ProgramError, match=r"init .*\(int64, bool\) is declared"):
        gp.run(path(), program((np.int64, np.bool_), init=lambda ctx: 3, message=lambda value, ctx: value), **way)


def _constant(number: Any) -> Callable[[Any], Any]:
    return lambda ctx: number


@WAYS
def test_an_exception_of_the_function_is_raised_as_it_is_with_a_note(way: dict[str, Any]) -> None:
    def stop(value: int, incoming: int, ctx: Any) -> int:
        if ctx.vertex == 2:
            raise ValueError("enough")
        return incoming

    with pytest.raises(ValueError, match="enough") as caught:
        gp.run(path(), program(apply=stop), **way)
    (note,) = caught.value.__notes__
    assert re.fullmatch(
        r"""raised by apply for vertex 'c' in superstep 1 \(.*checks\.py, line \d+: raise ValueError\("enough"\)\)""",
        note,
    )
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "stop"


def test_arithmetic_that_wraps_only_in_compiled_code_is_reported() -> None:
    differences = program(
        np.uint32, message=lambda value, ctx: value + 1, apply=lambda value, incoming, ctx: abs(value - incoming)
    )
    found = gp.run(path(), differences, device="python", max_supersteps=2, on_limit="return")
    assert found.to_numpy().tolist() == [1] * 5
    with pytest.raises(ProgramError, match=r"superstep 1 in compiled code \(OverflowError.*convert its operands"):
        gp.run(path(), differences, device="cpu", check=True, max_supersteps=2)


def test_numpy_scalars_overflow_in_python_too() -> None:
    large = np.int64(2**62)
    error = failure(lambda: gp.run(path(), program(init=lambda ctx: large * 2), device="python"))
    assert "overflow encountered" in str(error)


_CHECKED_PROGRAMS = {
    "distances": (DISTANCES, None),
    "ranks": (RANKS, None),
    "pairs": (PAIRS, 1),
    "contexts": (CONTEXTS, None),
    "contexts per edge": (CONTEXTS_PER_EDGE, 3),
}
"""Programs, each with the number of partitions with which the default runs it."""


@pytest.mark.parametrize(
    ("partitions", "tried"),
    [
        pytest.param(partitions, tried, id=f"{partitions}-{name}", marks=() if partitions == usual else LONG)
        for partitions in (1, 3)
        for name, (tried, usual) in _CHECKED_PROGRAMS.items()
    ],
)
def test_programs_without_faults_give_the_same_result_with_checks(tried: gp.VertexProgram, partitions: int) -> None:
    graph = gp.grid(16)
    way: dict[str, Any] = {"device": "cpu", "max_supersteps": 7, "on_limit": "return"}
    results = [gp.run(graph, tried, check=check, partitions=partitions, **way) for check in (False, True)]
    assert results[0].to_numpy().tobytes() == results[1].to_numpy().tobytes()
    assert rows(results[0]) == rows(results[1])


@pytest.mark.parametrize(
    ("message_type", "message", "combine"),
    [
        ({"id": np.int64, "half": np.float32}, lambda value, ctx: (value, 0.5), "max"),
        pytest.param((np.uint64, np.float32), lambda value, ctx: (value, 0.5), "max", marks=LONG),
        # The identity is a uint64, the result an int64, and both fit float64 only with rounding.
        (np.uint64, lambda value, ctx: value, "min"),
    ],
    ids=["named", "tuple", "uint64"],
)
def test_checks_convert_messages_to_the_declared_type(message_type: Any, message: Any, combine: Any) -> None:
    first = "incoming" if isinstance(message_type, type) else "incoming[0]"
    largest = program(
        init=lambda ctx: (1 << 60) + ctx.vertex,
        message_type=message_type,
        message=message,
        combine=combine,
        apply=eval(f"lambda value, incoming, ctx: int({first})"),
    )
    for check in (False, True):
        found = gp.run(path(), largest, device="cpu", check=check, max_supersteps=2, on_limit="return")
        neighbors = [1, 2, 3, 4, 3] if combine == "max" else [1, 0, 1, 2, 3]
        assert found.to_numpy().tolist() == [(1 << 60) + vertex for vertex in neighbors]


def rows(result: ProgramResult) -> list[dict[str, Any]]:
    return [{key: value for key, value in row.items() if "seconds" not in key} for row in result.trace]


@pytest.mark.parametrize("device", [on(name) for name in PROGRAM_NAMES])
def test_which_devices_check(device: str) -> None:
    if device.startswith("cuda"):
        with pytest.raises(ArgumentError, match="check=True is not possible on device 'cuda:0': use device='emulated'"):
            gp.run(path(), LABELS, device=device, check=True)
    elif not is_emulated(device) or device == "emulated":
        assert gp.run(path(), LABELS, device=device, check=True, **threads_of(device, 2)).to_numpy().tolist() == [0] * 5
    with pytest.raises(ArgumentTypeError, match="check must be True or False"):
        gp.run(path(), LABELS, device=device, check=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("mode", ["push", "pull"])
def test_threads_that_fail_end_the_run_with_the_first_vertex(mode: Any) -> None:
    graph = gp.kronecker(14, 4)
    faulty = program(active=lambda old, new, ctx: 1 // ((ctx.vertex + 1) % 1_000) == 0)
    reached = np.flatnonzero(graph.in_degrees)
    error = failure(lambda: gp.run(graph, faulty, device="cpu", check=True, mode=mode, threads=4))
    assert (error.role, error.superstep) == ("active", 1)
    assert error.vertex == reached[(reached + 1) % 1_000 == 0][0]


ADDED = gp.Combiner(lambda a, b: a + b, 0)


@pytest.mark.parametrize("options", [{}, {"check": True}, {"device": "python"}, {"device": "agents"}], ids=str)
@pytest.mark.parametrize(
    ("dtype", "combine"),
    [
        (np.uint8, "sum"),
        (np.uint64, ADDED),
        *(pytest.param(*pair, marks=LONG) for pair in [(np.uint8, ADDED), (np.uint64, "sum")]),
        *(pytest.param(np.uint32, combine, marks=LONG) for combine in ("sum", ADDED)),
    ],
)
def test_combined_unsigned_messages_wrap_but_results_must_fit(
    dtype: Any, combine: Any, options: dict[str, Any]
) -> None:
    way = {"device": "cpu", "max_supersteps": 2, "on_limit": "return", **options}
    most, wide = int(np.iinfo(dtype).max), np.uint64(np.iinfo(dtype).max)
    adding = gp.VertexProgram(
        value=dtype,
        init=lambda ctx: wide - np.uint64(ctx.vertex),
        message=lambda value, ctx: value,
        combine=combine,
        apply=lambda value, incoming, ctx: incoming,
    )
    assert gp.run(path(), adding, **way).to_numpy().tolist() == [most - less for less in (1, 3, 5, 7, 3)]
    if options and dtype is not np.uint64:
        problem = rf"init .*vertex 'b' .*does not fit {np.dtype(dtype)}"
        with pytest.raises((VertexError, AgentsFailedError), match=problem):
            gp.run(path(), replace(adding, init=lambda ctx: wide + np.uint64(ctx.vertex)), **way)


def test_checked_code_is_cached_apart_from_unchecked_code() -> None:
    wrapping = program(np.int8, init=lambda ctx: 127 + ctx.vertex)
    for _ in range(2):
        assert gp.run(path(), wrapping, device="cpu", max_supersteps=1, on_limit="return").to_numpy()[1] == -128
        failure(lambda: gp.run(path(), wrapping, device="cpu", check=True))


def test_the_error_can_be_pickled() -> None:
    error = failure(lambda: gp.run(path(), program(init=INDEX["init"]), device="python"))
    copy = pickle.loads(pickle.dumps(error))
    assert str(copy) == str(error)
    assert isinstance(copy, ArithmeticError)
    assert isinstance(copy, IndexError)


@WAYS
def test_recursion_that_is_too_deep_is_reported(way: dict[str, Any]) -> None:
    """Compiled code would overflow the stack, which ends the process."""
    recursive = program(
        parameters={"depth": 100},
        init=lambda ctx: count_down(ctx.parameters.depth) if ctx.vertex == 3 else 0,
        apply=lambda value, incoming, ctx: value,
    )
    assert gp.run(path(), recursive, **way)["d"] == 100
    with pytest.raises(VertexError, match="RecursionError: maximum recursion depth exceeded") as caught:
        gp.run(path(), recursive, parameters={"depth": 1_000_000}, **way)
    assert (caught.value.role, caught.value.vertex, caught.value.superstep) == ("init", "d", 0)
    assert f"line {inspect.getsourcelines(count_down)[1] + 2}: return 1 + count_down(number - 1)" in str(caught.value)


@EMULATED
@pytest.mark.filterwarnings("ignore:Context.call_conv is deprecated:DeprecationWarning")
def test_a_gpu_runs_no_recursive_function() -> None:
    recursive = program(init=lambda ctx: count_down(5))
    with pytest.raises(CompileError, match=r"for device .emulated.: .*cannot call themselves"):
        gp.run(path(), recursive, device="emulated")
