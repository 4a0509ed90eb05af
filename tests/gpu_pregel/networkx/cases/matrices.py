"""Calls of matrices."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.gpu_pregel.networkx.comparison import Case, call


def _reversed(**options: Any) -> Case:
    return Case(lambda graph: ((graph, list(graph)[::-1]), options))


def _half(**options: Any) -> Case:
    return Case(lambda graph: ((graph, list(graph)[::2]), options))


def _halves(**options: Any) -> Case:
    return Case(lambda graph: ((graph, list(graph)[::2], list(graph)[1::2]), options))


_ABSENT = Case(lambda graph: ((graph, [*list(graph)[:2], "absent"]), {}))
_TWICE = Case(lambda graph: ((graph, list(graph) * 2), {}))
_STRUCTURED = call(dtype=[("weight", float), ("cost", int)], weight=None, graphs=("complete", "grid"))
_SQUARE = Case(lambda graph: ((graph, list(graph), list(graph)), {}))
_SOME = [call(), _reversed(weight="cost"), _half(weight=None), _ABSENT, _TWICE]

CASES: dict[str, list[Case]] = {
    "to_scipy_sparse_array": [*_SOME, call(format="coo", dtype=np.float32), call(format="other"), call([])],
    "to_numpy_array": [
        *_SOME,
        call(nonedge=np.inf),
        call(dtype=np.int16, weight="cost", order="F"),
        call([]),
        _STRUCTURED,
    ],
    "adjacency_matrix": _SOME,
    "laplacian_matrix": _SOME,
    "normalized_laplacian_matrix": _SOME,
    "modularity_matrix": _SOME,
    "directed_modularity_matrix": _SOME,
    "incidence_matrix": [
        call(),
        call(oriented=True, weight="weight"),
        _reversed(weight="cost", dtype=np.int32),
        _half(),
    ],
    "biadjacency_matrix": [
        _half(),
        _halves(weight="cost"),
        _reversed(),
        _ABSENT,
        _TWICE,
        call([]),
        _half(format="no"),
        _SQUARE,
    ],
}
