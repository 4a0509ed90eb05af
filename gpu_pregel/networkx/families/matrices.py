"""Matrices and lists of edges from graphs, and graphs from them."""

from __future__ import annotations

from gpu_pregel.networkx.function import Function

FUNCTIONS: tuple[Function, ...] = ()
