"""How the threads of a CPU kernel read rows of edges: rows of hubs are cut into pieces."""

from __future__ import annotations

from typing import Any

from gpu_pregel.kernels.library.jit_cpu import inline

HUB_EDGES = 1 << 16
"""Rows with more edges than this are pushed and pulled in pieces of this size, which several threads can share."""


@inline
def row_range(begins: Any, ends: Any, row: Any) -> Any:
    """The edges of a row; none for a hub, whose edges are read in pieces."""
    begin = begins[row]
    end = ends[row]
    if end - begin > HUB_EDGES:
        end = begin
    return begin, end
