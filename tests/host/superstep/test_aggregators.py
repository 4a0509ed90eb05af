"""The class of aggregators, which vertex programs and agents share."""

from __future__ import annotations

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentTypeError


def test_both_kinds_of_vertices_use_one_class() -> None:
    assert gp.Aggregator is gp.agents.Aggregator


def test_an_initial_value_may_take_the_position_of_the_function() -> None:
    assert gp.agents.Aggregator("sum", 0.5) == gp.agents.Aggregator("sum", initial=0.5)
    assert gp.agents.Aggregator("sum", 0.5).function is None


def test_invalid_aggregators_are_refused() -> None:
    with pytest.raises(ArgumentTypeError, match="Aggregator's function must be a function, not 1"):
        gp.Aggregator("sum", 1, initial=2)
    with pytest.raises(ArgumentTypeError, match="Aggregator's persistent must be True or False, not 1"):
        gp.Aggregator("sum", persistent=1)  # type: ignore[arg-type]
