"""Arrays that functions use by name: read as they are when a run begins, and compiled once for all arrays."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import CompileError
from gpu_pregel.host.programs.captured_arrays import pass_arrays
from tests.devices import PROGRAM_DEVICES

PATH = gp.Graph.from_edgelist([0, 1, 2, 3], [1, 2, 3, 4], [1.0, 2.0, 3.0, 4.0], directed=True)
OFFSETS = np.array([100, 200, 300, 400, 500], np.int32)


def toll(value: float, weight: float, tolls: Any, ctx: Any) -> Any:
    return value + weight * tolls[ctx.vertex]


def distances(start: Any, tolls: Any, is_open: Any) -> gp.VertexProgram:
    """Distances from vertices with a finite start, with a toll for each vertex, not beyond closed vertices."""
    return gp.VertexProgram(
        value=np.float64,
        init=lambda ctx: start[ctx.vertex],
        initially_active=lambda ctx: start[ctx.vertex] < np.inf,
        message=lambda value, weight, ctx: toll(value, weight, tolls, ctx),
        combine="min",
        apply=lambda value, incoming, ctx: min(value, incoming),
        receives=lambda value, ctx: is_open[ctx.vertex],
        active=lambda old, new, ctx: new < old or start[0] < 0,
        aggregators={"offsets": gp.Aggregator("sum", lambda old, new, ctx: OFFSETS[ctx.vertex] + len(start))},
    )


START = np.array([1.0, np.inf, np.inf, np.inf, np.inf])
TOLLS = np.array([10, 1, 2, 0, 0], np.uint8)
OPEN = np.ones(5, bool)


@PROGRAM_DEVICES
def test_every_function_reads_its_arrays(device: str) -> None:
    result = gp.run(PATH, distances(START, TOLLS, OPEN), device=device, mode="pull")
    assert result.to_numpy().tolist() == [1.0, 11.0, 13.0, 19.0, 19.0]
    assert [row["aggregated.offsets"] for row in result.trace][1:] == [205, 305, 405, 505, 0]


@PROGRAM_DEVICES
def test_other_arrays_compile_nothing(device: str) -> None:
    gp.run(PATH, distances(START, TOLLS, OPEN), device=device)
    longer = np.append(START + 1, 7.0)[::-1][::-1]
    closed = np.array([True, True, True, False, True])
    result = gp.run(PATH, distances(longer, TOLLS * np.uint8(2), closed), device=device)
    assert result.to_numpy().tolist() == [2.0, 22.0, 26.0, np.inf, np.inf]
    assert result.stats["compile_seconds"] == 0


@PROGRAM_DEVICES
def test_an_array_is_read_when_a_run_begins(device: str) -> None:
    tolls = TOLLS.copy()
    program = distances(START, tolls, OPEN)
    assert gp.run(PATH, program, device=device).to_numpy()[1] == 11.0
    tolls[0] = 20
    assert gp.run(PATH, program, device=device).to_numpy()[1] == 21.0


@pytest.mark.parametrize("name", ["cpu", "python", "emulated"])
def test_what_a_master_writes_to_an_array_is_not_read(name: Any) -> None:
    tolls = np.ones(5)

    def master(step: Any) -> None:
        tolls[:] = 100.0

    program = gp.VertexProgram(
        value=np.float64,
        init=lambda ctx: 0.0,
        message=lambda value, ctx: value,
        combine="sum",
        apply=lambda value, incoming, ctx: value + tolls[ctx.vertex],
        active="always",
        master=master,
    )
    result = gp.run(PATH, program, device=name, max_supersteps=4, on_limit="return")
    assert result.to_numpy().tolist() == [3.0] * 5


@PROGRAM_DEVICES
def test_numbers_keep_their_dtype(device: str) -> None:
    small, wide = np.array([0, 1, 100, 2, 3], np.int8), np.array([1, 2, 3, 2**63, 2**64 - 1], np.uint64)
    program = gp.VertexProgram(
        value=(np.int64, np.uint64),
        init=lambda ctx: (int(small[ctx.vertex]) * 100, wide[len(wide) - 1 - ctx.vertex]),
        message=lambda value, ctx: value,
        combine="min",
        apply=lambda value, incoming, ctx: value,
    )
    found = gp.run(PATH, program, device=device).to_numpy().tolist()
    assert found == [(0, 2**64 - 1), (100, 2**63), (10_000, 3), (200, 2), (300, 1)]


def test_arrays_of_a_program_are_found_once() -> None:
    _, arrays = pass_arrays(distances(START, TOLLS, OPEN))
    assert [array.tolist() for array in arrays] == [one.tolist() for one in (START, TOLLS, OPEN, OFFSETS)]
    assert not any(array.flags.writeable for array in arrays)
    assert START.flags.writeable
    assert pass_arrays(gp.VertexProgram(**plain()))[1] == ()


def plain(**changes: Any) -> dict[str, Any]:
    parts: dict[str, Any] = {
        "value": np.float64,
        "init": lambda ctx: 1.0,
        "message": lambda value, ctx: value,
        "combine": "min",
        "apply": lambda value, incoming, ctx: min(value, incoming),
    }
    return {**parts, **changes}


vertex, __dates = np.ma.array([1.0, 2.0], mask=[True, False]), np.zeros(3, "M8[s]")


def test_arrays_that_are_not_read_are_not_passed() -> None:
    """Those with the names of attributes, or of which a module has others."""
    assert vertex.size < __dates.size
    program = gp.VertexProgram(**plain(init=lambda ctx: START[ctx.vertex]))
    assert [array.tolist() for array in pass_arrays(program)[1]] == [START.tolist()]


def test_a_variable_without_a_value_is_named() -> None:
    def helper(v: int) -> Any:
        return later[v]

    program = gp.VertexProgram(**plain(init=lambda ctx: helper(ctx.vertex)))
    with pytest.raises(CompileError, match=r"'later' of helper \(.*arrays.py, line \d+\) has no value yet"):
        gp.run(PATH, program, device="cpu")
    later = START
    assert gp.run(PATH, program, device="cpu").to_numpy()[0] == 1.0


MATRIX = np.arange(10.0).reshape(5, 2)


def second_column(v: int) -> Any:
    return MATRIX[v, 1]


def test_what_has_no_ctx_has_constants() -> None:
    """Functions that others call, combiners, functions inside functions, and matrices."""
    row = np.array([3.0, 4.0])

    def init(ctx: Any) -> Any:
        def inner(k: int) -> Any:
            return row[k]

        return second_column(ctx.vertex) + MATRIX[0, 1] + inner(1)

    smaller = gp.Combiner(lambda a, b: min(a, b) + row[1] - 4.0, np.inf)
    program = gp.VertexProgram(**plain(init=init, combine=smaller))
    assert pass_arrays(program)[1] == ()
    assert gp.run(PATH, program, device="cpu").to_numpy().tolist() == [6.0, 6.0, 6.0, 6.0, 6.0]


def test_functions_cannot_write_to_an_array() -> None:
    table = np.zeros(5)

    def write(ctx: Any) -> float:
        table[ctx.vertex] = 1.0
        return 0.0

    with pytest.raises(CompileError, match="table"):
        gp.run(PATH, gp.VertexProgram(**plain(init=write)), device="cpu")
    assert table.tolist() == [0.0] * 5


@pytest.mark.parametrize("name", ["cpu", "emulated"])
def test_an_index_beyond_an_array_names_the_vertex(name: Any) -> None:
    table = np.zeros(3)
    program = gp.VertexProgram(**plain(init=lambda ctx: table[ctx.vertex]))
    with pytest.raises(gp.errors.VertexError, match="vertex 3") as caught:
        gp.run(PATH, program, device=name, check=name == "cpu")
    assert "table" in str(caught.value)


@pytest.mark.parametrize("name", ["cpu", "emulated"])
def test_an_index_that_the_master_has_set_names_the_vertex(name: Any) -> None:
    table = np.zeros(3)
    program = gp.VertexProgram(
        **plain(apply=lambda value, incoming, ctx: table[ctx.parameters.place] if ctx.vertex == 2 else value),
        parameters={"place": 0},
        active="always",
        master=lambda step: step.set(place=step.superstep + 1),
    )
    with pytest.raises(gp.errors.VertexError, match=r"apply fails for vertex 2 in superstep 3 .*table"):
        gp.run(PATH, program, device=name, check=name == "cpu", max_supersteps=9)


@pytest.mark.parametrize(
    ("table", "problem"),
    [
        (np.ma.array([1.0, 2.0], mask=[False, True]), "is masked, and compiled functions do not see the mask"),
        (np.array(["2026-01-01"] * 5, "M8[ns]"), r"has the dtype datetime64\[ns\], no numbers"),
        (np.zeros(5, ">f8"), r"has the dtype >f8, which compiled functions cannot read: pass astype\('float64'\)"),
        (np.zeros(5, np.float16), r"has the dtype <f2, .*: pass astype\('float32'\)"),
    ],
)
def test_arrays_that_compiled_functions_cannot_read_are_named(table: Any, problem: str) -> None:
    program = gp.VertexProgram(**plain(init=lambda ctx: float(table[ctx.vertex])))
    with pytest.raises(CompileError, match=rf"the array 'table' of <lambda> \(.*arrays.py, line \d+\) {problem}"):
        gp.run(PATH, program, device="cpu")
