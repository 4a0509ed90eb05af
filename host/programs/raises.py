"""Which functions of a program, or of an operator, may raise an exception on CUDA; the others need no guards there."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numba

from gpu_pregel.errors import ProgramError
from gpu_pregel.host.devices.lowering import compiling_functions
from gpu_pregel.host.programs.checks import COMPILE_ERRORS, place_of, unsupported_on_gpus, unsupported_ufunc
from gpu_pregel.kernels import library
from gpu_pregel.kernels.library.cache import load_value, save_value
from gpu_pregel.kernels.library.fingerprint import source_digest
from gpu_pregel.kernels.programs.fields import Functions

Kinds = Mapping[str, tuple[Any, ...]]


def raising_roles(functions: Functions, kinds: Kinds, digest: str | None) -> frozenset[str]:
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
        found = [role for role, one in roles.items() if one is not None and _may_raise(one, kinds[role])]
        for name, function, combine, dtype, _ in functions.aggregators:
            number = numba.from_dtype(dtype)
            if _may_raise(combine, (number, number)):
                raise ProgramError(
                    f"the combiner of aggregator {name!r} may raise an exception{place_of(combine)}, which is not "
                    f"possible on a GPU: raise it in the aggregator's function, or use device='cpu'"
                )
            if _may_raise(function, kinds["aggregator"]):
                found.append("aggregator")
        return found

    return frozenset(_noted(digest, find))


def may_raise(function: Any, arguments: tuple[Any, ...], digest: str | None) -> bool:
    """Whether a device function may raise; the answer is kept on disk by ``digest``."""
    return bool(_noted(digest, lambda: ["the body"] if _may_raise(function, arguments) else []))


def _noted(digest: str | None, find: Callable[[], list[str]]) -> list[str]:
    """Return what is on disk by that digest, the version of Numba-CUDA and the code that finds it, or else is found."""
    if digest is None:
        return find()
    name = f"raises-{version('numba-cuda')}-{_finding_code()}-{digest}"
    known: list[str] | None = load_value(name)
    if known is None:
        known = find()
        save_value(name, known)
    return known


@functools.cache
def _finding_code() -> str:
    """Return a digest of the code that finds whether a function may raise."""
    return source_digest(Path(library.__file__).with_name("attempts_cuda.py"))


def _may_raise(function: Any, arguments: tuple[Any, ...]) -> bool:
    from gpu_pregel.kernels.library import attempts_cuda

    try:
        with compiling_functions():
            return attempts_cuda.may_raise(function, arguments)
    except (*COMPILE_ERRORS, RecursionError):
        return False  # reported when a kernel with the function is compiled
    except AttributeError as error:
        if unsupported_on_gpus(error) is None:
            raise
        return False
    except KeyError as error:
        if unsupported_ufunc(error) is None:
            raise
        return False
