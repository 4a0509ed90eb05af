"""Fills the dicts of results, while the GIL is held: see ``python_objects_cpu``."""

from __future__ import annotations

from typing import Any

from gpu_pregel.kernels.library.jit_cpu import jit_holding_gil
from gpu_pregel.kernels.library.python_objects_cpu import clear_error, dict_insert, new_number, release


@jit_holding_gil
def fill(mapping: Any, nodes: Any, vertices: Any, values: Any) -> Any:
    """Set the values of the nodes of some vertices, as new ints or floats; return whether there was enough memory.

    ``mapping`` is a dict; ``nodes``, int64[n], are objects of types that Python itself hashes and compares.
    """
    for i in range(len(vertices)):
        value = new_number(values[i])
        if value == 0 or dict_insert(mapping, nodes[vertices[i]], value) != 0:
            clear_error()
            return False
        release(value)
    return True
