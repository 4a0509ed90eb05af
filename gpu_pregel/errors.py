"""The exceptions of gpu_pregel. Each is also the built-in exception that a caller would catch. Messages name the cause
(file and line, argument or vertex) and the remedy.
"""

from __future__ import annotations

import os
import time
import typing

_CYCLE_SHOWN = 8
_LONGEST_QUOTE = 2000


class GpuPregelError(Exception):
    """Base class of all errors of this package."""

    def __reduce__(self) -> tuple[typing.Any, ...]:
        return _restore, (type(self), self.args, self.__dict__)


def _restore(kind: type[GpuPregelError], args: tuple[typing.Any, ...], facts: dict[str, typing.Any]) -> GpuPregelError:
    """Return an error that has been pickled; its ``__init__`` takes other arguments than its text."""
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(facts)
    return error


class ArgumentError(GpuPregelError, ValueError):
    """An argument has an invalid value."""


class ArgumentTypeError(GpuPregelError, TypeError):
    """An argument has an invalid type or dtype."""


class GraphError(GpuPregelError, ValueError):
    """The given arrays or objects do not form a valid graph."""


class CycleError(GraphError):
    """An acyclic graph is required, and this one has a cycle.

    Parameters
    ----------
    cycle : list
        The ids of the vertices of a cycle, in the order of its edges.
    """

    def __init__(self, cycle: list[typing.Any]) -> None:
        self.cycle = cycle
        shown = [repr(vertex) for vertex in cycle[:_CYCLE_SHOWN]]
        more = [f"({len(cycle) - _CYCLE_SHOWN:,} more)"] * (len(cycle) > _CYCLE_SHOWN)
        super().__init__(
            f"the graph has a cycle, {' -> '.join([*shown, *more, repr(cycle[0])])}: remove one of its edges"
        )


class UnknownVertexError(GpuPregelError, KeyError):
    """No vertex of the graph has the given id."""

    # KeyError would show the representation of the message.
    __str__ = Exception.__str__


class FormatError(GpuPregelError, ValueError):
    """A file does not conform to its format.

    Parameters
    ----------
    path : path
        The file.
    problem : str
        What is wrong, and how to fix it.
    line : int, optional
        Number of the faulty line, from 1.
    """

    def __init__(self, path: str | os.PathLike[str], problem: str, line: int | None = None) -> None:
        self.path = os.fspath(path)
        self.line = line
        self.problem = problem
        super().__init__(f"{self.path}{f', line {line}' if line is not None else ''}: {problem}")


class MissingFileError(GpuPregelError, FileNotFoundError):
    """A file to be read does not exist."""


class NotAFileError(GpuPregelError, IsADirectoryError):
    """A folder was given instead of a file."""


class UnreadableFileError(GpuPregelError, OSError):
    """The operating system refuses to read a file."""


class WriteError(GpuPregelError, OSError):
    """Output cannot be written; no partial output remains."""


class NotEnoughMemoryError(GpuPregelError, MemoryError):
    """An operation requires more memory than is available; raised before it starts."""


class ProgramError(GpuPregelError, TypeError):
    """A function of a program or of an operator cannot be compiled, returns the wrong type, or raises on a GPU."""


class CompileError(ProgramError):
    """Numba cannot compile a function of a program or of an operator for a device."""


class VertexError(ProgramError, ArithmeticError, IndexError):
    """A program's function fails for a vertex: zero division, an index out of range, or a result that does not fit.

    Raised on the device "python" and with ``check=True``; its traceback ends in the function, for debuggers. On CUDA
    devices it is raised for any exception, which is its cause.

    Parameters
    ----------
    role : str
        The function, such as "apply".
    vertex : object
        The user's id of the vertex.
    superstep : int
    problem : str
        What is wrong.
    place : str, optional
        The file, the line and its text.
    """

    def __init__(self, role: str, vertex: object, superstep: int, problem: str, place: str = "") -> None:
        self.role = role
        self.vertex = vertex
        self.superstep = superstep
        self.problem = problem
        self.place = place
        where = f" ({place})" if place else ""
        super().__init__(f"{role} fails for vertex {vertex!r} in superstep {superstep}{where}: {problem}")


class ProgramFileError(GpuPregelError, ImportError):
    """A Python file or module raises an exception when loaded, or does not define the requested program."""


class CheckpointError(GpuPregelError, ValueError):
    """A checkpoint is damaged, or belongs to a different run than the one to be resumed.

    Parameters
    ----------
    path : path
        The store, the run and the superstep of the checkpoint, or the store alone.
    problem : str
        What is wrong or different, and how to fix it.
    """

    def __init__(self, path: str | os.PathLike[str], problem: str) -> None:
        self.path = os.fspath(path)
        self.problem = problem
        super().__init__(f"{self.path}: {problem}")


class StoreError(GpuPregelError, OSError):
    """A store cannot be opened, read or written, or its contents are damaged; no partial write remains.

    Parameters
    ----------
    store : str
        The file or the database.
    problem : str
        What is wrong, and how to fix it.
    run : str, optional
    step, segment : int, optional
        The faulty part.
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


class UnknownRunError(ArgumentError):
    """A store has no run with this id."""


class RunExistsError(ArgumentError):
    """A store already has a run with this id."""


class ClaimedError(GpuPregelError, RuntimeError):
    """A run is, or was a moment ago, claimed by another program.

    Parameters
    ----------
    run : str
    owner : str
        The program that holds the claim.
    until : float
        When its lease expires unless it is renewed, in seconds since 1970.
    option : str, default "takeover=True"
        The option that overrides the claim; empty if there is none.
    """

    def __init__(self, run: str, owner: str, until: float, option: str = "takeover=True") -> None:
        self.run = run
        self.owner = owner
        self.until = until
        self._option = option
        when = time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(until))
        remedy = f"wait, or pass {option} if that program has ended" if option else "wait until it has ended the run"
        super().__init__(f"run {run!r} is claimed by {owner} until {when}: {remedy}")


class FencedError(GpuPregelError, RuntimeError):
    """Another program has taken the run; none of this program's writes are accepted.

    Parameters
    ----------
    run : str
    problem : str
        Who has taken the run, or why it is unavailable.
    """

    def __init__(self, run: str, problem: str) -> None:
        self.run = run
        self.problem = problem
        super().__init__(f"run {run!r} {problem}; nothing was written")


class CodecError(GpuPregelError, TypeError, ValueError):
    """A value cannot be encoded because it is not data, or bytes cannot be decoded.

    Parameters
    ----------
    problem : str
        What is wrong, and how to fix it.
    path : str, optional
        The faulty part, such as ``value.items[3].name``.
    """

    def __init__(self, problem: str, path: str = "") -> None:
        self.problem = problem
        self.path = path
        super().__init__(f"{path} {problem}" if path else problem)


class SuperstepLimitError(GpuPregelError, RuntimeError):
    """A run reached ``max_supersteps`` with active vertices; ``result`` is the partial result.

    Parameters
    ----------
    max_supersteps : int or None
    result : object
    nodes : sequence of str
        Of a state graph: those that were to run next.
    """

    def __init__(self, max_supersteps: int | None, result: object, nodes: typing.Sequence[str] | None = None) -> None:
        self.result = result
        if nodes is not None:
            names = f"node{'s' * (len(nodes) > 1)} {', '.join(map(repr, nodes))}"
            super().__init__(
                f"{names} had still to run after max_supersteps={max_supersteps}: increase it, by "
                f'compile(max_supersteps=...) or config={{"recursion_limit": ...}}; with a store, invoke(None, config) '
                f"continues"
            )
            return
        super().__init__(
            f"vertices were still active after max_supersteps={max_supersteps}: increase it, pass on_limit='return', "
            f"or read the partial result from the .result of this error"
        )


class AgentError(GpuPregelError, RuntimeError):
    """A run of agents cannot continue, for example because its workers cannot be started; the last commit is kept."""


class AttemptError(GpuPregelError, RuntimeError):
    """Raised by a compute function to fail its attempt and to say whether and when it is retried.

    It takes precedence over ``RetryPolicy``, except for the maximum number of attempts.

    Parameters
    ----------
    text : str
    retryable : bool, default True
        With False, there is no further attempt.
    retry_after : float, optional
        Seconds until the next attempt, which a resumed run waits for as well. Default: as the policy says.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> def ask(ctx):
    ...     raise gp.errors.AttemptError("the account is closed", retryable=False)
    >>> result = gp.agents.run([gp.agents.Vertex("a")], ask, on_failure="continue")
    >>> result.failed["a"].text, result.trace[0]["retries"]
    ('the account is closed', 0)
    """

    def __init__(self, text: str, *, retryable: bool = True, retry_after: float | None = None) -> None:
        if not isinstance(retryable, bool):
            raise ArgumentTypeError(f"retryable must be a bool, not {retryable!r}")
        if retry_after is not None:
            if isinstance(retry_after, bool) or not isinstance(retry_after, (int, float)):
                raise ArgumentTypeError(f"retry_after must be a number of seconds, not {retry_after!r}")
            if not 0 <= retry_after < 1e9 or not retryable:
                raise ArgumentError(
                    f"retry_after={retry_after!r} with retryable={retryable}: pass seconds from 0 on, and no False"
                )
        self.retryable = retryable
        self.retry_after = retry_after
        super().__init__(text)


class ModelError(AttemptError):
    """A language model cannot be reached, refuses a request, or answers with something that is not a message.

    The text quotes the server, never the key; it is cut after 2,000 characters, and its control characters are escaped.
    ``status`` is the HTTP status of its answer, if any; the other parameters are those of :class:`AttemptError`.
    """

    def __init__(
        self, text: str, *, status: int | None = None, retryable: bool = True, retry_after: float | None = None
    ) -> None:
        self.status = status
        excerpt = text if len(text) <= _LONGEST_QUOTE else f"{text[:_LONGEST_QUOTE]}…"
        # A terminal would obey control characters.
        shown = "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in excerpt)
        super().__init__(shown, retryable=retryable, retry_after=retry_after)


class ToolError(AttemptError):
    """A tool fails, or is called with wrong arguments; an agent's model is told the text."""


class AgentsFailedError(AgentError):
    """Vertices failed after all retries, and their superstep is held; ``result`` is the partial ``AgentResult``.

    Its notes, which Python prints, have the tracebacks of the functions.
    """

    _names = "vertex", "vertices"

    def __init__(self, result: typing.Any) -> None:
        self.result = result
        one, several = self._names
        by_cause: dict[str, list[str]] = {}
        traces: dict[str, str] = {}
        for vertex, failure in result.failed.items():
            cause = f"{failure.type}: {failure.text}"
            by_cause.setdefault(cause, []).append(f"{one} {vertex!r}")
            traces.setdefault(cause, failure.users_traceback)
        shown = [(names[:5], cause) for cause, names in by_cause.items()][:5]
        rest = len(result.failed) - sum(len(names) for names, _ in shown)
        text = "\n".join(f"{', '.join(names)}: {cause}" for names, cause in shown)
        count = f"1 {one}" if len(result.failed) == 1 else f"{len(result.failed):,} {several}"
        cancelled = f"\n{len(result.cancelled):,} more cancelled, as on_failure is 'abort'" if result.cancelled else ""
        more = (f"\nand {rest:,} more" if rest else "") + cancelled
        super().__init__(f"{count} failed in superstep {result.superstep}, which is held: {text}{more}")
        for names, cause in shown:
            if traces[cause]:  # Python prints notes below the traceback
                self.add_note(f"\n{names[0]}: {traces[cause].rstrip()}")


class NodesFailedError(AgentsFailedError):
    """Nodes of a state graph failed after all retries; their superstep is held, ``result`` is the partial result."""

    _names = "node", "nodes"


class EndNotReachedError(AgentError):
    """No state reached the end of a graph, because nodes failed or led nowhere; ``result`` is a ``GraphResult``."""

    def __init__(self, result: typing.Any) -> None:
        self.result = result
        failed = [f"node {name!r} failed: {one.error}" for name, one in result.failed.items()]
        super().__init__("no state reached the end: " + ("\n".join(failed) or "no edge or router led there"))


class DeviceError(GpuPregelError, RuntimeError):
    """The requested device does not exist or cannot be used."""


class EmulationError(GpuPregelError, RuntimeError):
    """A kernel on the emulated device did something undefined on a GPU; names the kernel, the line and the thread."""


class MissingPackageError(GpuPregelError, ImportError):
    """An operation requires an optional package that is not installed."""


class VerificationError(GpuPregelError, AssertionError):
    """A result fails the verification by its checker."""
