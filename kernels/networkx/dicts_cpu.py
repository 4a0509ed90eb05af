"""Fills the dicts of results, while the GIL is held: see ``python_objects_cpu``."""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.library.jit_cpu import jit_holding_gil
from gpu_pregel.kernels.library.memory_cpu import prefetch_at
from gpu_pregel.kernels.library.python_objects_cpu import clear_error, dict_insert, new_number, release

_AHEAD = 8
"""Prefetch distance: references to the nodes are counted, and these are in no order in memory."""


@jit_holding_gil
def fill(mapping, nodes, vertices, values):
    """Set the values of the nodes of some vertices, as new ints or floats; return whether there was enough memory.

    ``mapping`` is a dict; ``nodes``, int64[n], are objects of types that Python itself hashes and compares. Values in
    a row with the same bits share an object.
    """
    words = values.view(np.int64)
    value, last = 0, len(vertices) - 1
    for i in range(len(vertices)):
        prefetch_at(nodes[vertices[min(i + _AHEAD, last)]])
        if value == 0 or words[i] != words[i - 1]:
            if value != 0:
                release(value)
            value = new_number(values[i])
        if value == 0 or dict_insert(mapping, nodes[vertices[i]], value) != 0:
            clear_error()
            return False
    if value != 0:
        release(value)
    return True
