"""Argument checks shared by all rooms, and imports of optional packages."""

from __future__ import annotations

import math
from importlib import import_module
from numbers import Integral, Real
from typing import Any

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, MissingPackageError

MAX_INTEGER = (1 << 63) - 1


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> str:
    """Return ``value``, or raise ``ArgumentError`` unless it is one of ``choices``."""
    if not isinstance(value, str) or value not in choices:
        *others, last = map(repr, choices)
        listed = f"{', '.join(others)} or {last}" if others else last
        raise ArgumentError(f"{name} must be {listed}, not {value!r:.80}")
    return value


def check_integer(name: str, value: object, low: int, high: int = MAX_INTEGER) -> int:
    """Return ``value`` as an int, or raise unless it is a whole number from ``low`` to ``high``."""
    if isinstance(value, bool) or not isinstance(value, (int, Integral)):
        raise ArgumentTypeError(f"{name} must be a whole number, not {value!r:.80}")
    number = int(value)
    if number < low and high == MAX_INTEGER:
        raise ArgumentError(f"{name} must be at least {low:,}, not {number:,}")
    if not low <= number <= high:
        raise ArgumentError(f"{name} must be from {low:,} to {high:,}, not {number:,}")
    return number


def check_flag(name: str, value: object) -> bool:
    """Return ``value`` as a bool, or raise unless it is a bool of Python or NumPy."""
    if isinstance(value, bool) or (type(value).__module__, type(value).__name__[:4]) == ("numpy", "bool"):
        return bool(value)
    raise ArgumentTypeError(f"{name} must be True or False, not {value!r:.80}")


def check_seconds(name: str, value: Any, limit: float = math.inf) -> float:
    """Return ``value`` as a float, or raise unless it is a number of seconds above 0 and below ``limit``."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Real)):
        raise ArgumentTypeError(f"{name} must be a number, not {value!r:.80}")
    try:
        seconds = float(value)
    except OverflowError:
        seconds = math.inf
    if not 0 < seconds < math.inf:
        raise ArgumentError(f"{name} must be a finite number of seconds above 0, not {value!r:.80}")
    if seconds >= limit:
        raise ArgumentError(f"{name} must be below {limit:,} seconds, not {value!r:.80}")
    return seconds


def check_number(name: str, value: Any, low: float, high: float = math.inf) -> float:
    """Return ``value``, or raise unless it is a finite real number from ``low`` to ``high``."""
    if isinstance(value, bool) or not isinstance(value, (int, float, Real)):
        raise ArgumentTypeError(f"{name} must be a number, not {value!r:.80}")
    number: Any = value
    try:
        is_finite = math.isfinite(number)
    except OverflowError:
        is_finite = False
    if not is_finite or not low <= number <= high:
        limits = f"at least {low:,.10g}" if high == math.inf else f"from {low:,.10g} to {high:,.10g}"
        raise ArgumentError(f"{name} must be {limits}, not {value!r:.80}")
    return number  # type: ignore[no-any-return]


def check_text(name: str, value: object, longest: int = 200) -> str:
    """Return ``value``, or raise unless it is a string of 1 to ``longest`` printable characters."""
    if not isinstance(value, str):
        raise ArgumentTypeError(f"{name} must be a string, not {value!r:.80}")
    if not 0 < len(value) <= longest or not value.isprintable():
        raise ArgumentError(f"{name} must have from 1 to {longest} printable characters, not {value!r:.80}")
    return value


def require(package: str, purpose: str, install: str | None = None) -> Any:
    """Import ``package``, or raise ``MissingPackageError`` that names the purpose and what to install."""
    try:
        return import_module(package)
    except ImportError as error:
        raise MissingPackageError(f"{purpose} needs the package {package}: pip install {install or package}") from error
