"""What a commit stores of the aggregates: those that have changed, and of large ones their difference."""

from __future__ import annotations

from collections.abc import Mapping

from gpu_pregel.errors import CodecError
from gpu_pregel.host.agents.codec.differences import LARGE, changed_value, find_edits, pack_difference
from gpu_pregel.host.agents.codec.format import DIFFERENCE

ChangedAggregates = dict[str, bytes | None]
"""The aggregate of each name, the difference from the previous one, or None if it has not changed."""


def aggregate_changes(before: Mapping[str, bytes], after: Mapping[str, bytes]) -> ChangedAggregates:
    """Return what turns the aggregates before a superstep into those after it."""
    return {name: _change(before.get(name), new) for name, new in after.items()}


def _change(old: bytes | None, new: bytes) -> bytes | None:
    if old is None:
        return new
    if old is new or old == new:
        return None
    if len(old) < LARGE or len(new) < LARGE:
        return new
    difference = pack_difference(len(old), find_edits(old, new))
    return difference if len(difference) < len(new) // 2 else new


def changed_aggregates(before: Mapping[str, bytes], changes: ChangedAggregates) -> dict[str, bytes]:
    """Return the aggregates after a superstep; those that ``before`` does not have keep their initial value."""
    after = {}
    for name, change in changes.items():
        if change is not None:
            if change == b"":
                raise CodecError(f"is damaged: aggregate {name!r} is empty", "a commit")
            if name not in before and change[0] == DIFFERENCE:
                raise CodecError(f"is damaged: aggregate {name!r} has no value to differ from", "a commit")
            after[name] = bytes(changed_value(before.get(name, b""), change))
        elif name in before:
            after[name] = before[name]
    return after
