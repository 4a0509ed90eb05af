"""How the lanes of a CUDA warp combine what the edges of its rows give, in pulls of programs and in reductions.

What the lanes find is combined over those of each row, in the order of the edges, and taken by the lane that has it.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_pregel.kernels.library.compiler_cuda import cuda, from_dtype, types
from gpu_pregel.kernels.library.jit_cuda import WARP, device
from gpu_pregel.kernels.library.loads_cuda import load_once
from gpu_pregel.kernels.library.warps_cuda import ALL, lane_number, shuffle, shuffle_up
from gpu_pregel.kernels.traverse.fields import Fields, make_cast, make_get, make_put
from gpu_pregel.kernels.traverse.rows_cuda import lanes_of, piece_of_warp
from gpu_pregel.kernels.traverse.walks_cuda import Pull, make_pull_rows


@dataclass(frozen=True)
class Combining:
    """How messages are combined.

    Attributes
    ----------
    message : Fields
    identity : number or tuple
    combine : device function
    absorbing : number or None
        The message that no other changes, after which a row need not be read on.
    takes_first : bool
        Whether the first message of a row will do.
    tracks : bool
        Whether to tell which rows have received a message.
    by_row : bool
        Whether a message depends on the row whose edge it comes along.
    offset : Numba type
        Of edge positions.
    load : device function
        ``load(indices, e)``: what stands at a position.
    """

    message: Fields
    identity: Any
    combine: Any
    absorbing: Any
    takes_first: bool
    tracks: bool
    by_row: bool
    offset: Any
    load: Any = load_once

    @property
    def arrays(self) -> Any:
        """The type of arrays of messages."""
        return types.Tuple([from_dtype(dtype)[::1] for dtype in self.message.dtypes])


@functools.lru_cache(maxsize=1)
def make_combining(one: Combining) -> tuple[Any, Any]:
    """``combined(a, b)``, cast; and ``up_to(message, first)``: over the lanes from ``first`` up to this one."""
    combine, cast = one.combine, make_cast(device, one.message)

    @device
    def combined(a, b):
        return cast(combine(a, b))

    @device
    def up_to(message, first):
        lane = lane_number()
        distance = np.uint32(1)
        while distance < np.uint32(WARP):
            below = shuffle_up(message, distance)
            if lane >= first + distance:
                message = combined(below, message)
            distance = np.uint32(distance << np.uint32(1))
        return message

    return combined, up_to


def make_combine_pieces(one: Combining) -> Any:
    """``combine_pieces(first, last, pieces)``: what some pieces, of one hub, combine to; on the last lane of a warp."""
    identity, get, cast = one.identity, make_get(device, one.message), make_cast(device, one.message)
    combined, up_to = make_combining(one)

    @device
    def combine_pieces(first, last, pieces):
        message, piece = cast(identity), np.uint32(first + lane_number())
        while piece < last:
            message = combined(message, cast(get(pieces, piece)))
            piece = np.uint32(piece + np.uint32(WARP))
        return up_to(message, np.uint32(0))

    return combine_pieces


@device
def _more_by_a_quarter(quota):
    """Return the number of edges to read of each row after ``quota``."""
    return np.uint32(quota + ((quota + np.uint32(3)) >> np.uint32(2)))


def make_combine_rows(one: Combining, message_of: Any) -> Any:
    """``combine_rows(indices, state, row, begin, length, quota)``: the combined message of each lane's row, if any.

    Returned are whether it has one, and the message. ``message_of(state, row, u, e)`` is whether the vertex ``u`` sends
    along edge ``e`` of a row, and the message; ``row`` is what the row's lane has passed, if messages depend on it.

    Where the first message will do, the warp reads ``quota`` edges of each row, then a quarter more of those that have
    found none, and so on.
    """
    identity = one.identity
    pull_rows = make_pull_rows(
        Pull(
            offset=one.offset,
            visit=message_of,
            fold=_make_fold(one),
            nothing=(False, identity),
            is_final=_make_is_final(one),
            # Few rows hold a message that no other can change: reading them in parts would fetch sectors again.
            grown=_more_by_a_quarter if one.takes_first else None,
            by_row=one.by_row,
            load=one.load,
        )
    )

    @device
    def combine_rows(indices, state, row, begin, length, quota):
        return pull_rows(row, begin, length, quota, indices, state, (False, identity))

    return combine_rows


def make_combine_rows_and_pieces(one: Combining, message_of: Any) -> Any:
    """``combine(indices, state, row, begin, length, count, piece_count, pieces)``: the same, with pieces of hubs.

    The warps after those of the ``count`` rows have one piece of a hub each, whose combined message is stored in
    ``pieces``.
    """
    combine_rows, put = make_combine_rows(one, message_of), make_put(device, one.message)

    @device
    def combine(indices, state, row, begin, length, count, piece_count, pieces):
        (follows_rows, piece), quota = piece_of_warp(count), np.uint32(1)
        is_piece = follows_rows and piece < piece_count
        if is_piece:
            # The warp has no other row.
            quota = np.uint32(WARP)
        is_received, message = combine_rows(indices, state, row, begin, length, quota)
        if is_piece and lane_number() == np.uint32(0):
            put(pieces, piece, message)
        return is_received, message

    return combine


def _make_fold(one: Combining) -> Any:
    """``fold(result, owner, span, row, state, kept)``: combine what the lanes have read of each row, in order."""
    combined, up_to = make_combining(one)
    tracks = one.tracks or one.takes_first

    @device
    def fold(result, owner, span, row, state, kept):
        (is_sent, message), (is_received, found), (start, upto, base) = result, kept, span
        first = shuffle(start, owner)
        first = np.uint32(first - base) if first > base else np.uint32(0)
        if tracks:
            sent = np.uint32(cuda.ballot_sync(ALL, is_sent))
            is_received = is_received or sent & lanes_of(start, upto, base) != np.uint32(0)
        message = up_to(message, first)
        # The lane of the row's last edge holds the combination of all of them; the row's own lane fetches it.
        last = np.uint32(min(upto, np.uint32(base + np.uint32(WARP))) - base - np.uint32(1))
        message = shuffle(message, last)
        if upto > max(start, base) and start < base + np.uint32(WARP):
            found = combined(found, message)
        return is_received, found

    return fold


def _make_is_final(one: Combining) -> Any:
    """``is_final(kept)``: whether no other message changes that of a row; None if every message may."""
    absorbing = one.absorbing

    @device
    def is_any(kept):
        return kept[0]

    @device
    def is_absorbing(kept):
        return kept[1] == absorbing

    if one.takes_first:
        return is_any
    return None if absorbing is None else is_absorbing
