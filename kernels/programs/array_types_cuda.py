"""The types of the arrays that the CUDA kernels of a vertex program take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_pregel.kernels.library.captured import argument_type
from gpu_pregel.kernels.library.compiler_cuda import from_dtype, types
from gpu_pregel.kernels.programs.combine_cuda import inbox_dtypes
from gpu_pregel.kernels.programs.functions import Functions, parameter_dtypes


@dataclass(frozen=True)
class ArrayTypes:
    """Numba's types of the arrays of a run."""

    offset: Any
    """The unsigned integer type in which positions of edges are computed."""
    offsets: Any
    vertices: Any
    weights: Any
    has_weights: bool
    values: Any
    messages: Any
    inbox: Any
    aggregates: Any
    """Of the aggregates, followed by the parameters, the captured arrays, and the record of failures if any."""
    control: Any
    figures: Any
    """Of the figures of blocks, the aggregates of warps, and ``control``."""
    senders: Any
    """Of what messages along edges are computed from: weights, degrees, superstep, aggregates and values."""
    receivers: Any
    """Of ``receivers`` in ``apply.make_is_receiver``: an empty tuple if every vertex takes messages."""
    row_receivers: Any
    """The same for a pull, after whether it skips rows, and the vertices of the pieces of long rows."""


def make_array_types(functions: Functions, offset: np.dtype[Any], weight: np.dtype[Any] | None) -> ArrayTypes:
    """The types for edge positions of dtype ``offset`` (uint32 or int64) and weights of dtype ``weight``, if any."""

    def array(dtype):
        return from_dtype(np.dtype(dtype))[::1]

    def arrays(dtypes):
        return types.Tuple(tuple(array(dtype) for dtype in dtypes))

    partials = [dtype for _, _, _, dtype, _ in functions.aggregators]
    offsets, vertices, values = array(offset), array(np.uint32), arrays(functions.value.dtypes)
    weights, control = array(np.float32 if weight is None else weight), array(np.int64)
    captured = tuple(argument_type(dtype) for dtype in functions.captured)
    failures = (array(np.int64),) if functions.records else ()
    aggregates = types.Tuple((*arrays([*partials, *parameter_dtypes(functions.parameters)]), *captured, *failures))
    receivers = row_receivers = types.Tuple(())
    if functions.receives is not None:
        receivers = types.Tuple((types.uint32, types.int64, offsets, offsets, aggregates, values))
        row_receivers = types.Tuple((types.boolean, vertices, receivers))
    return ArrayTypes(
        offset=types.uint32 if offset.itemsize == 4 else types.uint64,
        offsets=offsets,
        vertices=vertices,
        weights=weights,
        has_weights=weight is not None,
        values=values,
        messages=arrays(functions.message.dtypes),
        inbox=arrays(inbox_dtypes(functions.message)),
        aggregates=aggregates,
        control=control,
        figures=types.Tuple((control, arrays(partials), control)),
        senders=types.Tuple((weights, offsets, offsets, types.int64, aggregates, values)),
        receivers=receivers,
        row_receivers=row_receivers,
    )
