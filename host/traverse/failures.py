"""Errors of bodies of operators that raise in compiled code: the call is repeated in Python, which says where."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numba.core.errors import NumbaError

from gpu_pregel.errors import EmulationError, GpuPregelError, ProgramError
from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.traverse.functions import line_of, text_of
from gpu_pregel.host.traverse.labels import LabelBodies
from gpu_pregel.host.traverse.operators_python import AnyBodies, PythonOperators, PythonSet
from gpu_pregel.host.traverse.pairs import PairBodies, pair_in_words
from gpu_pregel.host.traverse.rows import RowBodies

Array = np.ndarray[Any, Any]


@contextmanager
def naming_failures(
    frontier: Any, arrays: tuple[Any, ...], repeat: Callable[[PythonOperators, PythonSet, tuple[Any, ...]], Any]
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
        operators = PythonOperators(frontier.graph)
        repeat(operators, operators.chosen(frontier.flags()), _copies(arrays, frontier.device))
        raise


def _copies(arrays: tuple[Any, ...], device: Device) -> tuple[Any, ...]:
    """Return the arrays of a call in host memory, where writing to them changes nothing."""
    numbers = (bool, int, float, np.generic)
    return tuple(one if isinstance(one, numbers) else np.array(device.download(one)) for one in arrays)


def _weights(graph: Graph, u: int, v: int) -> list[Any]:
    """Return the weights of the edges from u to v or, if an operator follows them backwards, from v to u."""
    for row, other in ((u, v), (v, u)):
        first, last = graph.indptr[row : row + 2]
        places = first + np.flatnonzero(graph.indices[first:last] == other)
        if len(places):
            break
    return [1.0] if graph.weights is None else graph.weights[places].tolist()


def _failed(bodies: AnyBodies, *, has_edge: bool) -> tuple[str, Any]:
    """Return the role of the function that failed for an edge or a vertex, and the function."""
    if isinstance(bodies, PairBodies):
        return ("visit", bodies.visit) if has_edge else ("finish", bodies.finish)
    if isinstance(bodies, LabelBodies):
        return ("label", bodies.label) if has_edge else ("finish", bodies.finish)
    if isinstance(bodies, RowBodies):
        return ("message", bodies.message) if has_edge else ("finish", bodies.finish)
    is_body = has_edge or bodies.weight is None
    return ("the body", bodies.body) if is_body else ("receives", bodies.receives)


def check_bodies(
    record: Array,
    bodies: AnyBodies,
    arrays: tuple[Any, ...],
    graph: Graph,
    device: Device,
) -> None:
    """Raise ``ProgramError`` if a kernel recorded that a function of an operator raised.

    The call is repeated in Python to learn where and why; by then the arrays may have changed. The first two arrays of
    ``PairBodies`` are the pairs.
    """
    from gpu_pregel.kernels.traverse.failures_cuda import read_edge_failure

    failure = read_edge_failure(*record.tolist())
    if failure is None:
        return
    u, v = failure.vertex, failure.other
    role, function = _failed(bodies, has_edge=v is not None)
    plain, cause, copies = getattr(function, "py_func", function), None, _copies(arrays, device)
    twin = PythonOperators(graph)
    alone = twin.chosen(np.arange(graph.num_vertices) == u)
    try:
        if isinstance(bodies, RowBodies) and v is None:
            twin.reduce_rows(bodies, alone, copies, None)
        elif isinstance(bodies, LabelBodies):
            twin.count_labels(bodies, alone, copies, None)
        elif isinstance(bodies, PairBodies):
            twin.intersect_rows(bodies, (copies[0], copies[1]), copies[2:], None, [u])
        elif v is None:
            plain(u, *copies)
        else:
            for weight in _weights(graph, u, v):
                plain(u, v, weight, *copies)
    except Exception as error:
        cause = error
    is_pair = isinstance(bodies, PairBodies)
    vertices = [int(ends[u]) for ends in copies[:2]] if is_pair else [u]
    ids = graph.to_ids(np.array(vertices if v is None else [*vertices, v])).tolist()
    where = f"vertex {ids[0]!r}" if v is None else f"the edge from {ids[0]!r} to {ids[1]!r}"
    if is_pair:
        where = pair_in_words(*ids)
    why = f"{failure.exception} in compiled code; a second call, with the arrays as they are now, does not fail"
    if cause is not None:
        why = text_of(cause)
    place = line_of(function, None if cause is None else cause.__traceback__)
    raise ProgramError(f"{role} fails for {where} ({place}): {why}") from cause
