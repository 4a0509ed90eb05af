"""The kernels of operators on CUDA, made from compiled bodies; bodies that may raise get guards."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from gpu_pregel.host.traverse.bodies import Bodies, CompiledBodies, compile_bodies, lasting_digest
from gpu_pregel.host.traverse.raises import may_raise
from gpu_pregel.kernels.library import jit_cuda, portable_cuda  # noqa: F401 (registers the operations of atomics)
from gpu_pregel.kernels.library.jit_cuda import Kernel
from gpu_pregel.kernels.traverse import edges_cuda, guards_cuda, pull_edges_cuda, vertices_cuda


class OperatorKernel(NamedTuple):
    """A kernel of an operator.

    Attributes
    ----------
    kernel : Kernel
    total : dtype
        Of the sum of what the body returns.
    records : bool
        Whether the kernel takes, after the arrays of the bodies, one in which it records what they raise.
    """

    kernel: Kernel
    total: np.dtype[Any]
    records: bool


def make_kernel(kind: str, bodies: Bodies, returns: str, offset: np.dtype[Any]) -> OperatorKernel:
    """Make a kernel for bodies, in which edge positions have the dtype ``offset``."""
    # Writes to read-only arrays have been refused.
    kinds = [kind.copy(readonly=False) if isinstance(kind, numba.types.Array) else kind for kind in bodies.kinds]
    one, records = _guarded(bodies._replace(kinds=tuple(kinds)), compile_bodies(bodies, returns, jit_cuda.device))
    arrays = numba.types.Tuple([*kinds, numba.types.int64[::1]] if records else kinds)
    offsets = numba.from_dtype(offset)[::1]
    if kind == "sum of vertices":
        return OperatorKernel(vertices_cuda.make_sum(one.body, arrays, one.total), one.total, records)
    if kind.startswith("filter"):
        is_queue = kind == "filter of queue"
        make_filter = vertices_cuda.make_filter_of_queue if is_queue else vertices_cuda.make_filter_of_words
        return OperatorKernel(make_filter(one.body, arrays, offsets), one.total, records)
    functions = edges_cuda.EdgeFunctions(
        body=one.body,
        receives=None if bodies.receives is None else one.receives,
        arrays=arrays,
        offset=offset,
        weight=np.dtype(str(bodies.weight)) if bodies.has_weights else None,
        total=one.total if returns == "sum" else None,
    )
    make = edges_cuda.make_push if kind == "push" else pull_edges_cuda.make_pull
    return OperatorKernel(make(functions), one.total, records)


def _guarded(bodies: Bodies, one: CompiledBodies) -> tuple[CompiledBodies, bool]:
    """Return the functions with guards around those that may raise, and whether there is one."""
    ends, body_kinds = 1 if bodies.weight is None else 2, bodies.arguments()
    receives_kinds = (numba.types.int64, *bodies.kinds)
    body = guards_cuda.with_plain_call(one.body, len(body_kinds))
    receives = guards_cuda.with_plain_call(one.receives, len(receives_kinds))
    raising = [
        may_raise(body, body_kinds, lasting_digest(bodies._replace(receives=None), "frontier")),
        bodies.receives is not None and may_raise(receives, receives_kinds, lasting_digest(bodies, "receives")),
    ]
    if not any(raising):
        return one, False
    guarded = [
        guards_cuda.guard_body(called, count, among) if raises else guards_cuda.ignore_record(called, count)
        for called, count, among, raises in zip(
            (body, receives), (len(body_kinds), len(receives_kinds)), (ends, 1), raising, strict=True
        )
    ]
    return one._replace(body=guarded[0], receives=guarded[1]), True
