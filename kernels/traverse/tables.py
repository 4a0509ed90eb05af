"""Hash tables of labels, on the CPU and on CUDA."""

from __future__ import annotations

EMPTY = 0xFFFFFFFF
"""The key of a free place, a uint32; labels are smaller."""
