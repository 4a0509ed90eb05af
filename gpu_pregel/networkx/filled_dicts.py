"""Dicts from nodes to numbers, filled by a kernel."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from gpu_pregel.kernels.networkx.dicts_cpu import fill

Array = np.ndarray[Any, Any]

_BLOCK = 1 << 20
"""Number of items for which the kernel holds the GIL, some tens of milliseconds."""

# A dict that need not grow is filled in two thirds of the time; Python may cease to offer this function.
_sized = getattr(ctypes.pythonapi, "_PyDict_NewPresized", None)
if _sized is not None:
    _sized.restype, _sized.argtypes = ctypes.py_object, [ctypes.c_ssize_t]


def filled_dict(nodes: Array, vertices: Array, values: Array) -> dict[Any, Any]:
    """Return the values of some vertices, integers or floats, by their nodes, which are the addresses ``nodes``."""
    result: dict[Any, Any] = {} if _sized is None else _sized(len(vertices))
    vertices = vertices.astype(np.uint32, copy=False)
    values = np.ascontiguousarray(values, np.float64 if values.dtype.kind == "f" else np.int64)
    for begin in range(0, len(vertices), _BLOCK):
        part = slice(begin, begin + _BLOCK)
        if not fill(id(result), nodes, vertices[part], values[part]):
            raise MemoryError
    return result
