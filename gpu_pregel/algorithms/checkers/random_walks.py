"""Checker of random walks: they follow edges, end only where there is none, and are drawn as documented."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.errors import VerificationError
from gpu_pregel.host.graphs.graph import Graph

_DRAWS = 65
"""Random numbers set aside for each step."""


def check_random_walks(graph: Graph, result: Any) -> None:
    """Raise ``VerificationError`` unless the walks begin at the starts and follow edges as far as they can.

    The steps of uniform walks are compared with those that the random numbers determine.

    Parameters
    ----------
    graph : Graph
    result : Walks

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> graph = gp.grid(3)
    >>> check_random_walks(graph, gp.random_walks(graph, [0, 4], 5))
    """
    walks, starts = np.asarray(result), result.starts
    if walks.ndim != 2 or len(walks) != len(starts) or (walks[:, 0] != starts).any():
        raise VerificationError("the walks do not begin at the starts")
    key = int(np.random.SeedSequence(result.seed).generate_state(1)[0])
    is_uniform = not result.weighted and result.p == result.q == 1.0
    for i, walk in enumerate(walks.tolist()):
        for step in range(1, len(walk)):
            _check_step(graph, result.weighted, i, step, walk)
            if is_uniform and walk[step] >= 0:
                row = graph.indices[graph.indptr[walk[step - 1]] : graph.indptr[walk[step - 1] + 1]]
                expected = int(row[int(_random(key, i, step * _DRAWS) * len(row))])
                if walk[step] != expected:
                    raise VerificationError(f"walk {i} continues at vertex {walk[step]} in step {step}, not {expected}")


def _check_step(graph: Graph, weighted: bool, i: int, step: int, walk: list[int]) -> None:
    """Raise unless a step follows an edge, of positive weight if walks are weighted, or there is none."""
    before, after = walk[step - 1], walk[step]
    begin, end = (0, 0) if before < 0 else graph.indptr[before : before + 2]
    row = graph.indices[begin:end]
    if weighted and graph.weights is not None:
        row = row[graph.weights[begin:end] > 0]
    if after < 0 and len(row):
        raise VerificationError(f"walk {i} ends in step {step} at vertex {before}, which has out-edges")
    if after >= 0 and after not in row:
        raise VerificationError(f"walk {i} goes from {before} to {after} in step {step}, which is no edge")


def _random(key: int, first: int, second: int) -> float:
    """Return the number from 0 to 1 that Philox2x32-10 gives for a key and two counters."""
    a, b = first, second
    for _ in range(10):
        product = a * 0xD256D193
        a, b = (product >> 32) ^ key ^ b, product & 0xFFFFFFFF
        key = (key + 0x9E3779B9) & 0xFFFFFFFF
    return float(((a << 32 | b) >> 11) / 2**53)
