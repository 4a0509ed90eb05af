"""Compilation of the functions of ``intersect_rows``: functions of common neighbours, and of pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numba import types

from gpu_pregel.errors import GraphError
from gpu_pregel.host.graphs import csr as host_csr
from gpu_pregel.host.graphs.csr import INDEX_DTYPE
from gpu_pregel.host.graphs.graph import Graph
from gpu_pregel.host.traverse.bodies import check_returned, content_key, kept, result_of
from gpu_pregel.host.traverse.functions import device_function
from gpu_pregel.kernels.library.jit_cpu import device
from gpu_pregel.kernels.library.sorted_rows import find
from gpu_pregel.kernels.traverse.fields import Fields, generated

Array = np.ndarray[Any, Any]
Function = Callable[..., Any]


def pair_total(i: Any, u: Any, v: Any, total: Any, *arrays: Any) -> Any:  # noqa: ARG001
    """Return the sum of what ``visit`` has returned for a pair."""
    return total


class PairBodies(NamedTuple):
    """What a kernel that intersects rows is made from.

    Attributes
    ----------
    visit, finish : callable
        The user's functions; ``finish`` is None if it is :func:`pair_total`.
    kinds : tuple of Numba types
        The types of the arrays and numbers that are passed to both.
    weight : Numba type
    has_weights : bool
        Whether the weights of the graph are read; without, every weight is 1.
    transpose : bool
        Whether rows are those of the in-edges.
    """

    visit: Function
    finish: Function | None
    kinds: tuple[Any, ...]
    weight: Any
    has_weights: bool
    transpose: bool

    @property
    def key(self) -> tuple[Any, ...]:
        """What kernels of these bodies depend on."""
        own = content_key(self.visit), content_key(self.finish)
        return (*own, self.kinds, self.weight, self.has_weights)

    @property
    def visit_arguments(self) -> tuple[Any, ...]:
        """The types of the arguments of ``visit``."""
        return (*(types.int64,) * 4, self.weight, self.weight, *self.kinds)

    def sums(self, returns: str | None) -> bool:
        """Return whether what ``visit`` returns is summed."""
        return self.finish is not None or returns is not None


class PairCount:
    """The number of pairs, as the trace shows it."""

    def __init__(self, count: int) -> None:
        self.count = self.edges = count


class CompiledPairs(NamedTuple):
    """The functions compiled for use in kernels, after checks of their results.

    Attributes
    ----------
    visit, finish : callable
    fields : Fields
        The type of a sum of what ``visit`` returns: int64 or float64; int64 if it is not summed.
    total : dtype or None
        Of what ``finish`` returns, or of its sum; None if it is not used.
    is_silent : bool
        Whether what ``visit`` returns is ignored.
    """

    visit: Any
    finish: Any
    fields: Fields
    total: np.dtype[Any] | None
    is_silent: bool


def compile_pairs(bodies: PairBodies, returns: str | None, jit: Any = device) -> CompiledPairs:
    """Return the functions compiled with ``jit``, after a check of their results, which is kept on disk.

    Raises
    ------
    ProgramError
        A function cannot be compiled, or does not return a number where one is needed.
    """
    functions = [one for one in (bodies.visit, bodies.finish) if one is not None]
    part, total = kept("pairs", bodies, functions, returns, lambda: _check(bodies, returns))
    return CompiledPairs(
        visit=device_function(bodies.visit, jit),
        finish=device_function(bodies.finish or pair_total, jit),
        fields=Fields((np.dtype(part),), False),
        total=None if total is None else np.dtype(total),
        is_silent=not bodies.sums(returns),
    )


def _check(bodies: PairBodies, returns: str | None) -> tuple[str, str | None]:
    """Raise an error unless the functions return what they must; return the dtypes of sums and of results."""
    result, place = result_of(bodies.visit, "visit", bodies.visit_arguments, bodies.kinds)
    check_returned("visit", result, "sum" if bodies.sums(returns) else None, place)
    part = "<f8" if isinstance(result, types.Float) else "<i8"
    if bodies.finish is None:
        return part, part if returns else None
    total = types.float64 if part == "<f8" else types.int64
    arguments = (types.int64, types.int64, types.int64, total, *bodies.kinds)
    result, place = result_of(bodies.finish, "finish", arguments, bodies.kinds)
    check_returned("finish", result, "sum" if returns else None, place)
    whole = "<f8" if isinstance(result, types.Float) else "<i8"
    return part, whole if returns else None


def pair_in_words(u: Any, v: Any, w: Any = None) -> str:
    """Return the place of an error in words, given ids: a pair, or a common neighbour of it."""
    pair = f"the pair of {u!r} and {v!r}"
    return pair if w is None else f"{pair} and their neighbour {w!r}"


def check_ends(graph: Graph, *ends: Array) -> None:
    """Raise ``GraphError`` unless all are numbers of vertices."""
    n = graph.num_vertices
    for k, numbers in enumerate(ends):
        if len(numbers) and (numbers.min() < 0 or numbers.max() >= n):
            i = np.flatnonzero((numbers < 0) | (numbers >= n))[0]
            raise GraphError(
                f"pairs[{k}][{i}] is {numbers[i]:,}, but the graph has {n:,} vertices: use numbers below {n:,}, as "
                f"graph.vertices(ids) finds them"
            )


def edge_ends(graph: Graph, flags: Array | None, threads: int) -> tuple[Array, Array]:
    """Return the ends of the edges of the vertices with true ``flags``, or of all, as two arrays uint32.

    In an undirected graph, the edges between two of these vertices are those in the row of the lower number.
    """
    csr = graph._csr
    first, second = host_csr.sources(csr, threads=threads), np.asarray(csr.indices, INDEX_DTYPE)
    kept = np.ones(len(first), bool) if flags is None else flags[first]
    if not graph.is_directed:
        kept &= (first <= second) if flags is None else (first <= second) | ~flags[second]
    return first[kept], second[kept]


def pair_body(pairs: CompiledPairs, count: int, returns: str | None, *, has_weights: bool) -> Any:
    """Return ``body(i, indptr, indices, weights, first, second, found, *arrays)`` for the CPU: intersect two rows.

    The shorter row is walked, and the longer one searched. ``count`` is the number of arrays. With ``returns="pairs"``,
    the result is stored in ``found``.
    """
    names = "".join(f", a{k}" for k in range(count))
    weights = ("weights[x]", "weights[y]") if has_weights else ("one", "one")
    call = f"visit(i, u, v, int64(indices[e]), {', '.join(weights)}{names})"
    end = {"pairs": "found[i] = result\n    return 0", "sum": "return result", None: "return 0"}[returns]
    source = (
        f"def body(i, indptr, indices, weights, first, second, found{names}):\n"
        f"    u, v = int64(first[i]), int64(second[i])\n"
        f"    begin, end, other, other_end = indptr[u], indptr[u + 1], indptr[v], indptr[v + 1]\n"
        f"    is_first = end - begin <= other_end - other\n"
        f"    if not is_first:\n"
        f"        begin, end, other, other_end = other, other_end, begin, end\n"
        f"    total = zero\n"
        f"    for e in range(begin, end):\n"
        f"        if e > begin and indices[e] == indices[e - 1]:\n"
        f"            continue\n"
        f"        other = find(indices, other, other_end, indices[e])\n"
        f"        if other == other_end:\n"
        f"            break\n"
        f"        if indices[other] == indices[e]:\n"
        f"            x, y = (e, other) if is_first else (other, e)\n"
        f"            {call if pairs.is_silent else f'total += number({call})'}\n"
        f"    result = finish(i, u, v, total{names})\n"
        f"    {end}\n"
    )
    given: dict[str, Any] = {"visit": pairs.visit, "finish": pairs.finish, "find": find, "int64": np.int64}
    number = pairs.fields.dtypes[0].type
    return generated(device, "body", source, **given, number=number, zero=number(0), one=np.float32(1))
