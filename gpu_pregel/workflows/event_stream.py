"""Decodes a stream of server-sent events, as the HTML standard defines them."""

from __future__ import annotations

from collections.abc import Iterator

from gpu_pregel.errors import ModelError

MAX_EVENT = 16 << 20
"""Bytes of the longest event; a longer one is an error rather than all of this machine's memory."""


class EventDecoder:
    """Turns pieces of a stream, cut anywhere, into the data of its events."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._data: list[bytes] = []
        self._size = 0
        self._skips_newline = False

    def feed(self, piece: bytes) -> Iterator[str]:
        """Return the data of each event that this piece completes."""
        for line in self._lines(piece):
            if not line:
                if self._data:
                    yield b"\n".join(self._data).decode("utf-8", "replace")
                self._data, self._size = [], 0
                continue
            field, _, value = line.partition(b":")
            if field == b"data":
                self._data.append(value[1:] if value.startswith(b" ") else value)
                self._size += len(value)
                self._check_size(self._size)

    def _lines(self, piece: bytes) -> Iterator[bytes]:
        """Return complete lines; not by ``splitlines``, which also splits at separators that JSON may contain."""
        if not piece:
            return
        if self._skips_newline and piece.startswith(b"\n"):
            piece = piece[1:]
        self._skips_newline = piece.endswith(b"\r")  # its "\n" may be in the next piece
        self._rest += piece
        if b"\n" not in piece and b"\r" not in piece:
            self._check_size(len(self._rest))
            return
        *lines, rest = bytes(self._rest).replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
        self._rest = bytearray(rest)
        yield from lines

    @staticmethod
    def _check_size(size: int) -> None:
        if size > MAX_EVENT:
            raise ModelError(f"an event of the model's stream is longer than {MAX_EVENT:,} bytes", retryable=False)
