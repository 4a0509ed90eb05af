"""Numbers strings by first appearance: a hash table that grows, and the memory of its records."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from gpu_pregel.errors import GraphError
from gpu_pregel.host.devices.memory import require_memory
from gpu_pregel.host.devices.threads import parallel
from gpu_pregel.host.graphs.csr import read_only
from gpu_pregel.kernels.graphs import numbering_cpu, rows_cpu, strings_cpu

if TYPE_CHECKING:
    import pyarrow

Array = np.ndarray[Any, Any]

_CHUNK = 1 << 12
_RENUMBER_CHUNK = 1 << 16
_SLICE = 1 << 18
"""Number of strings of an Arrow array for which memory is reserved at once."""
_FIRST_SLOTS = 1 << 18
_GROWTH = 4
_MOST_WORDS = 1 << 32


class StringTable:
    """Distinct strings and the position of the first occurrence of each.

    Strings are added with positions; they get codes, which :meth:`finish` replaces by numbers in the order of these
    positions.
    """

    def __init__(self, threads: int) -> None:
        self._threads = threads
        self._slots = np.zeros(_FIRST_SLOTS, np.uint64)
        self._arena = np.empty(1, np.uint64)
        self._counters = np.zeros(strings_cpu.COUNTERS, np.int64)
        self._counters[strings_cpu.USED] = 1
        self._scratch = np.zeros((threads, rows_cpu.SCRATCH), np.int64)

    def add(self, column: pyarrow.ChunkedArray, position: int, stride: int) -> Array:
        """Add an Arrow column of strings without nulls, and return their codes, uint32[k].

        The position of string k is ``position + stride * k``.
        """
        codes = np.empty(len(column), np.uint32)
        begin = 0
        for chunk in column.chunks:
            for start in range(0, len(chunk), _SLICE):
                part = chunk.slice(start, _SLICE)
                self._add(part, position + stride * begin, stride, codes[begin : begin + len(part)])
                begin += len(part)
        return codes

    def _add(self, strings: pyarrow.Array, position: int, stride: int, codes: Array) -> None:
        width = np.int64 if str(strings.type).startswith("large") else np.int32
        _, offsets_buffer, data_buffer = strings.buffers()
        offsets = np.frombuffer(offsets_buffer, width)[strings.offset : strings.offset + len(strings) + 1]
        offsets = read_only(offsets.astype(np.int64, copy=False))
        data = read_only(np.frombuffer(data_buffer or b"", np.uint8))

        def arguments(begin: int) -> tuple[Any, ...]:
            where = position + stride * begin
            return data, offsets[begin:], where, stride, *self.memory, codes[begin:]

        self.run(
            *(strings_cpu.insert_strings, len(strings), _CHUNK, arguments),
            num_bytes=int(offsets[-1] - offsets[0]),
            num_strings=len(strings),
            chunk_strings=_CHUNK,
        )

    @property
    def memory(self) -> tuple[Array, Array, Array, Array]:
        """The arguments of a kernel that adds strings: slots, arena, counters and scratch memory."""
        return self._slots, self._arena, self._counters, self._scratch

    def run(
        self,
        kernel: Callable[..., None],
        size: int,
        chunk: int,
        arguments: Callable[[int], tuple[Any, ...]],
        *,
        num_bytes: int,
        num_strings: int,
        chunk_strings: int,
    ) -> None:
        """Run a kernel that adds strings, again with a larger table whenever it stops for lack of room.

        ``arguments(begin)`` returns its arguments for the items from ``begin``; the others are upper bounds of what is
        added altogether and per chunk.
        """
        self._reserve(num_bytes, num_strings)
        self._grow(4 * chunk_strings * self._threads)
        begin = 0
        while begin < size:
            self._counters[[strings_cpu.DONE, strings_cpu.THREADS]] = 0
            parallel(kernel, size - begin, chunk, *arguments(begin), threads=self._threads)
            done = int(self._counters[strings_cpu.DONE]) * chunk
            if begin + done < size and self._counters[strings_cpu.COUNT] <= len(self._slots) // 2:
                return  # The kernel gave up.
            begin += done
            if begin < size:
                self._grow(_GROWTH * len(self._slots))

    def _reserve(self, num_bytes: int, num_strings: int) -> None:
        """Make the arena large enough; what a thread cannot use of its share is at most as long as the next record."""
        used = int(self._counters[strings_cpu.USED])
        words = used + 2 * (num_bytes // 8 + (strings_cpu.HEADER + 1) * num_strings)
        words += self._threads * strings_cpu.SHARE
        if words <= len(self._arena):
            return
        words = max(words, 2 * len(self._arena))
        if words > _MOST_WORDS:
            raise GraphError(f"the names take about {8 * words >> 30:,} GiB, which is too much: use integers as ids")
        require_memory(8 * used, "numbering the names")
        arena = np.empty(words, np.uint64)
        arena[:used] = self._arena[:used]
        self._arena = arena

    def _grow(self, slots: int) -> None:
        """Make the table have at least ``slots`` slots."""
        if slots > len(self._slots):
            require_memory(8 * slots, "numbering the names")
            larger = np.zeros(1 << (slots - 1).bit_length(), np.uint64)
            strings_cpu.move_slots(self._slots, larger)
            self._slots = larger

    def _places(self) -> Array:
        """Return the places of all records in the order of their positions, int64[n]."""
        places: Array = self._slots[self._slots != strings_cpu.EMPTY] & np.uint64(_MOST_WORDS - 1)
        positions = self._arena[places.view(np.int64)]
        if len(places) and positions.max() < _MOST_WORDS:
            # Sorting words is several times faster than argsort.
            places |= positions << np.uint64(32)
            places.sort()
            places &= np.uint64(_MOST_WORDS - 1)
        else:
            places = places[np.argsort(positions)]
        ordered: Array = places.view(np.int64)
        return ordered

    def finish(self, *columns: Array) -> pyarrow.Array:
        """Replace the codes in ``columns`` by numbers, and return the strings in the order of their numbers."""
        import pyarrow as pa

        places = self._places()
        n = len(places)
        offsets = np.zeros(n + 1, np.int64)
        np.cumsum(self._arena[places + 1], out=offsets[1:])
        data = np.empty(int(offsets[-1]), np.uint8)
        parallel(strings_cpu.copy_strings, n, _CHUNK, self._arena, places, offsets, data, threads=self._threads)
        ranks = np.empty(int(self._counters[strings_cpu.USED]), np.uint32)
        ranks[places] = np.arange(n, dtype=np.uint32)
        for codes in columns:
            parallel(numbering_cpu.renumber, len(codes), _RENUMBER_CHUNK, ranks, codes, threads=self._threads)
        return pa.Array.from_buffers(pa.large_string(), n, [None, pa.py_buffer(offsets), pa.py_buffer(data)])
