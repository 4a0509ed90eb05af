"""Calls of generators, which take no graph."""

from __future__ import annotations

from typing import Any

from tests.gpu_pregel.networkx.comparison import Case


def _made(*args: Any, **options: Any) -> Case:
    """Make the same graph a few times: the number of computed results is that of graphs."""
    return Case(lambda _: (args, options), graphs=("empty", "path", "cycle"))


# More edges than one call of a kernel draws.
_MANY = Case(lambda _: ((400, 0.95), {"seed": 4}), graphs=("empty",))

CASES: dict[str, list[Case]] = {
    "gnp_random_graph": [
        _made(40, 0.2, seed=1),
        _made(25, 0.5, seed=2, directed=True),
        _made(10, 0, seed=3),
        _made(6, 1, directed=True),
        _made(0, 0.5),
        _made(-3, 0.5),
        _made(10, float("nan")),
        _MANY,
    ],
    "fast_gnp_random_graph": [
        _made(80, 0.1, seed=1),
        _made(40, 0.2, seed=2, directed=True),
        _made(9, 1.5),
        _made(6, 1, directed=True),
        _made(1, 0.5, seed=4),
        _made(1, 1e-20, seed=4),
        _made(10, 1e-20, seed=4),
        _made(10, float("nan"), seed=4),
        _MANY,
    ],
    "gnm_random_graph": [
        _made(60, 150, seed=1),
        _made(30, 300, 2, True),
        _made(8, 28),
        _made(8, 60, directed=True),
        _made(1, 0),
        _made(5, -2, seed=1),
    ],
}
