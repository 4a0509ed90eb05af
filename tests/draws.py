"""Random numbers of vertex programs, computed by an implementation of their own."""

from __future__ import annotations

from gpu_pregel.kernels.library.draws import STAGES


def drawn(
    seed: int, stage: str, vertex: int, superstep: int, draw: int, other: int = 0xFFFFFFFF, number: int = 0
) -> float:
    """Return a number as Philox4x32-10 defines it, with Python's integers."""
    mask = 0xFFFFFFFF
    function = STAGES.index(stage) if stage else len(STAGES) + number  # of an aggregator
    k, j = seed & mask, seed >> 32
    a, b, c, d = vertex, superstep, other, function << 24 | draw
    for _ in range(10):
        one, two = a * 0xD2511F53, c * 0xCD9E8D57
        a, b, c, d = two >> 32 ^ b ^ k, two & mask, one >> 32 ^ d ^ j, one & mask
        k, j = k + 0x9E3779B9 & mask, j + 0xBB67AE85 & mask
    return ((a << 32 | b) >> 11) / 2**53
