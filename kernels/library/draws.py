"""Random numbers of vertex programs and of the bodies of operators, the same on every device.

Philox4x32-10 with the seed as its key. The counters of ``ctx.random`` are the vertex, the superstep, the other end of
the edge and the draw, with the function that draws in the highest byte; those of ``random`` are the caller's. A number
is part of the interface: checkpoints rely on it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import types
from numba.core.errors import TypingError
from numba.core.typing.templates import infer_getattr, make_overload_method_template
from numba.extending import overload, register_jitable

from gpu_pregel.kernels.library.philox import UNIT, philox4

NOBODY = np.int64(0xFFFFFFFF)
"""In place of the other end of an edge, in functions that are not called for an edge."""
STAGES = ("", "init", "initially_active", "message", "apply", "receives", "active", "wake")
"""The functions of a program by number; the first stands for the bodies of operators, aggregators come last."""
MOST_DRAWS = 1 << 24
"""Draws of one call."""
_LOWEST = np.int64(0xFFFFFFFF)
_philox4 = register_jitable(philox4)


@register_jitable
def _draw(seed: Any, first: Any, second: Any, third: Any, fourth: Any) -> Any:
    """Return a number from 0 to 1 for a seed of 64 bits and counters, of which the lowest 32 bits count."""
    key = np.int64(seed)
    a, b, _, _ = _philox4(
        key & _LOWEST,
        (key >> np.int64(32)) & _LOWEST,
        np.int64(first) & _LOWEST,
        np.int64(second) & _LOWEST,
        np.int64(third) & _LOWEST,
        np.int64(fourth) & _LOWEST,
    )
    return float(((a << np.uint64(32)) | b) >> np.uint64(11)) * UNIT


@register_jitable
def random(seed: Any, first: Any, second: Any = 0, third: Any = 0) -> Any:
    """Return a random number from 0 to 1, without 1, for a seed and up to three counters: the same on every device.

    For the bodies of operators, whose arguments have no ``ctx.random``. The counters say which number it is, such as
    the vertex or the ends of an edge, the number of the phase, and that of the draw in the call: equal counters have
    equal numbers, in whatever order and on whatever device they are drawn.

    Parameters
    ----------
    seed : int
        From 0 to 2^63 - 1.
    first, second, third : int
        Their lowest 32 bits count.

    Returns
    -------
    float
        A multiple of 2^-53, drawn by Philox4x32-10.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> gp.random(1, 0), gp.random(1, 1)
    (0.8902591729757107, 0.6719982688953429)
    >>> frontier = gp.Frontier(gp.grid(10), device="cpu")
    >>> gp.process_vertices(lambda v, seed: gp.random(seed, v) < 0.3, frontier, [1])
    30
    """
    return _draw(seed, first, second, third, 0)


@register_jitable
def draw_of(vertex: Any, superstep: Any, stream: Any, draw: Any) -> Any:
    """Return ``ctx.random(draw)``; ``stream`` has the seed, the number of the function, and the other end or nobody."""
    seed, stage, other = stream
    return _draw(seed, vertex, superstep, other, stage * MOST_DRAWS + (np.int64(draw) & (MOST_DRAWS - 1)))


PORTABLE = (_philox4, _draw, random, draw_of)
"""The functions above, which are compiled for CUDA as they are."""


def register_method(target: str, make_template: Any, infer: Any, overload: Any) -> None:
    """Make ``ctx.random(draw)`` known to a compiler, by the functions of its module of extensions."""
    options = {"target": target, "strict": False}

    def implement(ctx: Any, draw: Any) -> Any:
        if not isinstance(draw, types.Integer):
            raise TypingError(f"Invalid draw of type {draw}: ctx.random(draw) takes the number of the draw, an integer")
        return lambda ctx, draw: draw_of(ctx.vertex, ctx.superstep, ctx.stream, draw)

    template = make_template(types.BaseNamedTuple, "random", implement, inline="never", **options)

    class OfContext(template):  # type: ignore[misc, valid-type]
        """The method of a ``ctx`` only: other named tuples may have a field of that name."""

        def _resolve(self, typ: Any, attr: str) -> Any:
            return super()._resolve(typ, attr) if "stream" in typ.fields else None

    infer(OfContext)
    overload(implement, **options)(implement)


register_method("cpu", make_overload_method_template, infer_getattr, overload)
