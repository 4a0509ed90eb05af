"""Combiners of agents' messages and contributions: Python values, folded in a fixed order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gpu_pregel.errors import ArgumentError, ArgumentTypeError
from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.host.agents.records import Id

_FOLDS: dict[str, Callable[[list[Any]], Any]] = {
    "sum": lambda parts: sum(parts[1:], parts[0]),
    "min": min,
    "max": max,
    "count": len,
    "first": lambda parts: parts[0],
    "last": lambda parts: parts[-1],
    "list": list,
    "and": all,
    "or": any,
}
_IDENTITIES: dict[str, Any] = {"sum": 0, "count": 0, "list": [], "and": True, "or": False}
_EXACT = frozenset({"min", "max", "and", "or"})
"""Those whose partial results combine to the same whatever the grouping, and have the type of a message."""


@dataclass(frozen=True)
class TopK:
    """The ``k`` largest, in descending order.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> gp.agents.TopK(2).k
    2
    """

    k: int

    def __post_init__(self) -> None:
        if not isinstance(self.k, int) or isinstance(self.k, bool) or self.k < 1:
            raise ArgumentError(f"TopK takes a whole number from 1, not {self.k!r}")


class CombinerError(Exception):
    """A combiner cannot fold a vertex's messages."""


@dataclass(frozen=True)
class Folding:
    """A combiner by name, ``TopK`` or a function of two values."""

    how: Any
    identity: Any = None

    @classmethod
    def of(cls, role: str, how: Any) -> Folding:
        """Check what a user gave."""
        if isinstance(how, str):
            if how not in _FOLDS:
                raise ArgumentError(
                    f"{role} must be one of {', '.join(map(repr, _FOLDS))}, TopK(k) or a function of two"
                )
            return cls(how, _IDENTITIES.get(how))
        if isinstance(how, TopK):
            return cls(how, [])
        if not callable(how):
            raise ArgumentTypeError(f"{role} must be a name, TopK(k) or a function of two values, not {how!r}")
        return cls(how)

    @property
    def is_exact(self) -> bool:
        """Whether the sender may fold what it sends to one target."""
        return isinstance(self.how, str) and self.how in _EXACT

    @property
    def name(self) -> str:
        """As errors show it."""
        return str(getattr(self.how, "__qualname__", None) or repr(self.how))

    def fold(self, messages: list[Any]) -> list[Any]:
        """What a vertex sees instead of ``messages``: a list of one."""
        try:
            return [self.total(messages)]
        except Exception as error:
            problem = f"combiner {self.name} cannot fold the messages: {type(error).__name__}: {error}"
            raise CombinerError(problem) from error

    def total(self, parts: list[Any]) -> Any:
        """Fold at least one value, in order."""
        if isinstance(self.how, TopK):
            return sorted(parts, reverse=True)[: self.how.k]
        if isinstance(self.how, str):
            return _FOLDS[self.how](parts)
        result = parts[0]
        for part in parts[1:]:
            result = self.how(result, part)
        return result

    def grown(self, before: Any, parts: list[Any]) -> Any:
        """An aggregate that was ``before``, None for nothing yet, with more contributions; ``before`` is kept as is."""
        before = decode(encode(before))
        if not parts:
            return before
        if before is None or (self.how == "last"):
            return self.total(parts)
        if self.how == "first":
            return before
        if self.how == "count":
            return before + len(parts)
        return self.total([*before, *parts] if isinstance(before, list) and self._makes_lists else [before, *parts])

    @property
    def _makes_lists(self) -> bool:
        return isinstance(self.how, TopK) or self.how == "list"

    def fold_outbox(self, outbox: list[tuple[Id, bytes]]) -> list[tuple[Id, bytes]]:
        """Of several messages to one target one; those that cannot be folded are sent, for the target to fail."""
        by_target: dict[Id, list[bytes]] = {}
        for target, message in outbox:
            by_target.setdefault(target, []).append(message)
        return [(target, message) for target, messages in by_target.items() for message in self._fold_encoded(messages)]

    def _fold_encoded(self, messages: list[bytes]) -> list[bytes]:
        if len(messages) == 1:
            return messages
        try:
            return [encode(self.total([decode(one) for one in messages]))]
        except Exception:
            return messages
