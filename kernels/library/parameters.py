"""How the code of a kernel takes its arguments; this depends on the compiler, and is kept with what it compiles."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class ArrayParameter:
    """A contiguous array, as words of 8 bytes.

    Attributes
    ----------
    dtype : dtype
    ndim : int
    words : tuple of {"unused", "address", "size", "itemsize", "shape", "strides"}
        What the words say, in order; the shape and the strides, in bytes, are a word for each dimension.
    """

    dtype: np.dtype[Any]
    ndim: int
    words: tuple[str, ...]

    def values(self, address: int, shape: Sequence[int]) -> list[int]:
        """Return the words for an array of this shape at an address."""
        itemsize = self.dtype.itemsize
        strides = [itemsize * math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
        single = {"unused": 0, "address": address, "size": math.prod(shape), "itemsize": itemsize}
        several = {"shape": shape, "strides": strides}
        return [value for word in self.words for value in (several[word] if word in several else [single[word]])]


Parameter = ArrayParameter | np.dtype[Any] | tuple[Any, ...] | None
"""An array, the dtype of a number, the parts of a tuple, or None, which takes a word too."""


def count_words(layout: Iterable[Parameter]) -> int:
    """Return the number of words of all parameters."""
    return sum(map(_count, layout))


def _count(parameter: Parameter) -> int:
    if isinstance(parameter, tuple):
        return count_words(parameter)
    return len(parameter.values(0, (1,) * parameter.ndim)) if isinstance(parameter, ArrayParameter) else 1
