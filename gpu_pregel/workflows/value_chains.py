"""Chains of encoded values in a thread: a whole value, then the differences that lead to the values after it.

A list that grows by a message per step is stored as that message. A chain ends when its differences would take more
space, and their rows more time to read, than the value itself; values that double in size are therefore stored whole
once, and all of them take space proportional to the last one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from gpu_pregel.errors import CodecError
from gpu_pregel.host.agents.codec.differences import EncodedValue, changed_value, find_edits, joined, pack_difference

_ROW = 256
"""What reading a row costs, in bytes that can be read in the same time."""


@dataclass(frozen=True, slots=True)
class Chain:
    """The last value of a chain.

    Attributes
    ----------
    number, position : int
        The chain, and the number of differences in it.
    value : bytes
        The encoded value.
    cost : int
        Bytes of the differences, and what their rows cost.
    """

    number: int
    position: int
    value: bytes
    cost: int = 0

    def extended(self, value: bytes) -> tuple[Chain, bytes] | None:
        """Return the chain with a further value and the difference to store, or None if the chain should end."""
        room = len(value) - self.cost - _ROW
        if room <= 0:
            return None
        difference = pack_difference(len(self.value), find_edits(self.value, value))
        if len(difference) > room:
            return None
        return Chain(self.number, self.position + 1, value, self.cost + len(difference) + _ROW), difference


def read_chain(number: int, rows: list[bytes]) -> Chain:
    """Return the chain that ends with the last of its rows."""
    cost = sum(len(row) + _ROW for row in rows[1:])
    return Chain(number, len(rows) - 1, joined(_fold(rows)[-1]), cost)


class ChainReader:
    """Reads values of the chains of one namespace, each row once.

    Parameters
    ----------
    read : callable
        Returns the rows of a chain up to a position.
    """

    def __init__(self, read: Callable[[int, int], list[bytes]]) -> None:
        self._read = read
        self._values: dict[int, list[EncodedValue]] = {}

    def value(self, chain: int, position: int) -> bytes:
        """Return the encoded value at a position of a chain."""
        values = self._values.get(chain, [])
        if position >= len(values):
            values = self._values[chain] = _fold(self._read(chain, position))
        return joined(values[position])


def _fold(rows: list[bytes]) -> list[EncodedValue]:
    """Return the values of a chain."""
    values: list[EncodedValue] = []
    value: EncodedValue = b""
    for row in rows:
        value = changed_value(value, row) if values else row
        if not row:
            raise CodecError("is empty", "a stored value")
        values.append(value)
    return values
