"""Compiles vertex programs: checks what their functions return, says where they cannot be compiled, caches kernels."""

from __future__ import annotations

import json
import os
import re
import secrets
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core import errors as numba_errors

from gpu_pregel.errors import ProgramError
from gpu_pregel.host.fingerprint import Fingerprint
from gpu_pregel.host.functions import device_function
from gpu_pregel.host.program import Combiner, VertexProgram, as_dtypes
from gpu_pregel.kernels import program_cpu
from gpu_pregel.kernels.fields import Fields, Functions, VertexContext, aggregated_type
from gpu_pregel.kernels.jit import cache_directory, jit_program
from gpu_pregel.kernels.vertices_cpu import make_process_vertices

_ENGINE = 1
"""Part of every program's key: raised when what this module makes of the same functions changes."""
_compiled: dict[str, CompiledProgram] = {}
_COMPILED_AT_MOST = 256


@dataclass(frozen=True)
class CompiledProgram:
    """A program's functions, checked, and its kernels, each compiled or loaded when first called."""

    value: Fields
    message: Fields
    identity: Any
    per_edge: bool
    uses_in_degree: bool
    aggregates: tuple[tuple[str, np.dtype[Any], Any], ...]
    """Name, dtype and identity of each aggregate."""
    aggregate_folds: tuple[Callable[[Any, Any], Any], ...]
    """The combiner of each aggregate as an ordinary function, for the host."""
    init: Any
    signal: Any
    pull: Any
    slot: Any
    push: Any
    apply: Any


def compile_program(program: VertexProgram, *, has_weights: bool) -> CompiledProgram:
    """Return the kernels of a program, from memory if they were asked for before.

    Raises
    ------
    ProgramError
        A function cannot be compiled, or returns what cannot be stored in the declared dtype.
    """
    has_weights = has_weights and program.sends_per_edge
    value, message = _fields(program)
    fingerprint = fingerprint_program(program, has_weights=has_weights)
    digest = fingerprint.hexdigest()
    if digest not in _compiled:
        if len(_compiled) >= _COMPILED_AT_MOST:
            _compiled.pop(next(iter(_compiled)))
        _compiled[digest] = _compile(program, value, message, has_weights, digest, fingerprint)
    return _compiled[digest]


def fingerprint_program(program: VertexProgram, *, has_weights: bool) -> Fingerprint:
    """Take in all that the vertices of a program compute with; ``halt``, which only ends a run, is no part of it."""
    value, message = _fields(program)
    has_weights = has_weights and program.sends_per_edge
    fingerprint = Fingerprint()
    fingerprint.add(_ENGINE, value.dtypes, value.is_tuple, message.dtypes, message.is_tuple, has_weights)
    fingerprint.add(program.init, program.message, program.apply, program.initially_active, program.active)
    for combine in (program.combine, *(aggregator.combine for aggregator in program.aggregators.values())):
        fingerprint.add(combine if isinstance(combine, str) else (combine.function, combine.identity))
    for name, aggregator in program.aggregators.items():
        fingerprint.add(name, aggregator.function, None if aggregator.dtype is None else np.dtype(aggregator.dtype))
    return fingerprint


def _fields(program: VertexProgram) -> tuple[Fields, Fields]:
    """The fields of a program's value and of its message."""
    declared = program.value if program.message_type is None else program.message_type
    return (
        Fields(as_dtypes(program.value), isinstance(program.value, tuple)),
        Fields(as_dtypes(declared), isinstance(declared, tuple)),
    )


def _compile(
    program: VertexProgram, value: Fields, message: Fields, has_weights: bool, digest: str, fingerprint: Fingerprint
) -> CompiledProgram:
    device = {
        "init": device_function(program.init),
        "message": device_function(program.message),
        "apply": device_function(program.apply),
    }
    combine, identity = resolve_combiner(program.combine, message)
    device["combine"] = device_function(combine)
    if callable(program.active):
        device["active"] = device_function(program.active)
    if program.initially_active is not None:
        device["initially_active"] = device_function(program.initially_active)
    contributions = {name: device_function(one.function) for name, one in program.aggregators.items()}

    checks = _Checks(program, value, message, digest if fingerprint.is_complete else None)
    dtypes = checks.run(device, contributions)
    aggregators, aggregates, folds = [], [], []
    for name, one in program.aggregators.items():
        fields = Fields((dtypes[name],), False)
        fold, start = resolve_combiner(one.combine, fields)
        aggregators.append((name, contributions[name], device_function(fold), dtypes[name], start))
        aggregates.append((name, dtypes[name], start))
        folds.append(fold)
    functions = Functions(
        value=value,
        message=message,
        identity=identity,
        init=device["init"],
        initially_active=device.get("initially_active"),
        send=device["message"],
        per_edge=program.sends_per_edge,
        combine=device["combine"],
        absorbing=_absorbing(program.combine, message),
        built_in=program.combine if isinstance(program.combine, str) else None,
        apply=device["apply"],
        is_active=device.get("active"),
        aggregators=tuple(aggregators),
    )

    def kernel(name: str, function: Any) -> Any:
        return jit_program(function, f"{name}-{digest}" if fingerprint.is_complete else None)

    if program.sends_per_edge:
        pull = kernel("pull", program_cpu.make_pull_edges(functions, has_weights=has_weights))
    else:
        pull = kernel("pull", program_cpu.make_pull_signals(functions))
    can_push = not message.is_tuple
    return CompiledProgram(
        value=value,
        message=message,
        identity=identity,
        per_edge=program.sends_per_edge,
        uses_in_degree="in_degree" in fingerprint.names,
        aggregates=tuple(aggregates),
        aggregate_folds=tuple(folds),
        init=kernel("init", program_cpu.make_init(functions)),
        signal=None if program.sends_per_edge else kernel("signal", program_cpu.make_signal(functions)),
        pull=pull,
        slot=kernel("slot", program_cpu.make_slot(functions)),
        push=kernel("push", program_cpu.make_push(functions, has_weights=has_weights)) if can_push else None,
        apply=kernel("apply", program_cpu.make_apply(functions, always=program.active == "always")),
    )


_kernels: dict[Any, Any] = {}


def compile_function(function: Any, arrays: tuple[Any, ...]) -> tuple[Any, np.dtype[Any]]:
    """The kernel that sums ``function(vertex, *arrays)`` over a frontier, and the dtype of the sum."""
    fingerprint = Fingerprint()
    fingerprint.add(function)
    key = (fingerprint.hexdigest(), tuple(numba.typeof(array) for array in arrays))
    if key not in _kernels:
        device = device_function(function)
        result = _compile_function(device, "function", (types.int64, *key[1]))
        if not isinstance(result, (types.Boolean, types.Integer, types.Float)):
            raise ProgramError(f"function returns {result}, but must return a number{_place(device)}")
        name = f"vertices-{key[0]}" if fingerprint.is_complete else None
        kernel = jit_program(make_process_vertices(device), name)
        _kernels[key] = kernel, np.dtype(np.float64 if isinstance(result, types.Float) else np.int64)
    found: tuple[Any, np.dtype[Any]] = _kernels[key]
    return found


def _plain(function: Any) -> Any:
    return getattr(function, "py_func", function)


def resolve_combiner(combine: str | Combiner, fields: Fields) -> tuple[Callable[[Any, Any], Any], Any]:
    """The function of a combiner and its identity, typed as the message is."""
    if isinstance(combine, Combiner):
        return _plain(combine.function), _typed(combine.identity, fields)
    if combine in ("or", "and") and any(dtype.kind == "f" for dtype in fields.dtypes):
        raise ProgramError(f"combine={combine!r} needs integers or bool, not {_names(fields)}")
    starts = {"min": _top, "max": _bottom, "sum": _zero, "or": _zero, "and": _ones}
    parts = tuple(starts[combine](dtype) for dtype in fields.dtypes)
    return _built_in(combine, fields), parts if fields.is_tuple else parts[0]


def _absorbing(combine: str | Combiner, fields: Fields) -> Any:
    """The message that nothing combined with it changes, for single numbers; None where there is none."""
    starts = {"min": _bottom, "max": _top, "or": _ones, "and": _zero}
    if isinstance(combine, Combiner) or fields.is_tuple or combine not in starts:
        return None
    return starts[combine](fields.dtypes[0])


def _zero(dtype: np.dtype[Any]) -> Any:
    return dtype.type(0)


def _ones(dtype: np.dtype[Any]) -> Any:
    return dtype.type(-1) if dtype.kind == "i" else _top(dtype)


def _top(dtype: np.dtype[Any]) -> Any:
    if dtype.kind == "b":
        return dtype.type(True)
    return dtype.type(np.inf) if dtype.kind == "f" else dtype.type(np.iinfo(dtype).max)


def _bottom(dtype: np.dtype[Any]) -> Any:
    if dtype.kind == "b":
        return dtype.type(False)
    return dtype.type(-np.inf) if dtype.kind == "f" else dtype.type(np.iinfo(dtype).min)


def _built_in(combine: str, fields: Fields) -> Callable[[Any, Any], Any]:
    """The function of a built-in combiner; tuples compare lexicographically and add field by field."""
    if combine in ("min", "max") and not fields.is_tuple:
        # Of a conditional expression LLVM makes a branch here, which is three times as slow where it is mispredicted.
        body = f"{combine}(a, b)"
    elif combine in ("min", "max"):
        body = f"a if a {'<=' if combine == 'min' else '>='} b else b"
    else:
        sign = {"sum": "+", "or": "|", "and": "&"}[combine]
        parts = [f"a[{k}] {sign} b[{k}]" for k in range(len(fields.dtypes))]
        body = f"({', '.join(parts)},)" if fields.is_tuple else f"a {sign} b"
    function: Callable[[Any, Any], Any] = eval(f"lambda a, b: {body}")
    return function


def _typed(identity: Any, fields: Fields) -> Any:
    parts = identity if fields.is_tuple else (identity,)
    if not isinstance(parts, tuple) or len(parts) != len(fields.dtypes):
        raise ProgramError(f"the combiner's identity {identity!r} does not fit messages of {_names(fields)}")
    typed = []
    for part, dtype in zip(parts, fields.dtypes, strict=True):
        try:
            exact = np.asarray(part).astype(dtype)
        except (TypeError, ValueError):
            exact = None
        if exact is None or (exact != part and part == part):
            raise ProgramError(f"the combiner's identity {identity!r} does not fit messages of {_names(fields)}")
        typed.append(dtype.type(part))
    return tuple(typed) if fields.is_tuple else typed[0]


def _names(fields: Fields) -> str:
    names = ", ".join(map(str, fields.dtypes))
    return f"({names})" if fields.is_tuple else names


class _Checks:
    """Compiles a program's functions one by one and checks their results; once per program and machine.

    That they passed is kept beside the kernels on disk, so that the next process compiles nothing.
    """

    def __init__(self, program: VertexProgram, value: Fields, message: Fields, digest: str | None) -> None:
        self._program = program
        self._value = value
        self._message = message
        folder = cache_directory()
        self._note = Path(folder) / f"program-{digest}.json" if folder and digest else None

    def run(self, device: dict[str, Any], contributions: dict[str, Any]) -> dict[str, np.dtype[Any]]:
        """Raise ``ProgramError`` at the first fault; return the dtypes of the aggregates."""
        if self._note is not None:
            with suppress(OSError, ValueError, TypeError):
                return {name: np.dtype(text) for name, text in json.loads(self._note.read_text()).items()}
        value, message = _numba_type(self._value), _numba_type(self._message)
        dtypes = self._check_aggregators(contributions, value)
        aggregated = types.none
        if dtypes:
            shape = aggregated_type(tuple(dtypes))
            aggregated = types.NamedTuple([numba.from_dtype(dtype) for dtype in dtypes.values()], shape)
        context = _context_type(aggregated)
        _check(device["init"], "init", (context,), self._value)
        weight = types.float32
        sending = (value, weight, context) if self._program.sends_per_edge else (value, context)
        _check(device["message"], "message", sending, self._message)
        _check(device["combine"], "combine", (message, message), self._message)
        _check(device["apply"], "apply", (value, message, context), self._value)
        if "active" in device:
            _check(device["active"], "active", (value, value, context), _BOOL)
        if "initially_active" in device:
            _check(device["initially_active"], "initially_active", (context,), _BOOL)
        if self._note is not None:
            with suppress(OSError):
                temporary = self._note.with_suffix(f".{secrets.token_hex(4)}.tmp")
                temporary.write_text(json.dumps({name: dtype.str for name, dtype in dtypes.items()}))
                os.replace(temporary, self._note)
        return dtypes

    def _check_aggregators(self, contributions: dict[str, Any], value: Any) -> dict[str, np.dtype[Any]]:
        """Find the aggregates' dtypes; their functions see no aggregates of unknown dtype, so these are declared."""
        dtypes: dict[str, np.dtype[Any]] = {}
        context = _context_type(types.none)
        for name, aggregator in self._program.aggregators.items():
            role = f"aggregator {name!r}"
            if aggregator.dtype is not None:
                dtypes[name] = np.dtype(aggregator.dtype)
                continue
            result = _compile_function(contributions[name], role, (value, value, context))
            if isinstance(result, types.Boolean):
                dtypes[name] = np.dtype(np.int64 if aggregator.combine == "sum" else np.bool_)
            elif isinstance(result, (types.Integer, types.Float)):
                dtypes[name] = np.dtype(np.float64 if isinstance(result, types.Float) else np.int64)
            else:
                raise ProgramError(f"{role} returns {result}, but must return a number{_place(contributions[name])}")
        return dtypes


_BOOL = Fields((np.dtype(np.bool_),), False)


def _numba_type(fields: Fields) -> Any:
    parts = [numba.from_dtype(dtype) for dtype in fields.dtypes]
    return types.Tuple(parts) if fields.is_tuple else parts[0]


def _context_type(aggregated: Any) -> Any:
    return types.NamedTuple([types.int64] * 5 + [aggregated], VertexContext)


def _compile_function(function: Any, role: str, arguments: tuple[Any, ...]) -> Any:
    """Compile a program's function for these types and return the type of its result."""
    try:
        function.compile(arguments)
    except numba_errors.NumbaError as error:
        raise ProgramError(
            f"{role} cannot be compiled{_place(function, error)}: {_essence(error)}\n"
            f"Use numbers, tuples, math and NumPy functions that Numba compiles, and Python functions of such."
        ) from error
    return function.overloads[arguments].signature.return_type


def _check(function: Any, role: str, arguments: tuple[Any, ...], fields: Fields) -> None:
    result = _compile_function(function, role, arguments)
    if fields is _BOOL:
        if not isinstance(result, (types.Boolean, types.Integer)):
            raise ProgramError(f"{role} returns {result}, but must return True or False{_place(function)}")
        return
    parts = list(result) if isinstance(result, types.BaseTuple) else [result]
    if isinstance(result, types.BaseTuple) != fields.is_tuple or len(parts) != len(fields.dtypes):
        raise ProgramError(f"{role} returns {result}, but {_names(fields)} is declared{_place(function)}")
    for part, dtype in zip(parts, fields.dtypes, strict=True):
        if not isinstance(part, (types.Boolean, types.Integer, types.Float)):
            raise ProgramError(f"{role} returns {part}, but {_names(fields)} is declared{_place(function)}")
        if isinstance(part, types.Float) and dtype.kind != "f":
            raise ProgramError(
                f"{role} returns {part}, but {_names(fields)} is declared, and a float is not made an integer "
                f"silently{_place(function)}: convert it, as np.{dtype}(x) does, or declare float64"
            )


def _place(function: Any, error: Exception | None = None) -> str:
    """Where a function stands, and its text where that can be had."""
    code = function.py_func.__code__
    line = code.co_firstlineno
    if error is not None:
        places = re.findall(
            rf'File "[^"]*{re.escape(os.path.basename(code.co_filename))}", line (\d+)', _plain_text(error)
        )
        if places:
            line = int(places[-1])
    text = ""
    with suppress(OSError, TypeError, IndexError):
        import linecache

        text = linecache.getline(code.co_filename, line, function.py_func.__globals__).strip()
    return f" ({code.co_filename}, line {line}{f': {text}' if text else ''})"


def _plain_text(error: Exception) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", str(error))


def _essence(error: Exception) -> str:
    """The line of Numba's message that says what is wrong."""
    skipped = ("Failed in", "During:", "File ", "<source", "- Resolution", "[1]", "This error", "During ")
    for line in reversed(_plain_text(error).splitlines()):
        text = line.strip()
        if re.match(
            r"(Unknown attribute|Untyped global|No implementation|Cannot|Use of|Invalid|NameError|.*Error)", text
        ):
            return text
    lines = [line.strip() for line in _plain_text(error).splitlines()]
    return next((line for line in lines if line and not line.startswith(skipped)), "Numba cannot compile it")
