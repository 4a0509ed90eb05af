"""Opening files to read, with errors that name them, and writing them whole or not at all."""

from __future__ import annotations

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from gpu_pregel.errors import (
    ArgumentTypeError,
    FormatError,
    GraphError,
    MissingFileError,
    NotAFileError,
    UnreadableFileError,
    WriteError,
)

Array = np.ndarray[Any, Any]

COMPRESSIONS = {".gz": "gzip", ".zst": "zstd", ".zstd": "zstd"}


def suffixes(path: str) -> tuple[str, str | None]:
    """The suffix that names the format, in lower case, and the compression that a further suffix names."""
    stem, last = os.path.splitext(path.lower())
    if last in COMPRESSIONS:
        return os.path.splitext(stem)[1], COMPRESSIONS[last]
    return last, None


def open_file(path: str) -> BinaryIO:
    """Open a file to read bytes; every way in which that can fail names the file."""
    try:
        return open(path, "rb")
    except FileNotFoundError:
        raise MissingFileError(f"{path}: there is no such file") from None
    except IsADirectoryError:
        raise NotAFileError(f"{path} is a folder: name a file in it") from None
    except OSError as error:
        raise UnreadableFileError(f"{path} cannot be read: {error.strerror or error}") from error


def check_source(path: str) -> None:
    """Raise what :func:`open_file` would raise; a pipe is left alone, whose writer would find it closed."""
    if not Path(path).is_fifo():
        open_file(path).close()


class Source:
    """A file open to be read, decompressed as its suffix says; a context.

    Attributes
    ----------
    path : str
    size : int
        Bytes of the file as it lies on the disk; 0 for a pipe.
    delivered : int
        Bytes handed out by :meth:`read`, decompressed.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._stack = ExitStack()
        self._file = self._stack.enter_context(open_file(path))
        self._compression = suffixes(path)[1]
        self._stream: Any = self._file
        self.delivered = 0
        about = os.fstat(self._file.fileno())
        self.size = about.st_size
        # Even nothing, compressed, is some bytes; Arrow takes no bytes for it.
        self._truncated = bool(self._compression) and stat.S_ISREG(about.st_mode) and self.size == 0
        if self._compression:
            import pyarrow as pa

            self._stream = self._stack.enter_context(pa.CompressedInputStream(self._file, self._compression))

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @property
    def position(self) -> int:
        """How many of the ``size`` bytes have been read."""
        return self._file.tell() if self.size else 0

    def read(self, size: int = -1) -> bytes:
        """Up to ``size`` bytes, or the rest; empty at the end."""
        if self._truncated:
            raise FormatError(
                self.path, f"is no whole {self._compression} file (it is empty): fetch or compress it again"
            )
        try:
            data: bytes = self._stream.read(size) if size >= 0 else self._stream.read()
        except OSError as error:
            if self._compression and error.errno is None:
                raise FormatError(
                    self.path, f"is no whole {self._compression} file ({error}): fetch or compress it again"
                ) from error
            raise UnreadableFileError(f"{self.path} cannot be read: {error.strerror or error}") from error
        self.delivered += len(data)
        return data


def load_bytes(path: str) -> Array:
    """The file's bytes, uint8: mapped into memory where it is not compressed."""
    with Source(path) as source:
        if source.size and suffixes(path)[1] is None:
            return np.memmap(path, np.uint8, mode="r")
        return np.frombuffer(source.read(), np.uint8)


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Say in which file a graph was at fault, or its ids or weights of no use."""
    try:
        yield
    except (GraphError, ArgumentTypeError) as error:
        raise FormatError(path, str(error)) from error


@contextmanager
def atomic_file(path: str) -> Iterator[BinaryIO]:
    """A file to write, compressed as the suffix of ``path`` says, that takes this name only if all went well.

    It is written under a temporary name in the same folder, which is removed on any error or Ctrl-C.

    Raises
    ------
    WriteError
        The operating system refused, for want of room, say.
    """
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
    check_target(path)
    try:
        try:
            with ExitStack() as stack:
                file: Any = stack.enter_context(open(temporary, "xb"))
                compression = suffixes(path)[1]
                if compression:
                    import pyarrow as pa

                    file = stack.enter_context(pa.CompressedOutputStream(file, compression))
                yield file
            os.replace(temporary, target)
        except BaseException:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        if isinstance(error, WriteError):
            raise
        raise WriteError(f"{path} was not written: {error.strerror or error}; nothing was left behind") from error


def check_target(path: str) -> None:
    """Raise ``WriteError`` if no file can be written there: there is no such folder, say, or ``path`` is one.

    A device above all must not be replaced by a file.
    """
    target = Path(os.path.realpath(path))
    try:
        if target.is_dir():
            raise WriteError(f"{path} is a folder: name a file in it")
        if target.exists() and not target.is_file():
            raise WriteError(f"{path} is no plain file: it cannot be replaced by one")
        if not target.parent.is_dir():
            raise WriteError(f"{path}: there is no folder {target.parent}: make it first")
        if not os.access(target.parent, os.W_OK | os.X_OK):
            raise WriteError(f"{path}: the folder {target.parent} cannot be written to")
    except PermissionError as error:
        raise WriteError(f"{path} cannot be written: {error.strerror}") from error


def write_array(file: BinaryIO, array: Array) -> None:
    """Write an array's bytes as they lie in memory."""
    if array.size:
        file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
