"""Calls of the algorithms of the registry on small graphs, which together compile what calls on other graphs need.

Kernels are compiled for the types of their arguments, so that the graphs are of all kinds: directed or not, with and
without weights. Several algorithms have other kernels for few edges, for long paths, and for a single thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from gpu_pregel.algorithms._entry import Algorithm, Option

if TYPE_CHECKING:
    from gpu_pregel.host.graphs.graph import Graph

WEIGHTS = (None, "float32", "float64", "int64", "int32")
"""The dtypes of weights of the graphs; None stands for no weights."""
_NUMBERS = {"p": 0.25, "q": 0.25, "delta": 2.0}
"""Values of the options of the kind "number" that choose other kernels."""
FEW_VERTICES = 100
"""Graphs of fewer vertices are computed by one thread."""
_FEW = 5
"""The value of options of the kind "integer", such as limits."""
_SOURCES = (5, 9)
"""Numbers of sources, of which few are searched one after the other and several in blocks."""
_LEAVES = 1100
"""The degree of a star, whose row several blocks of a GPU read."""
_SHARED = 300
"""The neighbours that its centre shares with another one, more than a warp of a GPU looks for."""
_MOST_SOURCES = 1 << 9
"""Algorithms that search from every source are called with fewer on graphs with more vertices."""


class Shape(NamedTuple):
    """The edges of a sample graph, without direction and weights."""

    vertices: int
    sources: np.ndarray[Any, Any]
    targets: np.ndarray[Any, Any]


def _shapes(*, large: bool) -> Iterator[Shape]:
    """Yield a few edges and a star of two centres; if ``large``, edges for several threads, a grid and a long path."""
    yield _random(40, 120)
    leaves, center = np.arange(1, _LEAVES + 1), np.zeros(_LEAVES, np.int64)
    leaves, center = np.concatenate([leaves, leaves[1:_SHARED]]), np.concatenate([center, 0 * leaves[1:_SHARED] + 1])
    yield Shape(_LEAVES + 1, np.concatenate([leaves, center]), np.concatenate([center, leaves]))
    if large:
        yield _random(300, 40_000)
        yield _random(1 << 15, 1 << 17)
        vertex = np.arange(72 * 72).reshape(72, 72)
        sources, targets = (vertex[:, :-1], vertex[:-1]), (vertex[:, 1:], vertex[1:])
        yield Shape(vertex.size, *(np.concatenate([part.ravel() for part in ends]) for ends in (sources, targets)))
        yield Shape(1 << 12, np.arange((1 << 12) - 1), np.arange(1, 1 << 12))


def _random(vertices: int, edges: int) -> Shape:
    """Return edges of which some are parallel, some are loops, and many are those of a few vertices."""
    ends = vertices * np.random.default_rng(0).random((2, edges)) ** 5
    return Shape(vertices, *ends.astype(np.int64))


def graphs(entry: Algorithm, *, large: bool) -> Iterator[Graph]:
    """Yield graphs of each kind that the algorithm accepts; the large ones have more than 2^14 vertices or edges."""
    from gpu_pregel.host.graphs.graph import Graph

    for shape in _shapes(large=large):
        sources, targets = shape.sources, shape.targets
        if "acyclic" in entry.requires:
            kept = sources != targets
            sources, targets = np.minimum(sources, targets)[kept], np.maximum(sources, targets)[kept]
        for directed, dtype in product((False, True), WEIGHTS):
            if _accepts(entry, directed) and not (dtype is None and "weights" in entry.requires):
                weight = None if dtype is None else (1 + np.arange(len(sources)) % 7).astype(dtype)
                ids = np.arange(shape.vertices)
                yield Graph.from_edgelist(sources, targets, weight, directed=directed, vertices=ids)


def _accepts(entry: Algorithm, directed: bool) -> bool:
    return not {"directed", "acyclic"} & set(entry.requires) if not directed else "undirected" not in entry.requires


def arguments(entry: Algorithm, graph: Graph) -> Iterator[dict[str, Any]]:
    """Yield the required arguments, and those with each value of each option that chooses among kernels."""
    required = entry.sample_arguments(graph) or {}
    if entry.is_per_source and graph.num_vertices > _MOST_SOURCES:
        yield from ({**required, "sources": count} for count in _SOURCES)
        return
    yield required
    for option in entry.options:
        for value in _values(option, graph):
            if required.get(option.argument) != value:
                yield {**required, option.argument: value}


def _values(option: Option, graph: Graph) -> tuple[Any, ...]:
    if option.choices:
        return option.choices
    if option.kind == "flag":
        return (False, True)
    if option.kind == "number":
        return (_NUMBERS[option.argument],) if option.argument in _NUMBERS else ()
    if option.kind == "integer":
        return () if option.argument == "seed" else (_FEW,)
    return () if option.required else (option.sample_value(graph),)


def make_graphs(threads: int) -> Iterator[Graph]:
    """Generate graphs, and derive others from graphs of each kind, for the kernels of graphs; yield each graph."""
    from gpu_pregel.host.graphs import generators
    from gpu_pregel.host.graphs.graph import Graph

    made = [generators.kronecker(6, threads=threads), generators.uniform(6, threads=threads)]
    made.append(generators.grid(8, 8, threads=threads))
    edges = _random(40, 120)
    for directed, dtype in product((False, True), WEIGHTS):
        weight = None if dtype is None else np.ones(len(edges.sources), dtype)
        made.append(Graph.from_edgelist(edges.sources, edges.targets, weight, directed=directed))
    for graph in made:
        graph.transpose()
        graph.has_duplicates  # noqa: B018 (a derived fact)
        for combine in ("min", "sum", "max", "mean") if graph.weights is not None else ("first", "count"):
            graph.simplify(combine=combine)
            if graph.is_directed:
                graph.to_undirected(combine=combine)
        if graph.is_directed:
            graph.to_undirected()
        yield graph
