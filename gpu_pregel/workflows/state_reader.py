"""Reads the state of a run from its aggregates, and decodes values that stay the same only once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from gpu_pregel.errors import CodecError
from gpu_pregel.host.agents.codec import decode
from gpu_pregel.host.agents.vertices import IMMUTABLE_TYPES
from gpu_pregel.workflows.key_folds import EMPTY, unpacked_value
from gpu_pregel.workflows.task_messages import is_flat


class StateReader:
    """Reads the states of runs of a graph; several threads may use it."""

    def __init__(self) -> None:
        self._values: dict[str, tuple[bytes, Any, bool]] = {}
        """The last value of each key that is immutable or flat, with its encoding, and whether it has to be copied."""

    def read(self, aggregates: Mapping[str, bytes], keys: Iterable[str]) -> dict[str, Any]:
        """Return the values of the keys that have one, as the last superstep left them."""
        values, state, name = self._values, {}, ""
        try:
            for name in keys:
                data = aggregates[name]
                known = values.get(name)
                if known is not None and known[0] == data:  # of the same object or, in other runs, the same bytes
                    state[name] = known[1].copy() if known[2] else known[1]
                elif data != EMPTY:
                    state[name] = value = unpacked_value(data)
                    if type(value) in IMMUTABLE_TYPES:
                        values[name] = data, value, False
                    elif is_flat(value):
                        values[name] = data, value.copy(), True
        except CodecError:
            decode(aggregates[name], name=f"the value of key {name!r}")
            raise
        return state
