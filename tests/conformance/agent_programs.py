"""Programs shared by several suites of agents in stores."""

from __future__ import annotations

import time
from typing import Any

from gpu_pregel.agents import Aggregator, Vertex


def counting(ctx: Any) -> None:
    ctx.value += 1
    ctx.aggregate("total", 1)
    if ctx.value == 10:
        ctx.vote_to_halt()


COUNTING: dict[str, Any] = {"compute": counting, "aggregators": {"total": Aggregator("sum", persistent=True)}}
"""Vertices count to 10."""


def growing(ctx: Any) -> None:
    if ctx.superstep == 3:
        time.sleep(0.03)
    ctx.value = ctx.random.randbytes(3000)
    ctx.send((ctx.vertex_id + 1) % 10, ctx.value[:300])
    if ctx.superstep == 5:
        ctx.vote_to_halt()


GROWING: dict[str, Any] = {"compute": growing, "max_supersteps": 8, "on_limit": "return"}
"""Each superstep writes more than 30 kB to the store, and superstep 3 takes long."""
GROWING_VERTICES = [Vertex(k, b"") for k in range(10)]
