"""``StateGraph``: nodes that read and update a shared state, and the edges between them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack, overload

from gpu_pregel.errors import ArgumentError, ArgumentTypeError
from gpu_pregel.host.agents.partition_options import is_async
from gpu_pregel.host.agents.retry import RetryPolicy
from gpu_pregel.host.arguments import check_choice, check_flag, check_seconds
from gpu_pregel.workflows.cache_policy import CachePolicy
from gpu_pregel.workflows.commands import END, START
from gpu_pregel.workflows.compiled_graph import CompiledGraph
from gpu_pregel.workflows.graph_checks import (
    check_carried,
    check_graph,
    check_join,
    check_metadata,
    check_names,
    check_node_name,
    check_node_options,
    check_retry,
    check_routes,
    check_start,
)
from gpu_pregel.workflows.graph_runs import CompileKeywords, CompileOptions
from gpu_pregel.workflows.graph_spec import GraphSpec, NodeSpec, Router
from gpu_pregel.workflows.node_cache import Cache
from gpu_pregel.workflows.schemas import Key, Schema
from gpu_pregel.workflows.signatures import (
    command_targets,
    first_annotation,
    langgraph_hint,
    name_of,
    router_targets,
    takes_context,
    takes_two,
)
from gpu_pregel.workflows.subgraphs import Subgraph, as_node

if TYPE_CHECKING:
    from gpu_pregel.host.stores.store import Store
    from gpu_pregel.workflows.message_graph import MessagePassingGraph

Node = Callable[..., Any]


class StateGraph:
    """A graph of nodes, functions that read a shared state and return updates of it.

    Nodes run in supersteps: those that the edges of the last superstep lead to run side by side, each with the state
    that the last superstep left; their updates are applied together.

    Parameters
    ----------
    state : type
        A TypedDict, dataclass or pydantic model. ``Annotated[list, append]`` gives a key a reducer, a function of (old,
        update); a key without one may be written once in a superstep.
    input, output : type, optional
        The keys that callers pass and get. Default: all.

    Examples
    --------
    >>> from typing import Annotated, TypedDict
    >>> from gpu_pregel.workflows import END, START, StateGraph, append
    >>> class State(TypedDict):
    ...     text: str
    ...     notes: Annotated[list, append]
    >>> graph = StateGraph(State)
    >>> graph = graph.add_node("shout", lambda state: {"text": state["text"].upper(), "notes": "shouted"})
    >>> graph = graph.add_node("greet", lambda state: {"text": f"Hello, {state['text']}!", "notes": "greeted"})
    >>> graph = graph.add_edge(START, "shout").add_edge("shout", "greet").add_edge("greet", END)
    >>> graph.compile().invoke({"text": "world"})
    {'text': 'Hello, WORLD!', 'notes': ['shouted', 'greeted']}
    """

    def __init__(self, state: type, *, input: type | None = None, output: type | None = None) -> None:
        self._schemas: dict[Any, Schema] = {}
        self._keys: dict[str, Key] = {}
        self.schema = self._schema(state)
        self.input = self.schema if input is None else self._schema(input)
        self.output = self.schema if output is None else self._schema(output)
        self.nodes: dict[str, NodeSpec] = {}
        self.start: NodeSpec | None = None
        self.edges: dict[str, dict[str, None]] = {}
        self.joins: dict[str, list[frozenset[str]]] = {}
        self.branches: dict[str, list[Router]] = {}
        self.own: frozenset[str] = frozenset()
        self.as_update: Callable[[dict[str, Any]], dict[str, Any]] | None = None
        self.check: Callable[[Mapping[str, Any], bool], None] | None = None
        self.may_go_anywhere = False
        """Whether nodes may go to others that they have not declared, as in LangGraph."""

    def _schema(self, cls: Any) -> Schema:
        """Return the schema of a class, whose keys become keys of the state."""
        if cls not in self._schemas:
            schema = self._schemas[cls] = Schema(cls)
            for name, key in schema.keys.items():
                known = self._keys.setdefault(name, key)
                if known.reducer is None and key.reducer is not None:
                    self._keys[name] = key
                elif key.reducer is not None and known.reducer is not key.reducer:
                    raise ArgumentError(f"{name!r} has two reducers, one of them in {cls.__name__}: use the same one")
        return self._schemas[cls]

    def add_node(
        self,
        node: str | Node,
        function: Node | None = None,
        *,
        input: type | None = None,
        retry: RetryPolicy | None = None,
        timeout: float | None = None,
        error_handler: Callable[[Any, Exception], Any] | None = None,
        cache: CachePolicy | None = None,
        defer: bool = False,
        destinations: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
    ) -> Self:
        """Add a node.

        Parameters
        ----------
        node : str or callable
            The name, or the function, whose name is taken. Superstep 0 computes ``START``, with the input applied.
        function : callable
            ``function(state)`` or ``function(state, context)``, an ordinary or ``async`` function, with a
            :class:`NodeContext`. It returns a dict of updates, a state, a :class:`Command`, a list of these, or None.
            Or a :class:`CompiledGraph` that was compiled without a store: it takes the keys that it has in common with
            this graph, and its output is the update.
        input : type, optional
            Class of the state that the function takes. Default: the annotation of its first parameter if that is such a
            class, otherwise that of the graph.
        retry : RetryPolicy, optional
            How often the function is tried. Default: that of ``compile``.
        timeout : float, optional
            Maximum seconds of an attempt, or since its last heartbeat.
        error_handler : callable, optional
            ``error_handler(state, error)`` is called when the last attempt has raised, and returns what the node would.
        cache : CachePolicy, optional
            Use its outputs again for the same input.
        defer : bool, default False
            Run the node only once no edge leads to another node; beside inputs that ``Send`` gives, which do not count.
        destinations : sequence of str
            Where the node may go by ``Command(goto=...)``: checked, and shown in pictures. Default: the names in an
            annotation like ``-> Command[Literal["a", "b"]]``.
        metadata : mapping, optional

        Returns
        -------
        StateGraph
            This graph.
        """
        if not isinstance(node, str):
            function, node = node, name_of(node)
        check_node_name(self, node)
        if isinstance(function, CompiledGraph):
            function = as_node(function, node)
        if not callable(function):
            hint = "; compile it" if isinstance(function, StateGraph) else langgraph_hint(function)
            raise ArgumentTypeError(f"node {node!r} must be a function of (state), not {function!r:.200}{hint}")
        with_context = takes_context(function, f"node {node!r}")
        check_retry(f"retry of node {node!r}", retry)
        check_start(node, is_plain=not (defer or cache is not None or isinstance(function, Subgraph)))
        if error_handler is not None and not (callable(error_handler) and takes_two(error_handler)):
            raise ArgumentTypeError(f"error_handler of node {node!r} must be a function of (state, error)")
        check_node_options(node, cache, destinations)
        spec = NodeSpec(
            name=node,
            function=function,
            schema=self._schema(input) if input is not None else self._input_of(function),
            takes_context=with_context,
            is_async=is_async(function),
            is_graph=isinstance(function, Subgraph),
            retry=retry,
            timeout=None if timeout is None else check_seconds(f"timeout of node {node!r}", timeout),
            error_handler=error_handler,
            cache=cache,
            defer=check_flag("defer", defer),
            destinations=tuple(destinations) or command_targets(function),
            metadata=check_metadata(node, metadata),
        )
        if node == START:
            self.start = spec
        else:
            self.nodes[node] = spec
        return self

    def _input_of(self, function: Node) -> Schema:
        """Return the schema of a function's first parameter, or that of the graph."""
        hint = first_annotation(function)
        if hint is None or hint is self.schema.cls:
            return self.schema
        try:
            return self._schema(hint)
        except ArgumentTypeError:
            return self.schema

    def add_edge(self, source: str | Sequence[str], target: str) -> Self:
        """Run a node after another one has ended or, given a list of sources, once all of them have.

        Returns
        -------
        StateGraph
            This graph.

        Examples
        --------
        >>> from typing import TypedDict
        >>> from gpu_pregel.workflows import START, StateGraph
        >>> class State(TypedDict):
        ...     x: int
        >>> graph = StateGraph(State).add_node("a", lambda state: None).add_node("b", lambda state: None)
        >>> graph = graph.add_node("c", lambda state: None)
        >>> graph = graph.add_edge(START, "a").add_edge(START, "b").add_edge(["a", "b"], "c")
        """
        if not isinstance(target, str):
            raise ArgumentTypeError(f"the target of an edge must be the name of a node, not {target!r:.200}")
        if target == START or source == END:
            raise ArgumentError(f"there can be no edge {'to the start' if target == START else 'from the end'}")
        if isinstance(source, str):
            self.edges.setdefault(source, {})[target] = None
            return self
        sources = check_join(source)
        if target == END:
            for one in sources:
                self.edges.setdefault(one, {})[END] = None
            return self
        self.joins.setdefault(target, []).append(frozenset(sources))
        return self

    def add_conditional_edges(
        self,
        source: str,
        router: Callable[..., Any],
        routes: Mapping[Hashable, str] | Sequence[str] | None = None,
    ) -> Self:
        """Run the nodes that a function of the state chooses after a node has ended.

        Parameters
        ----------
        source : str
        router : callable
            ``router(state)`` or ``router(state, context)``. The state has the updates of the node itself. It returns
            the name of a node, ``END``, a :class:`Send`, or a list of these; with ``routes``, keys of it in place of
            names. An annotation like ``-> Literal["a", "b"]`` says where it may lead.
        routes : mapping from results to names, or sequence of names, optional

        Returns
        -------
        StateGraph
            This graph.
        """
        if not callable(router):
            raise ArgumentTypeError(f"the router of node {source!r} must be a function of (state), not {router!r:.200}")
        routes = check_routes(source, routes)
        name = name_of(router)
        if any(one.name == name for one in self.branches.get(source, ())) and name != "<lambda>":
            raise ArgumentError(f"node {source!r} has a router {name!r} already: choose another name")
        with_context = takes_context(router, f"router {name!r}")
        made = Router(router, name, routes, with_context, is_async(router), declared=router_targets(router))
        self.branches.setdefault(source, []).append(made)
        return self

    def add_sequence(self, nodes: Iterable[Node | tuple[str, Node]]) -> Self:
        """Add nodes, each of which runs after the one before it.

        Returns
        -------
        StateGraph
            This graph.
        """
        named = [one if isinstance(one, tuple) else (name_of(one), one) for one in nodes]
        if not named:
            raise ArgumentError("a sequence needs at least one node")
        for name, function in named:
            self.add_node(name, function)
        for (before, _), (after, _) in pairwise(named):
            self.add_edge(before, after)
        return self

    def set_entry_point(self, node: str) -> Self:
        """Run a node first: an edge from ``START``."""
        return self.add_edge(START, node)

    def set_finish_point(self, node: str) -> Self:
        """End after a node: an edge to ``END``."""
        return self.add_edge(node, END)

    @overload
    def compile(self, *, carry: Literal["messages"], **options: Unpack[CompileKeywords]) -> MessagePassingGraph: ...
    @overload
    def compile(self, *, carry: Literal["shared"] = "shared", **options: Unpack[CompileKeywords]) -> CompiledGraph: ...
    def compile(
        self,
        *,
        carry: str = "shared",
        store: Store | None = None,
        workers: int = 0,
        threads: int | None = None,
        retry: RetryPolicy | None = None,
        max_supersteps: int = 100,
        interrupt_before: Sequence[str] | str = (),
        interrupt_after: Sequence[str] | str = (),
        durability: str = "machine",
        cache: Cache | None = None,
        record: bool = False,
        name: str = "graph",
    ) -> CompiledGraph:
        """Check the graph, and return it as something that runs.

        Parameters
        ----------
        carry : {"shared", "messages"}
            How the state gets from node to node: all share one, or it travels in the messages along the edges; see
            :class:`MessagePassingGraph`.
        store : SQLiteStore, PostgresStore or MemoryStore, optional
            Keeps each superstep of each thread (``config={"configurable": {"thread_id": ...}}``), so that it can be
            continued, after a crash too. Questions need one.
        workers : int, default 0
            Number of worker processes, in which nodes can be ended. With 0, nodes run in this process.
        threads : int, default 32
            Number of nodes that run side by side in this process.
        retry : RetryPolicy, optional
            Of nodes without their own. Default: one attempt.
        max_supersteps : int, default 100
            Of one call; ``config={"recursion_limit": ...}`` overrides it.
        interrupt_before, interrupt_after : sequence of str, or "*"
            Nodes before or after which to stop; ``invoke(None, config)`` continues.
        durability : {"machine", "process"}
            Whether a superstep survives a failure of the machine, or of the process only.
        cache : mutable mapping from str to bytes, optional
            Keeps the outputs of nodes with a cache policy. Default: the latest ones, in memory.
        record : bool, default False
            Record attempts and tokens in the store, for the page of a run and ``gpu-pregel runs watch``.
        name : str

        Returns
        -------
        CompiledGraph

        Raises
        ------
        ArgumentError
            Edges or routes name nodes that do not exist, nodes cannot be reached, or there is no entry.
        """
        check_graph(self)
        check_choice("carry", carry, ("shared", "messages"))
        check_retry("retry", retry)
        check_choice("durability", durability, ("machine", "process"))
        options = CompileOptions(
            store=store,
            workers=workers,
            threads=threads,
            retry=retry,
            max_supersteps=max_supersteps,
            interrupt_before=check_names("interrupt_before", interrupt_before, self.nodes),
            interrupt_after=check_names("interrupt_after", interrupt_after, self.nodes),
            durability=durability,
            cache=cache,
            record=check_flag("record", record),
            name=name,
        )
        if carry == "shared":
            return CompiledGraph(self.spec(), options)
        from gpu_pregel.workflows.message_graph import MessagePassingGraph

        check_carried(self)
        return MessagePassingGraph(self.spec(), options)

    def spec(self) -> GraphSpec:
        """Return the graph as data, unchecked."""
        return GraphSpec(
            schema=self.schema,
            input=self.input,
            output=self.output,
            keys=dict(self._keys),
            nodes=dict(self.nodes),
            edges={one: tuple(target for target in targets if target != END) for one, targets in self.edges.items()},
            joins={target: tuple(dict.fromkeys(joins)) for target, joins in self.joins.items()},
            branches={source: tuple(branches) for source, branches in self.branches.items()},
            ends=frozenset(source for source, targets in self.edges.items() if END in targets),
            start=self.start,
            own=self.own,
            as_update=self.as_update,
            check=self.check,
        )

    # Pictures.

    def draw_mermaid(self) -> str:
        """Return the graph, finished or not, in the language of Mermaid."""
        from gpu_pregel.workflows.drawing import draw_mermaid

        return draw_mermaid(self.spec())

    def _repr_html_(self) -> str:
        from gpu_pregel.workflows.drawing import draw_svg

        return draw_svg(self.spec())
