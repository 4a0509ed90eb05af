"""Random state graphs as data, built for LangGraph and for gpu_pregel, and random calls of a thread.

What a node does depends on the state alone, so that both libraries must end in the same state: a digest of the state
picks updates, questions, destinations and inputs that are sent.
"""

from __future__ import annotations

import operator
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, TypedDict

import gpu_pregel as gp
from gpu_pregel import workflows

BUDGET = 14
"""The number of nodes run after which routers and commands lead nowhere."""
DEPTH = 2
"""How often an input that was sent may send others."""


def mix(old: int, new: int) -> int:
    """Fold in a way that depends on the order."""
    return (old * 31 + new + 7) % 1_000_003


def join_texts(old: str, new: str) -> str:
    """Append to a text, of which the end is kept."""
    return f"{old},{new}"[-120:]


class State(TypedDict, total=False):
    """The state of all graphs."""

    log: Annotated[list[Any], operator.add]
    mixed: Annotated[int, mix]
    text: Annotated[str, join_texts]
    steps: Annotated[int, operator.add]
    last: Any


@dataclass(frozen=True)
class NodeData:
    """What a node does.

    Attributes
    ----------
    name : str
    keys : tuple of str
        The keys that it writes.
    form : {"dict", "command", "commands", "none"}
        What it returns.
    questions : int
    goto, sends : tuple of str
        Nodes to which its commands lead, or send.
    graphs : tuple of str
        Those of ``sends`` that are graphs.
    fails : {"", "first", "until mended"}
    defer : bool
    inner : GraphData or None
        The graph that the node is.
    """

    name: str
    keys: tuple[str, ...]
    form: str
    questions: int = 0
    goto: tuple[str, ...] = ()
    sends: tuple[str, ...] = ()
    fails: str = ""
    defer: bool = False
    inner: GraphData | None = None
    graphs: tuple[str, ...] = ()


@dataclass(frozen=True)
class RouterData:
    """What a router does: ``routed`` means that its results are keys of routes; ``graphs`` as for nodes."""

    source: str
    name: str
    targets: tuple[str, ...]
    sends: tuple[str, ...]
    routed: bool
    several: bool
    graphs: tuple[str, ...] = ()


@dataclass(frozen=True)
class GraphData:
    """A graph.

    Attributes
    ----------
    nodes : tuple of NodeData
    edges : tuple of (str, str)
    joins : tuple of (tuple of str, str)
    routers : tuple of RouterData
    before, after : tuple of str
        Nodes before or after which a run stops.
    """

    nodes: tuple[NodeData, ...]
    edges: tuple[tuple[str, str], ...]
    joins: tuple[tuple[tuple[str, ...], str], ...]
    routers: tuple[RouterData, ...]
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()

    @property
    def may_be_limited(self) -> bool:
        """Whether both libraries need as many supersteps, and a limit is not confused with a breakpoint."""
        if any(node.inner for node in self.nodes):  # whose limit is their own
            return False
        return not (self.joins or self.before or self.after or any(node.defer for node in self.nodes))

    @property
    def fails(self) -> bool:
        """Whether some node fails."""
        return any(node.fails or (node.inner is not None and node.inner.fails) for node in self.nodes)


# What nodes do.


@dataclass
class World:
    """What surrounds the nodes of one library: its names, and failures so far."""

    library: Any
    interrupt: Callable[[Any], Any]
    mended: bool = False
    failed: Counter[Any] = field(default_factory=Counter)

    @classmethod
    def of_langgraph(cls) -> World:
        """Return the world of LangGraph."""
        import langgraph.types

        return cls(langgraph.types, langgraph.types.interrupt)

    @classmethod
    def own(cls) -> World:
        """Return the world of gpu_pregel."""
        return cls(workflows, workflows.interrupt)


def digest(state: Any) -> int:
    """Return a number that depends on what a node or a router is given."""
    if "depth" in state:
        return int(state["n"] * 17 + state["depth"])
    return int(
        state.get("mixed", 0) * 3 + state.get("steps", 0) * 5 + len(state.get("log", ())) + len(state.get("text", ""))
    )


class FailureError(Exception):
    """Raised by nodes."""


def run_node(node: NodeData, world: World, state: Any) -> Any:
    """Compute a node."""
    seen = digest(state)
    answers = [world.interrupt([node.name, seen, number]) for number in range(node.questions if seen % 3 else 0)]
    if node.fails == "until mended" and seen % 2 and not world.mended:
        raise FailureError(node.name)
    if node.fails == "first":
        world.failed[node.name, seen] += 1
        if world.failed[node.name, seen] % 3:
            raise FailureError(node.name)
    made = {
        "log": [[node.name, seen % 1000, *answers]],
        "mixed": seen % 97 + len(node.name),
        "text": f"{node.name}{seen % 10}",
        "last": [node.name, seen],
        "steps": 1,
    }
    update = {key: made[key] for key in (*node.keys, "steps")}
    if node.form == "dict":
        return update
    if node.form == "none":
        return None
    goto = _goto(node, world, state, seen)
    if node.form == "commands":
        steps = update.pop("steps")
        return [
            world.library.Command(update=update, goto=goto[:1]),
            world.library.Command(update={"steps": steps}, goto=goto[1:]),
        ]
    return world.library.Command(update=update, goto=goto)


def _goto(node: NodeData, world: World, state: Any, seen: int) -> list[Any]:
    depth = state.get("depth", 0)
    if state.get("steps", 0) >= BUDGET or depth >= DEPTH:
        return []
    chosen: list[Any] = [name for place, name in enumerate(node.goto) if (seen >> place) % 2 and not depth]
    return chosen + _sends(world, node, depth, seen)


def _sends(world: World, sender: NodeData | RouterData, depth: int, seen: int) -> list[Any]:
    found = []
    for place, name in enumerate(sender.sends):
        number = (seen + 5 * place) % 50
        given = {"steps": BUDGET - 4, "mixed": number} if name in sender.graphs else {"depth": depth + 1, "n": number}
        if (seen + place) % 3:
            found.append(world.library.Send(name, given))
    return found


def run_router(router: RouterData, world: World, state: Any) -> Any:
    """Compute a router, which reads the state with the updates of its node."""
    seen = digest(state)
    if state.get("steps", 0) >= BUDGET:
        return "to __end__" if router.routed else workflows.END
    names = [name for place, name in enumerate(router.targets) if router.several and (seen >> place) % 2]
    names = names or [router.targets[seen % len(router.targets)]]
    chosen: list[Any] = [f"to {name}" if router.routed else name for name in names]
    chosen += _sends(world, router, 0, seen)
    return chosen if router.several or router.sends else chosen[0]


# Graphs.


def graph_of(chance: random.Random, prefix: str = "n", *, defers: bool = False) -> GraphData:
    """Return a random graph: edges and joins lead forward, routers, commands and inputs sent anywhere.

    With ``defers``, some nodes are deferred and inputs are sent; otherwise that is left to chance.
    """
    names = [f"{prefix}{number}" for number in range(chance.randint(2, 7))]
    chance.shuffle(names)  # the order by name differs from that of the edges
    uses_sends = chance.random() < 0.5 or defers
    sendable = [name for name in names if chance.random() < 0.5] if uses_sends else []
    if defers and not sendable:
        sendable = [chance.choice(names)]
    owner = chance.choice(names)  # the only one that writes a key without reducer
    nodes = [_node(chance, name, names, sendable, owner) for name in names]
    if defers or chance.random() < 0.35:
        deferred = set(chance.sample(names[1:], k=min(len(names) - 1, chance.randint(1, 2))))
        nodes = [_deferred(node, node.name in deferred) for node in nodes]
    edges = {(workflows.START, names[0])}
    edges |= {(workflows.START, name) for name in names[1:] if chance.random() < 0.15}
    for place, name in enumerate(names[1:], 1):
        sources = [one for one in names[:place] if chance.random() < 0.35] or [names[chance.randrange(place)]]
        edges |= {(source, name) for source in sources if chance.random() < 0.8}
    edges |= {(name, workflows.END) for name in names if chance.random() < 0.2}
    joins = []
    for place in range(2, len(names)):
        if chance.random() < 0.3:
            joins.append((tuple(chance.sample(names[:place], k=2)), names[place]))
    # Nodes that count no step lead forward only, so that no graph runs forever.
    routers = _routers(chance, [node.name for node in nodes if node.form != "none"], names, sendable)
    before, after = [
        tuple(name for name in names if chance.random() < 0.3) if chance.random() < 0.15 else () for _ in range(2)
    ]
    return GraphData(tuple(nodes), tuple(sorted(edges)), tuple(joins), routers, before, after)


def with_inner(data: GraphData, chance: random.Random, *, depth: int = 1, defers: bool = False) -> GraphData:
    """Return a graph one of whose nodes is a graph; nodes write keys with reducers only, as graphs write all keys."""
    chosen = chance.choice([node.name for node in data.nodes])
    inner = graph_of(chance, f"m{depth}", defers=defers)
    if depth < 2 and chance.random() < 0.3:
        inner = with_inner(inner, chance, depth=depth + 1)
    counting = "dict" if chance.random() < 0.5 else ""
    first = {target for source, target in inner.edges if source == workflows.START}
    plain = [replace(one, keys=tuple(key for key in one.keys if key != "last")) for one in inner.nodes]
    if counting:
        plain = [replace(one, form=counting, fails="", inner=None) if one.name in first else one for one in plain]
    sent = {name for node in data.nodes for name in node.sends} | {name for one in data.routers for name in one.sends}
    if chosen in sent:
        # Several runs of it, side by side, would count the same failures.
        plain = [replace(one, fails="" if one.fails == "first" else one.fails, inner=None) for one in plain]
    inner = replace(inner, nodes=tuple(plain), before=(), after=())
    nodes = []
    for node in data.nodes:
        found = replace(node, keys=tuple(key for key in node.keys if key != "last"))
        if node.name == chosen:
            found = replace(found, form="none", questions=0, fails="", goto=(), sends=(), inner=inner)
        nodes.append(replace(found, graphs=(chosen,) if chosen in found.sends else ()))
    routers = tuple(replace(one, graphs=(chosen,) if chosen in one.sends else ()) for one in data.routers)
    if not counting:  # then the node leads forward only
        routers = tuple(one for one in routers if one.source != chosen)
    return replace(data, nodes=tuple(nodes), routers=routers)


def _deferred(node: NodeData, defer: bool) -> NodeData:
    return replace(node, defer=defer)


def _node(chance: random.Random, name: str, names: list[str], sendable: list[str], owner: str) -> NodeData:
    keys = [key for key in ("log", "mixed", "text") if chance.random() < 0.7]
    form = chance.choice(["dict", "dict", "dict", "command", "command", "commands", "none"])
    return NodeData(
        name,
        (*keys, *(["last"] if name == owner and name not in sendable else [])),
        form,
        questions=chance.choice([*[0] * 6, 1, 2]),
        goto=tuple(chance.sample(names, k=min(len(names), chance.randint(0, 2)))),
        sends=tuple(chance.choices(sendable, k=chance.randint(0, 2))) if sendable else (),
        fails=chance.choice([*[""] * 8, "until mended", "" if name in sendable else "first"]),
    )


def _routers(
    chance: random.Random, sources: list[str], names: list[str], sendable: list[str]
) -> tuple[RouterData, ...]:
    routers = []
    for name in (workflows.START, *sources):
        for number in range(chance.choice([0, 0, 0, 1, 1, 2])):
            targets = tuple(chance.sample([*names, workflows.END], k=chance.randint(1, 3)))
            sends = (
                tuple(chance.choices(sendable, k=chance.randint(1, 3))) if sendable and chance.random() < 0.5 else ()
            )
            routers.append(
                RouterData(name, f"{name} {number}", targets, sends, chance.random() < 0.4, chance.random() < 0.5)
            )
    return tuple(routers)


def langgraph_of(data: GraphData, world: World) -> Any:
    """Return the builder of a graph."""
    import langgraph.graph
    import langgraph.types

    builder = langgraph.graph.StateGraph(State)
    retry = langgraph.types.RetryPolicy(max_attempts=3, initial_interval=0, jitter=False, retry_on=FailureError)
    for node in data.nodes:
        inner = None if node.inner is None else langgraph_of(node.inner, world).compile()
        builder.add_node(
            node.name,
            inner or partial(run_node, node, world),
            defer=node.defer,
            retry_policy=retry if node.fails == "first" else None,
        )
    _add_edges(builder, data, world)
    return builder


def _add_edges(builder: Any, data: GraphData, world: World) -> None:
    """Add the edges, joins and routers to a graph of either package."""
    for source, target in data.edges:
        builder.add_edge(source, target)
    for sources, target in data.joins:
        builder.add_edge(list(sources), target)
    for router in data.routers:
        builder.add_conditional_edges(router.source, _named(router, world), _routes(router))


def own_of(data: GraphData, world: World) -> workflows.StateGraph:
    """Return the graph as a ``StateGraph`` of gpu_pregel."""
    graph = workflows.StateGraph(State)
    names = tuple(node.name for node in data.nodes)
    retry = own_retry()
    for node in data.nodes:
        inner = None if node.inner is None else own_of(node.inner, world).compile()
        graph.add_node(
            node.name,
            inner or partial(run_node, node, world),
            defer=node.defer,
            destinations=names,
            retry=retry if node.fails == "first" else None,
        )
    _add_edges(graph, data, world)
    return graph


def own_retry() -> Any:
    """Return the retry policy of nodes that fail at first."""
    return gp.agents.RetryPolicy(attempts=3, wait=0, exceptions=(FailureError,))


def _named(router: RouterData, world: World) -> Any:
    def route(state: Any) -> Any:
        return run_router(router, world, state)

    route.__name__ = router.name
    return route


def _routes(router: RouterData) -> Any:
    return {f"to {name}": name for name in (*router.targets, workflows.END)} if router.routed else None
