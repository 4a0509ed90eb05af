"""The kernels of operators on CUDA, made from compiled bodies; bodies that may raise get guards."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba
import numpy as np

from gpu_pregel.errors import ProgramError
from gpu_pregel.host.traverse.bodies import Bodies, compile_bodies, lasting_digest
from gpu_pregel.host.traverse.combiners import Combiner, resolve_combiner
from gpu_pregel.host.traverse.compilation import numba_type, place_of
from gpu_pregel.host.traverse.functions import device_function
from gpu_pregel.host.traverse.labels import LabelBodies, compile_labels
from gpu_pregel.host.traverse.pairs import PairBodies, compile_pairs
from gpu_pregel.host.traverse.raises import noted, raises_exception
from gpu_pregel.host.traverse.rows import RowBodies, compile_rows
from gpu_pregel.kernels.library import jit_cuda, portable_cuda  # noqa: F401 (registers the operations of atomics)
from gpu_pregel.kernels.library.jit_cuda import Kernel
from gpu_pregel.kernels.traverse import edges_cuda, guards_cuda, labels_cuda, vertices_cuda
from gpu_pregel.kernels.traverse.combining_cuda import Combining
from gpu_pregel.kernels.traverse.edges_cuda import position_type
from gpu_pregel.kernels.traverse.fields import Fields
from gpu_pregel.kernels.traverse.frontier_cuda import RowOutput
from gpu_pregel.kernels.traverse.pairs_cuda import PairFunctions, make_intersect
from gpu_pregel.kernels.traverse.reduce_cuda import RowFunctions, make_reduce


class OperatorKernel(NamedTuple):
    """A kernel of an operator.

    Attributes
    ----------
    kernel : Kernel
    total : dtype or None
        Of the sum of what the body returns; None if it is not summed.
    records : bool
        Whether the kernel takes, after the arrays of the bodies, one in which it records what they raise.
    """

    kernel: Kernel
    total: np.dtype[Any] | None
    records: bool


def make_kernel(kind: str, bodies: Bodies, returns: str | None, offset: np.dtype[Any]) -> OperatorKernel:
    """Make a kernel for bodies, in which edge positions have the dtype ``offset``."""
    kinds = _writable(bodies.kinds)
    one, bodies = compile_bodies(bodies, returns, jit_cuda.device), bodies._replace(kinds=kinds)
    plain = {"body": (one.body, bodies.arguments(), 1 if bodies.weight is None else 2)}
    if bodies.receives is not None:
        plain["receives"] = (one.receives, (numba.types.int64, *kinds), 1)
    guarded, records = _guarded(plain, lasting_digest(bodies, "raises"))
    total = one.total if returns == "sum" else None
    given = _surroundings(bodies, RowOutput(returns, total, offset), records=records)
    over_vertices = {
        "sum of vertices": vertices_cuda.make_sum,
        "filter of queue": vertices_cuda.make_filter_of_queue,
        "filter of words": vertices_cuda.make_filter_of_words,
    }
    if kind in over_vertices:
        return OperatorKernel(over_vertices[kind](guarded["body"], given["arrays"], given["output"]), total, records)
    functions = edges_cuda.EdgeFunctions(**{"receives": None, **guarded, **given})
    make = edges_cuda.make_push if kind == "push" else edges_cuda.make_pull
    return OperatorKernel(make(functions), total, records)


class RowKernels(NamedTuple):
    """The kernels of ``reduce_rows``.

    Attributes
    ----------
    rows, hubs : Kernel
        Over rows and pieces of hubs, then over hubs.
    message : tuple of dtypes
        Of the numbers of a message.
    ordered : bool
        Whether results depend on the order of the rows of a queue.
    total : dtype or None
    records : bool
        As of :class:`OperatorKernel`.
    """

    rows: Kernel
    hubs: Kernel
    message: tuple[np.dtype[Any], ...]
    ordered: bool
    total: np.dtype[Any] | None
    records: bool


def make_row_kernels(bodies: RowBodies, returns: str | None, offset: np.dtype[Any]) -> RowKernels:
    """Make the kernels of ``reduce_rows``.

    Raises
    ------
    ProgramError
        The function of a combiner may raise an exception, which is not possible there.
    """
    kinds = _writable(bodies.kinds)
    bodies = bodies._replace(kinds=kinds)
    one = compile_rows(bodies, returns, jit_cuda.device)
    kind = numba_type(one.fields)
    if isinstance(bodies.combine, Combiner) and raises_exception(one.combine, (kind, kind)):
        raise ProgramError(
            f"the function of combine may raise an exception{place_of(one.combine)}, which is not possible on a GPU: "
            f"raise it in message or finish, or use device='cpu'"
        )
    finish_kinds = (numba.types.int64, kind, *bodies.kinds)
    plain = {"message": (one.message, bodies.message_arguments, 2), "finish": (one.finish, finish_kinds, 1)}
    guarded, records = _guarded(plain)
    combining = Combining(
        message=one.fields,
        identity=one.identity,
        combine=one.combine,
        absorbing=one.absorbing,
        takes_first=bodies.combine == "any",
        tracks=False,
        by_row=True,
        offset=position_type(offset),
    )
    functions = RowFunctions(
        **guarded,
        combining=combining,
        **_surroundings(bodies, RowOutput(returns, one.total, offset), records=records),
    )
    rounds = any(dtype.kind == "f" for dtype in one.fields.dtypes) and bodies.combine not in ("min", "max", "any")
    ordered = rounds or (one.total is not None and one.total.kind == "f")
    return RowKernels(*make_reduce(functions), one.fields.dtypes, ordered, one.total, records)


class LabelKernels(NamedTuple):
    """The kernels of ``count_labels``.

    Attributes
    ----------
    clear, rows, pieces, hubs : Kernel
    message : tuple of dtypes
        Of the numbers of a label that is found in a piece.
    total : dtype or None
    records : bool
        As of :class:`OperatorKernel`.
    """

    clear: Kernel
    rows: Kernel
    pieces: Kernel
    hubs: Kernel
    message: tuple[np.dtype[Any], ...]
    total: np.dtype[Any] | None
    records: bool


def make_label_kernels(bodies: LabelBodies, returns: str | None, offset: np.dtype[Any]) -> LabelKernels:
    """Make the kernels of ``count_labels``."""
    kinds = _writable(bodies.kinds)
    bodies = bodies._replace(kinds=kinds)
    one = compile_labels(bodies, returns, jit_cuda.device)
    plain = {
        role: (getattr(one, role), arguments, 2 if role in ("label", "weigh") else 1)
        for role, (_, arguments) in bodies.roles.items()
    }
    functions, records = _guarded(plain)
    combining = _combining("max", one.fields, offset, load=labels_cuda.load_key)
    labels = labels_cuda.LabelFunctions(
        **{"weigh": None, **functions},
        combining=combining,
        **_surroundings(bodies, RowOutput(returns, one.total, offset), records=records),
    )
    return LabelKernels(*labels_cuda.make_count(labels), one.fields.dtypes, one.total, records)


class PairKernels(NamedTuple):
    """The kernels of ``intersect_rows``.

    Attributes
    ----------
    pieces, pairs : Kernel
        Over pieces of long rows, then over pairs.
    message : dtype
        Of the sum of a pair.
    total : dtype or None
        Of the result.
    records : bool
        As of :class:`OperatorKernel`.
    """

    pieces: Kernel
    pairs: Kernel
    message: np.dtype[Any]
    total: np.dtype[Any] | None
    records: bool


def make_pair_kernels(
    bodies: PairBodies, returns: str | None, offset: np.dtype[Any], ends: tuple[np.dtype[Any], np.dtype[Any]]
) -> PairKernels:
    """Make the kernels of ``intersect_rows`` for arrays of vertices of the dtypes ``ends``."""
    kinds = _writable(bodies.kinds)
    bodies = bodies._replace(kinds=kinds)
    one = compile_pairs(bodies, returns, jit_cuda.device)
    finish_kinds = (*(numba.types.int64,) * 3, numba_type(one.fields), *kinds)
    plain = {"visit": (one.visit, bodies.visit_arguments, 4), "finish": (one.finish, finish_kinds, 1)}
    guarded, records = _guarded(plain)
    functions = PairFunctions(
        **guarded,
        is_silent=one.is_silent,
        ends=ends,
        combining=_combining("sum", one.fields, offset),
        offset=offset,
        **_surroundings(bodies, RowOutput(returns, one.total, offset), records=records),
    )
    return PairKernels(*make_intersect(functions), one.fields.dtypes[0], one.total, records)


def _combining(combine: str, fields: Fields, offset: np.dtype[Any], **options: Any) -> Combining:
    """Return how results of edges are combined by a built-in combiner, over whole rows."""
    function, identity = resolve_combiner(combine, fields)
    return Combining(
        message=fields,
        identity=identity,
        combine=device_function(function, jit_cuda.device),
        absorbing=None,
        takes_first=False,
        tracks=False,
        by_row=True,
        offset=position_type(offset),
        **options,
    )


def _surroundings(
    bodies: Bodies | RowBodies | LabelBodies | PairBodies, output: RowOutput, *, records: bool
) -> dict[str, Any]:
    """Return what kernels over edges take beside functions: the types of arrays and of weights, and the output."""
    arrays = [*bodies.kinds, numba.types.int64[::1]] if records else bodies.kinds
    weight = np.dtype(str(bodies.weight)) if bodies.has_weights else None
    return {"arrays": numba.types.Tuple(arrays), "weight": weight, "output": output}


def _writable(kinds: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the types of arrays as writable ones: writes to read-only arrays have been refused."""
    return tuple(kind.copy(readonly=False) if isinstance(kind, numba.types.Array) else kind for kind in kinds)


def _guarded(
    plain: dict[str, tuple[Any, tuple[Any, ...], int]], digest: str | None = None
) -> tuple[dict[str, Any], bool]:
    """Return the functions with guards around those that may raise, and whether there is one.

    ``plain`` has each function with the types of its arguments and how many of the first name the place, by role. What
    may raise is kept on disk by the digest.
    """
    called = {role: guards_cuda.with_plain_call(one, len(arguments)) for role, (one, arguments, _) in plain.items()}
    raising = noted(digest, lambda: [role for role in plain if raises_exception(called[role], plain[role][1])])
    if not raising:
        return {role: one for role, (one, _, _) in plain.items()}, False
    return {
        role: guards_cuda.guard_body(called[role], len(arguments), ends, raises=role in raising)
        for role, (_, arguments, ends) in plain.items()
    }, True
