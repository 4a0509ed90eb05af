"""Cuts, boundaries and the volume of sets of nodes."""

from __future__ import annotations

from gpu_pregel.networkx.function import Function

FUNCTIONS: tuple[Function, ...] = ()
