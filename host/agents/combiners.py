"""Reductions of Python values, in a fixed order: combiners of messages, and folds of contributions to aggregates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from gpu_pregel.errors import ArgumentError, ArgumentTypeError
from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.host.agents.records import Id
from gpu_pregel.host.arguments import check_integer

_FUNCTIONS: dict[str, Callable[[list[Any]], Any]] = {
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
"""Reductions that are associative, and whose partial results have the type of a message."""


@dataclass(frozen=True)
class TopK:
    """The ``k`` largest values, in descending order.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> gp.agents.TopK(2).k
    2
    """

    k: int

    def __post_init__(self) -> None:
        check_integer("TopK's k", self.k, 1)


class SuperstepFold:
    """The fold of a persistent aggregate by a layer on top of the runtime, passed as ``Aggregator.combine``."""

    def fold(self, before: bytes, contributions: Sequence[tuple[Id, bytes]]) -> bytes:
        """Return the encoded aggregate after the contributions of a superstep, at least one.

        Parameters
        ----------
        before : bytes
            The encoded aggregate.
        contributions : sequence of (Id, bytes)
            Encoded, with the vertices that made them, in the order of (vertex, sequence).

        Raises
        ------
        ContributionsError
            Some of them cannot be folded.
        """
        raise NotImplementedError


class ContributionsError(Exception):
    """Contributions cannot be folded; ``reasons`` has why, by vertex."""

    def __init__(self, reasons: Mapping[Id, Exception]) -> None:
        self.reasons = reasons
        super().__init__("; ".join(map(str, reasons.values())))


class CombinerError(Exception):
    """A combiner cannot fold the messages to a vertex."""


@dataclass(frozen=True)
class Reduction:
    """A reduction by name, ``TopK`` or a function of two values.

    Attributes
    ----------
    combine : str, TopK or callable
    identity : data
        The aggregate if there are no contributions; None if there is no such aggregate.
    """

    combine: Any
    identity: Any = None

    @classmethod
    def of(cls, role: str, combine: Any) -> Reduction:
        """Check the ``combine`` that a user has passed as ``role``."""
        if isinstance(combine, str):
            if combine not in _FUNCTIONS:
                raise ArgumentError(
                    f"{role} must be one of {', '.join(map(repr, _FUNCTIONS))}, TopK(k) or a function of two values, "
                    f"not {combine!r:.80}"
                )
            return cls(combine, _IDENTITIES.get(combine))
        if isinstance(combine, TopK):
            return cls(combine, [])
        if isinstance(combine, SuperstepFold):
            return cls(combine)
        if not callable(combine):
            raise ArgumentTypeError(f"{role} must be a name, TopK(k) or a function of two values, not {combine!r}")
        return cls(combine)

    @property
    def is_exact(self) -> bool:
        """Whether a sender may fold its messages to a target without changing the result."""
        return isinstance(self.combine, str) and self.combine in _EXACT

    @property
    def name(self) -> str:
        """The name for error messages."""
        return str(getattr(self.combine, "__qualname__", None) or repr(self.combine))

    def fold(self, messages: list[Any]) -> list[Any]:
        """Fold ``messages`` into a list of one."""
        try:
            return [self.total(messages)]
        except Exception as error:
            problem = f"combiner {self.name} cannot fold the messages: {type(error).__name__}: {error}"
            raise CombinerError(problem) from error

    def total(self, parts: list[Any]) -> Any:
        """Fold at least one value, in order."""
        if isinstance(self.combine, TopK):
            return sorted(parts, reverse=True)[: self.combine.k]
        if isinstance(self.combine, str):
            return _FUNCTIONS[self.combine](parts)
        result = parts[0]
        for part in parts[1:]:
            result = self.combine(result, part)
        return result

    def extend(self, before: Any, parts: list[Any]) -> Any:
        """Return the aggregate ``before`` extended by contributions; it is not modified. None means no aggregate."""
        before = decode(encode(before))
        if not parts:
            return before
        if before is None or self.combine == "last":
            return self.total(parts)
        if self.combine == "first":
            return before
        if self.combine == "count":
            return before + len(parts)
        makes_lists = isinstance(self.combine, TopK) or self.combine == "list"
        return self.total([*before, *parts] if makes_lists and isinstance(before, list) else [before, *parts])

    def fold_outbox(self, outbox: list[tuple[Id, bytes]]) -> list[tuple[Id, bytes]]:
        """Fold the messages to each target into one. Others are kept, so that the target fails."""
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
