"""Asks a human before a tool is called."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpu_pregel.workflows.messages import ToolCall
from gpu_pregel.workflows.tools import Tool

if TYPE_CHECKING:
    from gpu_pregel.workflows.node_context import NodeContext

_FORMS = 'answer True, False, {"arguments": {…}} or a text'


def consent(tool: Tool, call: ToolCall, context: NodeContext) -> ToolCall | str:
    """Return the call to make, or what the model is told instead of a result.

    A call with wrong arguments is not asked about, as it will fail. An answer that cannot be used is asked for again.
    """
    if tool.check(call) is not None or not tool.asks_for_consent(call["arguments"]):
        return call
    question: dict[str, Any] = {"tool": tool.name, "arguments": call["arguments"], "call_id": call["id"]}
    answer = context.interrupt(question)
    while True:
        if answer is True:
            return call
        if answer is False:
            return "A human has refused this call."
        if isinstance(answer, str):
            return f"A human has answered instead of the tool: {answer}"
        problem = _FORMS
        if isinstance(answer, dict) and answer.keys() == {"arguments"} and isinstance(answer["arguments"], dict):
            changed = {**call, "arguments": answer["arguments"]}
            wrong = tool.check(changed)
            if wrong is None:
                return changed
            problem = f"the arguments are wrong: {wrong}"
        answer = context.interrupt({**question, "problem": problem})
