"""What a node can do besides returning an update: ask a person, emit tokens, read its key and configuration."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from gpu_pregel.errors import AgentError, ArgumentError
from gpu_pregel.workflows.questions import is_nested
from gpu_pregel.workflows.tasks import node_of

if TYPE_CHECKING:
    import random

    from gpu_pregel.host.agents.context import Context
    from gpu_pregel.host.stores.store import Store

CURRENT: ContextVar[NodeContext] = ContextVar("gpu_pregel_node")
"""The context of the node that is running."""
CUSTOM, MESSAGES = "custom", "messages"
"""The kinds of what nodes emit, which are also those of streams."""


class NodeContext:
    """The task of a node: the second argument of a node that has a second parameter.

    Attributes
    ----------
    config : dict
        What the caller passed as ``config["configurable"]``.
    """

    __slots__ = ("_context", "_modes", "_store", "config")

    def __init__(
        self,
        context: Context,
        config: Mapping[str, Any],
        store: Store | None = None,
        modes: frozenset[str] = frozenset(),
    ) -> None:
        self._context, self.config, self._store, self._modes = context, config, store, modes

    @property
    def node(self) -> str:
        """The name of the node."""
        return node_of(self._context.vertex_id)

    @property
    def superstep(self) -> int:
        """Number of this superstep, from 0; continued threads go on counting."""
        return self._context.superstep

    @property
    def attempt(self) -> int:
        """Number of this attempt at the task, from 1."""
        return self._context.attempt

    @property
    def key(self) -> str:
        """Identifies the task, and is the same in every attempt: use it for idempotent requests."""
        return self._context.key

    @property
    def random(self) -> random.Random:
        """A random number generator that returns the same numbers in every attempt."""
        return self._context.random

    def interrupt(self, payload: Any = None) -> Any:
        """Ask a person; see :func:`interrupt`."""
        if is_nested(payload):
            raise ArgumentError(f"a question must not begin with {payload[0]!r}, as those of subgraphs do")
        return self._context.interrupt(payload)

    def emit(self, token: Any) -> None:
        """Stream a token or a part of a message, in the mode "messages", while the node runs."""
        self._context.emit((MESSAGES, token))

    def write(self, data: Any) -> None:
        """Stream data in the mode "custom" while the node runs."""
        self._context.emit((CUSTOM, data))

    def heartbeat(self) -> None:
        """Report that the node makes progress: its timeout counts from the last call."""
        self._context.heartbeat()


def current() -> NodeContext:
    """Return the context of the node that is running."""
    context = CURRENT.get(None)
    if context is None:
        raise AgentError("this works only in a node of a state graph while it runs")
    return context


def interrupt(payload: Any = None) -> Any:
    """Ask a person from within a node, and return the answer.

    The run is held until ``invoke(Command(resume=answer), config)``; then the node runs again from its start, and this
    call returns the answer. Other nodes of the superstep finish, and do not run again. A node may ask several times:
    the k-th call returns the k-th answer. Needs a store.

    Examples
    --------
    >>> from typing import TypedDict
    >>> import gpu_pregel as gp
    >>> from gpu_pregel.workflows import END, START, Command, StateGraph, interrupt
    >>> class State(TypedDict):
    ...     age: int
    >>> graph = StateGraph(State)
    >>> graph = graph.add_node("ask", lambda state: {"age": interrupt("How old are you?")})
    >>> app = graph.add_edge(START, "ask").add_edge("ask", END).compile(store=gp.MemoryStore())
    >>> config = {"configurable": {"thread_id": "1"}}
    >>> app.invoke({}, config)["__interrupt__"][0].value
    'How old are you?'
    >>> app.invoke(Command(resume=42), config)
    {'age': 42}
    """
    return current().interrupt(payload)
