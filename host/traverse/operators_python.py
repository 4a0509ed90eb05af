"""The operators on the device "python": bodies are called as they are, so that breakpoints and ``print`` work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Any

import numpy as np

from gpu_pregel.errors import CompileError, ProgramError
from gpu_pregel.host.graphs.csr import CSR
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.traverse.bodies import EXPECTED, Bodies, Function, kernel_of, read_only_error
from gpu_pregel.host.traverse.combiners import absorbing, resolve_combiner
from gpu_pregel.host.traverse.compiled_arithmetic import compiled_value
from gpu_pregel.host.traverse.functions import interpreted_function, line_of
from gpu_pregel.host.traverse.interpreted import STRICT, MisfitError, fit
from gpu_pregel.host.traverse.labels import LabelBodies
from gpu_pregel.host.traverse.pairs import PairBodies, check_ends, compile_pairs, edge_ends, pair_in_words
from gpu_pregel.host.traverse.rows import RowBodies, message_fields
from gpu_pregel.kernels.traverse.fields import Fields
from gpu_pregel.kernels.traverse.tables import EMPTY

Array = np.ndarray[Any, Any]
AnyBodies = Bodies | RowBodies | LabelBodies | PairBodies
"""What the kernels of one of the operators are made from."""


class PythonSet:
    """A set of vertices, as an array of flags."""

    def __init__(self, flags: Array, degrees: Array) -> None:
        self.flags = flags
        self.count = int(flags.sum())
        self.edges = int(degrees[flags].sum())


class PythonOperators:
    """Runs operators in the Python interpreter: vertices and edges in ascending order."""

    pushes_to_all = False
    bits = 1

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

    def listed(self, active: PythonSet) -> Array:
        """Return the numbers of a set's vertices in ascending order."""
        return np.flatnonzero(active.flags)

    def bitmap(self, active: PythonSet) -> Array:
        """Return the flags of a set."""
        return active.flags

    def from_bitmap(self, words: Array, most: int) -> PythonSet:  # noqa: ARG002
        """Return the set of the vertices with true flags, which are copied."""
        return self.chosen(words.copy())

    def union(self, one: PythonSet, other: PythonSet) -> PythonSet:
        """Return the set of the vertices of both."""
        return self.chosen(one.flags | other.flags)

    def degree_sum(self, active: PythonSet, csr: CSR) -> int:
        """Return the sum of the degrees of a set's vertices."""
        return int(np.diff(csr.indptr)[active.flags].sum())

    def process_vertices(self, bodies: Bodies, active: PythonSet, arrays: tuple[Any, ...], returns: str | None) -> Any:
        """Implement ``process_vertices``."""
        body = self._called(bodies.body, "the body", bodies, returns)
        with np.errstate(**STRICT):
            results = ((v, body(v, *arrays)) for v in np.flatnonzero(active.flags).tolist())
            return self._collect(results, returns)

    def process_edges(
        self,
        bodies: Bodies,
        active: PythonSet,
        arrays: tuple[Any, ...],
        returns: str | None,
        *,
        transpose: bool,
        push: bool,
    ) -> Any:
        """Implement ``process_edges``: a push goes over the rows of senders, a pull over those of receivers."""
        csr = self._graph.csc if transpose == push else self._graph._csr
        body = self._called(bodies.body, "the body", bodies, returns, ends=2)
        receives = None if bodies.receives is None else self._called(bodies.receives, "receives", bodies, "frontier")
        edges = (self._push if push else self._pull)(csr, body, receives, active, arrays)
        with np.errstate(**STRICT):
            return self._collect(edges, returns)

    def reduce_rows(self, bodies: RowBodies, active: PythonSet, arrays: tuple[Any, ...], returns: str | None) -> Any:
        """Implement ``reduce_rows``: rows in ascending order, and the edges of each in theirs."""
        csr = self._graph.csc if bodies.transpose else self._graph._csr
        message = self._called(bodies.message, "message", bodies, "message", ends=2)
        finish = self._called(bodies.finish, "finish", bodies, returns)
        with np.errstate(**STRICT):
            vertices = np.flatnonzero(active.flags).tolist()
            edges = (message(v, u, weight, *arrays) for v in vertices for u, weight in _row(csr, v))
            fields = _fields_of(bodies, edges)
            function, start = resolve_combiner(bodies.combine, fields)
            parts = start if fields.is_tuple else (start,)
            identity = fields.pack([part.item() for part in parts])
            last = absorbing(bodies.combine, fields)

            def fitted(result: Any, role: str, place: str) -> Any:
                try:
                    return fit(result, fields, wraps=role == "combine")
                except MisfitError as error:
                    raise ProgramError(f"{role} returns {error} ({place})") from None

            def results() -> Iterator[tuple[int, Any]]:
                for v in vertices:
                    found = identity
                    for u, weight in _row(csr, v):
                        one = fitted(message(v, u, weight, *arrays), "message", line_of(bodies.message))
                        found = fitted(function(found, one), "combine", line_of(function))
                        if last is not None and found == last:
                            break
                    yield v, finish(v, found, *arrays)

            return self._collect(results(), returns)

    def count_labels(self, bodies: LabelBodies, active: PythonSet, arrays: tuple[Any, ...], returns: str | None) -> Any:
        """Implement ``count_labels``: rows in ascending order, and the labels of each in theirs."""
        csr = self._graph.csc if bodies.transpose else self._graph._csr
        called = {
            role: self._called(
                *(function, role, bodies, {"finish": returns, "choose": "sum"}.get(role, "integer")),
                ends=2 if role in ("label", "weigh") else 1,
            )
            for role, (function, _) in bodies.roles.items()
        }

        def results() -> Iterator[tuple[int, Any]]:
            for v in np.flatnonzero(active.flags).tolist():
                totals: dict[int, int] = {}
                for u, weight in _row(csr, v):
                    label = int(called["label"](v, u, weight, *arrays))
                    if label >= EMPTY:
                        raise ProgramError(f"label returns {label:,}, but labels are below {EMPTY:,}")
                    if label >= 0:
                        amount = called["weigh"](v, u, weight, *arrays) if "weigh" in called else 1
                        totals[label] = totals.get(label, 0) + int(amount)
                scores = {label: called["choose"](v, label, total, *arrays) for label, total in sorted(totals.items())}
                best = max(scores, key=scores.__getitem__, default=-1)
                yield v, called["finish"](v, best, totals.get(best, 0), *arrays)

        with np.errstate(**STRICT):
            return self._collect(results(), returns)

    def edges(self, active: PythonSet) -> tuple[Array, Array]:
        """Return the ends of the edges of a set's vertices."""
        return edge_ends(self._graph, active.flags, 1)

    def intersect_rows(
        self,
        bodies: PairBodies,
        pairs: tuple[Array, Array],
        arrays: tuple[Any, ...],
        returns: str | None,
        only: Iterable[int] | None = None,
    ) -> Any:
        """Implement ``intersect_rows``: pairs in ascending order, or ``only`` some."""
        check_ends(self._graph, *pairs)
        csr = self._graph.csc if bodies.transpose else self._graph._csr
        visit = self._called(bodies.visit, "visit", bodies, "sum" if bodies.sums(returns) else None, ends=4)
        finish = bodies.finish and self._called(bodies.finish, "finish", bodies, "sum" if returns else None, ends=3)
        results: list[Any] = []
        with np.errstate(**STRICT):
            for i in range(len(pairs[0])) if only is None else only:
                u, v = int(pairs[0][i]), int(pairs[1][i])
                # Of repeated edges, the first one counts.
                one, other = (dict(reversed(list(_row(csr, vertex)))) for vertex in (u, v))
                total: Any = 0
                for w in sorted(one.keys() & other.keys()):
                    part = visit(i, u, v, w, one[w], other[w], *arrays)
                    total += np.asarray(part).item() if bodies.sums(returns) else 0
                results.append(finish(i, u, v, total, *arrays) if finish else total)
        if returns is None:
            return None
        results = [np.asarray(result).item() for result in results]
        dtype = _dtype_of_pairs(bodies, returns, results)
        return np.array(results, dtype) if returns == "pairs" else sum(results, dtype.type(0).item())

    def _push(
        self, csr: CSR, body: Function, receives: Function | None, active: PythonSet, arrays: tuple[Any, ...]
    ) -> Iterator[tuple[int, Any]]:
        for u in np.flatnonzero(active.flags).tolist():
            for v, weight in _row(csr, u):
                if receives is None or receives(v, *arrays):
                    yield v, body(u, v, weight, *arrays)

    def _pull(
        self, csr: CSR, body: Function, receives: Function | None, active: PythonSet, arrays: tuple[Any, ...]
    ) -> Iterator[tuple[int, Any]]:
        for v in range(self._graph.num_vertices):
            for u, weight in _row(csr, v):
                if receives is not None and not receives(v, *arrays):
                    break
                if active.flags[u]:
                    yield v, body(u, v, weight, *arrays)

    def _called(
        self,
        function: Any,
        role: str,
        bodies: AnyBodies,
        returns: str | None,
        ends: int = 1,
    ) -> Function:
        """Return a function that calls a user's one and checks its result.

        Errors get a note with the vertex or, where the first two arguments are vertices, the edge; of the functions of
        a pair, the vertices are those from the second argument on.
        """
        plain = interpreted_function(function)
        place = f" ({plain.__code__.co_filename}, line {plain.__code__.co_firstlineno})"
        numbers = (bool, int, np.integer, np.bool_) + ((float, np.floating) if returns == "sum" else ())

        def call(*arguments: Any) -> Any:
            try:
                result = plain(*map(compiled_value, arguments))
            except Exception as error:
                if isinstance(error, ValueError) and "destination is read-only" in str(error):
                    raise read_only_error(role, bodies.kinds, place) from error
                vertices = arguments[isinstance(bodies, PairBodies) : ends]
                ids = [self._graph.to_ids(np.array([vertex])).tolist()[0] for vertex in vertices]
                where = f"vertex {ids[0]!r}" if ends == 1 else f"the edge from {ids[0]!r} to {ids[1]!r}"
                if isinstance(bodies, PairBodies):
                    where = pair_in_words(*ids)
                error.add_note(f"raised by {role} for {where} ({line_of(function, error.__traceback__)})")
                raise
            if returns == "message":
                return result
            if returns is not None and not isinstance(result, numbers):
                found = "nothing" if result is None else f"{result!r:.80}"
                raise ProgramError(f"{role} returns {found}, but must return {EXPECTED[returns]}{place}")
            return result

        return call

    def _collect(self, results: Iterator[tuple[int, Any]], returns: str | None) -> Any:
        """Return the sum of the results, or the set of the vertices whose result is true, or nothing."""
        found = np.zeros(self._graph.num_vertices, bool)
        total: Any = 0
        for v, result in results:
            if returns == "sum":
                total += np.asarray(result).item()
            elif returns == "frontier" and result:
                found[v] = True
        if returns is None:
            return None
        return self.chosen(found) if returns == "frontier" else total


def _fields_of(bodies: RowBodies, messages: Iterator[Any]) -> Fields:
    """Return the types of the messages: those that a compiler finds or, where it finds none, those of the first one."""
    try:
        fields: Fields = kernel_of("fields", bodies, lambda: message_fields(bodies))
        return fields
    except CompileError:
        first = next(messages, 0)
    parts = first if isinstance(first, tuple) else (first,)
    return Fields(tuple(np.asarray(part).dtype for part in parts), isinstance(first, tuple))


def _dtype_of_pairs(bodies: PairBodies, returns: str, results: list[Any]) -> np.dtype[Any]:
    """Return the dtype of the results of pairs: that which a compiler finds or, where it finds none, theirs."""
    is_float = any(isinstance(result, float) for result in results)
    with suppress(ProgramError):
        is_float = is_float or compile_pairs(bodies, returns).total == np.float64
    return np.dtype(np.float64 if is_float else np.int64)


def _row(csr: CSR, row: int) -> Iterator[tuple[int, Any]]:
    """Yield the other ends of a row's edges, with their weights.

    Weights are Python's numbers: NumPy's would keep the results of ``weight * 0.1`` and ``weight * 1000`` in the dtype
    of the weights, which compiled bodies widen.
    """
    begin, end = csr.indptr[row], csr.indptr[row + 1]
    for e in range(begin, end):
        yield int(csr.indices[e]), 1.0 if csr.weights is None else csr.weights[e].item()
