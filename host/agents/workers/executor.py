"""Computes the vertices of one partition: calls compute functions and turns each attempt into an outcome."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from gpu_pregel.errors import AgentError, AttemptError, CodecError
from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.host.agents.codec.differences import changed_value
from gpu_pregel.host.agents.codec.format import DIFFERENCE
from gpu_pregel.host.agents.context import Context
from gpu_pregel.host.agents.emissions import Emitter
from gpu_pregel.host.agents.kept_values import KeptValues
from gpu_pregel.host.agents.partition_options import PartitionOptions
from gpu_pregel.host.agents.records import (
    NO_CHANGE,
    UNREADABLE,
    Batch,
    Change,
    Failure,
    Id,
    Outcome,
    Record,
    Task,
    TaskFields,
    VertexData,
    new_vertex,
)
from gpu_pregel.host.agents.workers.error_texts import text_of, trace_of
from gpu_pregel.host.agents.workers.record_checks import (
    OVERWRITTEN,
    RecordTooLargeError,
    check_size,
    check_types,
    refuse_result,
)

if TYPE_CHECKING:
    from gpu_pregel.host.agents.workers.attempt_task import PostponedTimeout

_new_task, _new_outcome = partial(tuple.__new__, Task), partial(tuple.__new__, Outcome)  # three times as fast
_MAX_NAME = 200
"""Maximum number of characters of the name of an exception's type."""
SHORT = 0.001
"""Seconds of waiting for observers that timeouts may count."""
_NO_LIMIT = nullcontext()
CANCELLED = "the attempt's task was cancelled"
Emit = Callable[[Outcome], None]
Begin = Callable[[int], object]
"""Called with the index of a task in its batch before it is computed; a true result ends the batch before the task."""


class AttemptWatch(Protocol):
    """Follows an attempt of an ordinary function that may be abandoned."""

    def begin(self, context: Context) -> None:
        """Take the context before the function is called."""

    def end(self) -> bool:
        """Note that the function has returned; return whether its outcome is wanted."""


_forks: list[None] = []
"""Has one more item in a process that was forked. If a compute function returns there, the process ends: its parent has
the outcome."""
os.register_at_fork(after_in_child=partial(_forks.append, None))


class Executor:
    """The vertices of a partition, and the records of their completed attempts since the last commit.

    Parameters
    ----------
    options : PartitionOptions
    in_worker : bool
        Whether the executor is in a worker process. There it applies the records of its attempts to its own vertices,
        and KeyboardInterrupt fails an attempt as other exceptions do. In the master's process it computes the master's
        vertices, which the master changes, and KeyboardInterrupt ends the batch.
    """

    def __init__(self, options: PartitionOptions, in_worker: bool = True) -> None:
        self.vertices: dict[Id, VertexData] = {}
        self.max_concurrency = options.max_concurrency
        self._options = options
        self._has_vertex_options = options.has_vertex_options
        self._fatal = () if in_worker else (KeyboardInterrupt,)
        self._in_worker = in_worker
        self._staged: dict[Id, Record] = {}
        """Records of the superstep, in a worker."""
        self._kept_values = KeptValues()
        self._is_async = {name: options.is_async(name) for name in options.functions}
        self._make_context: type[Context] = Context
        self._timeouts: set[PostponedTimeout] = set()
        """Those of the running attempts of an ``async`` function."""
        self._step: int | None = None
        """The superstep before which the vertices are; None until the first batch or commit."""

    def emit_by(self, emitter: Emitter) -> None:
        """Send the emissions of attempts."""
        from gpu_pregel.host.agents.observed_context import observed_context

        self._make_context = observed_context(emitter, is_timed=self._options.is_timed)

    def is_async(self, batch: Batch) -> bool:
        """Whether a batch needs an event loop."""
        return self._is_async[batch.function]

    def load(self, vertices: dict[Id, VertexData], step: int | None = None) -> None:
        """Take ownership of the vertices before a superstep, by default that of the first batch."""
        self.vertices, self._step = vertices, step
        self._staged.clear()
        self._kept_values.clear()

    def check_step(self, step: int) -> None:
        """Refuse to compute or commit any superstep but the next one."""
        if self._step is None:
            self._step = step
        if step != self._step:
            raise AgentError(
                f"superstep {step} was submitted to vertices before superstep {self._step}: the run must not continue "
                f"with them; report this"
            )

    def execute(
        self,
        batch: Batch,
        emit: Emit,
        begin: Begin | None = None,
        beat: Callable[[], object] | None = None,
        watch: AttemptWatch | None = None,
        tasks: Iterable[TaskFields] | None = None,
    ) -> None:
        """Compute the tasks of a batch of an ordinary function, or ``tasks`` of it; emit the outcome of each.

        ``beat()`` is called at heartbeats.
        """
        if batch.step != self._step:
            self.check_step(batch.step)
        options, kept_values, make_context = self._options, self._kept_values, self._make_context
        vertices = self._vertices(batch) if batch.guests else self.vertices
        compute, forks = options.functions[batch.function], len(_forks)
        has_vertex_options = self._has_vertex_options
        for index, fields in enumerate(batch.tasks if tasks is None else tasks):
            if begin is not None and begin(index):
                return
            task = _new_task(fields)
            context: Context | None = None
            error: BaseException | None = None
            try:
                context = make_context(vertices[task.id], task, batch, options, kept_values)
                if beat is not None:
                    context.on_heartbeat(beat)
                if watch is not None:
                    watch.begin(context)
                if has_vertex_options:
                    options.check_vertex(task.id, batch.function)
                result = compute(context)
                if result is not None:
                    refuse_result(result)
            except BaseException as raised:
                error = raised
            if len(_forks) > forks:
                os._exit(0)
            if watch is not None and not watch.end():
                return
            if error is not None and issubclass(type(error), self._fatal):
                raise error
            emit(self._outcome(task, context, error))

    async def execute_async(
        self,
        task: Task,
        batch: Batch,
        grace: float | None = None,
        beat: Callable[[], object] | None = None,
    ) -> Outcome:
        """Compute one task of an ``async`` function; abandon it if it still runs ``grace`` seconds after its timeout.

        The timeout counts from the last heartbeat, at which ``beat()`` is called.
        """
        import asyncio

        from gpu_pregel.host.agents.workers.attempt_task import AttemptTask, PostponedTimeout

        vertex = self._vertices(batch)[task.id]
        context = self._make_context(vertex, task, batch, self._options, self._kept_values)
        postponed, options = None, self._options
        if self._has_vertex_options:
            try:
                options.check_vertex(task.id, batch.function)
            except AttemptError as invalid:
                return self._outcome(task, context, invalid)
        if (seconds := options.timeout_of(task.id)) is not None:
            postponed = PostponedTimeout(seconds)
            context.on_heartbeat(postponed.beat)
        if beat is not None:
            context.on_heartbeat(beat)
        call = self._call(self._options.functions[batch.function], context, postponed)
        if postponed is None or seconds is None or grace is None:
            error = await call
        else:
            attempt = AttemptTask(call, asyncio.get_running_loop(), task)
            try:
                left = seconds + grace
                while left > 0 and not attempt.done():
                    await asyncio.wait((attempt,), timeout=left)
                    left = postponed.last + seconds + grace - time.monotonic()
            except asyncio.CancelledError:
                attempt.cancel()
                await asyncio.wait((attempt,))
                raise
            if not attempt.done():
                text = f"took more than {seconds} s, continued after it was cancelled, and was abandoned"
                return self.abandon(task, context, text)
            error = attempt.result()
        late = error is not None and postponed is not None and postponed.limit.expired()
        if late and not str(error):
            error = TimeoutError(f"took more than {seconds} s")
        return self._outcome(task, context, error, late=late)

    def _vertices(self, batch: Batch) -> Mapping[Id, VertexData]:
        """Return the vertices of a batch, and others."""
        if not batch.guests:
            return self.vertices
        from collections import ChainMap

        return ChainMap(batch.guests, self.vertices)

    def abandon(self, task: Task, context: Context | None, text: str) -> Outcome:
        """Return the outcome of an attempt that goes on after its timeout, and refuse what it still does."""
        if context is not None:
            context.close()
        return self._outcome(task, context, TimeoutError(text), late=True)

    def fail(self, task: Task, error: BaseException) -> Outcome:
        """Return the outcome of an attempt that ended without one."""
        return self._outcome(task, None, error)

    async def _call(
        self, compute: Callable[[Context], Any], context: Context, timeout: PostponedTimeout | None
    ) -> BaseException | None:
        """Call a compute function and return the exception that it raises, if any."""
        import asyncio

        forks = len(_forks)
        if timeout is not None:
            self._timeouts.add(timeout)
        try:
            async with _NO_LIMIT if timeout is None else timeout.limit:
                result = await compute(context)
                if asyncio.current_task().cancelling():  # type: ignore[union-attr]
                    await asyncio.sleep(0)  # raises a cancellation that the function has requested and not seen
                if result is not None:
                    refuse_result(result)
        except self._fatal:
            raise
        except asyncio.CancelledError as raised:
            return raised if raised.args else asyncio.CancelledError(CANCELLED).with_traceback(raised.__traceback__)
        except BaseException as raised:
            return raised
        finally:
            if len(_forks) > forks:
                os._exit(0)
            if timeout is not None:
                self._timeouts.discard(timeout)
        return None

    def excuse(self, begun: float) -> None:
        """Let timeouts not count the time since ``begun``, in which an attempt waited for observers."""
        waited = time.monotonic() - begun
        if waited > SHORT:
            for timeout in list(self._timeouts):
                timeout.extend(waited)

    def _outcome(self, task: Task, context: Context | None, error: BaseException | None, late: bool = False) -> Outcome:
        """Return the outcome of an attempt that returned, or raised ``error``."""
        if self._kept_values.staged:  # perhaps by an attempt whose record has been dropped
            self._kept_values.unstage(task.id)
        try:
            if context is not None and (asked := context.asked) is not None:
                if type(asked) is not bytes:
                    raise AgentError(OVERWRITTEN)
                context.close()
                return Outcome(task.id, task.attempt, "interrupted", asked)
        except (AgentError, AttributeError) as overwritten:
            error = overwritten
        if error is None and context is not None:
            try:
                record = context.record()
                check_types(record)
                if self._options.max_record is not None:
                    check_size(record, self._options.max_record)
                if record.mutations:  # copies weights that the function may still hold
                    record = record._replace(mutations=decode(encode(record.mutations)))
                if self._in_worker:
                    self._staged[task.id] = record
                return _new_outcome((task.id, task.attempt, "completed", record))
            except self._fatal:
                raise
            except BaseException as raised:  # of a method of the user's types, for example
                error = raised
        assert error is not None
        if context is not None:
            context.close()
        self._staged.pop(task.id, None)  # of an earlier attempt that was interrupted after it had been recorded
        self._kept_values.unstage(task.id)
        if isinstance(unreadable := getattr(context, "unreadable", None), CodecError):
            return Outcome(task.id, task.attempt, "failed", _unreadable(unreadable))
        return Outcome(task.id, task.attempt, "failed", self._failure(task.id, error, late))

    def _failure(self, vertex: Id, error: BaseException, late: bool) -> Failure:
        """Describe a failure, even if methods of the exception or its type fail."""
        try:
            return self._describe(vertex, error, late)
        except self._fatal:
            raise
        except BaseException as second:
            text = f"<no description: {type(second).__name__}>"
            return Failure("exception", type(error).__qualname__[:_MAX_NAME], text, "", False)

    def _describe(self, vertex: Id, error: BaseException, late: bool) -> Failure:
        kind = "exception"
        if late:
            kind = "timeout"
        elif isinstance(error, CodecError):
            kind = "data"
        elif isinstance(error, RecordTooLargeError) or (
            isinstance(error, MemoryError) and self._options.max_memory is not None
        ):
            kind = "limit"
        is_retryable, not_before = kind != "data" and self._options.retry_of(vertex).matches(error), None
        if isinstance(error, AttemptError):
            is_retryable = error.retryable
            not_before = None if error.retry_after is None else time.time() + error.retry_after
        return Failure(
            kind,
            type(error).__qualname__[:_MAX_NAME],
            text_of(error, self._options.max_record),
            trace_of(error, self._options.max_record),
            is_retryable,
            not_before,
        )

    def commit(self, step: int, change: Change) -> None:
        """Apply the staged records of a superstep, then ``change``; repeating this changes nothing."""
        if step != self._step:
            if self._step is not None and step < self._step:
                return
            self.check_step(step)
        if self._in_worker:
            self._apply_records()
        if self._kept_values.staged:
            self._kept_values.commit(self.vertices)
        if change is not NO_CHANGE:
            self._apply(change)
        self._step = step + 1

    def _apply_records(self) -> None:
        vertices, staged = self.vertices, self._kept_values.staged
        for vertex_id, record in self._staged.items():
            vertex = vertices.get(vertex_id)
            if vertex is None:  # of another partition
                continue
            new, value = record.value, vertex.value
            if staged and vertex_id in staged:
                value = staged[vertex_id].encoded
            elif new is not None:
                value = new if new[0] != DIFFERENCE else changed_value(value, new)
            if value is not vertex.value or record.halted is not vertex.halted:
                vertices[vertex_id] = new_vertex((value, vertex.edges, record.halted))
        self._staged.clear()

    def _apply(self, change: Change) -> None:
        """Apply a change that does not come from records."""
        vertices, values = self.vertices, self._kept_values
        for vertex_id in (*change.remove, *change.set):
            values.forget(vertex_id)
        if self._in_worker:
            for vertex_id in change.halt:
                vertices[vertex_id] = vertices[vertex_id]._replace(halted=True)
            for vertex_id in change.remove:
                vertices.pop(vertex_id, None)
            vertices.update(change.set)


def _unreadable(error: CodecError) -> Failure:
    return Failure(UNREADABLE, type(error).__qualname__, text_of(error), trace_of(error), False)
