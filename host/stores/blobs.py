"""What a blob wears in a store: a checksum bound to its place, and the caller's encryption.

A checksum covers where a blob belongs too, so that one of another run, superstep or number is noticed.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import Protocol, TypeAlias

from gpu_pregel.errors import ArgumentError, ArgumentTypeError

Blob: TypeAlias = bytes | bytearray | memoryview

PART = 1 << 24
"""Bytes of a row of a base or an array, which is cut into such: databases limit what a row holds to about 1 GB."""
MAX_BLOB = 1 << 29
"""Bytes of a blob that is one row."""
_PLAIN, _ENCRYPTED = b"\0", b"\1"
_DIGEST_SIZE = 16


class Cipher(Protocol):
    """Encrypts what a store holds; names, supersteps, sizes and times stay readable.

    ``context`` is bytes that say where the data belongs, different for each blob. An authenticated cipher takes them as
    associated data, such as ``AESGCM`` of the package cryptography.
    """

    def encrypt(self, data: bytes, context: bytes) -> bytes:
        """The bytes to store."""
        ...

    def decrypt(self, data: bytes, context: bytes) -> bytes:
        """The bytes that were given to ``encrypt``, or any exception."""
        ...


class DamagedError(Exception):
    """A blob is not what was written; within this package only, as a ``StoreError`` says where."""


def context_of(kind: str, run_id: str, *place: object) -> bytes:
    """The bytes that name the place of a blob."""
    return f"{kind}{(run_id, *place)!r}".encode()


def digest(context: bytes, *data: Blob) -> bytes:
    """The checksum of data at its place."""
    # SHA-256 is faster than BLAKE2 where the processor has instructions for it, as most have.
    total = hashlib.sha256(len(context).to_bytes(4, "little") + context)
    for piece in data:
        total.update(piece)
    return total.digest()[:_DIGEST_SIZE]


class Sealer:
    """Seals and opens blobs; a seal is stored beside the data, so that these are not copied to prepend it."""

    def __init__(self, cipher: Cipher | None) -> None:
        if cipher is not None and not all(callable(getattr(cipher, name, None)) for name in ("encrypt", "decrypt")):
            raise ArgumentTypeError(f"cipher must have the methods encrypt and decrypt, unlike {cipher!r:.80}")
        self._cipher = cipher

    def seal(self, context: bytes, data: Blob) -> tuple[bytes, Blob]:
        """The seal, and the data as they are to be stored."""
        flag = _PLAIN
        if self._cipher is not None:
            flag, data = _ENCRYPTED, self._cipher.encrypt(bytes(data), context)
            if not isinstance(data, bytes):
                raise ArgumentTypeError(f"encrypt of the store's cipher must return bytes, not {data!r:.80}")
        return flag + digest(context, flag, data), data

    def check(self, context: bytes, seal: object, data: object) -> bytes:
        """The data as they are stored, or ``DamagedError``."""
        if not isinstance(seal, bytes) or not isinstance(data, bytes) or len(seal) != 1 + _DIGEST_SIZE:
            raise DamagedError("is damaged (it is no sealed blob)")
        if digest(context, seal[:1], data) != seal[1:]:
            raise DamagedError("is damaged (its checksum does not match)")
        return data

    def is_readable(self, seal: object) -> bool:
        """Whether data are encrypted just if there is a cipher."""
        return isinstance(seal, bytes) and (seal[:1] == _PLAIN) == (self._cipher is None)

    def open(self, context: bytes, seal: bytes, data: object) -> bytes:
        """The data as they were given to ``seal``, or ``DamagedError``."""
        found = self.check(context, seal, data)
        if self._cipher is None:
            if seal[:1] == _PLAIN:
                return found
            raise DamagedError("is encrypted: open the store with the cipher= that it was written with")
        if seal[:1] == _PLAIN:  # or whoever can write to the store could replace what is encrypted
            raise DamagedError("is not encrypted: open the store without cipher=, if that is how it was written")
        try:
            return self._cipher.decrypt(found, context)
        except Exception as error:
            raise DamagedError(f"cannot be decrypted ({error!r:.200}): pass the cipher= it was written with") from error


def as_blob(name: str, value: object, limit: int | None = MAX_BLOB) -> Blob:
    """Return ``value`` as one row of contiguous bytes, not copied."""
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
            f"{name} has {len(data):,} bytes, and a row holds {limit:,}: divide it into several segments"
        )
    return data


def parts_of(blobs: Iterable[tuple[str, Blob]]) -> list[Blob]:
    """The rows of named blobs: what there is, then each cut into parts; an empty one is a part too."""
    contents, parts = [], []
    for name, data in blobs:
        view = memoryview(data)
        cuts = [view[start : start + PART] for start in range(0, max(1, len(view)), PART)]
        contents.append(f"{len(cuts)} {name}")
        parts += cuts
    return ["\n".join(contents).encode(), *parts]


def read_contents(data: bytes) -> Iterator[tuple[str, int]]:
    """Names and numbers of parts from the first of ``parts_of``."""
    for line in data.decode().split("\n"):
        count, _, name = line.partition(" ")
        yield name, int(count)
