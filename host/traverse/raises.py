"""Which functions of users may raise an exception on CUDA; the others need no guards there."""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpu_pregel.host.devices.lowering import compiler_version, compiling_functions
from gpu_pregel.host.traverse.compilation import COMPILE_ERRORS, unsupported_on_gpus, unsupported_ufunc
from gpu_pregel.kernels import library
from gpu_pregel.kernels.library.cache import load_value, save_value
from gpu_pregel.kernels.library.fingerprint import source_digest


def noted(digest: str | None, find: Callable[[], list[str]]) -> list[str]:
    """Return what is on disk by that digest, the version of Numba-CUDA and the code that finds it, or else is found."""
    if digest is None:
        return find()
    name = f"raises-{compiler_version()}-{_finding_code()}-{digest}"
    known: list[str] | None = load_value(name)
    if known is None:
        known = find()
        save_value(name, known)
    return known


@functools.cache
def _finding_code() -> str:
    """Return a digest of the code that finds whether a function may raise."""
    return source_digest(Path(library.__file__).with_name("attempts_cuda.py"))


def raises_exception(function: Any, arguments: tuple[Any, ...]) -> bool:
    """Whether a device function may raise."""
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
