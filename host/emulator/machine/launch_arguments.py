"""Launch arguments: checked against the kernel's declaration and converted to the words that its code expects."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from gpu_pregel.errors import ArgumentTypeError
from gpu_pregel.host.emulator.machine.compiled_kernel import CompiledKernel
from gpu_pregel.host.emulator.machine.regions import Region
from gpu_pregel.kernels.library.parameters import ArrayParameter, Parameter

Words = np.ndarray[Any, np.dtype[np.int64]]


def flatten(kernel: CompiledKernel, arguments: Sequence[Any]) -> tuple[Words, list[Region]]:
    """Return a word for each parameter of the kernel's native code, and a region for each array.

    Raises
    ------
    ArgumentTypeError
        An argument does not have the declared type; the message names the parameter.
    """
    if len(arguments) != len(kernel.layout):
        raise ArgumentTypeError(
            f"kernel {kernel.name} takes {len(kernel.layout)} arguments "
            f"({', '.join(kernel.parameters)}), not {len(arguments)}"
        )
    flat = _ArgumentWords(kernel.name)
    for name, kind, argument in zip(kernel.parameters, kernel.layout, arguments, strict=True):
        flat.racy, flat.relaxed = name in kernel.racy, name in kernel.relaxed
        flat.add(name, kind, argument)
    return np.array(flat.words, np.int64), flat.regions


class _ArgumentWords:
    """Accumulates the words and the regions of a launch's arguments."""

    def __init__(self, kernel: str) -> None:
        self.words: list[int] = []
        self.regions: list[Region] = []
        self.racy = self.relaxed = False
        self._kernel = kernel

    def add(self, name: str, kind: Parameter, argument: Any) -> None:
        """Append an argument."""
        if isinstance(kind, ArrayParameter):
            self._add_array(name, kind, argument)
        elif isinstance(kind, tuple):
            self._add_tuple(name, kind, argument)
        elif kind is None:
            if argument is not None:
                raise self._mismatch(name, kind, argument)
            self.words.append(0)
        else:
            self._add_number(name, kind, argument)

    def _mismatch(self, name: str, kind: Parameter, argument: Any, hint: str = "") -> ArgumentTypeError:
        return ArgumentTypeError(
            f"kernel {self._kernel}: {name} must be {_expected_text(kind)}, not {_actual_text(argument)}{hint}"
        )

    def _add_tuple(self, name: str, kinds: tuple[Parameter, ...], argument: Any) -> None:
        if not isinstance(argument, tuple) or len(argument) != len(kinds):
            raise self._mismatch(name, kinds, argument)
        for index, (part, value) in enumerate(zip(kinds, argument, strict=True)):
            self.add(f"{name}[{index}]", part, value)

    def _add_array(self, name: str, kind: ArrayParameter, argument: Any) -> None:
        if not hasattr(argument, "allocation"):
            hint = ": copy it to the device first" if isinstance(argument, (np.ndarray, list)) else ""
            raise self._mismatch(name, kind, argument, hint)
        dtype = kind.dtype
        if argument.dtype != dtype or argument.ndim != kind.ndim:
            raise self._mismatch(name, kind, argument)
        self.words += kind.values(_signed(argument.address), argument.shape)
        # A test may have elements of which only the last are in memory: the array then begins before its allocation.
        start = argument.allocation.address + argument.offset
        region = Region(name, start, argument.nbytes, dtype.itemsize, self.racy, argument.allocation, self.relaxed)
        self.regions.append(region)

    def _add_number(self, name: str, dtype: np.dtype[Any], argument: Any) -> None:
        if hasattr(argument, "allocation") or np.ndim(argument) or isinstance(argument, (str, bytes, type(None))):
            raise self._mismatch(name, dtype, argument)
        if dtype.kind == "b":
            if not isinstance(argument, (bool, np.bool_)):
                raise self._mismatch(name, dtype, argument)
            self.words.append(int(argument))
        elif dtype.kind == "f":
            value = float(argument)
            code, integer = ("f", "i") if dtype.itemsize == 4 else ("d", "q")
            self.words.append(struct.unpack(f"={integer}", np.dtype(f"={code}").type(value).tobytes())[0])
        else:
            if not isinstance(argument, (int, np.integer, np.bool_)):
                raise self._mismatch(name, dtype, argument)
            limits = np.iinfo(dtype)
            if not limits.min <= int(argument) <= limits.max:
                raise self._mismatch(name, dtype, argument)
            self.words.append(_signed(int(argument)))


def _signed(word: int) -> int:
    return word - (1 << 64) if word >= 1 << 63 else word


def _expected_text(kind: Parameter) -> str:
    if isinstance(kind, ArrayParameter):
        return f"an array of {kind.dtype} on the device"
    if isinstance(kind, tuple):
        return f"a tuple of {len(kind)}"
    return "None" if kind is None else f"a number of type {kind}"


def _actual_text(argument: Any) -> str:
    if isinstance(argument, np.ndarray):
        return f"a host array of {argument.dtype}"
    if hasattr(argument, "allocation"):
        size = "a single element" if not argument.shape else "an array"
        return f"{size} of {argument.dtype} on the device"
    if isinstance(argument, (int, float, np.generic)):
        return f"{argument!r}"
    if isinstance(argument, tuple):
        return f"a tuple of {len(argument)}"
    return f"a {type(argument).__name__}"
