"""Errors of bodies of operators that raise in compiled code: the call is repeated in Python, which says where."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numba.core.errors import NumbaError

from gpu_pregel.errors import EmulationError, GpuPregelError
from gpu_pregel.host.traverse.frontier import Frontier
from gpu_pregel.host.traverse.operators_python import PythonOperators, PythonSet


@contextmanager
def naming_failures(
    frontier: Frontier, arrays: tuple[Any, ...], repeat: Callable[[PythonOperators, PythonSet, tuple[Any, ...]], Any]
) -> Iterator[None]:
    """Repeat a call of an operator whose body raises, which adds the vertex and the line to the error.

    By then the arrays may have changed. What the emulator refuses is repeated too.
    """
    try:
        yield
    except Exception as error:
        is_ours = isinstance(error, (GpuPregelError, NumbaError, MemoryError))
        if frontier.device.name == "python" or (is_ours and not isinstance(error, EmulationError)):
            raise
        operators, numbers = PythonOperators(frontier.graph), (bool, int, float, np.generic)
        copies = [one if isinstance(one, numbers) else np.array(frontier.download(one)) for one in arrays]
        repeat(operators, operators.chosen(frontier.flags()), tuple(copies))
        raise
