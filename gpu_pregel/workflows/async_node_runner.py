"""The compute function of a state graph with coroutine functions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from functools import cache, partial
from typing import TYPE_CHECKING, Any

from gpu_pregel.workflows.node_context import CURRENT, NodeContext
from gpu_pregel.workflows.node_runner import THREADS, Call, NodeRunner
from gpu_pregel.workflows.task_messages import ParentCommand

if TYPE_CHECKING:
    from gpu_pregel.host.agents.context import Context


class AsyncNodeRunner(NodeRunner):
    """Computes the tasks of a graph some of whose functions are coroutine functions; the others run on threads."""

    async def __call__(self, context: Context) -> None:  # type: ignore[override]
        """Compute a task."""
        calls = self._calls(context)
        token = CURRENT.set(NodeContext(context, self._config, self._store, self._modes))
        try:
            call = next(calls)
            while True:
                try:
                    result = await self._call(call)
                except Exception as error:
                    call = calls.throw(error)
                else:
                    call = calls.send(result)
        except StopIteration:
            return
        except ParentCommand as left:
            self._leave(context, left.command)
        finally:
            CURRENT.reset(token)

    @staticmethod
    async def _call(call: Call) -> Any:
        function, arguments, is_async = call
        if is_async:
            return await function(*arguments)
        run = partial(copy_context().run, _call_on_thread, function, arguments)
        return await asyncio.get_running_loop().run_in_executor(threads(), run)


def _call_on_thread(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Any:
    try:
        return function(*arguments)
    except StopIteration as error:  # which no future can have: its task would wait forever
        raise RuntimeError(f"StopIteration: {error}") from error


@cache
def threads() -> ThreadPoolExecutor:
    """Return the threads of this process for ordinary functions beside coroutine functions."""
    return ThreadPoolExecutor(THREADS, "node")
