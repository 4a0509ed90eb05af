"""The names of vertices on the page of a run: each is written once, and referred to by its number."""

from __future__ import annotations

import re
from typing import Any

from gpu_pregel.host.agents.codec import decode, id_key
from gpu_pregel.host.agents.previews import cut
from gpu_pregel.host.agents.records import Id

_MAX_LABEL = 80


class Labels:
    """Numbers of vertices, and the texts of their ids.

    Attributes
    ----------
    texts : list of str
    """

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._numbers: dict[Id, int] = {}

    def number(self, vertex: Id) -> int:
        """Return the number of a vertex, given by its encoded id."""
        number = self._numbers.get(vertex)
        if number is None:
            number = self._numbers[vertex] = len(self.texts)
            self.texts.append(label_of(decode(vertex)))
        return number

    def known(self) -> list[Id]:
        """Return the vertices that have numbers, in their order."""
        return list(self._numbers)

    def number_of(self, vertex: Any) -> int:
        """Return the number of a vertex, given by its id."""
        return self.number(id_key(vertex))


def label_of(vertex: Any) -> str:
    """Return the text of an id: a string as it is, anything else as in Python."""
    return cut(vertex if isinstance(vertex, str) else repr(vertex), _MAX_LABEL)


def shape_of(vertex: Any) -> str:
    """Return what ids of the same kind have in common, such as ``page-#`` of ``page-17``.

    Examples
    --------
    >>> [shape_of(vertex) for vertex in ("page-17", 4, ("tool", 3), b"x1")]
    ['page-#', '#', '(tool, #)', 'x#']
    """
    if isinstance(vertex, int):
        return "#"
    if isinstance(vertex, tuple):
        return cut(f"({', '.join(map(shape_of, vertex))})", _MAX_LABEL)
    text = vertex.decode("utf-8", "backslashreplace") if isinstance(vertex, bytes) else str(vertex)
    return cut(re.sub(r"[0-9]+|\b[0-9a-f]{8,}\b", "#", text), _MAX_LABEL)
