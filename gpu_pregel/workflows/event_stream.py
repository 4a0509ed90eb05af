"""Decodes a stream of server-sent events, as the HTML standard defines them."""

from __future__ import annotations

from collections.abc import Iterator

from gpu_pregel.workflows.chat_format import too_long


class EventDecoder:
    """Turns pieces of a stream, cut anywhere, into the data of its events.

    Parameters
    ----------
    limit : int
        Bytes of the longest event, and of the longest piece.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._rest = bytearray()
        self._data: list[bytes] = []
        self._size = 0
        self._skips_newline = False

    def feed(self, piece: bytes) -> Iterator[str]:
        """Return the data of each event that this piece completes."""
        self._check_size(len(piece))
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

    def _check_size(self, size: int) -> None:
        if size > self._limit:
            raise too_long("an event of the model's stream", self._limit)
