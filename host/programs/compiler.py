"""Compilation of vertex programs for the CPU and for CUDA."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numba
import numpy as np

from gpu_pregel.errors import ProgramError
from gpu_pregel.host.programs.captured_arrays import pass_arrays
from gpu_pregel.host.programs.checks import ProgramChecks
from gpu_pregel.host.programs.program import VertexProgram, as_dtypes, is_data, names_of_fields
from gpu_pregel.host.traverse.bounded_cache import BoundedCache
from gpu_pregel.host.traverse.combiners import absorbing, resolve_combiner
from gpu_pregel.host.traverse.compilation import place_of
from gpu_pregel.host.traverse.functions import device_function
from gpu_pregel.kernels.library.compile_clock import compiling
from gpu_pregel.kernels.library.fingerprint import Fingerprint
from gpu_pregel.kernels.library.jit_cpu import checked_device, checked_jit_program, device, jit_program
from gpu_pregel.kernels.programs import program_cpu, pull_cpu, push_cpu
from gpu_pregel.kernels.programs.checks_cpu import with_checks
from gpu_pregel.kernels.programs.functions import SEED, Functions, Parameters
from gpu_pregel.kernels.programs.stages import with_stages
from gpu_pregel.kernels.traverse.fields import Fields, Jit

Array = np.ndarray[Any, Any]

_DIGEST_VERSION = 2
"""Part of every program's digest, which checkpoints store: raised when a program's meaning changes."""
_EXACT = ("min", "max", "or", "and", "any")
"""Combiners that round nothing."""
_MAX_COMPILED = 64
"""Programs kept in memory."""


@dataclass(frozen=True)
class CompiledProgram:
    """A program's checked functions and its kernels, each of which is compiled or loaded at its first call."""

    value: Fields
    message: Fields
    identity: Any
    per_edge: bool
    receives: bool
    """Whether only some vertices take messages."""
    is_selective: bool
    """Whether a pull need not read every row to its end."""
    uses_in_degree: bool
    aggregates: tuple[tuple[str, np.dtype[Any], Any], ...]
    """The name, dtype and identity of each aggregate."""
    aggregate_folds: tuple[Callable[[Any, Any], Any], ...]
    """The combiner of each aggregate, as a Python function for the host."""
    parameters: Parameters
    captured: tuple[Array, ...]
    """The arrays that the functions use by name, on the host."""
    records: bool
    """Whether the kernels record what the functions raise; they may."""
    declaration: VertexProgram
    init: Any
    signal: Any
    pull: Any
    slot: Any
    push: Any
    apply: Any
    chain: Any
    """Runs many supersteps in one launch; None on the CPU, and if single supersteps need more than this kernel has."""


Guard = Callable[[Functions, dict[str, tuple[Any, ...]]], Functions]
"""Adds guards to functions; the second argument has the types of their arguments, by role."""

_compiled = BoundedCache(_MAX_COMPILED)


def compile_program(program: VertexProgram, *, weight: np.dtype[Any] | None, check: bool = False) -> CompiledProgram:
    """Return a program's kernels for the CPU, from memory if they were requested before.

    ``weight`` is the dtype of the graph's weights, or None. With ``check``, the functions raise errors for division by
    zero, indices out of range and overflow.

    Raises
    ------
    ProgramError
        A function cannot be compiled, or its result cannot be stored in the declared dtype.
    """
    declared, (program, arrays) = program, pass_arrays(program)
    weight = weight if program.sends_per_edge else None
    has_weights = weight is not None
    fingerprint = fingerprint_program(program, has_weights=has_weights, with_package=True)

    kernel, function = (checked_jit_program, checked_device) if check else (jit_program, device)

    def make_kernels(functions: Functions) -> dict[str, Any]:
        one = with_checks(functions) if check else functions
        return {
            "init": kernel(program_cpu.make_init(one)),
            "signal": None if one.pulls_along_edges else kernel(program_cpu.make_signal(one)),
            "pull": kernel(pull_cpu.make_pull(one, has_weights=has_weights)),
            "slot": kernel(pull_cpu.make_slot(one)),
            "push": None if one.message.is_tuple else kernel(push_cpu.make_push(one, has_weights=has_weights)),
            "apply": kernel(program_cpu.make_apply(one)),
            "chain": None,
        }

    key = ("cpu", check, weight, fingerprint.hexdigest())
    return _from_memory(key, declared, program, arrays, weight, fingerprint, function, make_kernels)


def compile_for_cuda(program: VertexProgram, *, offset: np.dtype[Any], weight: np.dtype[Any] | None) -> CompiledProgram:
    """Return a program's kernels for CUDA, as declarations that a device compiles.

    ``offset`` is the dtype of edge positions, ``weight`` that of weights, or None. The functions are checked with the
    CPU's compiler, so that errors are those of :func:`compile_program`.
    """
    from gpu_pregel.kernels.library import jit_cuda, portable_cuda  # noqa: F401 (registers ctx.random)
    from gpu_pregel.kernels.programs import (
        array_types_cuda,
        chain_cuda,
        guards_cuda,
        program_cuda,
        pull_cuda,
        push_cuda,
    )

    declared, (program, arrays) = program, pass_arrays(program)
    weight = weight if program.sends_per_edge else None
    fingerprint = fingerprint_program(program, has_weights=weight is not None, with_package=True)

    def make_kernels(functions: Functions) -> dict[str, Any]:
        arrays = array_types_cuda.make_array_types(functions, offset, weight)
        return {
            "init": program_cuda.make_init(functions, arrays),
            "signal": None if functions.pulls_along_edges else program_cuda.make_signal(functions, arrays),
            "pull": pull_cuda.make_pull(functions, arrays),
            "slot": pull_cuda.make_slot(functions, arrays),
            "push": None if functions.message.is_tuple else push_cuda.make_push(functions, arrays),
            "apply": program_cuda.make_apply(functions, arrays),
            "chain": chain_cuda.make_chain(functions, arrays) if _is_chained(program, functions) else None,
        }

    def guard(functions: Functions, kinds: dict[str, tuple[Any, ...]]) -> Functions:
        digest = fingerprint.hexdigest() if fingerprint.is_complete else None
        return guards_cuda.with_guards(functions, _raising_roles(functions, kinds, digest))

    key = ("cuda", offset, weight, fingerprint.hexdigest())
    return _from_memory(key, declared, program, arrays, weight, fingerprint, jit_cuda.device, make_kernels, guard)


def _raising_roles(functions: Functions, kinds: Mapping[str, tuple[Any, ...]], digest: str | None) -> frozenset[str]:
    """Return the roles of those functions that may raise.

    Parameters
    ----------
    functions : Functions
        Declared for CUDA.
    kinds : dict
        The types of the arguments, by role.
    digest : str or None
        Of the program; the result is kept on disk by it.

    Raises
    ------
    ProgramError
        The combiner of an aggregator may raise.
    """
    from gpu_pregel.host.traverse.raises import noted, raises_exception

    roles = {
        "init": functions.init,
        "initially_active": functions.initially_active,
        "message": functions.send,
        "combine": functions.combine if functions.built_in is None else None,
        "apply": functions.apply,
        "receives": functions.receives,
        "active": functions.is_active,
        "wake": functions.wake,
    }

    def find() -> list[str]:
        found = [role for role, one in roles.items() if one is not None and raises_exception(one, kinds[role])]
        for name, function, combine, dtype, _ in functions.aggregators:
            number = numba.from_dtype(dtype)
            if raises_exception(combine, (number, number)):
                raise ProgramError(
                    f"the combiner of aggregator {name!r} may raise an exception{place_of(combine)}, which is not "
                    f"possible on a GPU: raise it in the aggregator's function, or use device='cpu'"
                )
            if raises_exception(function, kinds["aggregator"]):
                found.append("aggregator")
        return found

    return frozenset(noted(digest, find))


def _is_chained(program: VertexProgram, functions: Functions) -> bool:
    """Whether a superstep needs no more than the vertices that send or receive: not if every vertex applies.

    Aggregates are folded in the order of the vertices, which a queue does not keep, and a function that raises ends its
    superstep; agents that wake are computed before the next one.
    """
    is_plain = not (functions.aggregators or functions.records or functions.message.is_tuple or functions.wake)
    return is_plain and program.active != "always"


def _from_memory(
    key: Any,
    declared: VertexProgram,
    program: VertexProgram,
    arrays: tuple[Array, ...],
    weight: np.dtype[Any] | None,
    fingerprint: Fingerprint,
    jit: Jit,
    make_kernels: Callable[[Functions], dict[str, Any]],
    guard: Guard | None = None,
) -> CompiledProgram:
    found: CompiledProgram | None = _compiled.get(key)
    if found is None:
        with compiling():
            captured = tuple(array.dtype for array in arrays)
            found = _compile(program, captured, weight, fingerprint, jit, make_kernels, guard)
        _compiled.keep(key, found)
    # With the arrays, and errors that name the lines, of this declaration, not of an equal one before it.
    return replace(found, declaration=declared, captured=arrays)


def _compile(
    program: VertexProgram,
    captured: tuple[np.dtype[Any], ...],
    weight: np.dtype[Any] | None,
    fingerprint: Fingerprint,
    jit: Jit,
    make_kernels: Callable[[Functions], dict[str, Any]],
    guard: Guard | None,
) -> CompiledProgram:
    value, message = program_fields(program)
    combine, identity = resolve_combiner(program.combine, message)
    digest = fingerprint.hexdigest() if fingerprint.is_complete else None
    draws = "random" in fingerprint.names
    checks = ProgramChecks(
        program, value, message, _parameters(program), digest, weight=weight, draws=draws, captured=captured
    )
    plain = _device_functions(program, combine, device)
    dtypes = checks.run(*plain)
    # What the checks have compiled for the CPU is part of the kernels.
    one, contributions = plain if jit is device else _device_functions(program, combine, jit)
    aggregators, aggregates, folds = [], [], []
    for name, aggregator in program.aggregators.items():
        fold, start = resolve_combiner(aggregator.combine, Fields((dtypes[name],), False))
        aggregators.append((name, contributions[name], device_function(fold, jit), dtypes[name], start))
        aggregates.append((name, dtypes[name], start))
        folds.append(fold)
    functions = Functions(
        value=value,
        message=message,
        identity=identity,
        init=one["init"],
        initially_active=one.get("initially_active"),
        send=one["message"],
        per_edge=program.sends_per_edge,
        combine=one["combine"],
        absorbing=absorbing(program.combine, message),
        built_in=program.combine if isinstance(program.combine, str) else None,
        apply=one["apply"],
        receives=one.get("receives"),
        is_active=one.get("active"),
        wake=one.get("wake"),
        aggregators=tuple(aggregators),
        parameters=_parameters(program) + (((SEED, np.dtype(np.int64)),) if draws else ()),
        captured=captured,
        ascending=program.ascending,
        always=program.active == "always",
    )
    functions = with_stages(jit if guard is not None else device, functions)
    if guard is not None:
        functions = guard(functions, checks.argument_types(dtypes))
    return CompiledProgram(
        value=value,
        message=functions.message,
        identity=functions.identity,
        per_edge=program.sends_per_edge,
        receives=program.receives is not None,
        is_selective=functions.is_selective,
        uses_in_degree="in_degree" in fingerprint.names,
        aggregates=tuple(aggregates),
        aggregate_folds=tuple(folds),
        parameters=functions.parameters,
        captured=(),
        records=functions.records,
        declaration=program,
        **make_kernels(functions),
    )


def _device_functions(program: VertexProgram, combine: Any, jit: Jit) -> tuple[dict[str, Any], dict[str, Any]]:
    """Compile a program's functions; return them by role, and those of its aggregators by name."""
    plain = {"init": program.init, "message": program.message, "apply": program.apply, "combine": combine}
    if program.receives is not None:
        plain["receives"] = program.receives
    if callable(program.active):
        plain["active"] = program.active
    if program.wake is not None:
        plain["wake"] = program.wake
    if program.initially_active is not None:
        plain["initially_active"] = program.initially_active
    contributions = {name: device_function(one.function, jit) for name, one in program.aggregators.items()}
    return {role: device_function(function, jit) for role, function in plain.items()}, contributions


def fingerprint_program(program: VertexProgram, *, has_weights: bool, with_package: bool = False) -> Fingerprint:
    """Digest everything that a program's vertices compute with; ``halt`` is left out, as it only ends a run.

    ``with_package`` is for keys of compiled code, as in ``Fingerprint``; checkpoints store the digest without it.
    """
    value, message = program_fields(program)
    has_weights = has_weights and program.sends_per_edge
    fingerprint = Fingerprint(with_package=with_package)
    fingerprint.add(_DIGEST_VERSION, value.dtypes, value.is_tuple, message.dtypes, message.is_tuple, has_weights)
    fingerprint.add(program.init, program.message, program.apply, program.initially_active, program.active)
    if program.receives is not None:
        fingerprint.add("receives", program.receives)
    if program.ascending:
        fingerprint.add("ascending")
    if program.wake is not None:
        fingerprint.add("wake", program.wake)
    for combine in (program.combine, *(aggregator.combine for aggregator in program.aggregators.values())):
        fingerprint.add(combine if isinstance(combine, str) else (combine.function, combine.identity))
    for name, aggregator in program.aggregators.items():
        fingerprint.add(name, aggregator.function, None if aggregator.dtype is None else np.dtype(aggregator.dtype))
    # Added only where they occur, so that the digests of programs without them stay as they were.
    parameters = tuple(f"{name} {dtype.str}" for name, dtype in _parameters(program))
    for kind, names in (("parameters", parameters), ("value", value.names), ("message", message.names)):
        if names:
            fingerprint.add(kind, names)
    return fingerprint


def depends_on_order(program: VertexProgram, weight: np.dtype[Any] | None) -> bool:
    """Whether results may depend, by rounding, on the order in which messages or aggregates are combined."""
    folded = [] if program.combine in _EXACT else [*program_fields(program)[1].dtypes]
    rounding = {name: one.dtype for name, one in program.aggregators.items() if one.combine not in _EXACT}
    if None in rounding.values():
        inferred = {name: dtype for name, dtype, _ in compile_program(program, weight=weight).aggregates}
        rounding = {name: inferred[name] for name in rounding}
    return any(np.dtype(dtype).kind == "f" for dtype in (*folded, *rounding.values()))


def program_fields(program: VertexProgram) -> tuple[Fields, Fields]:
    """Return the fields of a program's value and of its message."""
    message = program.value if program.message_type is None else program.message_type
    value, sent = (
        Fields(
            as_dtypes(declared),
            isinstance(declared, (tuple, Mapping)),
            names_of_fields(declared),
            declared if is_data(declared) else None,
        )
        for declared in (program.value, message)
    )
    return value, sent


def _parameters(program: VertexProgram) -> Parameters:
    return tuple((parameter.name, parameter.dtype) for parameter in program.declared_parameters)
