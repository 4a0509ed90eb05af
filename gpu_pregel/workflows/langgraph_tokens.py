"""Tokens of LangChain's models that nodes of LangGraph call, as what these nodes emit.

This module imports LangChain; it is imported by nodes of ``from_langgraph`` whose tokens somebody streams.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any
from uuid import UUID

from langchain_core.callbacks import BaseCallbackHandler
from langgraph.constants import TAG_NOSTREAM


class TokenHandler(BaseCallbackHandler):
    """Emits what chat models stream, as the chunks of messages that LangGraph yields.

    Models stream, even if they are invoked, because this handler has the methods ``tap_output_iter`` and
    ``tap_output_aiter``. Those with LangGraph's tag "nostream" are left out.

    Parameters
    ----------
    emit : callable
        Called with each chunk.
    """

    run_inline = True
    """Call the handler where the model is called, so that chunks stay in order."""

    def __init__(self, emit: Callable[[Any], object]) -> None:
        self._emit = emit
        self._silent: set[UUID] = set()

    def on_chat_model_start(
        self,
        serialized: dict[str, Any],  # noqa: ARG002
        messages: Sequence[Any],  # noqa: ARG002
        *,
        run_id: UUID,
        tags: list[str] | None = None,
        **_: Any,
    ) -> None:
        """Note whether a call is to be left out."""
        if TAG_NOSTREAM in (tags or ()):
            self._silent.add(run_id)

    def on_llm_new_token(self, token: Any, *, chunk: Any = None, run_id: UUID, **_: Any) -> None:
        """Emit a chunk, or the text of a model that has no messages."""
        if run_id not in self._silent:
            self._emit(getattr(chunk, "message", token))

    def tap_output_iter(self, run_id: UUID, output: Iterator[Any]) -> Iterator[Any]:  # noqa: ARG002
        """Return the output unchanged."""
        return output

    def tap_output_aiter(self, run_id: UUID, output: AsyncIterator[Any]) -> AsyncIterator[Any]:  # noqa: ARG002
        """Return the output unchanged."""
        return output
