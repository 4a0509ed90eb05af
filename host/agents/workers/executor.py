"""Computes the vertices of one partition: attempt by attempt, on the caller's thread or on an event loop of its own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from gpu_pregel.errors import CodecError
from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.host.agents.context import Context, Limits, Setup
from gpu_pregel.host.agents.records import Batch, Change, Failure, Id, Outcome, Record, Task, Vertex
from gpu_pregel.host.agents.retry import RetryPolicy

if TYPE_CHECKING:
    from asyncio import Timeout

_new_task, _new_outcome = partial(tuple.__new__, Task), partial(tuple.__new__, Outcome)  # a third of the time
Emit = Callable[[Outcome], None]
Begin = Callable[[int], object]
"""Told the index of a task in its batch before it is computed; if it returns what is true, that is left."""


class Job(NamedTuple):
    """What every partition of a run must know.

    Attributes
    ----------
    functions : dict of str to callable
        Compute functions by name.
    combine : Folding or None
    limits : Limits
    retry : RetryPolicy
        Says which exceptions are worth another attempt.
    run : str
        The run's id, from which keys are made.
    branch : int
    timeout : float or None
        Seconds of an attempt.
    max_concurrency : int
        Attempts of an ``async`` function under way at once.
    max_record : int or None
        Bytes of what an attempt leaves.
    max_memory : int or None
        Bytes of address space of a worker process.
    """

    functions: dict[str, Callable[[Context], Any]]
    combine: Any
    limits: Limits
    retry: RetryPolicy
    run: str
    branch: int
    timeout: float | None
    max_concurrency: int
    max_record: int | None = None
    max_memory: int | None = None

    def is_async(self, function: str) -> bool:
        """Whether a compute function runs on an event loop."""
        return is_async(self.functions[function])


def is_async(function: Any) -> bool:
    """Whether a function, or an object that is called like one, makes coroutines."""
    from functools import partial
    from inspect import iscoroutinefunction

    while isinstance(function, partial):
        function = function.func
    return iscoroutinefunction(function) or iscoroutinefunction(type(function).__call__)


class Executor:
    """The vertices of a partition, and what their completed attempts staged since the last commit.

    Parameters
    ----------
    job : Job
    interruptible : bool
        Whether a KeyboardInterrupt is the user's, and ends the batch; else it is an exception like others.
    """

    def __init__(self, job: Job, interruptible: bool = True) -> None:
        self.vertices: dict[Id, Vertex] = {}
        self.max_concurrency = job.max_concurrency
        self._job = job
        self._fatal = (KeyboardInterrupt,) if interruptible else ()
        self._setup = Setup(job.run, job.branch, job.combine, job.limits)
        self._staged: dict[Id, Record] = {}
        self._is_async = {name: job.is_async(name) for name in job.functions}

    def is_async(self, batch: Batch) -> bool:
        """Whether a batch wants an event loop."""
        return self._is_async[batch.function]

    def load(self, vertices: dict[Id, Vertex]) -> None:
        """Take over vertices as they are committed."""
        self.vertices = vertices
        self._staged.clear()

    def execute(self, batch: Batch, emit: Emit, begin: Begin | None = None) -> None:
        """Compute the tasks of a batch of an ordinary function; emit the outcome of each as soon as there is one."""
        compute, setup, vertices = self._job.functions[batch.function], self._setup, self.vertices
        for index, fields in enumerate(batch.tasks):
            if begin is not None and begin(index):
                return
            task = _new_task(fields)
            context: Context | None = None
            error: BaseException | None = None
            try:
                context = Context(vertices[task.id], task, batch, setup)
                result = compute(context)
                if result is not None:
                    _refuse_result(result)
            except self._fatal:
                raise
            except BaseException as raised:
                error = raised
            emit(self._ended(task, context, error))

    async def execute_async(self, task: Task, batch: Batch, patience: float | None = None) -> Outcome:
        """Compute one task of an ``async`` function; after ``patience`` seconds it is left behind, if it still runs."""
        import asyncio

        context = Context(self.vertices[task.id], task, batch, self._setup)
        limit = asyncio.timeout(self._job.timeout)
        call = self._call(self._job.functions[batch.function], context, limit)
        if patience is None:
            error = await call
        else:
            attempt = asyncio.create_task(call)
            await asyncio.wait((attempt,), timeout=patience)
            if not attempt.done():
                context.close()
                text = f"took more than {self._job.timeout} s, and went on when it was cancelled; it was left behind"
                return self._ended(task, context, TimeoutError(text), late=True)
            error = attempt.result()
        return self._ended(task, context, error, late=error is not None and limit.expired())

    async def _call(self, compute: Callable[[Context], Any], context: Context, limit: Timeout) -> BaseException | None:
        """What a compute function raises."""
        try:
            async with limit:
                result = await compute(context)
                if result is not None:
                    _refuse_result(result)
        except self._fatal:
            raise
        except BaseException as raised:
            return raised
        return None

    def _ended(self, task: Task, context: Context | None, error: BaseException | None, late: bool = False) -> Outcome:
        """The outcome of an attempt that raised ``error``, or did not."""
        if context is not None and context.asked is not None:
            return Outcome(task.id, task.attempt, "interrupted", context.asked)
        if error is None and context is not None:
            try:
                record = context.record()
                if self._job.max_record is not None:
                    _check_size(record, self._job.max_record)
                if record.mutations:  # their weights are the function's own objects
                    record = record._replace(mutations=decode(encode(record.mutations)))
                self._staged[task.id] = record
                return _new_outcome((task.id, task.attempt, "completed", record))
            except Exception as raised:
                error = raised
        assert error is not None
        self._staged.pop(task.id, None)  # of an attempt that was cut off, and ended nevertheless
        return Outcome(task.id, task.attempt, "failed", self._failure(error, late))

    def _failure(self, error: BaseException, late: bool) -> Failure:
        kind = "exception"
        if late:
            kind = "timeout"
        elif isinstance(error, CodecError):
            kind = "data"
        elif isinstance(error, RecordTooLargeError) or (
            isinstance(error, MemoryError) and self._job.max_memory is not None
        ):
            kind = "limit"
        return Failure(
            kind,
            type(error).__qualname__,
            _text(error),
            _trace(error),
            kind != "data" and self._job.retry.matches(error),
        )

    def commit(self, change: Change) -> None:
        """Make staged results the state, as far as ``change`` does not say otherwise."""
        for vertex_id, record in self._staged.items():
            vertex = self.vertices.get(vertex_id)
            if vertex is not None:
                vertex.halted = record.halted
                if record.value is not None:
                    vertex.value = record.value
        self._staged.clear()
        for vertex_id in change.halt:
            self.vertices[vertex_id].halted = True
        for vertex_id in change.remove:
            self.vertices.pop(vertex_id, None)
        self.vertices.update(change.set)


class RecordTooLargeError(Exception):
    """What an attempt leaves is more than allowed."""


def _check_size(record: Record, limit: int) -> None:
    parts = [record.value or b"", *(data for pair in (*record.outbox, *record.aggregates) for data in pair)]
    size = sum(map(len, parts)) + (len(encode(record.mutations)) if record.mutations else 0)
    if size > limit:
        raise RecordTooLargeError(
            f"the attempt leaves {size:,} bytes, and max_record is {limit:,}: leave less, or raise it"
        )


def _refuse_result(result: Any) -> None:
    from inspect import isasyncgen, iscoroutine, isgenerator

    way_out = "set ctx.value, or send it, and return nothing"
    if iscoroutine(result):
        result.close()
        way_out = "make compute itself an async function, which awaits it"
    elif isgenerator(result) or isasyncgen(result):
        way_out = "as it has a yield, nothing of it ran: remove that"
    raise TypeError(f"compute returned {type(result).__name__}, which nobody reads: {way_out}")


def _text(error: BaseException) -> str:
    """An exception's text, even where making it fails."""
    try:
        return _clean(str(error))
    except Exception as second:
        return f"<no text: {type(second).__name__}>"


def _trace(error: BaseException) -> str:
    import traceback

    try:
        return _clean("".join(traceback.format_exception(error)))
    except Exception as second:
        return f"<no traceback: {type(second).__name__}>"


def _clean(text: str) -> str:
    """Text that any encoding and store takes, and no subclass of str."""
    return str.encode(text, "utf-8", "backslashreplace").decode()
