"""Combiners whose results depend on the order of messages are refused, with an example."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import ProgramError

WRONG: dict[str, tuple[Any, Any, str]] = {
    "a difference": (gp.Combiner(lambda a, b: a - b, 0), 1, r"combine\(combine\(3, 3\), 3\) is -3 and .* is 3"),
    "a mean": (
        gp.Combiner(lambda a, b: (a + b) / 2, 0.0),
        0.5,
        r"combine\(combine\(3.0, 3.0\), 1.0\) is 2.0 and .* is 2.5",
    ),
    "the first": (gp.Combiner(lambda a, b: a, 0), 1, r"combine\(3, 1\) is 3 and combine\(1, 3\) is 1"),
    "another identity": (gp.Combiner(lambda a, b: a * b, 0), 1, r"combine\(identity, 3\) is 0"),
    "one field": (
        *(gp.Combiner(lambda a, b: (a[0] + b[0], a[1]), (0, 0.0)), (1, 0.5)),
        r"combine\(\(3, 1.0\), \(1, 2.0\)\) is \(4, 1.0\)",
    ),
}

RIGHT: dict[str, tuple[Any, Any]] = {
    "a divisor": (gp.Combiner(lambda a, b: math.gcd(a, b), 0), 1),
    "a product by a modulus": (gp.Combiner(lambda a, b: a * b % 1009, 1), 1),
    "logarithms": (gp.Combiner(lambda a, b: np.logaddexp(a, b), -np.inf), 0.5),
    "fields": (gp.Combiner(lambda a, b: (a[0] + b[0], max(a[1], b[1])), (0, -np.inf)), (1, 0.5)),
    "flags": (gp.Combiner(lambda a, b: a != b, False), True),
}


def reduce(combine: Any, message: Any) -> None:
    frontier = gp.Frontier(gp.grid(3), device="python")
    gp.reduce_rows(lambda v, u, weight: message, combine, frontier, finish=lambda v, combined: False)


@pytest.mark.parametrize("case", WRONG)
def test_a_combiner_that_depends_on_the_order_is_refused(case: str) -> None:
    combine, message, example = WRONG[case]
    with pytest.raises(ProgramError, match=rf"combine \(.*test_combiners.py, line \d+: .*{example}.*: combine sums"):
        reduce(combine, message)


@pytest.mark.parametrize("case", RIGHT)
def test_others_are_taken(case: str) -> None:
    reduce(*RIGHT[case])


def test_programs_and_aggregates_are_checked_too() -> None:
    def program(**options: Any) -> gp.VertexProgram:
        common: dict[str, Any] = {"value": np.int64, "init": lambda ctx: 1, "message": lambda value, ctx: value}
        return gp.VertexProgram(**common, apply=lambda value, incoming, ctx: incoming, **options)

    wrong = gp.Combiner(lambda a, b: a - b, 0)
    aggregators = {"rest": gp.Aggregator(wrong, lambda old, new, ctx: new, np.int64)}
    for one in (program(combine=wrong), program(combine="min", aggregators=aggregators)):
        with pytest.raises(ProgramError, match="in any order and grouping"):
            gp.run(gp.grid(3), one, device="cpu")


def test_functions_that_may_never_return_are_not_tried() -> None:
    def endless(a: Any, b: Any) -> Any:
        while a != b:
            a = a + 0
        return a

    frontier = gp.Frontier(gp.Graph.from_edgelist([0], [1]), device="python")
    # Each vertex has one message, which combines with an equal identity.
    gp.reduce_rows(lambda v, u, weight: 7, gp.Combiner(endless, 7), frontier, finish=lambda v, combined: False)
