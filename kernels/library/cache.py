"""The cache of compiled code on disk: one folder for each user, bounded in size.

Each entry is named by a digest of a function and everything it calls, so that entries are never stale: an edited kernel
has another name, and the least recently used entries are deleted when the cache exceeds its limit. The folder is
``gpu_pregel`` in ``NUMBA_CACHE_DIR``, ``XDG_CACHE_HOME`` or ``~/.cache``, and never in the installed package.

Loading an entry unpickles it, which may run any code. So folders and files must belong to this user or to root, and
nobody else may write to them. The checksum of an entry covers its name: no file takes the place of another.

Comments and line numbers are not part of a digest. Kernels have no debug information and raise no exceptions; if a
user's function raises one, its traceback shows the function's line at the time of compilation.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import math
import os
import pickle
import pwd
import re
import secrets
import stat
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import llvmlite
import numba
from numba.core import caching

from gpu_pregel.kernels.library.compile_clock import CompileTimer
from gpu_pregel.kernels.library.fingerprint import Fingerprint

LIMIT_VARIABLE = "GPU_PREGEL_CACHE_BYTES"
DEFAULT_LIMIT = 256 << 20
_GRACE_SECONDS = 60
"""Entries that were written or used more recently are kept: another process may be writing one."""
_TRIM_SECONDS = 60
"""How long a process that saves entries does not look at the size of the cache again."""
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH
_NAMING = "functions have the names of their processes"
"""Part of each key: code without such names must not be loaded."""
_CHECKSUM_SIZE = hashlib.sha256().digest_size
_FILE_NAME = re.compile(r"(.+-[0-9a-f]{64})\.(?:nbi|\d+\.nbc|value|bin|json)(?:\.tmp\.[0-9a-f]+)?")
"""The files of an entry: Numba's index and data, or a value, of this version or an earlier one; and temporary files of
interrupted writes."""
_FORM = re.compile(r"-(ir|emulated|sm_[0-9a-z]+)-[0-9a-f]{64}\.value")
"""What a value is, if it is a form of a CUDA kernel."""


class CacheUse(NamedTuple):
    """The names of the files with code or values that a process has loaded from the cache, or saved there."""

    loaded: set[str]
    saved: set[str]


_uses: list[CacheUse] = []


@contextlib.contextmanager
def recorded_use() -> Iterator[CacheUse]:
    """Record what all threads of this process load and save."""
    use = CacheUse(set(), set())
    _uses.append(use)
    try:
        yield use
    finally:
        _uses.pop()


@functools.cache
def cache_directory() -> str | None:
    """Return the folder of the cache, created if necessary; None if there is none, or it can only be read and is empty.

    In place of a folder that other users can write to, which is reported once, it is a private one.
    """
    parent = numba.config.CACHE_DIR or os.environ.get("XDG_CACHE_HOME") or os.path.join("~", ".cache")
    parent = os.path.expanduser(parent)
    if parent.startswith("~"):  # the user has no home
        return None
    directory = os.path.join(os.path.abspath(parent), "gpu_pregel")
    try:
        fault = _prepare(directory)
    except OSError:
        return None
    if fault is None:
        return directory
    private = _private_directory()
    instead = "kernels are compiled in every process" if private is None else f"{private} is used"
    warnings.warn(
        f"the kernel cache {directory} {fault}, who could make this process run code of theirs: {instead} instead; set "
        "NUMBA_CACHE_DIR to a folder that only you can write to",
        RuntimeWarning,
        stacklevel=2,
    )
    return private


def _private_directory() -> str | None:
    """Return a folder to which only this user can write, in the home of the user, else beside temporary files."""
    user = os.geteuid()
    candidates = [os.path.join(tempfile.gettempdir(), f"gpu_pregel-{user}")]
    with contextlib.suppress(KeyError):  # a container may run as a user without an account
        candidates.insert(0, os.path.join(pwd.getpwuid(user).pw_dir, ".cache", "gpu_pregel"))
    for directory in candidates:
        with contextlib.suppress(OSError):
            if _prepare(directory) is None:
                return directory
    return None


def _prepare(directory: str) -> str | None:
    """Create a folder; return why it cannot be trusted, if so, or raise ``OSError``."""
    os.makedirs(directory, exist_ok=True)
    status = os.lstat(directory)
    if stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid() and status.st_mode & _OTHERS_WRITE:
        # As with a umask that lets a group write. Files that others have put there are not read.
        os.chmod(directory, stat.S_IMODE(status.st_mode) & ~_OTHERS_WRITE)
        status = os.lstat(directory)
    fault = _distrust(status)
    if fault is None and not os.access(directory, os.W_OK) and not os.listdir(directory):
        raise PermissionError(directory)
    return fault


def _distrust(status: os.stat_result) -> str | None:
    """Return why the content of a file or folder may be another user's; None if it is this user's or root's."""
    if status.st_uid not in (os.geteuid(), 0):
        return f"belongs to another user (id {status.st_uid})"
    if stat.S_ISLNK(status.st_mode):
        return "is a symbolic link, perhaps to a folder of another user"
    return "can be written to by other users" if status.st_mode & _OTHERS_WRITE else None


def _read(path: str | Path) -> bytes:
    """Return the content of a file that nobody but this user or root can have written."""
    # Neither a link is followed, nor a pipe waited for.
    with open(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
        status = os.fstat(file.fileno())
        if not stat.S_ISREG(status.st_mode) or _distrust(status) is not None:
            raise PermissionError(f"{path} is not a file of this user")
        return file.read()


@contextlib.contextmanager
def _replacing(path: str | Path) -> Iterator[BinaryIO]:
    """Open a file that replaces ``path`` at the end, and that other users can only read."""
    temporary = f"{path}.tmp.{secrets.token_hex(8)}"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
        with open(descriptor, "wb") as file:
            yield file
        os.replace(temporary, path)
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary)


def is_writable() -> bool:
    """Whether this process can add entries to the cache."""
    directory = cache_directory()
    with contextlib.suppress(OSError):
        if directory is not None:
            tempfile.TemporaryFile(dir=directory).close()
            return True
    return False


def cache_limit() -> int:
    """Return the limit of the cache in bytes: ``GPU_PREGEL_CACHE_BYTES``, by default 256 MiB."""
    text = os.environ.get(LIMIT_VARIABLE, "").strip()
    if not text:
        return DEFAULT_LIMIT
    if not text.isdecimal():
        raise ValueError(f"{LIMIT_VARIABLE} must be a number of bytes, such as {DEFAULT_LIMIT}, not {text!r}")
    return int(text)


def cache_size() -> int:
    """Return the size of the cache in bytes."""
    return sum(entry.size for entry in _entries())


def kind_of(file: str) -> str:
    """Return what a file of the cache holds: "cpu", a form of a CUDA kernel such as "ir" or "sm_90", or "other"."""
    match = _FORM.search(file)
    return match[1] if match else "cpu" if file.endswith(".nbc") else "other"


class CachedKernels(NamedTuple):
    """How many kernels of one kind are cached, and their size in bytes."""

    kernels: int
    size: int


def cached_kernels() -> dict[str, CachedKernels]:
    """Return what is cached, by kind: "cpu", "sm_90" and so on for GPUs, "ir", "emulated", and "other" values."""
    found: dict[str, CachedKernels] = {}
    for entry in _entries():
        kinds = [kind_of(os.path.basename(file)) for file in entry.files]
        kind = min(kinds, key=lambda kind: kind == "other")  # Numba's index is beside its code
        before = found.get(kind, CachedKernels(0, 0))
        found[kind] = CachedKernels(before.kernels + kinds.count(kind), before.size + entry.size)
    return found


def clear_cache() -> int:
    """Delete all entries and return their size in bytes; other files in the folder are kept."""
    entries = _entries()
    for entry in entries:
        entry.delete()
    return sum(entry.size for entry in entries)


def trim_cache() -> None:
    """Delete the least recently used entries until the cache is within its limit, except for recent ones."""
    entries = _entries()
    excess = sum(entry.size for entry in entries) - cache_limit()
    recent = time.time() - _GRACE_SECONDS
    for entry in sorted(entries, key=lambda entry: entry.used):
        if excess <= 0 or entry.used > recent:
            return
        entry.delete()
        excess -= entry.size


_last_trim = -math.inf


def _trim_if_due() -> None:
    """Trim the cache unless this process has done so lately: reading the folder takes longer than saving an entry."""
    global _last_trim
    now = time.monotonic()
    if now - _last_trim >= _TRIM_SECONDS:
        _last_trim = now
        trim_cache()


class _Entry(NamedTuple):
    """The files of one compiled function."""

    files: list[str]
    size: int
    used: float
    """When the entry was last written or loaded: the latest modification time of its files."""

    def delete(self) -> None:
        # The index comes first: a process that finds no index compiles, as does one that finds an index without data.
        for file in sorted(self.files, key=lambda file: not file.endswith(".nbi")):
            with contextlib.suppress(OSError):
                os.unlink(file)


def _entries() -> list[_Entry]:
    entries: dict[str, _Entry] = {}
    directory = cache_directory()
    with contextlib.suppress(OSError), os.scandir(directory or os.devnull) as files:
        for file in files:
            match = _FILE_NAME.fullmatch(file.name)
            # Another process may delete a file meanwhile.
            with contextlib.suppress(OSError):
                if match:
                    status = file.stat(follow_symlinks=False)
                    entry = entries.get(match[1], _Entry([], 0, 0.0))
                    entry.files.append(file.path)
                    size, used = entry.size + status.st_size, max(entry.used, status.st_mtime)
                    entries[match[1]] = _Entry(entry.files, size, used)
    return list(entries.values())


def load_value(name: str) -> Any:
    """Return the value saved under ``name``, which ends in a digest; None if there is none, or its file is damaged."""
    with contextlib.suppress(Exception):
        path = _value_path(name)
        if path is not None:
            value = _unsealed(_read(path), name)
            with contextlib.suppress(OSError):  # the file is another user's
                os.utime(path)
            for use in _uses:
                use.loaded.add(path.name)
            return value
    return None


def save_value(name: str, value: Any) -> None:
    """Save a value that can be pickled, if the disk allows it, and trim the cache if that is due."""
    path = _value_path(name)
    with contextlib.suppress(OSError):
        if path is not None:
            with _replacing(path) as file:
                file.write(_sealed(pickle.dumps(value), name))
                for use in _uses:
                    use.saved.add(path.name)
    _trim_if_due()


def _value_path(name: str) -> Path | None:
    directory = cache_directory()
    return None if directory is None else Path(directory, f"{name}.value")


def _sealed(content: bytes, name: str) -> bytes:
    """Return the content of a file: what to keep, followed by the checksum of it and of the entry's name."""
    return content + _checksum(content, name)


def _unsealed(stored: bytes, name: str) -> Any:
    """Return the object that was pickled and sealed; raise ``ValueError`` if the file is damaged, or another one."""
    content, checksum = stored[:-_CHECKSUM_SIZE], stored[-_CHECKSUM_SIZE:]
    if _checksum(content, name) != checksum:
        raise ValueError("the file is damaged")
    return pickle.loads(content)


def _checksum(content: bytes, name: str) -> bytes:
    return hashlib.sha256(content + name.encode()).digest()


class KernelCache(caching.FunctionCache):
    """Numba's cache of one function, in this folder.

    The digest is computed when the function is first loaded or compiled, not when it is declared. A function that
    depends on objects of unknown content is not cached.
    """

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self._py_func = function
        self._name = repr(function)
        self._options = options
        self._impl = _CompiledFunction()
        self._timer: CompileTimer | None = None
        """Times the compilation that follows a failed load; Numba's lock is held from the load to the end."""
        self.enable()

    @functools.cached_property
    def _entry_name(self) -> str | None:
        fingerprint = Fingerprint(with_package=True)
        versions = (sys.implementation.cache_tag, numba.__version__, llvmlite.__version__, _NAMING)
        fingerprint.add(versions, self._py_func.__module__, self._options, self._py_func)
        return f"{self._py_func.__name__}-{fingerprint.hexdigest()}" if fingerprint.is_complete else None

    @functools.cached_property
    def _cache_file(self) -> Any:
        return _CacheFile(cache_directory(), self._entry_name, source_stamp="")

    @property
    def cache_path(self) -> str | None:
        """The folder."""
        return cache_directory()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the compiled function; None if it is not cached, or its files are damaged."""
        timer = self._timer = CompileTimer()
        with contextlib.suppress(Exception):
            if cache_directory() is not None and self._entry_name is not None:
                found = super().load_overload(sig, target_context)
                # Processes that wrote at the same time may have mixed up their files.
                if found is not None and found.signature.args == _argument_types(sig):
                    with contextlib.suppress(OSError):  # the file is another user's
                        os.utime(self._cache_file._index_path)
                    timer.stop()
                    return found
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Save a compiled function if the disk allows it, and trim the cache if that is due."""
        if cache_directory() is not None and self._entry_name is not None:
            self._save(sig, data)
        if self._timer is not None:
            self._timer.stop()

    def _save(self, sig: Any, data: Any) -> None:
        with contextlib.suppress(OSError):
            try:
                super().save_overload(sig, data)
            except OSError:
                raise
            except Exception:  # the index is damaged
                self.flush()
                super().save_overload(sig, data)
        _trim_if_due()

    def _index_key(self, sig: Any, codegen: Any) -> Any:
        """Return the key within an entry, whose name identifies the function."""
        return sig, codegen.magic_tuple()


class _CacheFile(caching.IndexDataCacheFile):
    """Numba's files of an entry, sealed: altered code could end the process."""

    def _load_index(self) -> Any:
        try:
            stored = _read(self._index_path)
        except OSError:  # there is none, or it is another user's
            return {}
        return _unsealed(stored, self._index_name)

    def _save_index(self, overloads: Any) -> None:
        self._save(self._index_name, overloads)

    def _load_data(self, name: str) -> Any:
        data = _unsealed(_read(self._data_path(name)), name)
        for use in _uses:
            use.loaded.add(name)
        return data

    def _save_data(self, name: str, data: Any) -> None:
        self._save(name, data)
        for use in _uses:
            use.saved.add(name)

    def _save(self, name: str, content: Any) -> None:
        with _replacing(self._data_path(name)) as file:
            file.write(_sealed(self._dump(content), name))


def _argument_types(sig: Any) -> Any:
    """Return the types of the arguments, which are a kernel's signature, and part of that of a C function."""
    return getattr(sig, "args", sig)


class _CompiledFunction(caching.CompileResultCacheImpl):
    """How Numba serializes a compiled function."""

    def __init__(self) -> None:
        self._locator = _Locator()

    def check_cachable(self, data: Any) -> bool:
        """Whether the compiled code contains no addresses of this process."""
        return not data.lifted and not data.library.has_dynamic_globals


class _Locator(caching._CacheLocator):
    """Where Numba stores compiled functions."""

    def ensure_cache_path(self) -> None:
        os.makedirs(self.get_cache_path(), exist_ok=True)

    def get_cache_path(self) -> str:
        return str(cache_directory())

    def get_source_stamp(self) -> str:
        return ""

    def get_disambiguator(self) -> str:
        return ""
