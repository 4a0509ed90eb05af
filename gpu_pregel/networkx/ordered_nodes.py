"""Sets of nodes whose order decides which node a random number stands for."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import Any

_ENTRY = 16
_SMALL = 8


class OrderedNodes:
    """A set from which nodes are removed, with its order as long as CPython does not build its table anew.

    It does when more than a quarter of the table are entries of removed nodes, at the end of an update.

    Attributes
    ----------
    nodes : set
        In the order in which NetworkX's set has them.
    spare : int
        The table is built anew when more than ``spare`` nodes have been removed.
    """

    def __init__(self, nodes: Iterable[Any], excluded: set[Any]) -> None:
        everything = set(nodes)
        removed = 0
        if len(everything) >> 2 > len(excluded):
            # CPython then copies the set and removes the others from the copy.
            self.nodes = everything.copy()
            quarter = _slots(self.nodes) - 1 >> 2
            self.nodes.difference_update(excluded)
            removed = len(everything) - len(self.nodes)
            removed = 0 if removed > quarter else removed
        else:
            self.nodes = everything.difference(excluded)
        self.spare = (_slots(self.nodes) - 1 >> 2) - removed

    def remove(self, gone: list[Any]) -> None:
        """Remove nodes: all that are left, or more than ``spare``."""
        self.nodes.difference_update(gone)
        self.spare = _slots(self.nodes) - 1 >> 2


def _slots(nodes: set[Any]) -> int:
    """Return the number of entries of a set's table, of which the first few are part of the object."""
    return (sys.getsizeof(nodes) - sys.getsizeof(set())) // _ENTRY or _SMALL
