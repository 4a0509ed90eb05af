"""Tests of the declaration and the values of parameters, of initial values and frontiers, and of what is compiled."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core import event

import gpu_pregel as gp
from gpu_pregel.errors import (
    ArgumentError,
    ArgumentTypeError,
    CheckpointError,
    GpuPregelError,
    GraphError,
    ProgramError,
)
from gpu_pregel.host.programs import compiler
from gpu_pregel.host.programs.checkpoints import Identity, _as_identity
from gpu_pregel.host.traverse.directions import Mode
from gpu_pregel.kernels.library import cache

PATH = gp.Graph.from_edgelist([0, 1, 2], [1, 2, 3])
HOPS = gp.VertexProgram(
    value=np.int64,
    parameters={"source": np.int64, "far": -1},
    init=lambda ctx: 0 if ctx.vertex == ctx.parameters.source else ctx.parameters.far,
    initially_active=lambda ctx: ctx.vertex == ctx.parameters.source,
    message=lambda value, ctx: value + 1,
    combine="min",
    apply=lambda value, incoming, ctx: incoming if value < 0 else value,
)
NAMED = gp.VertexProgram(
    value={"hub": np.float64, "authority": np.int8},
    init=lambda ctx: (0.0, 0),
    message=lambda value, ctx: value,
    combine="min",
    apply=lambda value, incoming, ctx: (incoming.hub, value.authority),
)


@pytest.mark.parametrize(
    ("declared", "error", "message"),
    [
        ([("source", np.int64)], ArgumentTypeError, "parameters must be a dict from names to dtypes or defaults"),
        ({"two words": 1}, ArgumentError, "'two words' cannot name a parameter: use a name such as 'source'"),
        ({"_hidden": 1}, ArgumentError, "'_hidden' cannot name a parameter"),
        ({"class": 1}, ArgumentError, "'class' cannot name a parameter"),
        ({3: 1}, ArgumentError, "3 cannot name a parameter"),
        ({"source": "text"}, ArgumentTypeError, "parameter 'source' must be declared by a dtype such as np.int64"),
        ({"source": None}, ArgumentTypeError, "parameter 'source' must be declared by a dtype"),
        ({"source": np.float16}, ArgumentTypeError, "parameter 'source' must be declared by a dtype"),
        ({"source": np.float16(1)}, ArgumentTypeError, "parameter 'source' must be declared by a dtype"),
        ({"source": 1 + 2j}, ArgumentTypeError, "parameter 'source' must be declared by a dtype"),
        ({"source": 2**63}, ArgumentError, "the default of parameter 'source' must be from"),
    ],
)
def test_invalid_declarations_are_rejected(declared: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        replace(HOPS, parameters=declared)


@pytest.mark.parametrize(
    ("declared", "dtype"),
    [(3, np.int64), (0.5, np.float64), (True, np.bool_), (np.uint8(3), np.uint8), (np.float32(1), np.float32)],
)
def test_a_default_has_the_type_of_its_number(declared: Any, dtype: Any) -> None:
    (parameter,) = replace(HOPS, parameters={"source": declared}).declared_parameters
    assert (parameter.name, parameter.dtype, parameter.default) == ("source", dtype, declared)


@pytest.mark.parametrize(
    ("declared", "given", "error", "message"),
    [
        (
            np.int64,
            None,
            ArgumentError,
            r"parameter 'p' has no value: pass parameters=\{'p': ...\}; .*program: p \(int64",
        ),
        (np.int64, {}, ArgumentError, "parameter 'p' has no value"),
        (0.5, {"q": 1}, ArgumentError, r"unknown parameter 'q'; parameters of the program: p \(float64 = 0.5\)"),
        (np.int64, [5], ArgumentTypeError, "parameters must be a dict from names to numbers"),
        (np.uint8, {"p": 300}, ArgumentError, "parameter 'p' must be from 0 to 255, not 300"),
        (np.uint8, {"p": -1}, ArgumentError, "parameter 'p' must be from 0 to 255, not -1"),
        (np.int64, {"p": 2**63}, ArgumentError, "parameter 'p' must be from"),
        (np.int64, {"p": 1.5}, ArgumentTypeError, "parameter 'p' must be a whole number, not 1.5"),
        (np.int64, {"p": True}, ArgumentTypeError, "parameter 'p' must be a whole number, not True"),
        (np.int64, {"p": "5"}, ArgumentTypeError, "parameter 'p' must be a whole number, not '5'; graph.vertex"),
        (np.int64, {"p": None}, ArgumentTypeError, "parameter 'p' must be a whole number, not None"),
        (np.int64, {"p": np.arange(2)}, ArgumentTypeError, "parameter 'p' must be a whole number"),
        (np.bool_, {"p": 1}, ArgumentTypeError, "parameter 'p' must be True or False, not 1"),
        (np.float64, {"p": "x"}, ArgumentTypeError, "parameter 'p' must be a number, not 'x'"),
        (np.float64, {"p": True}, ArgumentTypeError, "parameter 'p' must be a number, not True"),
        (np.float32, {"p": 1e300}, ArgumentError, "parameter 'p' must be representable as float32, not 1e"),
        (np.float64, {"p": 10**400}, ArgumentError, "parameter 'p' must be representable as float64"),
    ],
)
def test_invalid_values_are_rejected_before_any_work(
    declared: Any, given: Any, error: type[Exception], message: str
) -> None:
    program = replace(HOPS, parameters={"p": declared}, init=lambda ctx: ctx.parameters.p.no_such_attribute)
    with pytest.raises(error, match=message):
        gp.run(PATH, program, parameters=given)


@pytest.mark.parametrize("given", [np.nan, np.inf, -np.inf, 3, np.float32(0.1), 2**60 + 1, np.array(0.5)])
def test_floats_take_every_number(given: Any) -> None:
    program = replace(NAMED, parameters={"p": 0.0}, init=lambda ctx: (ctx.parameters.p, 0))
    found = gp.run(PATH, program, parameters={"p": given}, frontier=[]).values.hub
    assert np.array_equal(found, np.full(4, float(given)), equal_nan=True)


def test_a_default_is_used_unless_a_value_is_given() -> None:
    assert gp.run(PATH, HOPS, parameters={"source": 1}, max_supersteps=1, on_limit="return").values.tolist() == [
        *(-1, 0, -1, -1)
    ]
    given = {"source": 1, "far": -9}
    assert gp.run(PATH, HOPS, parameters=given, max_supersteps=1, on_limit="return").values.tolist() == [-9, 0, -9, -9]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"init": lambda ctx: ctx.parameters.sauce}, "init cannot be compiled .*: Unknown attribute 'sauce'"),
        ({"parameters": {}}, "init cannot be compiled .*: ctx.parameters is None if the program declares no"),
    ],
)
def test_a_misspelt_parameter_is_a_program_error(change: Any, message: str) -> None:
    program = replace(HOPS, **change)
    with pytest.raises(ProgramError, match=message):
        gp.run(PATH, program, parameters={"source": 1} if program.parameters else None)


class Compilations(event.Listener):
    """Counts what Numba compiles."""

    count = 0

    def on_start(self, event: Any) -> None:
        self.count += 1

    def on_end(self, event: Any) -> None:
        pass


def test_a_hundred_sources_compile_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def files() -> list[Path]:
        return sorted(path for path in tmp_path.rglob("*") if path.is_file())

    monkeypatch.setattr(cache, "cache_directory", lambda: str(tmp_path))
    hops = replace(HOPS, message=lambda value, ctx: 1 + value)  # compiled by no other test
    graph, compilations = gp.grid(10), Compilations()
    modes: tuple[Mode, Mode] = ("push", "pull")
    for mode in modes:
        gp.run(graph, hops, parameters={"source": 0}, mode=mode)
    before = files()
    with event.install_listener("numba:compile", compilations):
        for source in range(1, 100):
            given = {"source": source, "far": -source}
            values = gp.run(graph, hops, parameters=given, mode=modes[source % 2]).to_numpy()
            assert values[source] == 0
            assert values.min() in (0, -source)
    assert compilations.count == 0
    assert files() == before
    assert len(before) >= 8


def test_values_of_parameters_are_no_part_of_the_compiled_program() -> None:
    def compiled(**changes: Any) -> compiler.CompiledProgram:
        return compiler.compile_program(replace(HOPS, **changes), weight=None)

    first = compiled()
    assert compiled(parameters={"source": np.int64, "far": -7}).apply is first.apply
    assert compiled(parameters={"source": np.int32, "far": -1}).apply is not first.apply
    assert compiled(parameters={"far": -1, "source": np.int64}).apply is not first.apply
    assert replace(NAMED, value={"a": np.float64, "authority": np.int8}).value != NAMED.value
    named = compiler.compile_program(NAMED, weight=None)
    assert named.value.names == ("hub", "authority")


def test_values_by_id_have_the_names_of_their_fields() -> None:
    result = gp.run(PATH, NAMED, max_supersteps=2, on_limit="return")
    assert result[2] == (result.values.hub[2], result.values.authority[2])
    assert result[2].authority == result.to_dict()[2].authority == result.values.authority[2]
    assert result[[2, 1]]["hub"].tolist() == result.values.hub[[2, 1]].tolist()


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_results_can_be_pickled(protocol: int) -> None:
    result = gp.run(PATH, NAMED, max_supersteps=2, on_limit="return")
    found = pickle.loads(pickle.dumps(result, protocol))
    assert found.to_dict() == result.to_dict()
    assert found.values.hub.tolist() == result.values.hub.tolist()
    assert (found.aggregated, found.status, list(found.trace)) == (result.aggregated, result.status, list(result.trace))
    assert type(found[2]) is type(result[2])


@pytest.mark.parametrize(
    ("initial", "error", "message"),
    [
        (5, ArgumentError, r"initial has shape \(\), but the graph has 4 vertices"),
        ([1, 2, 3], ArgumentError, r"initial has shape \(3,\), but the graph has 4 vertices"),
        ([[1], [2], [3], [4]], ArgumentError, r"initial has shape \(4, 1\)"),
        (np.ma.masked_greater([1, 2, 3, 4], 2), ArgumentError, "initial is masked for the vertex 2: pass a value"),
        ([1.0, 2, 3, 4], ArgumentTypeError, "initial has dtype float64, but int64 is declared: convert it"),
        (["a", "b", "c", "d"], ArgumentTypeError, "initial has dtype <U1, but int64 is declared"),
        (np.array([0, 1, 2, 2**63], np.uint64), ArgumentError, "initial is 9,223,372,036,854,775,808 at vertex 3, but"),
        ({0: 1}, ArgumentTypeError, "initial must be an array by vertex number, as the fields .* have no names"),
    ],
)
def test_invalid_initial_values_are_rejected(initial: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        gp.run(PATH, HOPS, parameters={"source": 0}, initial=initial)


@pytest.mark.parametrize(
    ("initial", "error", "message"),
    [
        (np.zeros(4), ArgumentTypeError, "initial must be a tuple of 2 arrays, not ndarray"),
        ((np.zeros(4),), ArgumentError, "initial has 1 arrays, but the program's value 2 fields"),
        (
            {"hub": np.zeros(4)},
            ArgumentError,
            "initial has the fields 'hub', but the program's value 'hub', 'authority'",
        ),
        ((np.zeros(4), np.zeros(4)), ArgumentTypeError, r"initial\['authority'\] has dtype float64, but int8 is"),
        ((np.zeros(4), [0, 0, 200, 0]), ArgumentError, r"initial\['authority'\] is 200 at vertex 2, but int8 ranges"),
    ],
)
def test_invalid_initial_fields_are_rejected(initial: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        gp.run(PATH, NAMED, initial=initial)


def test_initial_fields_are_given_by_name_in_any_order() -> None:
    initial = {"authority": np.arange(4, dtype=np.int8), "hub": np.full(4, 0.5)}
    found = gp.run(PATH, NAMED, initial=initial, frontier=[])
    assert found.values.hub.tolist() == [0.5] * 4
    assert found.values.authority.tolist() == [0, 1, 2, 3]


def test_initial_values_may_be_a_column_of_a_table() -> None:
    pandas = pytest.importorskip("pandas")
    column = pandas.Series([4, 3, 2, 1], dtype="int32")
    found = gp.run(PATH, HOPS, parameters={"source": 0}, initial=column, frontier=[])
    assert found.values.tolist() == [4, 3, 2, 1]


@pytest.mark.parametrize(
    ("frontier", "error", "message"),
    [
        ([4], GraphError, "frontier: no vertex 4 in a graph of 4 vertices: use numbers below 4"),
        ([-1], GraphError, "no vertex -1"),
        ([0.5], ArgumentTypeError, r"frontier must be vertex numbers, not float64; graph.vertices\(ids\) finds them"),
        ([True, False], GraphError, "frontier has 2 flags, but the graph has 4 vertices"),
        (gp.Frontier(gp.grid(2)), ArgumentError, "frontier belongs to another graph"),
    ],
)
def test_invalid_frontiers_are_rejected(frontier: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        gp.run(PATH, HOPS, parameters={"source": 0}, frontier=frontier)


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"value": {}}, ArgumentTypeError, "value must be a dtype, .* not an empty dict"),
        ({"value": {"a b": np.int8}}, ArgumentError, "'a b' cannot name a field of value: use a name such as 'hub'"),
        ({"value": {"vertex": np.int8}}, ArgumentError, "'vertex' cannot name a field of value: tables"),
        ({"message_type": {"a": "U4"}}, ArgumentTypeError, "message_type must be a dtype such as"),
        (
            {"init": lambda ctx: (0.0, 0.5)},
            ProgramError,
            r"init returns float64 in field 'authority', but \(hub: float64, authority: int8\) is declared, and floats",
        ),
        ({"init": lambda ctx: 0.0}, ProgramError, r"init returns float64, but \(hub: float64, authority: int8\) is"),
        ({"apply": lambda value, incoming, ctx: value.hup}, ProgramError, "apply cannot be compiled.*'hup'"),
    ],
)
def test_invalid_named_fields_are_rejected(changes: Any, error: type[GpuPregelError], message: str) -> None:
    with pytest.raises(error, match=message):
        gp.run(PATH, replace(NAMED, **changes))


def test_a_checkpoint_belongs_to_the_parameters_of_its_run(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"

    def run(**options: Any) -> Any:
        way: dict[str, Any] = {"parameters": {"source": 3}, "initial": [-1, -1, -1, 0], "frontier": [3], **options}
        return gp.run(PATH, HOPS, checkpoint=gp.Checkpoint(store, every=1), **way)

    with pytest.raises(gp.errors.SuperstepLimitError):
        run(max_supersteps=2)
    with pytest.raises(CheckpointError, match="belongs to a run with parameter 'source' = 3, not 2: choose another"):
        run(resume=True, parameters={"source": 2})
    with pytest.raises(CheckpointError, match="belongs to a run with parameter 'far' = -1, not -2"):
        run(resume=True, parameters={"source": 3, "far": -2})
    with pytest.raises(CheckpointError, match="belongs to a run with another initial="):
        run(resume=True, initial=None)
    with pytest.raises(CheckpointError, match="belongs to a run with another frontier="):
        run(resume=True, frontier=[2])
    resumed = run(resume=True, parameters={"source": np.int32(3), "far": -1})
    assert resumed.values.tolist() == [3, 2, 1, 0]
    assert resumed.supersteps == 5


def test_a_run_saved_before_there_were_parameters_can_be_resumed() -> None:
    old = [4, 6, False, None, "0" * 16, "a" * 64]
    assert _as_identity(old) == Identity(4, 6, False, None, "0" * 16, "a" * 64, parameters={})
    new = [*old, {"source": "3"}, None, "b" * 64]
    assert tuple(_as_identity(new)[6:9]) == ({"source": "3"}, None, "b" * 64)
