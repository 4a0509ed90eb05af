"""Calls of trophic levels."""

from __future__ import annotations

from tests.gpu_pregel.networkx.comparison import Case, call

_CASES = [call(), call(weight=None), call("cost")]

CASES: dict[str, list[Case]] = {
    "trophic_levels": _CASES,
    "trophic_differences": _CASES,
    "trophic_incoherence_parameter": [*_CASES, call(cannibalism=True)],
}
