"""Triads and structural holes."""

from __future__ import annotations

from gpu_pregel.networkx.function import Function

FUNCTIONS: tuple[Function, ...] = ()
