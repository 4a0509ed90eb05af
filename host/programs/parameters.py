"""The parameters of a vertex program: their declaration, and the values that a run gives them."""

from __future__ import annotations

from collections.abc import Mapping
from keyword import iskeyword
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from gpu_pregel.errors import ArgumentError, ArgumentTypeError
from gpu_pregel.host.arguments import check_flag, check_integer


class Parameter(NamedTuple):
    """A declared parameter; ``default`` is None if every run must give a value."""

    name: str
    dtype: np.dtype[Any]
    default: Any


def check_name(role: str, name: object, example: str) -> None:
    """Raise unless ``name`` can be the name of an attribute."""
    if not isinstance(name, str) or not name.isidentifier() or iskeyword(name) or name.startswith("_"):
        raise ArgumentError(f"{name!r} cannot name {role}: use a name such as {example!r}")


def as_number_dtype(declared: object) -> np.dtype[Any] | None:
    """Return a dtype for vertex programs: bool, an integer, float32 or float64; None for anything else."""
    try:
        dtype = None if declared is None else np.dtype(declared)  # type: ignore[call-overload]
    except TypeError:
        return None
    is_number = dtype is not None and (dtype.kind in "biu" or dtype in (np.float32, np.float64)) and dtype.isnative
    return dtype if is_number else None


def declare_parameters(declared: Mapping[str, Any]) -> tuple[Parameter, ...]:
    """Return the parameters of a program, each declared by a dtype or a default; raise if a declaration is invalid."""
    if not isinstance(declared, Mapping):
        raise ArgumentTypeError(f"parameters must be a dict from names to dtypes or defaults, not {declared!r:.80}")
    return tuple(_declare(name, given) for name, given in declared.items())


def _declare(name: str, given: Any) -> Parameter:
    check_name("a parameter", name, "source")
    if isinstance(given, (bool, int, float, np.generic)):
        kind = np.bool_ if isinstance(given, bool) else np.int64 if isinstance(given, int) else np.float64
        dtype = as_number_dtype(given.dtype if isinstance(given, np.generic) else kind)
        if dtype is not None:
            return Parameter(name, dtype, _as_scalar(f"the default of parameter {name!r}", dtype, given))
    found = as_number_dtype(given)
    if found is None:
        raise ArgumentTypeError(
            f"parameter {name!r} must be declared by a dtype such as np.int64, or by a number, its default, not "
            f"{given!r:.80}"
        )
    return Parameter(name, found, None)


def parameter_values(declared: tuple[Parameter, ...], given: Mapping[str, Any] | None) -> tuple[Any, ...]:
    """Return the value of each parameter in a run, as a scalar of its dtype.

    Raises
    ------
    ArgumentError
        A parameter is missing, unknown or not representable.
    ArgumentTypeError
        A value has the wrong type.
    """
    given = {} if given is None else given
    if not isinstance(given, Mapping):
        raise ArgumentTypeError(f"parameters must be a dict from names to numbers, not {given!r:.80}")
    names = {parameter.name for parameter in declared}
    for name in given:
        if name not in names:
            raise ArgumentError(f"unknown parameter {name!r}; parameters of the program: {_listed(declared)}")
    missing = [one.name for one in declared if one.default is None and one.name not in given]
    if missing:
        raise ArgumentError(
            f"parameter {missing[0]!r} has no value: pass parameters={{{missing[0]!r}: ...}}; parameters of the "
            f"program: {_listed(declared)}"
        )
    return tuple(
        _as_scalar(f"parameter {one.name!r}", one.dtype, given[one.name]) if one.name in given else one.default
        for one in declared
    )


def _listed(declared: tuple[Parameter, ...]) -> str:
    defaults = ["" if one.default is None else f" = {one.default.item()!r}" for one in declared]
    parts = [f"{one.name} ({one.dtype}{default})" for one, default in zip(declared, defaults, strict=True)]
    return ", ".join(parts) or "none"


def _as_scalar(role: str, dtype: np.dtype[Any], given: Any) -> Any:
    """Return a number as a scalar of a dtype, which must be able to represent it; floats may be rounded."""
    if isinstance(given, np.ndarray) and given.ndim == 0:
        given = given[()]
    if dtype.kind == "b":
        return np.bool_(check_flag(role, given))
    if dtype.kind != "f":
        limits = np.iinfo(dtype)
        if isinstance(given, (str, bytes)):
            raise ArgumentTypeError(
                f"{role} must be a whole number, not {given!r:.80}; graph.vertex(id) finds the number of a vertex"
            )
        return dtype.type(check_integer(role, given, int(limits.min), int(limits.max)))
    if isinstance(given, (bool, np.bool_)) or not isinstance(given, (int, float, Real)):
        raise ArgumentTypeError(f"{role} must be a number, not {given!r:.80}")
    with np.errstate(over="ignore"):
        try:
            number = dtype.type(given)
        except OverflowError:
            number = dtype.type(np.inf)
    if np.isinf(number) and abs(given) != np.inf:
        raise ArgumentError(f"{role} must be representable as {dtype}, not {given!r:.80}")
    return number
