"""Coefficients of similarity from the sizes of sets, for bodies and kernels on every device."""

from __future__ import annotations

import math

from numba.extending import register_jitable

JACCARD, OVERLAP, COSINE = 0, 1, 2
"""Kinds of coefficients."""


@register_jitable
def ratio(kind: int, common: float, one: float, other: float) -> float:
    """Return the coefficient of two sets of the sizes ``one`` and ``other`` with ``common`` elements in common."""
    if common <= 0.0:
        return 0.0
    if kind == JACCARD:
        return common / (one + other - common)
    if kind == OVERLAP:
        return common / min(one, other)
    return common / (math.sqrt(one) * math.sqrt(other))
