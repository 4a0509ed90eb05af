"""How the lanes of a CUDA warp share the edges of its rows: the loops of every push, pull and reduction.

A warp takes 32 rows, sums their lengths, and its lanes walk all their edges side by side, so that neighbouring lanes
read neighbouring edges whatever the degrees (load balancing by search: Davidson et al., IPDPS 2014). What happens to an
edge, and to its result, is up to device functions, which get the caller's arrays as the tuple ``state``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_pregel.kernels.library.compiler_cuda import cuda
from gpu_pregel.kernels.library.jit_cuda import WARP, device
from gpu_pregel.kernels.library.loads_cuda import load_once
from gpu_pregel.kernels.library.warps_cuda import ALL, lane_number, owner_of, shuffle, sum_up_to


@device
def vertex_alone(u, length, state):
    """Return what the edges of a row know of it: its vertex."""
    return u


@device
def keep_nothing(result, v, is_last, state, kept):
    """Collect no results."""
    return kept


def make_push_rows(
    offset: Any, visit: Any, *, prepare: Any = vertex_alone, collect: Any = keep_nothing, nothing: Any = False
) -> Any:
    """``push_rows(u, begin, length, indices, state, kept)``: visit the edges of the rows of a warp's lanes.

    Each lane passes a row of vertex ``u``, and what it has ``kept``, which is returned. ``prepare(u, length, state)``
    is what the row's edges know of it. One lane calls ``visit(own, v, e, state)`` for each edge; then all lanes call
    ``collect(result, v, is_last, state, kept)``, those without an edge with the result ``nothing``.
    """

    @device
    def push_rows(u, begin, length, indices, state, kept):
        upto = sum_up_to(length)
        total = shuffle(upto, 31)
        before = offset(begin - offset(upto - length))
        own, lane = prepare(u, length, state), lane_number()
        place = lane
        while place - lane < total:
            owner = owner_of(place, upto)
            e = offset(shuffle(before, owner) + offset(place))
            row, result, v = shuffle(own, owner), nothing, np.uint32(0)
            if place < total:
                v = load_once(indices, e)
                result = visit(row, v, e, state)
            place = np.uint32(place + np.uint32(WARP))
            kept = collect(result, v, place - lane >= total, state, kept)
        return kept

    return push_rows


@dataclass(frozen=True)
class Pull:
    """How the edges of rows are read until what they give is final.

    Attributes
    ----------
    offset : Numba type
        Of edge positions.
    visit : device function
        ``visit(state, row, u, e)`` for edge ``e``, from ``u``, of a row; one lane calls it.
    fold : device function
        ``fold(result, owner, span, row, state, kept)``, which all lanes call after up to 32 edges: what the row of the
        lane has ``kept``. ``result`` is that of the lane's edge, in the row of lane ``owner``; ``span`` has the first
        edge of the lane's own row and the end of the row, and the edge of lane 0, numbered over all rows.
    nothing : tuple
        The result of a lane without an edge.
    is_final : device function or None
        ``is_final(kept)``: whether the rest of the row need not be read.
    grown : device function or None
        ``grown(quota)``: how many edges of each row are read after so many; None if the warp reads rows to their ends
        at once.
    by_row : bool
        Whether ``visit`` depends on what the row's lane has passed as ``row``.
    load : device function
        ``load(indices, e)``: what stands at a position.
    """

    offset: Any
    visit: Any
    fold: Any
    nothing: Any
    is_final: Any = None
    grown: Any = None
    by_row: bool = True
    load: Any = load_once


def make_pull_rows(pull: Pull) -> Any:
    """``pull_rows(row, begin, length, quota, indices, state, kept)``: what the edges of each lane's row give.

    Each lane passes a row and what it has ``kept``, which is updated and returned. The warp reads ``quota`` edges of
    each row, then more of those that are not final, and so on.
    """
    offset, grown, pull_parts = pull.offset, pull.grown, _make_pull_parts(pull)
    is_final = pull.is_final

    @device
    def at_once(row, begin, length, quota, indices, state, kept):
        return pull_parts(row, begin, length, sum_up_to(length), indices, state, kept)

    @device
    def by_quota(row, begin, length, quota, indices, state, kept):
        part = min(length, quota)
        upto = sum_up_to(part)
        while shuffle(upto, 31) > np.uint32(0):
            kept = pull_parts(row, begin, part, upto, indices, state, kept)
            begin, length = offset(begin + offset(part)), np.uint32(length - part)
            quota, part = grown(quota), np.uint32(0)
            if not is_final(kept):
                part = min(length, quota)
            upto = sum_up_to(part)
        return kept

    return at_once if grown is None else by_quota


@device
def _same_row(row, owner):
    """Return nothing of use: the edges do not depend on the row."""
    return row


@device
def _row_of_lane(row, owner):
    """Return what lane ``owner`` has passed as its row."""
    return shuffle(row, owner)


@device
def _never(kept):
    return False


def _make_pull_parts(pull: Pull) -> Any:
    """``pull_parts(row, begin, part, upto, indices, state, kept)``: read ``part`` edges of each lane's row.

    ``upto`` is the sum of the parts up to this lane's.
    """
    offset, visit, fold, nothing, load = pull.offset, pull.visit, pull.fold, pull.nothing, pull.load
    can_end, skips, is_final = pull.is_final is not None, pull.grown is not None, pull.is_final or _never
    row_of = _row_of_lane if pull.by_row else _same_row

    @device
    def pull_parts(row, begin, part, upto, indices, state, kept):
        lane, start, base, total = lane_number(), np.uint32(upto - part), np.uint32(0), shuffle(upto, 31)
        before = offset(begin - offset(start))
        while base < total:
            going = ALL
            if can_end:
                going = np.uint32(cuda.ballot_sync(ALL, part > np.uint32(0) and upto > base and not is_final(kept)))
                if going == np.uint32(0):
                    total = base
                elif skips:
                    # Skip the rows that have ended before the first that has not.
                    base = max(base, shuffle(start, np.uint32(cuda.ffs(going) - 1)))
            place = np.uint32(base + lane)
            owner = owner_of(place, upto)
            e, own_row, result = offset(shuffle(before, owner) + offset(place)), row_of(row, owner), nothing
            if place < total and (going >> owner) & np.uint32(1) != np.uint32(0):
                result = visit(state, own_row, load(indices, e), e)
            kept = fold(result, owner, (start, upto, base), row, state, kept)
            base = np.uint32(base + np.uint32(WARP))
        return kept

    return pull_parts
