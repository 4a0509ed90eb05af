"""The end of a connection to a worker that the master uses."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from itertools import islice
from selectors import EVENT_READ, EVENT_WRITE, BaseSelector
from typing import TYPE_CHECKING, Any

from gpu_pregel.host.agents.workers.pipes import LARGE, FrameReader, header

if TYPE_CHECKING:
    import socket

_MAX_HELD = 64
"""Maximum number of frames that wait for a later one."""


class Channel:
    """The end of a connection that the master uses, which sends and receives frames without blocking.

    Parameters
    ----------
    connection : socket
    selector : Selector
    key : object
        Data for the selector.

    Attributes
    ----------
    touched : float
        Time of the last data sent or received, on the monotonic clock.
    """

    def __init__(self, connection: socket.socket, selector: BaseSelector, key: Any) -> None:
        connection.setblocking(False)
        self.reader = FrameReader(connection.fileno())
        self.touched = time.monotonic()
        self.is_broken = False
        self._connection, self._selector, self._key = connection, selector, key
        self._unsent: deque[memoryview] = deque()
        self._later: deque[tuple[int, Iterator[bytes]]] = deque()
        """Frames after those, of which the contents do not exist yet."""
        self._is_full = False
        """Whether the selector reports when the other end accepts more."""
        selector.register(connection, EVENT_READ, key)

    @property
    def has_unsent(self) -> bool:
        """Whether frames wait until the other end reads."""
        return self._is_full

    def send(self, kind: int, content: bytes) -> None:
        """Send a frame, or queue what the other end cannot accept yet."""
        if self._later:
            self.send_each(kind, iter((content,)))
        elif not self.is_broken:
            self._add(kind, content)
            if not self._is_full:
                self._begin()

    def hold(self, kind: int, content: bytes) -> None:
        """Send a frame together with the next one, unless many are held already."""
        if self._later or self.is_broken or len(self._unsent) >= _MAX_HELD:
            self.send(kind, content)
        else:
            self._add(kind, content)

    def send_each(self, kind: int, contents: Iterator[bytes]) -> None:
        """Send frames, each of which is made once the other end has accepted the one before."""
        if not self.is_broken:
            self._later.append((kind, contents))
            if not self._is_full:
                self._begin()

    def _begin(self) -> None:
        self.send_rest()
        if self._unsent:
            self._is_full = True
            self._selector.modify(self._connection, EVENT_READ | EVENT_WRITE, self._key)

    def _add(self, kind: int, content: bytes) -> None:
        head = header(len(content), kind)
        if len(content) < LARGE:
            self._unsent.append(memoryview(head + content))
        else:
            self._unsent += (memoryview(head), memoryview(content))

    def _make_next(self) -> bool:
        """Make the next frame, if there is one."""
        while self._later:
            kind, contents = self._later[0]
            for content in contents:
                self._add(kind, content)
                return True
            self._later.popleft()
        return False

    def send_rest(self) -> None:
        """Send as much as the other end accepts."""
        try:
            while self._unsent or self._make_next():
                n = self._connection.sendmsg(list(islice(self._unsent, 64)))
                self.touched = time.monotonic()
                while n:
                    first = self._unsent.popleft()
                    if n < len(first):
                        self._unsent.appendleft(first[n:])
                        return
                    n -= len(first)
        except BlockingIOError:
            return
        except OSError:
            self._unsent.clear()  # the process is ending, which its pidfd reports
            self._later.clear()
        if self._is_full and not self.is_broken:
            self._is_full = False
            self._selector.modify(self._connection, EVENT_READ, self._key)

    def read(self) -> list[tuple[int, bytes | bytearray]]:
        """Return the frames that have arrived."""
        if self.is_broken:
            return []
        frames = self.reader.read()
        if not self.reader.empty:
            self.touched = time.monotonic()
        return frames

    def ignore(self) -> None:
        """Stop reading and writing."""
        if not self.is_broken:
            self.is_broken = True
            self._unsent.clear()
            self._later.clear()
            self._selector.unregister(self._connection)
