"""How long the output of a node is used again, and for which input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gpu_pregel.errors import ArgumentTypeError
from gpu_pregel.host.arguments import check_seconds


@dataclass(frozen=True)
class CachePolicy:
    """The output of a node is used again for the same input.

    Parameters
    ----------
    seconds : float, optional
        How long. Default: as long as the cache keeps it.
    key : callable, optional
        ``key(state)`` returns data that stand for the input. Default: the whole input.

    Examples
    --------
    >>> from typing import TypedDict
    >>> from gpu_pregel.workflows import START, CachePolicy, StateGraph
    >>> class State(TypedDict):
    ...     text: str
    >>> def shout(state):
    ...     print("shouting")
    ...     return {"text": state["text"].upper()}
    >>> app = StateGraph(State).add_node("shout", shout, cache=CachePolicy(60)).add_edge(START, "shout").compile()
    >>> app.invoke({"text": "hello"}), app.invoke({"text": "hello"})
    shouting
    ({'text': 'HELLO'}, {'text': 'HELLO'})
    """

    seconds: float | None = None
    key: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        if self.seconds is not None:
            check_seconds("CachePolicy's seconds", self.seconds)
        if self.key is not None and not callable(self.key):
            raise ArgumentTypeError(f"CachePolicy's key must be a function of (state), not {self.key!r:.200}")
