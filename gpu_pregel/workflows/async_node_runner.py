"""The compute function of a state graph with coroutine functions."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from gpu_pregel.workflows.function_threads import wait_for_function
from gpu_pregel.workflows.node_context import CURRENT, NodeContext
from gpu_pregel.workflows.node_runner import Call, NodeRunner
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
        return await wait_for_function(partial(function, *arguments))
