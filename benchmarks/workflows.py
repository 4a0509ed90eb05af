"""State graphs beside LangGraph: a chain, fan-out with a join, ``Send`` to many, in memory and on SQLite, and blocking
nodes.

Both run the same functions on the same state, in turn; a trial is the mean of several calls. On SQLite each call
continues with a new thread, and both force their commits to disk as they do by default.
"""

from __future__ import annotations

import argparse
import operator
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypedDict

import gpu_pregel as gp
from benchmarks._measure import (
    Summary,
    format_ratio,
    format_seconds,
    in_turn,
    machine,
    table,
    timed,
    version_of,
    write_json,
)
from gpu_pregel import workflows

HELP = "state graphs beside LangGraph"
_BLOCKING, _PAUSE = 10, 0.3
"""The number of nodes that sleep side by side, and for how many seconds."""


class State(TypedDict):
    """The state of all graphs."""

    x: int
    found: Annotated[list[int], operator.add]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the subcommand's options."""
    parser.add_argument("--trials", type=int, default=15, help="trials per figure (default: 15)")
    parser.add_argument("--calls", type=int, default=50, help="calls of a small graph per trial (default: 50)")
    parser.add_argument("--send", type=int, default=1000, help="inputs sent to one node (default: 1000)")


def run(arguments: argparse.Namespace) -> int:
    """Measure, print the table, write the report; return 1 if a figure misses what is asked or results differ."""
    import langgraph.graph
    import langgraph.types

    ours, theirs = (workflows, workflows.Send), (langgraph.graph, langgraph.types.Send)
    calls, report, rows, holds = arguments.calls, {}, [], True
    for name, build, count, asked in (
        ("chain of three", _chain, calls, 0.2),
        ("fan-out to five, join", _fan_out, calls, 0.2),
        (f"Send to {arguments.send:,}", partial(_send, count=arguments.send), 1, 0.1),
    ):
        graphs = {"ours": build(*ours), "theirs": build(*theirs)}
        for where, most, invoke in (("memory", asked, _in_memory), ("SQLite", 0.5, _on_sqlite)):
            found = _compare(graphs, count, arguments.trials, invoke)
            ratio = Summary.of([mine / other for mine, other in zip(found["ours"], found["theirs"], strict=True)])
            times = {side: Summary.of(trials) for side, trials in found.items()}
            is_met = ratio.median <= most
            holds = holds and is_met
            shown = [format_seconds(times[side].median) for side in ("ours", "theirs")]
            rows.append(
                [f"{name}, {where}", *shown, format_ratio(ratio.median), f"{100 * ratio.spread:.0f}%", f"{most:g}"]
            )
            report[f"{name}, {where}"] = {
                "ours": found["ours"],
                "theirs": found["theirs"],
                "ratio": ratio.median,
                "asked": most,
                "holds": is_met,
            }
    blocking = _blocking()
    rows.append([f"{_BLOCKING} nodes that sleep {_PAUSE} s", format_seconds(blocking), "", "", "", ""])
    report["blocking"] = {"ours": blocking, "nodes": _BLOCKING, "seconds": _PAUSE}
    print(table(["", "ours", "LangGraph", "ratio", "spread", "asked"], rows))
    versions = {"langgraph": version_of("langgraph"), "checkpointer": version_of("langgraph-checkpoint-sqlite")}
    write_json(
        arguments.output,
        {"benchmark": "workflows", "machine": machine() | versions, "trials": arguments.trials, "figures": report},
    )
    return 0 if holds else 1


def _chain(side: Any, _: Any) -> Any:
    graph = side.StateGraph(State)
    for name in "abc":
        graph.add_node(name, lambda state: {"x": state["x"] + 1})
    for source, target in ((side.START, "a"), ("a", "b"), ("b", "c"), ("c", side.END)):
        graph.add_edge(source, target)
    return graph


def _fan_out(side: Any, _: Any) -> Any:
    graph = side.StateGraph(State)
    graph.add_node("split", lambda _: {"x": 1})
    graph.add_edge(side.START, "split")
    for name in "abcde":
        graph.add_node(name, lambda _: {"found": [1]})
        graph.add_edge("split", name)
    graph.add_node("join", lambda _: {"x": 2})
    graph.add_edge(list("abcde"), "join")
    graph.add_edge("join", side.END)
    return graph


def _send(side: Any, send: Any, *, count: int) -> Any:
    graph = side.StateGraph(State)
    graph.add_node("work", lambda state: {"found": [state["k"]]})
    graph.add_node("split", lambda _: {"x": 1})
    graph.add_edge(side.START, "split")
    graph.add_conditional_edges("split", lambda _: [send("work", {"k": k}) for k in range(count)], ["work"])
    graph.add_edge("work", side.END)
    return graph


Invoke = Callable[[str, Any, Path], Callable[[int], Any]]


def _in_memory(_: str, graph: Any, __: Path) -> Callable[[int], Any]:
    """Return a function that calls a graph."""
    app = graph.compile()
    return lambda _: app.invoke({"x": 0, "found": []})


def _on_sqlite(side: str, graph: Any, folder: Path) -> Callable[[int], Any]:
    """Return a function that calls a graph on another thread of a store each time."""
    if side == "ours":
        app = graph.compile(store=gp.SQLiteStore(folder / "ours.db"))
    else:
        import sqlite3

        from langgraph.checkpoint.sqlite import SqliteSaver

        app = graph.compile(checkpointer=SqliteSaver(sqlite3.connect(folder / "theirs.db", check_same_thread=False)))
    return lambda number: app.invoke({"x": 0, "found": []}, {"configurable": {"thread_id": str(number)}})


def _compare(graphs: dict[str, Any], calls: int, trials: int, invoke: Invoke) -> dict[str, list[float]]:
    """Return the seconds per call of each trial of both."""
    times: dict[str, list[float]] = {side: [] for side in graphs}
    with tempfile.TemporaryDirectory() as folder:
        call = {side: invoke(side, graph, Path(folder)) for side, graph in graphs.items()}
        results = [call[side](0) for side in graphs]
        if results[0] != results[1]:
            raise AssertionError(f"the results differ: {results[0]!r:.200} and {results[1]!r:.200}")
        number = [0]

        def trial(side: str) -> None:
            def several() -> None:
                for _ in range(calls):
                    number[0] += 1
                    call[side](number[0])

            times[side].append(timed(several)[1] / calls)

        in_turn(list(graphs), trials + 1, trial)
    return {side: trials[1:] for side, trials in times.items()}


def _blocking() -> float:
    """Return how long nodes that sleep take side by side."""
    graph = workflows.StateGraph(State)
    for number in range(_BLOCKING):
        graph.add_node(f"sleep{number}", lambda _: time.sleep(_PAUSE))
        graph.add_edge(workflows.START, f"sleep{number}")
    app = graph.compile()
    return timed(app.invoke, {"x": 0})[1]
