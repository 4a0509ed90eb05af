"""Names of tasks: a node is the vertex of its name, and each input that ``Send`` gives to a node has a vertex of its
own.

The k-th task that node "split" sends to node "count" is ``"count:split:k"``; the j-th one that this one sends to node
"sum" is ``"sum:split:k.j"``, and so on. Zeros at the end of such a path are counted, as in ``"sum:split:4~2"`` for
4.0.0, so that a long chain of single tasks keeps a short name. Names of nodes have no colon.
"""

from __future__ import annotations

from typing import Any


def node_of(vertex: str) -> str:
    """Return the node of a task."""
    return vertex.partition(":")[0]


def is_sent(vertex: str) -> bool:
    """Whether a task has got its input by ``Send``."""
    return ":" in vertex


def sent_task(node: str, sender: str, number: int) -> str:
    """Return the name of the k-th task that a task sends."""
    if ":" not in sender:
        return f"{node}:{sender}:{number}"
    _, root, path = sender.split(":")
    if number == 0:
        start, _, zeros = path.partition("~")
        return f"{node}:{root}:{start}~{int(zeros or 0) + 1}"
    return f"{node}:{root}:{'.'.join(map(str, _path(path)))}.{number}"


def writer_order(vertex: str) -> tuple[Any, ...]:
    """Return the place of a task among those whose updates are folded: nodes by name, then sent ones in order."""
    if ":" not in vertex:
        return (0, vertex)
    _, root, path = vertex.split(":")
    numbers = (int(path),) if path.isdigit() else _path(path)
    return (1, len(numbers), root, numbers)


def _path(path: str) -> tuple[int, ...]:
    """Return the numbers of a path."""
    start, _, zeros = path.partition("~")
    return (*map(int, start.split(".")), *[0] * int(zeros or 0))
