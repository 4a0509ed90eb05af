"""The public names of workflows."""

from __future__ import annotations

import pytest

import gpu_pregel as gp
from gpu_pregel import workflows
from tests.packages import needs

needs("langgraph", "langgraph")


@pytest.mark.parametrize("name", [*workflows._HOMES])
def test_names_are_those_of_agents_too_and_are_documented(name: str) -> None:
    found = getattr(workflows, name)
    assert found is getattr(gp.agents, name)
    assert found.__doc__


def test_retry_policies_of_nodes_are_those_of_agents() -> None:
    assert workflows.RetryPolicy is gp.agents.RetryPolicy
