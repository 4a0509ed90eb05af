"""Checksums and optional encryption of stored blobs.

A checksum also covers the position of its blob, so a blob copied from another run, superstep or number is detected.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

from gpu_pregel.errors import ArgumentError, ArgumentTypeError
from gpu_pregel.host.arguments import check_text

Blob: TypeAlias = bytes | bytearray | memoryview
NamedBlob: TypeAlias = tuple[str, Blob]

PART = 1 << 24
"""Maximum bytes in one row of a base or array; longer ones are split, as databases limit a row to about 1 GB."""
MAX_BLOB = 1 << 29
"""Maximum bytes of a blob that is stored in a single row."""
_PLAIN, _ENCRYPTED = b"\0", b"\1"
_DIGEST_SIZE = 16


class Cipher(Protocol):
    """Encrypts the contents of a store; names, supersteps, sizes and times stay readable.

    ``context`` identifies the position of the data and differs for each blob. An authenticated cipher, such as
    ``AESGCM`` of the package cryptography, takes it as associated data.
    """

    def encrypt(self, data: bytes, context: bytes) -> bytes:
        """Return the bytes to store."""
        ...

    def decrypt(self, data: bytes, context: bytes) -> bytes:
        """Return the bytes given to ``encrypt``, or raise any exception."""
        ...


class DamagedError(Exception):
    """A blob differs from what was written. Internal: callers get a ``StoreError`` that names the position."""


def context_of(kind: str, run_id: str, *place: object) -> bytes:
    """Return the bytes that identify the position of a blob."""
    return f"{kind}{(run_id, *place)!r}".encode()


def digest(context: bytes, *data: Blob) -> bytes:
    """Return the checksum of data at a position."""
    # Most processors have instructions for SHA-256, which make it faster than BLAKE2.
    total = hashlib.sha256(len(context).to_bytes(4, "little") + context)
    for piece in data:
        total.update(piece)
    return total.digest()[:_DIGEST_SIZE]


class BlobFormat:
    """How blobs are stored: a header with an encryption flag and a checksum, and the data.

    The header is stored in a column of its own, ``seal``, so that the data are not copied.
    """

    def __init__(self, cipher: Cipher | None) -> None:
        if cipher is not None and not all(callable(getattr(cipher, name, None)) for name in ("encrypt", "decrypt")):
            raise ArgumentTypeError(f"cipher must have the methods encrypt and decrypt, unlike {cipher!r:.80}")
        self._cipher = cipher

    def encode(self, context: bytes, data: Blob) -> tuple[bytes, Blob]:
        """Return the header and the data to store."""
        flag = _PLAIN
        if self._cipher is not None:
            flag, data = _ENCRYPTED, self._cipher.encrypt(bytes(data), context)
            if not isinstance(data, bytes):
                raise ArgumentTypeError(f"encrypt of the store's cipher must return bytes, not {data!r:.80}")
        return flag + digest(context, flag, data), data

    def verify(self, context: bytes, header: object, data: object) -> bytes:
        """Return the data as stored, without decrypting them; raise ``DamagedError`` if the checksum does not match."""
        if not isinstance(header, bytes) or not isinstance(data, bytes) or len(header) != 1 + _DIGEST_SIZE:
            raise DamagedError("is damaged (it is not a blob with a checksum)")
        if digest(context, header[:1], data) != header[1:]:
            raise DamagedError("is damaged (its checksum does not match)")
        return data

    def is_readable(self, header: object) -> bool:
        """Return whether the data are encrypted and there is a cipher, or neither."""
        return isinstance(header, bytes) and (header[:1] == _PLAIN) == (self._cipher is None)

    def decode(self, context: bytes, header: bytes, data: object) -> bytes:
        """Return the data given to ``encode``, or raise ``DamagedError``."""
        stored = self.verify(context, header, data)
        if self._cipher is None:
            if header[:1] == _PLAIN:
                return stored
            raise DamagedError("is encrypted: open the store with the cipher= that it was written with")
        if header[:1] == _PLAIN:  # otherwise anyone with write access could replace encrypted data
            raise DamagedError("is not encrypted: open the store without cipher= if it was written without one")
        try:
            return self._cipher.decrypt(stored, context)
        except Exception as error:
            raise DamagedError(f"cannot be decrypted ({error!r:.200}): pass the cipher= it was written with") from error


def as_blob(name: str, value: object, limit: int | None = MAX_BLOB) -> Blob:
    """Return ``value`` as contiguous bytes that fit in one row, without copying them."""
    if isinstance(value, bytes):
        data: Blob = value
    else:
        try:
            view = memoryview(value)  # type: ignore[arg-type]
            data = view.cast("B") if view.nbytes else b""
        except TypeError:
            raise ArgumentTypeError(f"{name} must be bytes or a contiguous buffer, not {value!r:.80}") from None
    if limit is not None and len(data) > limit:
        raise ArgumentError(
            f"{name} has {len(data):,} bytes, but a row holds at most {limit:,}: split it into several segments"
        )
    return data


def as_segments(segments: Sequence[Any]) -> list[Blob]:
    """Return segments as blobs, or raise."""
    if isinstance(segments, (bytes, bytearray, memoryview, str)):
        raise ArgumentTypeError("segments must be a list of bytes, not a single bytes object")
    return [as_blob("a segment", piece) for piece in segments]


def named_blobs(base: Any, blobs: Mapping[str, Any] | None) -> list[NamedBlob]:
    """Return a base, under the empty name, and the arrays stored with it."""
    given = {check_text("the name of a blob", name): value for name, value in (blobs or {}).items()}
    arrays = [(name, as_blob(f"blob {name!r}", value, limit=None)) for name, value in given.items()]
    return [("", as_blob("base", base, limit=None)), *arrays]


def split_blobs(blobs: Iterable[NamedBlob]) -> list[Blob]:
    """Split named blobs into rows: a table of contents, then the parts of each; an empty blob has one part."""
    contents, parts = [], []
    for name, data in blobs:
        view = memoryview(data)
        pieces = [view[start : start + PART] for start in range(0, max(1, len(view)), PART)]
        contents.append(f"{len(pieces)} {name}")
        parts += pieces
    return ["\n".join(contents).encode(), *parts]


def read_contents(data: bytes) -> Iterator[tuple[str, int]]:
    """Yield the names and numbers of parts from the table of contents of ``split_blobs``."""
    for line in data.decode().split("\n"):
        count, _, name = line.partition(" ")
        yield name, int(count)
