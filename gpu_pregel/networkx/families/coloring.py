"""Colourings, independent sets and dominating sets."""

from __future__ import annotations

from gpu_pregel.networkx.function import Function

FUNCTIONS: tuple[Function, ...] = ()
