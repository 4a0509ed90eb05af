"""Parses text tables with names by kernels, which number the names while they read; irregular text is left to Arrow."""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.host.devices.threads import parallel
from gpu_pregel.host.graphs.csr import read_only
from gpu_pregel.host.graphs.string_table import StringTable
from gpu_pregel.io._lines import Layout
from gpu_pregel.kernels.graphs import rows_cpu

Array = np.ndarray[Any, Any]

_CHUNK = 1 << 16
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
        self._positions = np.array([*positions, layout.columns])

    def parse(self, block: bytes) -> bool:
        """Add the rows of a block of complete lines; return whether the kernels can handle all of them."""
        if block.endswith(b"\r"):
            return False
        if not block.endswith(b"\n"):
            block += b"\n"
        text = read_only(np.frombuffer(block, np.uint8))
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
