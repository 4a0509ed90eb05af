"""Names of tasks: a node is the vertex of its name, and each input that ``Send`` gives to a node has a vertex of its own.

Such a vertex is ``(node, depth, sender, *path)``: which of the sender's tasks it is and, if the sender was sent too, which of
the tasks of its sender that was, and so on. Trailing zeros are left out, so that a long chain keeps a short name.
"""

from __future__ import annotations

from typing import Any


def node_of(vertex: Any) -> str:
    """Return the node of a task."""
    return vertex if type(vertex) is str else vertex[0]


def label(vertex: Any) -> str:
    """Return the name of a task for people: the node, and the number of one that was sent."""
    if type(vertex) is str:
        return vertex
    node, _, sender, *path = vertex
    return f"{node} ({sender} {'.'.join(map(str, path or [0]))})"


def sent_task(node: str, sender: Any, number: int) -> tuple[Any, ...]:
    """Return the vertex of the k-th input that a task sends."""
    if type(sender) is str:
        depth, root, path = 1, sender, (number,)
    else:
        _, before, root, *rest = sender
        depth = before + 1
        path = (*rest, *[0] * (before - len(rest)), number)
    length = len(path)
    while length and path[length - 1] == 0:
        length -= 1
    return (node, depth, root, *path[:length])


def writer_order(vertex: Any) -> tuple[Any, ...]:
    """Return the place of a task among those whose updates are folded: nodes by name, then sent ones in order."""
    return (0, vertex) if type(vertex) is str else (1, *vertex[1:])
