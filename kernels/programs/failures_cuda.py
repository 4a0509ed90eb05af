"""What a CUDA kernel records of a user's function that raises: one word, in which the smallest vertex wins.

The word of a vertex program has, from the top: whether a message failed, before any vertex applied; the complement of
the vertex; the role of the function; the exception. Operators record the ends of the edge and the exception apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from gpu_pregel.kernels.library.atomics_cuda import fetch_and_max
from gpu_pregel.kernels.library.jit_cuda import device
from gpu_pregel.kernels.traverse.failures_cuda import NO_VERTEX, exception_name

ROLES = ("wake", "active", "apply", "combine", "message", "receives", "initially_active", "init")
"""Roles by number - 128, aggregators have smaller ones; of one vertex the function called first has the largest."""
SENDING = np.int64(1 << 62)
"""Words from here on are those of messages, after which nothing is applied."""
_VERTEX_SHIFT, _ROLE_SHIFT = np.int64(24), 8


class FunctionFailure(NamedTuple):
    """A function that raised.

    Attributes
    ----------
    vertex : int
    role : str
        As on the device "python".
    exception : str
        The name of the exception's class, or "Exception" if it is not known.
    """

    vertex: int
    role: str
    exception: str


def role_bits(role: str, number: int = 0) -> Any:
    """Return the part of a word that stands for a role; ``number`` is that of an aggregator."""
    code = 128 + ROLES.index(role) if role in ROLES else max(1, 127 - number)
    bits = np.int64(code << _ROLE_SHIFT)
    return bits | SENDING if role == "message" else bits


@device
def record(failures, vertex, bits, status):
    """Record the failure of a program's function for a vertex; ``bits`` are those of its role."""
    word = ((np.int64(NO_VERTEX) - vertex) << _VERTEX_SHIFT) | bits | np.int64(status)
    fetch_and_max(failures, 0, word)


def read_failure(word: int, aggregators: Sequence[str]) -> FunctionFailure | None:
    """Return the failure that a word of a vertex program stands for; None if it is 0."""
    if not word:
        return None
    vertex, code = NO_VERTEX - ((word >> int(_VERTEX_SHIFT)) & NO_VERTEX), (word >> _ROLE_SHIFT) & 0xFF
    role = ROLES[code - 128] if code >= 128 else f"aggregator {aggregators[127 - code]!r}"
    return FunctionFailure(vertex, role, exception_name(word & 0xFF))
