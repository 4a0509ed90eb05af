"""Opens files for reading, with errors that name the file, and writes files completely or not at all."""

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
    """Return the suffix of the format, in lower case, and the compression given by a further suffix, or None."""
    stem, last = os.path.splitext(path.lower())
    if last in COMPRESSIONS:
        return os.path.splitext(stem)[1], COMPRESSIONS[last]
    return last, None


def as_path(path: object) -> str:
    """Return a path as a string, or raise ``ArgumentTypeError``."""
    if isinstance(path, (str, os.PathLike)):
        name = os.fspath(path)
        if isinstance(name, str):
            return name
    raise ArgumentTypeError(f"path must be a str or a path such as pathlib.Path, not {type(path).__name__}")


def open_file(path: str) -> BinaryIO:
    """Open a file to read bytes; every error names the file."""
    try:
        return open(path, "rb")
    except FileNotFoundError:
        raise MissingFileError(f"{path}: no such file") from None
    except IsADirectoryError:
        raise NotAFileError(f"{path} is a folder: pass a file") from None
    except OSError as error:
        raise UnreadableFileError(f"{path} cannot be read: {error.strerror or error}") from error


def check_source(path: str) -> None:
    """Raise the errors of :func:`open_file`; a pipe is not opened, because its writer would find it closed."""
    if not Path(path).is_fifo():
        open_file(path).close()


class Source:
    """A file open for reading, decompressed according to its suffix; a context manager.

    Attributes
    ----------
    path : str
    size : int
        Size of the file on disk in bytes; 0 for a pipe.
    is_regular : bool
        Whether the file can be opened again, unlike a pipe.
    is_compressed : bool
    delivered : int
        Number of decompressed bytes returned by :meth:`read`.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._stack = ExitStack()
        self._file = self._stack.enter_context(open_file(path))
        self._compression = suffixes(path)[1]
        self._stream: Any = self._file
        self.is_compressed = bool(self._compression)
        self.delivered = 0
        status = os.fstat(self._file.fileno())
        self.size = status.st_size
        # Compressed data is never empty, but Arrow accepts an empty file.
        self.is_regular = stat.S_ISREG(status.st_mode)
        self._truncated = bool(self._compression) and self.is_regular and self.size == 0
        if self._compression:
            import pyarrow as pa

            self._stream = self._stack.enter_context(pa.CompressedInputStream(self._file, self._compression))

    def __enter__(self) -> Source:
        return self

    def __exit__(self, *error: object) -> None:
        self._stack.close()

    @property
    def position(self) -> int:
        """The number of bytes, out of ``size``, that have been read."""
        return self._file.tell() if self.size else 0

    def read(self, size: int = -1) -> bytes:
        """Return up to ``size`` bytes, by default the rest; empty at the end."""
        if self._truncated:
            raise FormatError(
                self.path, f"is not a complete {self._compression} file (it is empty): download or compress it again"
            )
        try:
            data: bytes = self._stream.read(size) if size >= 0 else self._stream.read()
        except OSError as error:
            if self._compression and error.errno is None:
                raise FormatError(
                    self.path, f"is not a complete {self._compression} file ({error}): download or compress it again"
                ) from error
            raise UnreadableFileError(f"{self.path} cannot be read: {error.strerror or error}") from error
        self.delivered += len(data)
        return data


def load_bytes(path: str) -> Array:
    """Return the bytes of a file, uint8; a file that is not compressed is mapped into memory."""
    with Source(path) as source:
        if source.size and suffixes(path)[1] is None:
            return np.memmap(path, np.uint8, mode="r")
        return np.frombuffer(source.read(), np.uint8)


@contextmanager
def name_file_in_errors(path: str) -> Iterator[None]:
    """Turn errors about a graph, its ids or its weights into ``FormatError`` with the path."""
    try:
        yield
    except (GraphError, ArgumentTypeError) as error:
        raise FormatError(path, str(error)) from error


@contextmanager
def atomic_file(path: str) -> Iterator[BinaryIO]:
    """Write a file, compressed according to its suffix, that appears under its name only on success.

    The data goes to a temporary file in the same folder, which is removed on any error and on Ctrl-C.

    Raises
    ------
    WriteError
        The file cannot be written, for example because the disk is full.
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
        raise WriteError(f"{path} was not written: {error.strerror or error}; no partial file remains") from error


def check_target(path: str) -> None:
    """Raise ``WriteError`` if ``path`` cannot be written, for example because the folder does not exist.

    A device must not be replaced by a file.
    """
    target = Path(os.path.realpath(path))
    try:
        if target.is_dir():
            raise WriteError(f"{path} is a folder: pass a file")
        if target.exists() and not target.is_file():
            raise WriteError(f"{path} is not a regular file, so it cannot be replaced: choose another name")
        if not target.parent.is_dir():
            raise WriteError(f"{path}: the folder {target.parent} does not exist: create it first")
        if not os.access(target.parent, os.W_OK | os.X_OK):
            raise WriteError(f"{path}: the folder {target.parent} is not writable")
    except PermissionError as error:
        raise WriteError(f"{path} cannot be written: {error.strerror}") from error


def write_array(file: BinaryIO, array: Array) -> None:
    """Write the bytes of an array."""
    if array.size:
        file.write(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
