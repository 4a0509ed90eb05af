"""Copies from the host to a GPU through two page-locked buffers."""

from __future__ import annotations

import threading
from types import ModuleType
from typing import Any

import numpy as np

UPLOAD_BYTES = 1 << 23
"""Size of each buffer."""


class Uploads:
    """Copies host arrays to a GPU: while it reads one buffer, the host prepares the next part in the other.

    Parameters
    ----------
    cupy_calls : module
    stream
        The stream of the copies; it must be current.
    """

    def __init__(self, cupy_calls: ModuleType, stream: Any) -> None:
        self._cupy = cupy_calls
        self._stream = stream
        self._lock = threading.Lock()
        self._buffers: list[tuple[np.ndarray[Any, Any], Any]] = []
        self._turn = 0

    def copy(self, target: Any, source: np.ndarray[Any, Any]) -> None:
        """Copy ``source``, converted to the dtype of ``target``; it may be modified once this returns."""
        step = UPLOAD_BYTES // target.dtype.itemsize
        with self._lock:
            for begin in range(0, source.size, step):
                buffer, event = self._next_buffer()
                part = source[begin : begin + step]
                staged = buffer[: part.size * target.dtype.itemsize].view(target.dtype)
                self._cupy.wait_for(event)
                staged[:] = part
                self._cupy.copy_in(target[begin : begin + part.size], staged, self._stream)
                self._cupy.record(event, self._stream)

    def _next_buffer(self) -> tuple[np.ndarray[Any, Any], Any]:
        """Return a buffer and the event after which the GPU has read it."""
        if not self._buffers:
            self._buffers = [(self._cupy.pinned(UPLOAD_BYTES), self._cupy.new_event()) for _ in range(2)]
        self._turn = 1 - self._turn
        return self._buffers[self._turn]
