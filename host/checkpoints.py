"""Checkpoints: the state of a vertex program's run between two supersteps, one file each in a folder of the run's own.

A file is written under a temporary name and renamed once it is whole. It holds a line that names the format, the
format's version, the length of a JSON header, the header, the arrays that it lists (from multiples of 64 bytes on) and
a SHA-256 of all that. Reading one executes and imports nothing.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import secrets
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, CheckpointError, UnreadableFileError, WriteError
from gpu_pregel.host.master import Folded
from gpu_pregel.host.numeric import Plan, Run

Array = np.ndarray[Any, Any]

FORMAT_VERSION = 1
_MAGIC = b"gpu-pregel checkpoint\n\0\0"
_FIXED = len(_MAGIC) + 16
"""Bytes before the header: the magic, the version and the header's length."""
_ALIGNMENT = 64
_DIGEST_SIZE = hashlib.sha256().digest_size
_NAME = re.compile(r"superstep-(\d{12})\.checkpoint")
_LEFTOVER = re.compile(r"\.superstep-\d{12}\.checkpoint\.[0-9a-f]{8}\.tmp")


@dataclass(frozen=True)
class Checkpoint:
    """Where and how often a run saves its state.

    Parameters
    ----------
    folder : path
        Of this run alone; made if there is none.
    every : int, default 10
        Save after every so many supersteps, and when the run ends.
    keep : int, default 2
        How many are kept, the newest; older ones are removed once a new one is in place.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> gp.Checkpoint("pagerank-checkpoints", every=5)
    Checkpoint(folder='pagerank-checkpoints', every=5, keep=2)
    """

    folder: str | os.PathLike[str]
    every: int = 10
    keep: int = 2

    def __post_init__(self) -> None:
        if not isinstance(self.folder, (str, os.PathLike)):
            raise ArgumentTypeError(f"folder must be the path of a folder, not {self.folder!r}")
        if not os.fspath(self.folder):
            raise ArgumentError("folder must be the path of a folder, not an empty string")
        for name in ("every", "keep"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, np.integer)):
                raise ArgumentTypeError(f"{name} must be a whole number, not {value!r}")
            if value < 1:
                raise ArgumentError(f"{name} must be at least 1, not {value}")


def as_checkpoint(given: object) -> Checkpoint:
    """What ``checkpoint=`` means: a folder stands for ``Checkpoint(folder)``."""
    if isinstance(given, Checkpoint):
        return given
    if not isinstance(given, (str, os.PathLike)):
        raise ArgumentTypeError(f"checkpoint must be a gp.Checkpoint or the path of a folder, not {given!r}")
    return Checkpoint(given)


class Identity(NamedTuple):
    """What a checkpoint is of: the graph's size, kind, dtype of weights and content, and the program's digest."""

    vertices: int
    edges: int
    directed: bool
    weights: str | None
    content: str
    program: str


class Commit(NamedTuple):
    """What a checkpoint holds beside the run's own state.

    Attributes
    ----------
    supersteps : int
        How many have been, 0 included.
    plan : Plan
        What is active.
    totals : tuple
        The aggregates that the next superstep's ``apply`` will see.
    rows : list of dict
        The trace so far.
    """

    supersteps: int
    plan: Plan
    totals: tuple[Any, ...]
    rows: list[dict[str, Any]]


class CheckpointFolder:
    """The checkpoints of one run; a context that keeps other runs out of the folder.

    Parameters
    ----------
    checkpoint : Checkpoint
    identity : Identity
        Of the run's graph and program.
    resume : bool
        Take the newest checkpoint up; if False there must be none.
    max_supersteps : int, optional
        The run's limit, which the checkpoint must not be beyond.

    Raises
    ------
    CheckpointError
        The newest checkpoint cannot be taken up, or there are some and ``resume`` is False.
    """

    def __init__(
        self, checkpoint: Checkpoint, identity: Identity, *, resume: bool, max_supersteps: int | None = None
    ) -> None:
        self._checkpoint = checkpoint
        self._folder = Path(checkpoint.folder).absolute()
        self._identity = identity
        self._resume = resume
        self._max_supersteps = max_supersteps
        self._lock = -1
        self._loaded: tuple[Path, dict[str, Any], dict[str, Array]] | None = None
        self._trace = bytearray()
        """The rows saved so far, a line of JSON each, so that each is encoded once."""
        self._encoded = 0

    def __enter__(self) -> CheckpointFolder:
        self._open()
        try:
            present = self._present()
            if present and not self._resume:
                raise CheckpointError(
                    self._folder,
                    f"holds {present[-1].name} of an earlier run: pass resume=True to go on from it, or name another "
                    f"folder or remove the checkpoints to begin anew",
                )
            if present:
                self._loaded = (present[-1], *self._load(present))
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(self, *error: object) -> None:
        self._close()

    def begin(self, run: Run) -> tuple[Commit | None, Callable[[Commit, bool], None]]:
        """Give ``run`` the state of the checkpoint taken up, if any.

        Returns its commit, and what to call after each superstep's commit.
        """

        def after_commit(commit: Commit, is_last: bool) -> None:
            if is_last or commit.supersteps % self._checkpoint.every == 0:
                self._save(commit, run.snapshot())

        if self._loaded is None:
            return None, after_commit
        path, header, arrays = self._loaded
        self._loaded = None
        for name, array in run.snapshot().items():
            if name not in arrays or arrays[name].dtype != array.dtype or arrays[name].shape != array.shape:
                raise CheckpointError(path, f"has no {name} that fits this run: begin anew in another folder")
        run.restore(arrays)
        totals = tuple(arrays[f"total{k}"][0] for k in range(len(run.aggregates)))
        rows = [json.loads(line) for line in arrays["trace"].tobytes().splitlines()]
        return Commit(header["supersteps"], Plan(*header["plan"]), totals, rows), after_commit

    def _open(self) -> None:
        """Make the folder, lock it and clear what a killed run left half-written."""
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            self._lock = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except (FileExistsError, NotADirectoryError):
            raise WriteError(f"{self._folder} is no folder: name one for the checkpoints") from None
        except OSError as error:
            raise WriteError(f"{self._folder} cannot hold checkpoints: {error.strerror or error}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._close()
            raise CheckpointError(
                self._folder, "is in use by another run: wait for its end, or name another folder"
            ) from None
        except OSError:
            pass  # A file system without locks.
        if not os.access(self._folder, os.W_OK | os.X_OK):
            self._close()
            raise WriteError(f"{self._folder} cannot be written to: name another folder for the checkpoints")
        for name in os.listdir(self._folder):
            if _LEFTOVER.fullmatch(name):
                with suppress(OSError):
                    (self._folder / name).unlink()

    def _close(self) -> None:
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1

    def _present(self) -> list[Path]:
        """The checkpoints, oldest first."""
        return [self._folder / name for name in sorted(os.listdir(self._folder)) if _NAME.fullmatch(name)]

    def _load(self, present: list[Path]) -> tuple[dict[str, Any], dict[str, Array]]:
        """Header and arrays of the newest checkpoint, if it is whole and of this run."""
        path = present[-1]
        older = f"goes on from {present[-2].name}" if len(present) > 1 else "begins anew, as there is no older one"
        header, arrays = _read(path, f"delete it, and resume=True {older}")
        identity = Identity(*header["identity"])
        if identity != self._identity:
            raise CheckpointError(path, _difference(identity, self._identity))
        if self._max_supersteps is not None and header["supersteps"] > self._max_supersteps:
            raise CheckpointError(
                path,
                f"holds {header['supersteps']:,} supersteps, more than max_supersteps={self._max_supersteps}: raise "
                f"that, or begin anew in another folder",
            )
        return header, arrays

    def _save(self, commit: Commit, arrays: dict[str, Array]) -> None:
        """Write a checkpoint and put it in place, whole; then remove those that are not to be kept."""
        for row in commit.rows[self._encoded :]:
            self._trace += json.dumps(row, default=lambda number: number.item()).encode() + b"\n"
        self._encoded = len(commit.rows)
        totals = {f"total{k}": np.asarray(total).reshape(1) for k, total in enumerate(commit.totals)}
        header = {"supersteps": commit.supersteps, "plan": commit.plan, "identity": self._identity}
        target = self._folder / f"superstep-{commit.supersteps:012d}.checkpoint"
        temporary = target.with_name(f".{target.name}.{secrets.token_hex(4)}.tmp")
        try:
            with open(temporary, "xb") as file:
                for piece in _pieces(
                    header, {**arrays, **totals, "trace": np.frombuffer(bytes(self._trace), np.uint8)}
                ):
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
            with suppress(OSError):  # Not every file system can do that to a folder.
                os.fsync(self._lock)
        except BaseException as error:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise WriteError(
                    f"{target} was not written: {error.strerror or error}; the checkpoints before it are whole: make "
                    f"room, and go on with resume=True"
                ) from error
            raise
        for path in self._present()[: -self._checkpoint.keep]:
            with suppress(OSError):
                path.unlink()


class CheckpointJournal:
    """A run's commits as checkpoints in a folder; ``start`` is the one that it goes on from, if any."""

    def __init__(self, folder: CheckpointFolder, run: Run) -> None:
        self.start, self._save = folder.begin(run)
        self.rows = [] if self.start is None else self.start.rows

    def commit(self, folded: Folded, status: str) -> None:
        """Save the superstep if it is one of those that are saved."""
        self.rows.append(folded.row)
        plan, totals = folded.change
        self._save(Commit(folded.superstep + 1, plan, totals, self.rows), status != "running")

    def hold(self, superstep: int, status: str) -> None:
        """Nothing: numeric supersteps are not held."""


def _pieces(header: dict[str, Any], arrays: dict[str, Array]) -> Iterator[Any]:
    """The bytes of a checkpoint, piece by piece."""
    listed = [(name, array.dtype.str, len(array)) for name, array in arrays.items()]
    text = json.dumps({**header, "arrays": listed}).encode()
    digest = hashlib.sha256()
    begin = _MAGIC + FORMAT_VERSION.to_bytes(8, "little") + len(text).to_bytes(8, "little") + text
    parts: list[Any] = [begin, *(np.ascontiguousarray(array).view(np.uint8).data for array in arrays.values())]
    for part in parts:
        for piece in (part, bytes(-len(part) % _ALIGNMENT)):
            digest.update(piece)
            yield piece
    yield digest.digest()


def _read(path: Path, fall_back: str) -> tuple[dict[str, Any], dict[str, Array]]:
    """Header and arrays of a checkpoint whose checksum holds."""
    try:
        data = np.fromfile(path, np.uint8)
    except OSError as error:
        raise UnreadableFileError(f"{path} cannot be read: {error.strerror or error}") from error
    begin = data[:_FIXED].tobytes()
    if not begin.startswith(_MAGIC) or len(begin) < _FIXED:
        raise CheckpointError(path, f"is damaged, or no checkpoint (it begins with other bytes): {fall_back}")
    version, size = (int.from_bytes(begin[at : at + 8], "little") for at in (len(_MAGIC), len(_MAGIC) + 8))
    if version != FORMAT_VERSION:
        raise CheckpointError(
            path,
            f"has version {version} of the format, but this gpu_pregel reads version {FORMAT_VERSION}: go on with the "
            f"release that wrote it, or begin anew in another folder",
        )
    body = data[: max(0, len(data) - _DIGEST_SIZE)]
    if hashlib.sha256(body.data).digest() != data[len(body) :].tobytes():
        raise CheckpointError(path, f"is damaged or cut short (its checksum does not match): {fall_back}")
    try:
        return _parse(body, size)
    except (ArithmeticError, LookupError, TypeError, ValueError, RecursionError) as error:
        raise CheckpointError(path, f"does not hold what its format asks for ({error}): {fall_back}") from error


def _parse(body: Array, size: int) -> tuple[dict[str, Any], dict[str, Array]]:
    header = json.loads(body[_FIXED : _FIXED + size].tobytes())
    at = _FIXED + size
    arrays = {}
    for name, code, length in header["arrays"]:
        dtype = np.dtype(str(code))
        if dtype.kind not in "biuf" or not 0 <= length <= len(body):
            raise ValueError(f"array {name!r} of {length} {dtype}")
        at += -at % _ALIGNMENT
        arrays[name] = body[at : at + length * dtype.itemsize].view(dtype)
        if len(arrays[name]) != length:
            raise ValueError(f"array {name!r} has {len(arrays[name])} of {length} entries")
        at += length * dtype.itemsize
    Identity(*header["identity"])
    if not isinstance(header["supersteps"], int) or len(header["plan"]) != len(Plan._fields):
        raise ValueError("its header")
    return header, arrays


def _difference(saved: Identity, own: Identity) -> str:
    """How the identities of a checkpoint and of this run differ, and what to do."""
    remedy = "name another folder, or give the one that it was made with"
    if saved[:-1] == own[:-1]:
        return (
            f"is of another program (functions, constants they use, dtypes, or the versions of Python or a library): "
            f"{remedy}"
        )

    def size(identity: Identity) -> str:
        kind = "directed" if identity.directed else "undirected"
        weights = f"{identity.weights} weights" if identity.weights else "no weights"
        return f"{identity.vertices:,} vertices and {identity.edges:,} stored edges, {kind}, {weights}"

    if saved[:4] == own[:4]:
        return f"is of another graph (as large, but its edges or weights differ): {remedy}"
    return f"is of another graph (it has {size(saved)}; this one {size(own)}): {remedy}"
