"""What nodes and callers of a state graph return and pass: destinations, commands, questions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic

from gpu_pregel.errors import ArgumentTypeError

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Names = TypeVar("Names", bound=str, default=Any)
else:
    from typing import TypeVar

    Names = TypeVar("Names")

START, END = "__start__", "__end__"
"""The names of the entry, at which a run starts, and of the end, at which a path of it ends."""


@dataclass(frozen=True)
class Send:
    """A task for the next superstep: a node, and its input in place of the state.

    The same node may be sent many inputs in one superstep, which are computed side by side.

    Examples
    --------
    >>> from gpu_pregel.workflows import Send
    >>> Send("summarize", {"text": "..."}).node
    'summarize'
    """

    node: str
    arg: Any = None


@dataclass(frozen=True)
class Command(Generic[Names]):
    """An update of the state and the nodes to go to, returned by a node; or the continuation of a run.

    A node that is annotated with ``-> Command[Literal["a", "b"]]`` declares where it may go.

    Parameters
    ----------
    update : mapping or state, optional
        As a node would return it.
    goto : str, Send, or sequence of them
        Nodes to run in the next superstep, in addition to those of the node's edges.
    resume : data, optional
        For ``invoke`` and its like: the answer to the open question, or a dict from ids of questions to answers.
    graph : str, optional
        ``Command.PARENT`` in a node of a subgraph: the command is one of the node that the subgraph is.

    Examples
    --------
    >>> from gpu_pregel.workflows import Command
    >>> Command(update={"total": 3}, goto="report").goto
    'report'
    """

    update: Any = None
    goto: str | Send | Sequence[str | Send] = ()
    resume: Any = None
    graph: str | None = None

    PARENT = "__parent__"

    @property
    def targets(self) -> list[str | Send]:
        """The nodes of ``goto`` as a list."""
        if isinstance(self.goto, (str, Send)):
            return [self.goto]
        if not isinstance(self.goto, (list, tuple, set, frozenset)):
            raise ArgumentTypeError(
                f"goto must be the name of a node, a Send object or a sequence of them, not {self.goto!r:.200}"
            )
        return list(self.goto)


@dataclass(frozen=True)
class Interrupt:
    """A question that a node waits for: its payload, and the id by which ``Command(resume={id: answer})`` answers it.

    Attributes
    ----------
    value : data
    id : str
    node : str
    """

    value: Any
    id: str
    node: str
