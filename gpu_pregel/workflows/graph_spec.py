"""A compiled state graph as data for the functions that run it, in this process or in workers."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from gpu_pregel.host.agents.codec import encode, id_key
from gpu_pregel.host.agents.partition_options import is_async
from gpu_pregel.host.agents.records import Id
from gpu_pregel.host.agents.retry import RetryPolicy
from gpu_pregel.workflows.commands import START
from gpu_pregel.workflows.key_folds import KeyFold
from gpu_pregel.workflows.schemas import Key, Schema

if TYPE_CHECKING:
    from gpu_pregel.workflows.cache_policy import CachePolicy

TRIGGER = encode(None)
"""The message of an edge."""
PARENT = "__parent__"
"""The aggregate that has a command to the graph of which this one is a node."""
BUSY = "__triggers__"
"""The aggregate that tells what deferred nodes wait for; see :class:`TriggerFold`."""
LIMIT = "__limit__"
"""The item of a configuration that has the superstep at which a call ends, for functions that need it."""


@dataclass(frozen=True)
class NodeSpec:
    """A node, as passed to ``StateGraph.add_node``."""

    name: str
    function: Callable[..., Any]
    schema: Schema
    takes_context: bool
    is_async: bool
    is_graph: bool = False
    retry: RetryPolicy | None = None
    timeout: float | None = None
    error_handler: Callable[..., Any] | None = None
    cache: CachePolicy | None = None
    defer: bool = False
    destinations: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Router:
    """Conditional edges of a node: a router, and the nodes that its results stand for."""

    function: Callable[..., Any]
    name: str
    routes: Mapping[Hashable, str] | None
    takes_context: bool
    is_async: bool
    schema: Schema | None = None
    """What the router reads; by default the state of the graph."""
    declared: tuple[str, ...] | None = None
    """Where it leads, by its annotation."""

    @property
    def targets(self) -> tuple[str, ...] | None:
        """Where it leads; None if that may be anywhere."""
        return self.declared if self.routes is None else tuple(dict.fromkeys(self.routes.values()))


@dataclass(frozen=True)
class GraphSpec:
    """A state graph.

    Attributes
    ----------
    schema, input, output : Schema
    keys : dict of str to Key
        Of all schemas.
    nodes : dict of str to NodeSpec
    edges : dict of str to tuple of str
        The targets of each source, without the end.
    joins : dict of str to tuple of frozenset
        The sources of each join of a target.
    branches : dict of str to tuple of Router
    ends : frozenset of str
        The sources of edges to the end.
    start : NodeSpec or None
        What superstep 0 computes with the input, before the first nodes.
    own : frozenset of str
        Keys that a graph of which this one is a node does not pass to it.
    as_update : callable, optional
        Returns the output that such a graph gets.
    check : callable, optional
        Refuses updates by a caller; called with them and whether a run begins with them.
    """

    schema: Schema
    input: Schema
    output: Schema
    keys: dict[str, Key]
    nodes: dict[str, NodeSpec]
    edges: dict[str, tuple[str, ...]]
    joins: dict[str, tuple[frozenset[str], ...]]
    branches: dict[str, tuple[Router, ...]]
    ends: frozenset[str] = frozenset()
    start: NodeSpec | None = None
    own: frozenset[str] = frozenset()
    as_update: Callable[[dict[str, Any]], dict[str, Any]] | None = None
    check: Callable[[Mapping[str, Any], bool], None] | None = None

    @cached_property
    def computed(self) -> dict[str, NodeSpec]:
        """All nodes, that of the start among them."""
        return self.nodes if self.start is None else {START: self.start, **self.nodes}

    @cached_property
    def ids(self) -> dict[str, Id]:
        """The encoded id of each node, and that of the start."""
        return {name: id_key(name) for name in (START, *self.nodes)}

    @cached_property
    def triggered(self) -> dict[Id, NodeSpec]:
        """The nodes that run whenever an edge leads to them, neither joined nor deferred, by encoded id."""
        return {self.ids[name]: one for name, one in self.nodes.items() if not one.defer and name not in self.joins}

    @cached_property
    def simple(self) -> dict[Id, NodeSpec]:
        """Those of them that are ordinary functions without routers, error handlers and caches."""
        return {
            key: one
            for key, one in self.triggered.items()
            if not (one.is_async or one.is_graph or one.error_handler or one.cache or one.name in self.branches)
        }

    @cached_property
    def followers(self) -> dict[str, tuple[tuple[Id, bytes], ...]]:
        """The encoded messages along the edges of each node: triggers, and its name for joins that it belongs to."""
        found: dict[str, list[tuple[Id, bytes]]] = {}
        for source, targets in self.edges.items():
            found.setdefault(source, []).extend((self.ids[target], TRIGGER) for target in targets)
        for target, joins in self.joins.items():
            for source in sorted(frozenset().union(*joins)):
                found.setdefault(source, []).append((self.ids[target], encode(source)))
        return {source: tuple(messages) for source, messages in found.items()}

    @cached_property
    def busy_sources(self) -> frozenset[str]:
        """The nodes from which an edge leads to one that is not deferred."""
        return frozenset(
            source for source, targets in self.edges.items() if any(not self.nodes[one].defer for one in targets)
        )

    @cached_property
    def folds(self) -> dict[str, KeyFold]:
        """The fold of each key."""
        return {name: KeyFold(key) for name, key in self.keys.items()}

    @cached_property
    def has_deferred(self) -> bool:
        """Whether some nodes wait until all others have ended."""
        return any(node.defer for node in self.nodes.values())

    @cached_property
    def needs_limit(self) -> bool:
        """Whether some function has to know the limit of supersteps: those with the attribute ``needs_limit`` do."""
        routers = (router.function for several in self.branches.values() for router in several)
        functions = (*(node.function for node in self.computed.values()), *routers)
        return any(getattr(one, "needs_limit", False) for one in functions)

    @cached_property
    def is_async(self) -> bool:
        """Whether some function is a coroutine function."""
        branches = (router for several in self.branches.values() for router in several)
        handlers = (node.error_handler for node in self.computed.values() if node.error_handler is not None)
        return (
            any(node.is_async for node in self.computed.values())
            or any(router.is_async for router in branches)
            or any(map(is_async, handlers))
        )
