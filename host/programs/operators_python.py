"""The operators on the device "python": bodies are called as they are, so that breakpoints and ``print`` work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gpu_pregel.errors import ProgramError
from gpu_pregel.host.graphs.csr import CSR
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.programs.bodies import Bodies, Function, read_only_error
from gpu_pregel.host.programs.interpreter import STRICT

Array = np.ndarray[Any, Any]


class PythonSet:
    """A set of vertices, as an array of flags."""

    def __init__(self, flags: Array, degrees: Array) -> None:
        self.flags = flags
        self.count = int(flags.sum())
        self.edges = int(degrees[flags].sum())


class PythonOperators:
    """Runs operators in the Python interpreter: vertices and edges in ascending order."""

    pushes_to_all = False

    def __init__(self, graph: Graph) -> None:
        self._graph = graph

    def arrays_of(self, csr: CSR) -> CSR:
        """Return the arrays of the CSR or CSC."""
        return csr

    def is_of_graph(self, array: Any) -> bool:  # noqa: ARG002
        """Whether a device array belongs to the graph."""
        return False

    def everything(self) -> PythonSet:
        """Return the set of all vertices."""
        return self.chosen(np.ones(self._graph.num_vertices, bool))

    def chosen(self, flags: Array) -> PythonSet:
        """Return the set of the vertices with true ``flags``, bool[n]."""
        return PythonSet(flags, self._graph.out_degrees)

    def flags(self, active: PythonSet) -> Array:
        """Return bool[n]: whether each vertex is in the set."""
        return active.flags

    def union(self, one: PythonSet, other: PythonSet) -> PythonSet:
        """Return the set of the vertices of both."""
        return self.chosen(one.flags | other.flags)

    def degree_sum(self, active: PythonSet, csr: CSR) -> int:
        """Return the sum of the degrees of a set's vertices."""
        return int(np.diff(csr.indptr)[active.flags].sum())

    def process_vertices(self, bodies: Bodies, active: PythonSet, arrays: tuple[Any, ...], returns: str) -> Any:
        """Implement ``process_vertices``."""
        body = _plain(bodies.body)
        with np.errstate(**STRICT):
            results = ((v, body(v, *arrays)) for v in np.flatnonzero(active.flags).tolist())
            return self._collect(results, bodies, returns)

    def process_edges(
        self, bodies: Bodies, active: PythonSet, arrays: tuple[Any, ...], returns: str, *, transpose: bool, push: bool
    ) -> Any:
        """Implement ``process_edges``: a push goes over the rows of senders, a pull over those of receivers."""
        csr = self._graph.csc if transpose == push else self._graph._csr
        edges = self._push(csr, bodies, active, arrays) if push else self._pull(csr, bodies, active, arrays)
        with np.errstate(**STRICT):
            return self._collect(edges, bodies, returns)

    def _push(self, csr: CSR, bodies: Bodies, active: PythonSet, arrays: tuple[Any, ...]) -> Iterator[tuple[int, Any]]:
        body, receives = _plain(bodies.body), _plain(bodies.receives)
        for u in np.flatnonzero(active.flags).tolist():
            for v, weight in _row(csr, u):
                if receives is None or receives(v, *arrays):
                    yield v, body(u, v, weight, *arrays)

    def _pull(self, csr: CSR, bodies: Bodies, active: PythonSet, arrays: tuple[Any, ...]) -> Iterator[tuple[int, Any]]:
        body, receives = _plain(bodies.body), _plain(bodies.receives)
        for v in range(self._graph.num_vertices):
            for u, weight in _row(csr, v):
                if receives is not None and not receives(v, *arrays):
                    break
                if active.flags[u]:
                    yield v, body(u, v, weight, *arrays)

    def _collect(self, results: Iterator[tuple[int, Any]], bodies: Bodies, returns: str) -> Any:
        """Return the sum of the results, or the set of the vertices whose result is true."""
        found = np.zeros(self._graph.num_vertices, bool)
        total: Any = 0
        for v, result in _explaining_writes(results, bodies):
            if not isinstance(result, (bool, int, float, np.number, np.bool_)):
                expected = "True or False" if returns == "frontier" else "a number"
                place = _place_of(bodies.body)
                raise ProgramError(f"the body returns {result!r:.80}, but must return {expected}{place}")
            if returns == "sum":
                total += np.asarray(result).item()
            elif result:
                found[v] = True
        return self.chosen(found) if returns == "frontier" else total


def _explaining_writes(results: Iterator[Any], bodies: Bodies) -> Iterator[Any]:
    """Yield the results; replace NumPy's error for a write to a read-only array."""
    try:
        yield from results
    except ValueError as error:
        if "destination is read-only" not in str(error):
            raise
        raise read_only_error("the body", bodies.kinds, _place_of(bodies.body)) from error


def _place_of(function: Function) -> str:
    code = _plain(function).__code__
    return f" ({code.co_filename}, line {code.co_firstlineno})"


def _plain(function: Any) -> Any:
    """Return the Python function of one that Numba compiles."""
    return getattr(function, "py_func", function)


def _row(csr: CSR, row: int) -> Iterator[tuple[int, Any]]:
    """Yield the other ends of a row's edges, with their weights.

    Weights are Python's numbers: NumPy's would keep the results of ``weight * 0.1`` and ``weight * 1000`` in the dtype
    of the weights, which compiled bodies widen.
    """
    begin, end = csr.indptr[row], csr.indptr[row + 1]
    for e in range(begin, end):
        yield int(csr.indices[e]), 1.0 if csr.weights is None else csr.weights[e].item()
