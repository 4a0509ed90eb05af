"""LangGraph (Python, MIT): https://github.com/langchain-ai/langgraph. Used by ``agents`` only."""

from __future__ import annotations

import asyncio
import itertools
import operator
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Annotated, Any, TypedDict

from benchmarks._measure import version_of


class Count(TypedDict):
    """State of the loop."""

    value: int


class FanOut(TypedDict):
    """State of the fan-out: all results in the order of sending."""

    results: Annotated[list[int], operator.add]


class Chat(TypedDict):
    """State of the chat: messages, of which each node's result is appended, and how many were appended."""

    messages: Annotated[list[Any], operator.add]
    count: int


class LangGraph:
    """Graphs of plain functions; each method returns a function that runs a compiled graph once."""

    name = "langgraph"

    @staticmethod
    def why_unavailable() -> str | None:
        """Return a reason if the package is not installed."""
        return None if find_spec("langgraph") else "the package langgraph is not installed"

    @staticmethod
    def version() -> str:
        """Return the version of the package."""
        return version_of("langgraph")

    @staticmethod
    def why_saver_unavailable() -> str | None:
        """Return a reason if the package of the SQLite checkpointer is not installed."""
        found = find_spec("langgraph") and find_spec("langgraph.checkpoint.sqlite")
        return None if found else "the package langgraph-checkpoint-sqlite is not installed"

    @classmethod
    def saved_loop(cls, steps: int, path: str) -> Callable[[], int]:
        """Run the loop with the SQLite checkpointer; each step is saved before the next one."""
        from langgraph.checkpoint.sqlite import SqliteSaver

        builder, threads = cls._build_loop(steps), itertools.count()

        def run() -> int:
            with SqliteSaver.from_conn_string(path) as saver:
                config: Any = {"recursion_limit": steps + 1, "configurable": {"thread_id": str(next(threads))}}
                graph = builder.compile(checkpointer=saver)
                return int(graph.invoke({"value": 0}, config, durability="sync")["value"])

        return run

    @classmethod
    def loop(cls, steps: int) -> Callable[[], int]:
        """One node with a conditional edge to itself; the result is the number of times it ran."""
        graph = cls._build_loop(steps).compile()
        return lambda: int(graph.invoke({"value": 0}, {"recursion_limit": steps + 1})["value"])

    @classmethod
    def async_loop(cls, steps: int) -> Callable[[], int]:
        """Return the same with an ``async`` node, on an event loop."""
        graph = cls._build_loop(steps, is_async=True).compile()

        async def run() -> int:
            return int((await graph.ainvoke({"value": 0}, {"recursion_limit": steps + 1}))["value"])

        return lambda: asyncio.run(run())

    @staticmethod
    def side_by_side(runs: int, seconds: float) -> Callable[[], list[int]]:
        """Run a graph of one ``async`` node that sleeps many times at once, on one event loop."""
        from langgraph.graph import START, StateGraph

        async def sleep(state: Count) -> dict[str, int]:
            await asyncio.sleep(seconds)
            return {"value": state["value"] + 1}

        graph = StateGraph(Count).add_node("sleep", sleep).add_edge(START, "sleep").compile()

        async def run() -> list[int]:
            states = await asyncio.gather(*[graph.ainvoke({"value": run}) for run in range(runs)])
            return [state["value"] for state in states]

        return lambda: asyncio.run(run())

    @staticmethod
    def _build_loop(steps: int, *, is_async: bool = False) -> Any:
        from langgraph.graph import END, START, StateGraph

        def count(state: Count) -> dict[str, int]:
            return {"value": state["value"] + 1}

        async def count_later(state: Count) -> dict[str, int]:
            return count(state)

        def next_node(state: Count) -> Any:
            return "count" if state["value"] < steps else END

        builder = StateGraph(Count)
        builder.add_node("count", count_later if is_async else count)
        builder.add_edge(START, "count")
        builder.add_conditional_edges("count", next_node, ["count", END])
        return builder

    @classmethod
    def chat(cls, history: list[Any], message: Callable[[int], Any], steps: int) -> Callable[[], list[Any]]:
        """Append messages to a history, one a step; the result is the history."""
        graph = cls._build_chat(message, steps).compile()
        given: Any = {"messages": history, "count": 0}
        return lambda: list(graph.invoke(given, {"recursion_limit": steps + 1})["messages"])

    @classmethod
    def saved_chat(
        cls, history: list[Any], message: Callable[[int], Any], steps: int, path: str
    ) -> Callable[[], list[Any]]:
        """Append messages with the SQLite checkpointer; each step is saved before the next one."""
        from langgraph.checkpoint.sqlite import SqliteSaver

        builder, threads = cls._build_chat(message, steps), itertools.count()

        def run() -> list[Any]:
            with SqliteSaver.from_conn_string(path) as saver:
                config: Any = {"recursion_limit": steps + 1, "configurable": {"thread_id": str(next(threads))}}
                given: Any = {"messages": history, "count": 0}
                return list(builder.compile(checkpointer=saver).invoke(given, config, durability="sync")["messages"])

        return run

    @staticmethod
    def _build_chat(message: Callable[[int], Any], steps: int) -> Any:
        from langgraph.graph import END, START, StateGraph

        def answer(state: Chat) -> dict[str, Any]:
            return {"messages": [message(state["count"])], "count": state["count"] + 1}

        def next_node(state: Chat) -> Any:
            return "answer" if state["count"] < steps else END

        builder = StateGraph(Chat)
        builder.add_node("answer", answer)
        builder.add_edge(START, "answer")
        builder.add_conditional_edges("answer", next_node, ["answer", END])
        return builder

    @staticmethod
    def fan_out(count: int, seconds: float = 0.0) -> Callable[[], list[int]]:
        """Send a number to each of ``count`` tasks of one node; the result is the list of their results in order.

        Each task blocks its thread for ``seconds``.
        """
        from langgraph.graph import END, START, StateGraph
        from langgraph.types import Send

        def send(state: FanOut) -> list[Any]:  # noqa: ARG001
            return [Send("work", number) for number in range(count)]

        def work(number: int) -> dict[str, list[int]]:
            if seconds:
                time.sleep(seconds)
            return {"results": [number + 1]}

        builder = StateGraph(FanOut)
        builder.add_node("work", work)
        builder.add_conditional_edges(START, send, ["work"])
        builder.add_edge("work", END)
        graph = builder.compile()
        return lambda: list(graph.invoke({"results": []})["results"])
