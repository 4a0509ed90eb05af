"""The keys of a state graph on the page of its run: aggregates that are tuples of a value, or empty without one."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from gpu_pregel.host.agents.previews import Difference, Node
from gpu_pregel.host.agents.state import State
from gpu_pregel.workflows.key_folds import KeyFold


def state_keys(state: State) -> Collection[str]:
    """Return the names of the aggregates that are keys of a state graph."""
    aggregators = state.options.get("aggregators") or {}
    return {name for name, option in aggregators.items() if _function(option[0]) == KeyFold.__name__}


def unwrap_value(aggregate: Any) -> Any:
    """Return the value in a tuple, None if there is none yet."""
    if not isinstance(aggregate, tuple) or len(aggregate) > 1:
        return aggregate
    return aggregate[0] if aggregate else None


def _function(option: Any) -> str | None:
    """Return the name of a stored function."""
    return str(option[1]) if isinstance(option, Sequence) and option[:1] in (["function"], ("function",)) else None


def unwrap_differences(differences: list[Difference]) -> list[Difference]:
    """Return differences of the value in a tuple."""
    return [[path[1:], *rest] if path[:1] == ["0"] else [path, *rest] for path, *rest in differences]


def unwrap_tree(node: Node) -> Node | None:
    """Return the tree of the value in a tuple, None if there is none yet."""
    if node[0] != "tuple" or len(node) < 4:
        return node
    value: Node | None = node[2][0][1] if node[2] else None
    return value
