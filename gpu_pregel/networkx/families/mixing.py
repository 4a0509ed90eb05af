"""Pairs of degrees and attributes at the ends of edges."""

from __future__ import annotations

from gpu_pregel.networkx.function import Function

FUNCTIONS: tuple[Function, ...] = ()
