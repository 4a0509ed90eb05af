"""When deferred nodes run: once no edge leads to a node that is not deferred, whatever was sent."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.host.agents.combiners import SuperstepFold
from gpu_pregel.host.agents.records import Id
from gpu_pregel.workflows.graph_spec import GraphSpec
from gpu_pregel.workflows.task_messages import arrived, without_complete

NOT_BUSY: tuple[bool, dict[str, Any]] = (False, {})
"""The first value of the aggregate."""


class TriggerFold(SuperstepFold):
    """The fold of the aggregate ``BUSY``, for which deferred nodes wait.

    The aggregate is whether edges, routers or joins lead to nodes that are not deferred, and which sources of the joins
    of these nodes have ended, by node. A contribution is the name of the node that a task has run, or None, and whether
    it leads to such a node otherwise than by a join.

    Parameters
    ----------
    graph : GraphSpec
    """

    def __init__(self, graph: GraphSpec) -> None:
        self._graph = graph
        self._joins = {
            target: joins
            for target, joins in graph.joins.items()
            if target in graph.nodes and not graph.nodes[target].defer
        }

    def fold(self, before: bytes, contributions: Sequence[tuple[Id, bytes]]) -> bytes:
        """Return the aggregate after a superstep."""
        ended: dict[str, list[list[str]]] = decode(before)[1]
        reports = [(decode(vertex), *decode(data)) for vertex, data in contributions]
        for vertex, name, _ in reports:
            if name is not None and vertex in ended:
                ended[vertex] = without_complete(self._graph, vertex, ended[vertex])
        names: list[Any] = [name for _, name, _ in reports if name is not None]
        busy = any(leads for _, _, leads in reports)
        for target, joins in self._joins.items():
            known = ended.get(target)
            ended[target] = arrived(self._graph, target, known, names)
            for sources, one, was in zip(joins, ended[target], known or [[]] * len(joins), strict=True):
                busy = busy or (set(one) == sources and len(one) > len(was))
        return encode((busy, ended))
