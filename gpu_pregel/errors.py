"""Every error that gpu_pregel raises on purpose.

Each is also the built-in exception that a caller would expect, and its message names what is at fault (file and
line, argument, vertex) and what to do about it.
"""

from __future__ import annotations

import os
import time
import typing


class GpuPregelError(Exception):
    """Base of all errors of this package."""


class ArgumentError(GpuPregelError, ValueError):
    """An argument has a value that cannot be used."""


class ArgumentTypeError(GpuPregelError, TypeError):
    """An argument has a type or dtype that cannot be used."""


class GraphError(GpuPregelError, ValueError):
    """The arrays or objects given do not make a graph."""


class FormatError(GpuPregelError, ValueError):
    """A file does not hold what its format asks for.

    Parameters
    ----------
    path : path
        The file.
    problem : str
        What is wrong, and what to do.
    line : int, optional
        Number of the line at fault, from 1.
    """

    def __init__(self, path: str | os.PathLike[str], problem: str, line: int | None = None) -> None:
        self.path = os.fspath(path)
        self.line = line
        self.problem = problem
        super().__init__(f"{self.path}{f', line {line}' if line is not None else ''}: {problem}")

    def __reduce__(self) -> tuple[type[FormatError], tuple[str, str, int | None]]:
        return type(self), (self.path, self.problem, self.line)


class MissingFileError(GpuPregelError, FileNotFoundError):
    """A file that was to be read is not there."""


class NotAFileError(GpuPregelError, IsADirectoryError):
    """A folder was given where a file is needed."""


class UnreadableFileError(GpuPregelError, OSError):
    """The operating system would not let a file be read."""


class WriteError(GpuPregelError, OSError):
    """Output could not be written; nothing half-written was left behind."""


class NotEnoughMemoryError(GpuPregelError, MemoryError):
    """The work needs more memory than there is; said before it begins."""


class ProgramError(GpuPregelError, TypeError):
    """A function of a vertex program cannot be compiled, or returns what cannot be stored."""


class ProgramFileError(GpuPregelError, ImportError):
    """A Python file raises when it is loaded, or holds no vertex program of the name asked for."""


class CheckpointError(GpuPregelError, ValueError):
    """A checkpoint is damaged, or is of another run than the one that was to go on from it.

    Parameters
    ----------
    path : path
        The checkpoint, or the folder of checkpoints.
    problem : str
        What is wrong or differs, and what to do.
    """

    def __init__(self, path: str | os.PathLike[str], problem: str) -> None:
        self.path = os.fspath(path)
        self.problem = problem
        super().__init__(f"{self.path}: {problem}")

    def __reduce__(self) -> tuple[type[CheckpointError], tuple[str, str]]:
        return type(self), (self.path, self.problem)


class StoreError(GpuPregelError, OSError):
    """A store cannot be opened, read or written, or what it holds is damaged; nothing half-written was left in it.

    Parameters
    ----------
    store : str
        The file or the database.
    problem : str
        What is wrong, and what to do.
    run : str, optional
    step, segment : int, optional
        The part at fault.
    """

    def __init__(
        self, store: str, problem: str, run: str | None = None, step: int | None = None, segment: int | None = None
    ) -> None:
        self.store = store
        self.problem = problem
        self.run = run
        self.step = step
        self.segment = segment
        named = (("run", None if run is None else repr(run)), ("superstep", step), ("segment", segment))
        where = ", ".join([store, *(f"{name} {value}" for name, value in named if value is not None)])
        super().__init__(f"{where}: {problem}")

    def __reduce__(self) -> tuple[type[StoreError], tuple[str, str, str | None, int | None, int | None]]:
        return type(self), (self.store, self.problem, self.run, self.step, self.segment)


class ClaimedError(GpuPregelError, RuntimeError):
    """A run is claimed by another program, or was a moment ago.

    Parameters
    ----------
    run : str
    owner : str
        Who holds it.
    until : float
        When its lease ends, in seconds since 1970, if it is not renewed.
    option : str, default "takeover=True"
        What disregards that.
    """

    def __init__(self, run: str, owner: str, until: float, option: str = "takeover=True") -> None:
        self.run = run
        self.owner = owner
        self.until = until
        self._option = option
        when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(until))
        super().__init__(
            f"run {run!r} is claimed by {owner} until {when}: wait until then, or pass {option} if that program is gone"
        )

    def __reduce__(self) -> tuple[type[ClaimedError], tuple[str, str, float, str]]:
        return type(self), (self.run, self.owner, self.until, self._option)


class FencedError(GpuPregelError, RuntimeError):
    """A run is another program's by now; nothing of this one's was written.

    Parameters
    ----------
    run : str
    problem : str
        Who has it, or what became of it.
    """

    def __init__(self, run: str, problem: str) -> None:
        self.run = run
        self.problem = problem
        super().__init__(f"run {run!r} {problem}; nothing was written")

    def __reduce__(self) -> tuple[type[FencedError], tuple[str, str]]:
        return type(self), (self.run, self.problem)


class CodecError(GpuPregelError, TypeError, ValueError):
    """A value is no data and cannot be encoded, or bytes are damaged or unknown and cannot be decoded.

    Parameters
    ----------
    problem : str
        What is wrong, and what to do.
    path : str, optional
        The part at fault, such as ``value.items[3].name``.
    """

    def __init__(self, problem: str, path: str = "") -> None:
        self.problem = problem
        self.path = path
        super().__init__(f"{path} {problem}" if path else problem)

    def __reduce__(self) -> tuple[type[CodecError], tuple[str, str]]:
        return type(self), (self.problem, self.path)


class SuperstepLimitError(GpuPregelError, RuntimeError):
    """A run had vertices active still when it reached ``max_supersteps``; ``result`` is what it had by then."""

    def __init__(self, max_supersteps: int | None, result: object) -> None:
        self.result = result
        super().__init__(
            f"vertices were active still after max_supersteps={max_supersteps}: raise it, pass on_limit='return', or "
            f"read the partial result from this error's .result"
        )


class AgentError(GpuPregelError, RuntimeError):
    """A run of agents cannot go on: a message to a vertex that is not there, say; the last commit stands."""


class AgentsFailedError(AgentError):
    """Vertices failed for good, and their superstep is held; ``result`` is what there is.

    Parameters
    ----------
    result : AgentResult
    """

    def __init__(self, result: typing.Any) -> None:
        self.result = result
        failed = result.failed
        shown = [f"vertex {vertex!r}: {one.type}: {one.text}" for vertex, one in list(failed.items())[:5]]
        more = f"\nand {len(failed) - 5:,} more" if len(failed) > 5 else ""
        text = "\n".join(shown) + more
        super().__init__(f"{len(failed):,} vertices failed in superstep {result.superstep}, which is held: {text}")


class DeviceError(GpuPregelError, RuntimeError):
    """The device asked for does not exist or cannot be used."""


class EmulationError(GpuPregelError, RuntimeError):
    """A kernel on the emulated device did what a GPU need not do as hoped: the kernel, the line and the thread."""


class MissingPackageError(GpuPregelError, ImportError):
    """An optional package is needed for what was asked."""


class VerificationError(GpuPregelError, AssertionError):
    """A result does not have the properties that its reference checker asks for."""
