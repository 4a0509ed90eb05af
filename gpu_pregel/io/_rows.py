"""Parses text tables with names by kernels, which number the names while they read; irregular text is left to Arrow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from gpu_pregel.host.devices.threads import parallel
from gpu_pregel.host.graphs.csr import read_only
from gpu_pregel.host.graphs.string_table import StringTable
from gpu_pregel.io._files import Source
from gpu_pregel.io._head import Head
from gpu_pregel.io._lines import BOM, Layout, check_lines
from gpu_pregel.kernels.graphs import rows_cpu

Array = np.ndarray[Any, Any]

_CHUNK = 1 << 16
_PART_BYTES = 1 << 26
_SHORTEST_ROW = 4
"""Number of bytes of ``a,b`` and its line feed."""


class RowParser:
    """Parses blocks of rows; ``columns`` are codes of sources and destinations, and weights (float64)."""

    def __init__(self, layout: Layout, threads: int) -> None:
        self.table = StringTable(threads)
        self._threads = threads
        self._lines = 0
        self._columns: list[tuple[Array, Array, Array]] = []
        self._kinds = np.zeros(256, np.uint8)
        self._kinds[list(b'\n\r"')] = rows_cpu.END, rows_cpu.RETURN, rows_cpu.QUOTE
        self._kinds[(layout.separator or b" ")[0]] = rows_cpu.SEPARATOR
        positions = [*layout.positions, -1][:3] if layout.weight is not None else [*layout.positions[:2], -1]
        marks = rows_cpu.IRREGULAR if layout.is_strict else rows_cpu.COMMENTS if layout.comments else rows_cpu.ROWS
        self._positions = np.array([*positions, layout.columns, marks])

    def parse(self, text: Array) -> bool:
        """Add the rows of complete lines (uint8); return whether the kernels can handle all of them."""
        text = read_only(text)
        counts = np.zeros(-(-len(text) // _CHUNK) + 1, np.int64)
        parallel(rows_cpu.count_lines, len(text), _CHUNK, text, counts[1:], threads=self._threads)
        lines = np.cumsum(counts)
        k = int(lines[-1])
        src, dst = np.zeros(k, np.uint32), np.zeros(k, np.uint32)
        weights = np.empty(k if self._positions[2] >= 0 else 0)
        fault = np.zeros(1, np.int64)

        def arguments(begin: int) -> tuple[Any, ...]:
            layout = begin, lines, self._lines, self._kinds, self._positions
            return text, *layout, *self.table.memory, src, dst, weights, fault

        self.table.run(
            *(rows_cpu.parse_rows, len(text), _CHUNK, arguments),
            num_bytes=len(text),
            num_strings=2 * k,
            chunk_strings=2 * _CHUNK // _SHORTEST_ROW + 2,
        )
        if fault[0]:
            return False
        self._lines += k
        rows = src != 0
        if not rows.all():
            src, dst, weights = src[rows], dst[rows], weights[rows] if len(weights) else weights
        self._columns.append((src, dst, weights))
        return True

    def columns(self) -> list[Array]:
        """Return the codes of sources and destinations, and the weights."""
        empty = np.empty(0, np.uint32), np.empty(0, np.uint32), np.empty(0)
        return [np.concatenate(parts) for parts in zip(empty, *self._columns, strict=True)]


def can_parse(layout: Layout) -> bool:
    """Return whether the kernels support a layout: they neither split at blanks nor parse 64-bit integers."""
    is_distinct = len(set(layout.positions)) == len(layout.positions)
    return layout.separator is not None and is_distinct and (layout.weight is None or layout.weight.kind == "f")


def text_parts(source: Source, head: Head, longest: int) -> Iterator[tuple[Array, int]]:
    """Yield the lines of the rows in parts (uint8), each with the number of bytes read so far.

    A file that is not compressed is mapped into memory; the parts end with a line feed. Lines of more than ``longest``
    bytes are errors.
    """
    if source.is_compressed or not head.line:
        for block, _ in head.blocks:
            yield _complete(np.frombuffer(block, np.uint8)), source.position
        return
    letters = np.memmap(source.path, np.uint8, mode="r")
    check_lines(source.path, letters, 1, longest)
    begin = _start_of_line(letters, head.line)
    if begin == 0 and letters[: len(BOM)].tobytes() == BOM:
        begin = len(BOM)
    while begin < len(letters):
        end = min(begin + _PART_BYTES, len(letters))
        if end < len(letters):
            end = _start_of_line(letters[end:], 2) + end
        yield _complete(letters[begin:end]), end
        begin = end


def _start_of_line(letters: Array, line: int) -> int:
    """Return where a line starts, counted from 1; the end of the text if there is none."""
    text = letters.data
    start = 0
    for _ in range(line - 1):
        place = -1
        while place < 0 and start < len(text):
            place = bytes(text[start : start + _CHUNK]).find(b"\n")
            start += _CHUNK if place < 0 else place + 1
    return min(start, len(text))


def _complete(text: Array) -> Array:
    """Return lines with a line feed at the end of the last one; a carriage return alone is not completed."""
    if len(text) and text[-1] == ord("\n"):
        return text
    return np.append(text, np.frombuffer(b"\0\n" if text[-1:] == ord("\r") else b"\n", np.uint8))
