"""How the lanes of a CUDA warp combine what the edges of its rows give: the core of every pull and reduction.

The lanes walk the edges of 32 rows side by side. What they find is combined over the lanes of each row, in the order of
the edges, and taken by the lane that has the row.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from gpu_pregel.kernels.library.compiler_cuda import cuda, from_dtype, types
from gpu_pregel.kernels.library.jit_cuda import WARP, device
from gpu_pregel.kernels.library.loads_cuda import load_once
from gpu_pregel.kernels.library.warps_cuda import ALL, lane_number, owner_of, shuffle, shuffle_up, sum_up_to
from gpu_pregel.kernels.traverse.fields import Fields, make_cast
from gpu_pregel.kernels.traverse.rows_cuda import lanes_of


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


@device
def _same_row(row, owner):
    """Return nothing of use: messages do not depend on the row."""
    return row


@device
def _row_of_lane(row, owner):
    """Return what lane ``owner`` has passed as its row."""
    return shuffle(row, owner)


def make_combine_rows(one: Combining, message_of: Any) -> Any:
    """``combine_rows(indices, state, row, begin, length, quota)``: the combined message of each lane's row, if any.

    Returned are whether it has one, and the message. ``message_of(state, row, u, e)`` is whether the vertex ``u`` sends
    along edge ``e`` of a row, and the message; ``row`` is what the row's lane has passed, if messages depend on it.

    Where the first message will do, the warp reads ``quota`` edges of each row, then a quarter more of those that have
    found none, and so on.
    """
    identity, offset = one.identity, one.offset
    _, is_final = _make_is_final(one)
    combine_parts = _make_combine_parts(one, message_of)

    @device
    def at_once(indices, state, row, begin, length, quota):
        return combine_parts(indices, state, row, begin, length, sum_up_to(length), False, identity)

    @device
    def by_quota(indices, state, row, begin, length, quota):
        is_received, message = False, identity
        part = min(length, quota)
        upto = sum_up_to(part)
        while shuffle(upto, 31) > np.uint32(0):
            is_received, message = combine_parts(indices, state, row, begin, part, upto, is_received, message)
            begin, length = offset(begin + offset(part)), np.uint32(length - part)
            quota = np.uint32(quota + ((quota + np.uint32(3)) >> np.uint32(2)))
            part = np.uint32(0)
            if not is_final(is_received, message):
                part = min(length, quota)
            upto = sum_up_to(part)
        return is_received, message

    # Few rows hold a message that no other can change: reading them in parts would fetch sectors again.
    return by_quota if one.takes_first else at_once


def _make_combine_parts(one: Combining, message_of: Any) -> Any:
    """``combine_parts(indices, state, row, begin, length, upto, is_received, message)``: add edges of each lane's row.

    The warp's lanes walk the ``length`` edges of all 32 rows side by side; ``upto`` is the sum of the lengths up to
    this lane's. Whether the row has received a message, and the message, are updated and returned.
    """
    identity, offset, tracks = one.identity, one.offset, one.tracks or one.takes_first
    combined, up_to = make_combining(one)
    can_exit, is_final = _make_is_final(one)
    row_of, load = _row_of_lane if one.by_row else _same_row, one.load

    @device
    def combine_parts(indices, state, row, begin, length, upto, is_received, message):
        lane = lane_number()
        total = shuffle(upto, 31)
        start = np.uint32(upto - length)
        base = np.uint32(0)
        while base < total:
            position = np.uint32(base + lane)
            owner = owner_of(position, upto)
            e = offset(shuffle(offset(begin - offset(start)), owner) + offset(position))
            first = shuffle(start, owner)
            first = np.uint32(first - base) if first > base else np.uint32(0)
            part = identity
            wanted = position < total
            if can_exit:
                # Stop reading rows whose message can no longer change; some lanes have no row.
                is_finished = is_final(is_received, message) or upto <= base or length == np.uint32(0)
                finished = np.uint32(cuda.ballot_sync(ALL, is_finished))
                wanted = wanted and (finished >> owner) & np.uint32(1) == np.uint32(0)
                if finished == ALL:
                    total = base
            is_sent, own_row = False, row_of(row, owner)
            if wanted:
                is_sent, part = message_of(state, own_row, load(indices, e), e)
            if tracks:
                sent = np.uint32(cuda.ballot_sync(ALL, is_sent))
                is_received = is_received or sent & lanes_of(start, upto, base) != np.uint32(0)
            part = up_to(part, first)
            # The lane of the row's last edge holds the combination of all of them; the row's own lane fetches it.
            last = np.uint32(min(upto, np.uint32(base + np.uint32(WARP))) - base - np.uint32(1))
            taken = shuffle(part, last)
            if length > np.uint32(0) and start < base + np.uint32(WARP) and upto > base:
                message = combined(message, taken)
            base = np.uint32(base + np.uint32(WARP))
        return is_received, message

    return combine_parts


def _make_is_final(one: Combining) -> tuple[bool, Any]:
    """Whether reading a row can stop early; and ``is_final(is_received, message)``: whether no other can change it."""
    absorbing = one.absorbing

    @device
    def is_any(is_received, message):
        return is_received

    @device
    def is_absorbing(is_received, message):
        return message == absorbing

    @device
    def never(is_received, message):
        return False

    if one.takes_first:
        return True, is_any
    return absorbing is not None, never if absorbing is None else is_absorbing
