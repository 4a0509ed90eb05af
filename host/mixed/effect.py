"""What an agent does to numeric vertices in a superstep."""

from __future__ import annotations

from typing import Any, NamedTuple


class Effect(NamedTuple):
    """What an agent does to numeric vertices.

    Attributes
    ----------
    vertex : int
        The agent's own vertex.
    written : tuple, dict or None
        Its new value: all fields, or some by number.
    messages : list of (int or None, tuple)
        Messages in the order in which they were sent: the target, or None for all out-neighbours, and the fields.
    """

    vertex: int
    written: tuple[Any, ...] | dict[int, Any] | None
    messages: list[tuple[int | None, tuple[Any, ...]]]
