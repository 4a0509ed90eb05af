"""The retry policy and the timeout of each node, as functions of a task for the runtime."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from gpu_pregel.host.agents.retry import RetryPolicy
from gpu_pregel.workflows.graph_spec import NodeSpec
from gpu_pregel.workflows.tasks import node_of


class NodeRetry:
    """The retry policy of a task.

    A node with an error handler has one attempt more than its policy allows, in which the handler is called if the last
    one has ended with a timeout or the death of its worker.
    """

    def __init__(self, nodes: Mapping[str, NodeSpec], default: RetryPolicy) -> None:
        self._default = default
        self._policies = {name: self._policy(node) for name, node in nodes.items()}

    def _policy(self, node: NodeSpec) -> RetryPolicy:
        retry = node.retry or self._default
        return retry if node.error_handler is None else replace(retry, attempts=retry.attempts + 1)

    def __call__(self, vertex: str) -> RetryPolicy:
        """Return the policy of a task."""
        return self._policies.get(node_of(vertex), self._default)


class NodeTimeout:
    """The maximum seconds of an attempt of a task, or None."""

    def __init__(self, nodes: Mapping[str, NodeSpec]) -> None:
        self._seconds = {name: node.timeout for name, node in nodes.items()}

    def __call__(self, vertex: str) -> float | None:
        """Return the timeout of a task."""
        return self._seconds.get(node_of(vertex))
