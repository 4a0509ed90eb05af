"""Vertices in the order of a number that changes while they are processed, for delta-stepping and peeling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from gpu_pregel.errors import ArgumentTypeError, ProgramError
from gpu_pregel.host.arguments import check_integer
from gpu_pregel.host.superstep.advance import stalled
from gpu_pregel.host.traverse.bodies import check_bucket_number, check_function, kind_of
from gpu_pregel.host.traverse.frontier import Frontier
from gpu_pregel.host.traverse.operators import process_vertices
from gpu_pregel.kernels.library import atomics

_NONE = 2**63 - 1


class Buckets:
    """The vertices of a frontier by bucket number, from which the smallest bucket is taken.

    Follows Julienne (Dhulipala, Blelloch, Shun: Julienne: A Framework for Parallel Graph Algorithms using
    Work-efficient Bucketing, SPAA 2017). A vertex is in the bucket of its number at the moment when the bucket is
    taken. Buckets within a window are kept apart from those beyond it, as in the near and far sets of Davidson et al.
    (IPDPS 2014), so that a bucket is found without a look at all vertices.

    Parameters
    ----------
    frontier : Frontier
        The vertices to start with.
    number : callable
        ``number(v, *arrays)``: the bucket of a vertex, an integer; a negative one removes the vertex.
    arrays : sequence of arrays and numbers
        As for :func:`process_vertices`.
    window : int, default 64
        Number of buckets that are kept apart from the rest.

    Raises
    ------
    ProgramError
        ``number`` takes another number of arguments; from :meth:`pop`: it cannot be compiled, or does not return an
        integer.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> frontier = gp.Frontier(gp.grid(3), device="cpu")
    >>> buckets = gp.Buckets(frontier, lambda v: v // 4)
    >>> while (taken := buckets.pop()) is not None:
    ...     print(taken[0], taken[1].vertices().tolist())
    0 [0, 1, 2, 3]
    1 [4, 5, 6, 7]
    2 [8]
    """

    def __init__(
        self, frontier: Frontier, number: Callable[..., Any], arrays: Sequence[Any] = (), *, window: int = 64
    ) -> None:
        if not isinstance(frontier, Frontier):
            raise ArgumentTypeError(f"frontier must be a gp.Frontier, not {type(frontier).__name__}")
        if not isinstance(arrays, (list, tuple)):
            raise ArgumentTypeError(
                f"arrays must be a list or tuple of arrays and numbers, not {type(arrays).__name__}"
            )
        check_function("number", number, "number(v, *arrays)", 1 + len(arrays))
        self._window = check_integer("window", window, 1, 1 << 31)
        self._number, self._arrays = number, tuple(arrays)
        self._near = self._far = frontier.chosen([])
        self._limit = -1

        def lower(v: Any, smallest: Any, *arrays: Any) -> Any:
            bucket = number(v, *arrays)
            if bucket >= 0:
                atomics.min(smallest, 0, int(bucket))
            return 0 * bucket  # a float if the number is one

        self._lower = lower
        self._is_at = lambda v, k, *arrays: number(v, *arrays) == k
        self._is_between = lambda v, low, high, *arrays: low < number(v, *arrays) < high
        self.add(frontier)

    def add(self, frontier: Frontier) -> None:
        """Add vertices; those that are in a bucket already stay there once.

        A vertex whose number decreases must be added again.
        """
        if self._limit < 0:
            self._far |= frontier
            return
        self._near |= self._between(frontier, -1, self._limit)
        self._far |= self._between(frontier, self._limit - 1, _NONE)

    def pop(self) -> tuple[int, Frontier] | None:
        """Remove the bucket with the smallest number; return it and its vertices, or None if no vertex is left."""
        first = self._minimum(self._near)
        if first >= self._limit:
            # Vertices whose number has fallen below the window were added to it, and taken from there.
            self._far = self._between(self._far | self._near, self._limit - 1, _NONE)
            first = self._minimum(self._far)
            if first == _NONE:
                self._near = self._far = self._near.chosen([])
                return None
            self._limit = min(first + self._window, _NONE)
            self._near, self._far = (
                self._between(self._far, -1, self._limit),
                self._between(self._far, self._limit - 1, _NONE),
            )
        found = self._process(self._is_at, self._near, [first], "frontier")
        if not found:
            raise stalled(
                found.device.name,
                f"does not advance in Buckets.pop: it finds number {first:,}, then no vertex with it (unless number "
                f"depends on more than its arguments)",
                "number",
            )
        # The number of a vertex may have grown beyond the window.
        self._far |= self._between(self._near, self._limit - 1, _NONE)
        self._near = self._between(self._near, first, self._limit)
        return first, found

    def _between(self, frontier: Frontier, low: int, high: int) -> Frontier:
        """Return the vertices with numbers above ``low`` and below ``high``."""
        if not frontier:
            return frontier
        found: Frontier = self._process(self._is_between, frontier, [low, high], "frontier")
        return found

    def _process(self, body: Callable[..., Any], frontier: Frontier, arguments: list[Any], returns: Any) -> Any:
        """Process vertices with a body that calls ``number``, whose mistakes are reported as its own."""
        try:
            return process_vertices(body, frontier, [*arguments, *self._arrays], returns=returns)
        except ProgramError:
            self._check_number()
            raise

    def _minimum(self, frontier: Frontier) -> int:
        """Return the smallest number of a frontier's vertices."""
        if not frontier:
            return _NONE
        smallest = frontier.full(_NONE, np.int64, 1)
        total = self._process(self._lower, frontier, [smallest], "sum")
        if isinstance(total, float):
            self._check_number()
            raise ProgramError("number returns floats, but must return an integer")
        return int(frontier.download(smallest)[0])

    def _check_number(self) -> None:
        check_bucket_number(self._number, tuple(kind_of(f"arrays[{k}]", one) for k, one in enumerate(self._arrays)))
