"""Compilation of users' functions, and the errors for functions that cannot be compiled."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from traceback import walk_tb
from typing import Any

import numba
import numpy as np
from numba import types
from numba.core import errors as numba_errors

from gpu_pregel.errors import CompileError, ProgramError
from gpu_pregel.host.traverse.combiners import field_names
from gpu_pregel.host.traverse.interpreted import BOOL
from gpu_pregel.host.traverse.type_words import in_words
from gpu_pregel.kernels.library import atomics
from gpu_pregel.kernels.library.fingerprint import large_integers
from gpu_pregel.kernels.library.records import cannot_assign, no_field
from gpu_pregel.kernels.traverse.fields import Fields, named_type

COMPILE_ERRORS = (numba_errors.NumbaError, numba_errors.UnsupportedBytecodeError)
"""What Numba raises; its error for syntax that it cannot compile, such as an import, is no ``NumbaError``."""


_IS_ATOMIC = re.compile(rf"Function\(<function ({'|'.join(one.__name__ for one in atomics.PORTABLE)}) at ")


_ATOMICS = (
    ": functions of gp.atomics take an array of one dimension, of integers or floats of 32 or 64 bits (bitwise_or: of "
    "integers), an index and numbers"
)


_ONLY_ON_CPUS = (
    "it calls a function that Numba has for CPUs only, as those of random and np.random are: draw random numbers by "
    "ctx.random(draw), or gp.random(seed, …) in bodies of operators"
)


DRAW_IS_MISSING = (
    "ctx.random(draw) takes the number of the draw: ctx.random(0) is the first number of a call, ctx.random(1) another"
)


def result_type(function: Any, role: str, arguments: tuple[Any, ...]) -> Any:
    """Compile a program's function for these argument types and return the type of its result."""
    for number in large_integers(function):
        raise CompileError(f"{role} uses the integer {number}, which exceeds 64 bits{place_of(function)}")
    try:
        function.compile(arguments)
    except (*COMPILE_ERRORS, NotImplementedError) as error:
        raise CompileError(
            f"{role} cannot be compiled{place_of(function, error)}: {in_words(_essence(error, arguments))}\n"
            f"Use numbers, tuples, functions of math and NumPy that Numba supports, and Python functions made of these."
        ) from error
    return function.overloads[arguments].signature.return_type


@contextmanager
def explaining_compilation(device: str) -> Iterator[None]:
    """Convert errors of functions that compile for the CPU, as checked before, but not for ``device``."""
    try:
        yield
    except RecursionError as error:  # of Numba-CUDA, which looks for np.random in vain
        raise CompileError(f"a function cannot be compiled for device {device!r}: {_ONLY_ON_CPUS}") from error
    except COMPILE_ERRORS as error:
        found = re.search(r" at (\S+\.py) \((\d+)\)", _plain_text(error))
        place = f" ({found[1]}, line {found[2]})" if found else ""
        raise CompileError(
            f"a function cannot be compiled for device {device!r}{place}: {in_words(_essence(error))}\n"
            f"Functions there may use numbers and tuples of numbers, but no lists, dicts, strings or new arrays."
        ) from error
    except AttributeError as error:
        problem = unsupported_on_gpus(error)
        if problem is None:
            raise
        raise CompileError(f"a function cannot be compiled for device {device!r}: {problem}") from error
    except KeyError as error:
        name = unsupported_ufunc(error)
        if name is None:
            raise
        raise CompileError(
            f"a function cannot be compiled for device {device!r}: np.{name} is not supported there; "
            f"{f'use math.{name}' if hasattr(math, name) else 'write it with other functions'}"
        ) from error


def unsupported_on_gpus(error: AttributeError) -> str | None:
    """Return what functions cannot do on GPUs, if this is how Numba-CUDA says so."""
    problems = {"CUDACallConv": "use `try` or `with`", "insert_unresolved_ref": "call themselves"}
    found = next((problem for name, problem in problems.items() if name in str(error)), None)
    return None if found is None else f"functions there cannot {found}"


def unsupported_ufunc(error: KeyError) -> str | None:
    """Return the name of the function of NumPy that Numba-CUDA has not found, if this is such an error."""
    function = error.args[0] if error.args else None
    return function.__name__ if isinstance(function, np.ufunc) else None


def place_of(function: Any, error: BaseException | None = None) -> str:
    """Return the file and line of a function, with the text of the line if it is available."""
    code = function.py_func.__code__
    line = code.co_firstlineno
    if error is not None:
        name = re.escape(os.path.basename(code.co_filename))
        text = _plain_text(error)
        places = re.findall(rf"During: lowering .* at \S*{name} (\()(\d+)\)", text)
        places = places or re.findall(rf'File "[^"]*{name}", line (\d+)|Raised from \S*{name} \((\d+)\)', text)
        named = int("".join(places[-1]).strip("(")) if places else _statement_line(error, code.co_filename)
        line = named or line
    text = ""
    with suppress(OSError, TypeError, IndexError):
        import linecache

        text = linecache.getline(code.co_filename, line, function.py_func.__globals__).strip()
    return f" ({code.co_filename}, line {line}{f': {text}' if text else ''})"


def _statement_line(error: BaseException, file: str) -> int | None:
    """Return the line of the statement of a file that Numba was lowering, where its message does not name it."""
    line = None
    for frame, _ in walk_tb(error.__traceback__):
        place = getattr(frame.f_locals.get("inst"), "loc", None)
        if place is not None and os.path.basename(place.filename) == os.path.basename(file):
            line = place.line
    return line


def _plain_text(error: BaseException) -> str:
    return re.sub(r"\x1b\[[0-9;]*m", "", str(error))


def _fields_of(kinds: Sequence[Any]) -> dict[str, set[tuple[str, ...]]]:
    """Return the names of the fields of all named tuples among and inside some types, by what Numba calls each."""
    found: dict[str, set[tuple[str, ...]]] = {}
    for kind in kinds:
        if isinstance(kind, types.BaseNamedTuple):
            if not hasattr(kind.instance_class, "_offered"):
                found.setdefault(str(kind), set()).add(kind.fields)
            for name, names in _fields_of(list(kind)).items():
                found.setdefault(name, set()).update(names)
    return found


def _offers(kinds: Sequence[Any]) -> str:
    """Return what the ``ctx`` among the types of arguments offers."""
    classes = [kind.instance_class for kind in kinds if isinstance(kind, types.BaseNamedTuple)]
    offers = next((one._offered() for one in classes if hasattr(one, "_offered")), ())
    return f", which has {', '.join(offers)}" if offers else ""


def _about_fields(text: str, known: dict[str, set[tuple[str, ...]]]) -> str | None:
    """Return what a line of Numba's message about the fields of a named tuple means, or None."""
    patterns = {
        "unknown": r"Unknown attribute '(?P<name>\w+)' of type (?P<kind>\w+\(.*\))",
        "set": r"(?:No definition for lowering |.*setattr: \()(?P<kind>\w+\([^()]*\))\)?\.(?P<name>\w+) = ",
        "item": r"(?:No implementation|No definition).*setitem.*?(?P<kind>\w+\([^()]*\)), ",
        "call": r".*>>> setitem\((?P<kind>\w+\([^()]*\)), ",
    }
    for action, pattern in patterns.items():
        found = re.match(pattern, text)
        if found and found["kind"] in known:
            options = sorted(known[found["kind"]])
            if action == "unknown" or (action == "set" and all(found["name"] not in names for names in options)):
                return " or, of the other tuple, ".join(no_field(found["name"], names) for names in options)
            return cannot_assign(options[0])
    return None


def _essence(error: Exception, arguments: Sequence[Any] = ()) -> str:
    """Return the line of Numba's message that states the cause; ``arguments`` are the types of the function's."""
    known = _fields_of(arguments)
    skipped = ("Failed in", "During:", "File ", "<source", "- Resolution", "[1]", "This error", "During ")
    message = re.sub(r'\n *File "[^"\n]*", line \d+:\n.*?\n *\^+ *(?=\n|$)', "", _plain_text(error), flags=re.DOTALL)
    lines = [re.sub(r"\.? Raised from .*", "", line.strip()) for line in message.splitlines()]
    if re.search(
        r"missing a required argument: 'draw'|Unknown attribute '\w+' of type BoundFunction\(.*VertexC", message
    ):
        return DRAW_IS_MISSING
    for number, text in reversed(list(enumerate(lines))):
        call = next((line[4:] for line in lines[number:] if line.startswith(">>> ")), "")
        if "numba.core.extending._Intrinsic" in text:
            return _ONLY_ON_CPUS
        about = _about_fields(f">>> {call}" if call and text.endswith("found for signature:") else text, known)
        if about is not None:
            return about
        if call and text.endswith("found for signature:"):
            return f"{call} is not supported{_ATOMICS if _IS_ATOMIC.search(text) else ''}"
        unknown = re.match(r"(Unknown attribute '\w+') of type VertexContext\(", text)
        if unknown:
            return f"{unknown[1]} of ctx{_offers(arguments)}"
        if re.match(r"Unknown attribute '\w+' of type none", text):
            return (
                f"{text}: ctx.parameters is None if the program declares no parameters, and ctx.aggregated if it "
                f"declares no aggregators"
            )
        if re.match(
            r"(Unknown attribute|Untyped global|No implementation|Cannot|Use of|Invalid|NameError|.*Error)", text
        ):
            return text
    return next((line for line in lines if line and not line.startswith(skipped)), "Numba cannot compile the function")


def numba_type(fields: Fields) -> Any:
    """Return the Numba type of a number or tuple of these fields."""
    if fields.names is not None:
        return named_tuple_type("Value", dict(zip(fields.names, fields.dtypes, strict=True)))
    parts = [numba.from_dtype(dtype) for dtype in fields.dtypes]
    return types.Tuple(parts) if fields.is_tuple else parts[0]


def named_tuple_type(name: str, dtypes: dict[str, np.dtype[Any]]) -> Any:
    """Return the type of a named tuple of numbers, or of None if there are no names."""
    if not dtypes:
        return types.none
    return types.BaseTuple.from_types(
        [numba.from_dtype(dtype) for dtype in dtypes.values()], named_type(name, tuple(dtypes))
    )


def check_result(function: Any, role: str, arguments: tuple[Any, ...], fields: Fields) -> None:
    """Raise ``ProgramError`` unless a function compiles for these arguments and returns what is declared."""
    result = result_type(function, role, arguments)
    if isinstance(result, types.BoundFunction):
        raise ProgramError(f"{role} returns a method, not its result{place_of(function)}: {DRAW_IS_MISSING}")
    if fields is BOOL:
        if not isinstance(result, (types.Boolean, types.Integer)):
            raise ProgramError(f"{role} returns {in_words(result)}, but must return True or False{place_of(function)}")
        return
    parts = list(result) if isinstance(result, types.BaseTuple) else [result]
    if isinstance(result, types.BaseTuple) != fields.is_tuple or len(parts) != len(fields.dtypes):
        raise ProgramError(
            f"{role} returns {in_words(result)}, but {field_names(fields)} is declared{place_of(function)}"
        )
    for k, (part, dtype) in enumerate(zip(parts, fields.dtypes, strict=True)):
        where = f" in field {fields.names[k]!r}" if fields.names else f" in field {k}" if fields.is_tuple else ""
        found = f"{role} returns {in_words(part)}{where}, but {field_names(fields)} is declared"
        if not isinstance(part, (types.Boolean, types.Integer, types.Float)):
            raise ProgramError(f"{found}{place_of(function)}")
        if isinstance(part, types.Float) and dtype.kind != "f":
            raise ProgramError(
                f"{found}, and floats are not converted to integers silently{place_of(function)}: convert the result, "
                f"as with np.{dtype}(x), or declare float64"
            )
