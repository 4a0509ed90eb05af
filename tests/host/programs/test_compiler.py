"""Tests of compiling programs: errors name function and line, and caches detect every change."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, ProgramError
from gpu_pregel.host.programs.compiler import depends_on_order

GRAPH = gp.Graph.from_edgelist([0, 1], [1, 2])
LARGER = gp.Combiner(lambda a, b: max(a, b), 0.0)


def program(**changes: Any) -> gp.VertexProgram:
    parts: dict[str, Any] = {
        "value": np.int32,
        "init": lambda ctx: ctx.vertex,
        "message": lambda value, ctx: value,
        "combine": "min",
        "apply": lambda value, incoming, ctx: min(value, incoming),
    }
    return gp.VertexProgram(**{**parts, **changes})


class _Method:
    def zero(self, ctx: Any) -> int:
        return 0


async def _asynchronous(ctx: Any) -> int:
    return 0


def _generator(ctx: Any) -> Iterator[int]:
    yield 0


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        (
            {"init": lambda: 0},
            ArgumentTypeError,
            r"init takes 0 arguments, but must take \(ctx\) \(.*test_compiler.py, line \d+\)",
        ),
        (
            {"apply": lambda a, b: a},
            ArgumentTypeError,
            r"apply takes 2 arguments, but must take \(value, incoming, ctx\)",
        ),
        ({"message": lambda *a: 0}, ArgumentTypeError, "message takes a variable number of arguments"),
        ({"init": 3}, ArgumentTypeError, "init must be a function"),
        ({"init": int}, ArgumentTypeError, "init must be a Python function"),
        ({"init": [].index}, ArgumentTypeError, "init must be a Python function"),
        ({"init": _Method().zero}, ArgumentTypeError, "init must be a plain function .* but is a method"),
        ({"init": _asynchronous}, ArgumentTypeError, "init must be a plain function .* but is asynchronous"),
        ({"init": _generator}, ArgumentTypeError, "init must be a plain function .* but is a generator"),
        ({"combine": "mean"}, ArgumentError, "combine must be one of 'min', 'max', 'sum', 'or', 'and'"),
        ({"value": "text"}, ArgumentTypeError, "value must be a dtype such as"),
        (
            {"value": ()},
            ArgumentTypeError,
            "value must be a dtype, a tuple of dtypes or a dict of them, not an empty tuple",
        ),
        ({"value": np.float16}, ArgumentTypeError, "value must be a dtype such as"),
        ({"message_type": (np.int32, "U4")}, ArgumentTypeError, "message_type must be a dtype such as"),
        ({"active": "sometimes"}, ArgumentError, "active must be 'changed', 'always' or a function"),
        ({"active": lambda a: True}, ArgumentTypeError, "active takes 1 argument, but"),
        ({"initially_active": lambda: True}, ArgumentTypeError, "initially_active takes 0 arguments, but"),
        ({"aggregators": {"two words": None}}, ArgumentError, "'two words' cannot name an aggregator"),
        ({"aggregators": {"a": 3}}, ArgumentTypeError, "aggregator 'a' must be a gp.Aggregator"),
        ({"halt": lambda: True}, ArgumentTypeError, "halt takes 0 arguments, but"),
    ],
)
def test_invalid_declarations_are_rejected(changes: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        program(**changes)


def test_wrong_combiners_are_refused_when_declared() -> None:
    with pytest.raises(ArgumentTypeError, match=r"Combiner's function takes 1 argument, but must take \(a, b\)"):
        gp.Combiner(cast(Any, lambda a: a), 0)


calls = 0


def _count_calls(ctx: Any) -> int:
    global calls
    calls += 1
    return calls


def _import(ctx: Any) -> Any:
    import math

    return math.floor(ctx.vertex)


def _change_context(ctx: Any) -> int:
    ctx.vertex = 1
    return 0


def _large(vertex: Any) -> Any:
    return vertex + 0x10000000000000000


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        (_count_calls, r"STORE_GLOBAL"),
        (_import, r"IMPORT_NAME"),
        (_change_context, r"No definition for lowering .*vertex"),
        (lambda ctx: _large(ctx.vertex), "uses the integer 18446744073709551616, which exceeds 64 bits"),
    ],
)
@pytest.mark.parametrize("check", [False, True])
def test_what_cannot_be_compiled_is_a_program_error(function: Any, problem: str, check: bool) -> None:
    graph = gp.Graph.from_edgelist([0], [1])
    with pytest.raises(ProgramError, match=f"init .*{problem}"):
        gp.run(graph, program(init=function), device="cpu", check=check)


AGGREGATORS: list[Any] = [
    (gp.Aggregator("mean", lambda old, new, ctx: new), ArgumentError, "combine of aggregator 'a' must be one of"),
    (
        gp.Aggregator("sum", cast(Any, lambda new: new)),
        ArgumentTypeError,
        "function of aggregator 'a' takes 1 argument, but",
    ),
    (gp.Aggregator("sum"), ArgumentTypeError, "function of aggregator 'a' must be a function of"),
    (gp.Aggregator("sum", lambda old, new, ctx: new, "U4"), ArgumentTypeError, "dtype of aggregator 'a' must be a"),
    (gp.Aggregator("sum", 0), ArgumentError, "aggregator 'a' of a vertex program cannot have initial"),
    (gp.Aggregator("sum", persistent=True), ArgumentError, "cannot have initial or persistent, which are for agents"),
]


@pytest.mark.parametrize(("aggregator", "error", "message"), AGGREGATORS)
def test_invalid_aggregators_are_refused(aggregator: gp.Aggregator, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        program(aggregators={"a": aggregator})


def test_numba_does_not_warn_of_casts_inside_functions() -> None:
    def counted(value: Any, incoming: Any, ctx: Any) -> Any:
        counts: Any = {1: 2}
        counts[np.uint64(value)] = 3
        return counts[1]

    gp.run(GRAPH, program(apply=counted), max_supersteps=1, on_limit="return")


def without_return(ctx: Any) -> Any:  # noqa: RET503
    if ctx.vertex > 3:
        return 1


def dict_or_number(ctx: Any) -> Any:
    if ctx.vertex > 3:
        return {"a": ctx.vertex, "b": 1.5}
    return 3


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"apply": lambda value, incoming, ctx: incoming / 2},
            "apply returns float64, but int32 is declared, and floats are not converted to integers silently",
        ),
        ({"init": lambda ctx: (1, 2)}, r"init returns .*, but int32 is declared"),
        (
            {"init": lambda ctx: None},
            r"init returns None \(as where a path ends without a return\), but int32 is declared",
        ),
        ({"init": without_return}, r"init returns int64 or None \(as where a path ends without a return\), but int32"),
        ({"init": lambda ctx: "a"}, "init returns a text, but int32 is declared"),
        ({"init": lambda ctx: {"a": 1}}, "init returns a dict, but int32 is declared"),
        ({"init": lambda ctx: [1.5]}, "init returns a list, but int32 is declared"),
        ({"init": dict_or_number}, "it must return the same type everywhere, not: a dict, 3"),
        ({"value": (np.int32, np.int32)}, r"init returns int64, but \(int32, int32\) is declared"),
        ({"message_type": np.float32, "combine": "or"}, "combine='or' needs integers or bool, not float32"),
        ({"combine": gp.Combiner(lambda a, b: a, 0.5)}, "identity 0.5 does not fit messages of int32"),
        ({"combine": gp.Combiner(lambda a, b: a, 1 << 40)}, "identity 1099511627776 does not fit messages of int32"),
        ({"active": lambda old, new, ctx: 0.5}, "active returns float64, but must return True or False"),
        ({"aggregators": {"a": gp.Aggregator("sum", lambda old, new, ctx: (1, 2))}}, "aggregator 'a' returns .*number"),
    ],
)
def test_results_of_wrong_type_are_rejected(changes: Any, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        gp.run(GRAPH, program(**changes))


def test_compile_errors_show_the_line_and_a_remedy() -> None:
    def init(ctx: Any) -> Any:
        number = ctx.vertex + 1
        return number + ctx.no_such_thing  # the faulty line

    with pytest.raises(ProgramError) as caught:
        gp.run(GRAPH, program(init=init))
    text = str(caught.value)
    assert text.startswith("init cannot be compiled (")
    line = init.__code__.co_firstlineno + 2
    assert f"test_compiler.py, line {line}: return number + ctx.no_such_thing  # the faulty line)" in text
    assert "no_such_thing" in text.splitlines()[0].split("):", 1)[1]
    assert "Use numbers, tuples, functions of math and NumPy" in text


def import_module(ctx: Any) -> Any:
    number = ctx.vertex
    import math

    return math.floor(number)


def format_number(ctx: Any) -> Any:
    print(f"{ctx.vertex:3}")
    return ctx.vertex


def call_import(ctx: Any) -> Any:
    return import_module(ctx)


@pytest.mark.parametrize("check", [False, True])
@pytest.mark.parametrize(
    "init, line, text",
    [(import_module, 2, "import math"), (format_number, 1, "print"), (call_import, None, "")],
)
def test_syntax_that_cannot_be_compiled(init: Any, line: int | None, text: str, check: bool) -> None:
    with pytest.raises(ProgramError, match="init cannot be compiled") as caught:
        gp.run(GRAPH, program(init=init), check=check)
    if line is not None:
        assert f"test_compiler.py, line {init.__code__.co_firstlineno + line}: {text}" in str(caught.value)
        assert "Raised from" not in str(caught.value)
    assert "Use numbers, tuples, functions of math and NumPy" in str(caught.value)


def test_an_unknown_attribute_of_ctx_is_told_with_the_others() -> None:
    with pytest.raises(ProgramError, match=r"Unknown attribute 'node' of ctx, which has vertex, superstep, num_vert"):
        gp.run(GRAPH, program(init=lambda ctx: ctx.node))


def test_an_exception_in_a_function_reaches_the_caller() -> None:
    def apply(value: Any, incoming: Any, ctx: Any) -> Any:
        if ctx.vertex == 1:
            raise ValueError("vertex one")
        return value

    with pytest.raises(ValueError, match="vertex one"):
        gp.run(GRAPH, program(apply=apply))


FACTOR = 2


def helper(x: Any) -> Any:
    return x * FACTOR


def test_changed_globals_and_callees_are_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    doubling = program(init=lambda ctx: helper(ctx.vertex), apply=lambda value, incoming, ctx: value)
    assert gp.run(GRAPH, doubling).values.tolist() == [0, 2, 4]
    monkeypatch.setattr(sys.modules[__name__], "FACTOR", 3)
    assert gp.run(GRAPH, doubling).values.tolist() == [0, 3, 6]
    monkeypatch.setattr(sys.modules[__name__], "helper", lambda x: x + 10)
    assert gp.run(GRAPH, doubling).values.tolist() == [10, 11, 12]


def test_lambdas_on_one_line_and_closures_are_distinct() -> None:
    one, two = (lambda ctx: 1), (lambda ctx: 2)
    still = {"apply": lambda value, incoming, ctx: value}
    assert gp.run(GRAPH, program(init=one, **still)).values.tolist() == [1, 1, 1]
    assert gp.run(GRAPH, program(init=two, **still)).values.tolist() == [2, 2, 2]
    for number in (5, 6):
        assert gp.run(GRAPH, program(init=make(number), **still)).values.tolist() == [number] * 3


def make(number: int) -> Any:
    return lambda ctx: number


SCRIPT = """
import sys
from numba.core import event
import numpy as np
import gpu_pregel as gp
compiled = []
class Listener(event.Listener):
    def on_start(self, event): compiled.append(event.data["dispatcher"].py_func.__name__)
    def on_end(self, event): pass
labels = gp.VertexProgram(
    value=np.uint32,
    init=lambda ctx: ctx.vertex,
    message=lambda value, ctx: value,
    combine="min",
    apply=lambda value, incoming, ctx: min(value, incoming),
    aggregators={"applied": gp.Aggregator("sum", lambda old, new, ctx: 1)},
)
graph = gp.Graph.from_csr([0, 1, 2, 2, 3, 4], [1, 0, 4, 3], directed=False)
with event.install_listener("numba:compile", Listener()):
    values = gp.run(graph, labels, mode="push").values.tolist()
print(values == [0, 0, 2, 3, 3], "apply_messages" in compiled, len(compiled) > 0)
"""


def start(way: str, folder: Path, cache: Path, **environment: str) -> subprocess.Popen[str]:
    """Start the script as a file, as an imported module, from standard input or from the command line."""
    file = folder / "script.py"
    file.write_text(SCRIPT)
    arguments = {"file": [str(file)], "module": ["-c", "import script"], "stdin": ["-"], "command": ["-c", SCRIPT]}[way]
    process = subprocess.Popen(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "NUMBA_CACHE_DIR": str(cache), **environment},
        stdin=subprocess.PIPE if way == "stdin" else None,
        stdout=subprocess.PIPE,
        text=True,
    )
    if process.stdin is not None:
        process.stdin.write(SCRIPT)
        process.stdin.close()
    return process


def end(process: subprocess.Popen[str]) -> str:
    with process:
        assert process.stdout is not None
        output = process.stdout.read()
    assert process.wait(300) == 0
    return output.strip()


def run_script(way: str, folder: Path, cache: Path, **environment: str) -> str:
    return end(start(way, folder, cache, **environment))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that two processes filled at the same time, from files that no longer exist."""
    folder = tmp_path_factory.mktemp("compiled")
    for process in [start(way, folder, folder / "cache") for way in ("file", "module")]:
        assert end(process).startswith("True")
    (folder / "script.py").unlink()
    return folder / "cache"


@pytest.fixture
def cache(compiled: Path, tmp_path: Path) -> Path:
    """A copy of that cache."""
    return shutil.copytree(compiled, tmp_path / "cache")


@pytest.mark.parametrize("way", ["file", "stdin", "command"])
def test_another_process_compiles_nothing_wherever_a_program_is_defined(way: str, tmp_path: Path, cache: Path) -> None:
    # Equal functions in another place are the same program.
    assert run_script(way, tmp_path, cache) == "True False False"


def test_programs_run_without_a_cache(tmp_path: Path) -> None:
    (tmp_path / "cache").write_text("in the way")
    blocked = {"HOME": str(tmp_path / "cache"), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    assert run_script("command", tmp_path, tmp_path / "cache", **blocked) == "True True True"


def test_damaged_cache_files_are_replaced(tmp_path: Path, cache: Path) -> None:
    programs, kernels = [sorted(cache.rglob(name)) for name in ("program-*.value", "*.nbc")]
    assert programs
    assert kernels
    for file in programs:
        file.write_bytes(file.read_bytes()[:-1])
    assert run_script("command", tmp_path, cache).startswith("True False")
    for file in kernels:
        file.write_bytes(file.read_bytes()[:100])
    assert run_script("command", tmp_path, cache) == "True True True"
    assert run_script("command", tmp_path, cache) == "True False False"


@pytest.mark.parametrize(
    ("changes", "depends"),
    [
        ({}, False),
        ({"combine": "sum"}, False),
        ({"value": np.float32}, False),
        ({"value": np.float32, "combine": "sum"}, True),
        ({"value": np.float32, "combine": LARGER}, True),
        ({"aggregators": {"sum": gp.Aggregator("sum", lambda old, new, ctx: new)}}, False),
        ({"aggregators": {"sum": gp.Aggregator("sum", lambda old, new, ctx: new / 3)}}, True),
        ({"aggregators": {"most": gp.Aggregator("max", lambda old, new, ctx: new / 3)}}, False),
        ({"aggregators": {"sum": gp.Aggregator("sum", lambda old, new, ctx: new, dtype=np.float64)}}, True),
    ],
)
def test_sums_of_floats_depend_on_the_order(changes: dict[str, Any], *, depends: bool) -> None:
    assert depends_on_order(program(**changes), None) is depends
