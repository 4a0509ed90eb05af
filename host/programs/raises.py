"""Which functions of a program, or of an operator, may raise an exception on CUDA; the others need no guards there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numba

from gpu_pregel.errors import ProgramError
from gpu_pregel.host.traverse.compilation import place_of
from gpu_pregel.host.traverse.raises import noted, raises_exception
from gpu_pregel.kernels.programs.functions import Functions

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
