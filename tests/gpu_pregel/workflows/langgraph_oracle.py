"""Runs random graphs on LangGraph and here, native and imported.

python -m tests.gpu_pregel.workflows.langgraph_oracle --count 300
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError

import gpu_pregel as gp
from gpu_pregel import workflows
from gpu_pregel.errors import AgentsFailedError, SuperstepLimitError
from tests.gpu_pregel.workflows.random_graphs import (
    FailureError,
    GraphData,
    World,
    graph_of,
    langgraph_of,
    own_of,
    with_inner,
)

CONFIG: dict[str, Any] = {"configurable": {"thread_id": "t"}}
_MAX_CALLS = 40
_WAYS = ("native", "imported")


@dataclass(frozen=True)
class Outcome:
    """What a call has left: how it ended, what it streamed, the present and the committed state, and the history."""

    ending: str
    values: tuple[Any, ...]
    updates: tuple[str, ...]
    state: Any
    committed: Any
    following: tuple[str, ...] | None
    questions: tuple[str, ...]
    history: tuple[Any, ...] = ()

    def without_streams(self) -> Outcome:
        """Return the outcome without what was streamed."""
        return replace(self, values=(), updates=())

    def differences(self, other: Outcome) -> list[str]:
        """Return the differences from another outcome, as lines."""
        found = []
        for name, mine in vars(self).items():
            theirs = getattr(other, name)
            if isinstance(mine, tuple) and isinstance(theirs, tuple):
                same = next((k for k, (one, two) in enumerate(zip(mine, theirs, strict=False)) if one != two), 0)
                mine, theirs = mine[same:], theirs[same:]
            if mine != theirs:
                found.append(f"{name}: LangGraph {mine!r}, here {theirs!r}")
        return found


class Side:
    """A graph that runs in one library.

    Parameters
    ----------
    data : GraphData
    world : World
    """

    failures: tuple[type[Exception], ...]
    limits: type[Exception]
    options: dict[str, Any] = {}  # noqa: RUF012 - never modified

    def __init__(self, data: GraphData, world: World) -> None:
        self.data, self.world = data, world
        self.app = self.compile()

    def compile(self) -> Any:
        """Return the compiled graph."""
        raise NotImplementedError

    def mend(self) -> None:
        """Build the graph again, with nodes that do not fail."""
        self.world.mended = True
        self.app = self.compile()

    def call(self, given: Any, limit: int = 100) -> Outcome:
        """Stream a call, and return its outcome."""
        values: list[Any] = []
        updates: list[str] = []
        ending = "ended"
        try:
            for mode, item in self.app.stream(
                given, {**CONFIG, "recursion_limit": limit}, stream_mode=["values", "updates"], **self.options
            ):
                if mode == "values":
                    shown = {key: value for key, value in item.items() if key != "__interrupt__"}
                    if not values or values[-1] != shown:
                        values.append(shown)
                elif "__interrupt__" in item:
                    updates.append(_payloads(item["__interrupt__"]))
                else:
                    updates += [repr((name, _sorted(one))) for name, one in item.items() if name != "__metadata__"]
        except self.failures:
            ending = "failed"
        except self.limits:
            ending = "limit"
        return self.outcome(ending, values, updates)

    def outcome(self, ending: str, values: list[Any], updates: list[str]) -> Outcome:
        """Return the outcome of a call that has ended."""
        state = self.app.get_state(CONFIG)
        committed = self.app.get_state(state.config).values
        questions = tuple(sorted(repr(one.value) for one in state.interrupts))
        if ending == "failed":  # LangGraph may have cancelled others, whose questions are then not known
            return Outcome(ending, (), (), None, committed, None, ())
        if ending == "ended" and questions:
            ending = "interrupted"
        history = tuple(map(self._shown, self.app.get_state_history(CONFIG)))
        shown = tuple(values), tuple(sorted(updates)), state.values, committed, state.next
        return Outcome(ending, *shown, questions, history)

    def _shown(self, state: Any) -> tuple[Any, ...]:
        """Return what a snapshot in a history shows; supersteps that only note ends for joins have a number here."""
        step = None if self.data.joins else state.metadata["step"]
        tasks = tuple((task.name, _sorted(task.result), _payloads(task.interrupts)) for task in state.tasks)
        return state.metadata["source"], step, state.values, state.next, tasks

    def answer(self, chosen: list[str], whole: bool) -> Any:
        """Return a command that answers the questions whose payloads are chosen."""
        left, ids = list(chosen), {}
        for one in self.app.get_state(CONFIG).interrupts:
            if repr(one.value) in left:
                left.remove(repr(one.value))
                ids[one.id] = f"answer to {one.value[0]} {one.value[2]}"
        return self.world.library.Command(resume=next(iter(ids.values())) if whole else ids)

    def update(self, values: Any, node: str) -> Outcome:
        """Update the state as a node."""
        self.app.update_state(CONFIG, values, as_node=node)
        return self.outcome("updated", [], [])


class LangGraphSide(Side):
    """A graph that runs in LangGraph."""

    failures = (FailureError,)
    limits = GraphRecursionError
    options = {"durability": "sync"}  # noqa: RUF012 - otherwise, a later superstep may change what is being stored

    def __init__(self, data: GraphData) -> None:
        self._saver = InMemorySaver()
        self._answered_at = ""
        super().__init__(data, World.of_langgraph())

    def compile(self) -> Any:
        """Return the compiled graph."""
        return langgraph_of(self.data, self.world).compile(
            checkpointer=self._saver, interrupt_before=[*self.data.before], interrupt_after=[*self.data.after]
        )

    def answer(self, chosen: list[str], whole: bool) -> Any:
        """Return a command that answers the questions whose payloads are chosen."""
        if whole:
            self._answered_at = self._checkpoint()
        return super().answer(chosen, whole)

    def would_answer(self, outcome: Outcome) -> bool:
        """Whether an answer that was given without id would answer what is asked in the next call, too.

        LangGraph stores such an answer with the checkpoint, and takes it again in each later call, until the superstep
        is committed or another answer without id replaces it.
        """
        is_stored = self._answered_at == self._checkpoint()
        return is_stored and (outcome.ending == "failed" or len(outcome.questions) > 1)

    def finished(self) -> set[str]:
        """Return the nodes of the tasks that have finished in a superstep that is held.

        LangGraph shows the values of an update in place of such a node as a second result of the task.
        """
        return {task.name for task in self.app.get_state(CONFIG).tasks if task.result is not None}

    def _checkpoint(self) -> str:
        return str(self.app.get_state(CONFIG).config["configurable"].get("checkpoint_id"))


class OwnSide(Side):
    """A graph that runs here, built from LangGraph's builder or natively."""

    failures = (AgentsFailedError,)
    limits = SuperstepLimitError

    def __init__(self, data: GraphData, *, imported: bool, **options: Any) -> None:
        self._imported, self._options = imported, options
        self._store = gp.MemoryStore()
        super().__init__(data, World.of_langgraph() if imported else World.own())

    def compile(self) -> Any:
        """Return the compiled graph."""
        if self._imported:
            graph = workflows.from_langgraph(langgraph_of(self.data, self.world))
        else:
            graph = own_of(self.data, self.world)
        return graph.compile(
            store=self._store,
            interrupt_before=self.data.before,
            interrupt_after=self.data.after,
            **self._options,
        )

    def answer(self, chosen: list[str], whole: bool) -> Any:
        """Return a command that answers the questions whose payloads are chosen."""
        self.world.library = workflows if not self._imported else self.world.library
        given = super().answer(chosen, whole)
        return workflows.Command(resume=given.resume)


def _payloads(questions: Any) -> str:
    return repr(sorted((one.value for one in questions), key=repr))  # graphs that are nodes ask at any time


def _sorted(update: Any) -> Any:
    return sorted(update.items()) if isinstance(update, dict) else update


def disagreements(
    seed: int, ways: Sequence[str] = _WAYS, *, defers: bool = False, calls: int = _MAX_CALLS, **options: Any
) -> list[str]:
    """Run a random graph and random calls on all sides, up to ``calls``; return what differs.

    With ``defers``, the graph has deferred nodes and sends inputs.
    """
    chance = random.Random(seed)
    data = graph_of(chance, defers=defers)
    if seed % 4 == 3:
        data = with_inner(data, chance, defers=defers)
    with _quiet():
        ours = [OwnSide(data, imported=way == "imported", **options) for way in ways]
        made = islice(_calls(chance, data, LangGraphSide(data), *ours), calls)
        for number, (name, expected, *others) in enumerate(made):
            for way, outcome in zip(ways, others, strict=True):
                if found := expected.differences(outcome):
                    return [f"seed {seed}, {way}, call {number}, {name}", *found]
    return []


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep LangGraph from logging tasks that it cancels."""
    logger = logging.getLogger("concurrent.futures")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        logger.setLevel(level)


def _calls(chance: random.Random, data: GraphData, first: LangGraphSide, *others: Side) -> Iterator[tuple[Any, ...]]:
    """Call all sides, of which the first is LangGraph's, at random; yield each call with the outcomes."""
    starts, sides = chance.randint(1, 3), (first, *others)
    outcome: Outcome | None = None
    may_be_whole = chance.random() < 0.5
    updatable = _updatable(data)
    for _ in range(_MAX_CALLS):
        is_limited = data.may_be_limited and chance.random() < 0.15
        going = None if outcome is None or first.would_answer(outcome) else outcome
        # After a failure, siblings may have been cancelled there, and not here.
        can_update = outcome is not None and outcome.ending != "failed"
        places = [name for name in updatable if can_update and name not in first.finished()]
        if places and chance.random() < 0.12:
            node, update = chance.choice(places), {"log": ["update"], "mixed": chance.randrange(90)}
            name, found = f"update_state({update}, {node!r})", [side.update(update, node) for side in sides]
        elif going is not None and going.ending == "failed":
            for side in sides:
                side.mend()
            name, found = "mended, then invoke(None)", [side.call(None) for side in sides]
        elif going is not None and going.questions and (may_be_whole or chance.random() < 0.85):
            whole = len(going.questions) == 1 and may_be_whole
            chosen = chance.sample(going.questions, k=chance.randint(1, len(going.questions)))
            name, found = f"answer {chosen}", [side.call(side.answer(chosen, whole)) for side in sides]
        elif going is not None and going.following and chance.random() < 0.85:
            name, found = "invoke(None)", [side.call(None) for side in sides]
        elif starts:
            starts -= 1
            given = {"log": ["input"], "mixed": chance.randrange(50), "steps": 0}
            name, found = f"invoke({given})", _invoke(sides, given, chance.randint(2, 7) if is_limited else 0)
        else:
            return
        outcome = found[0]
        yield name, *found
        if name.startswith("answer") and outcome.ending == "failed":
            return  # LangGraph may have cancelled a task before it had stored the answer, which is then lost


def _updatable(data: GraphData) -> list[str]:
    """Return the nodes as which the state may be updated.

    In LangGraph, a deferred node, or one whose join is complete, that was about to run still is, even if the caller
    takes its place.
    """
    joined = {target for _, target in data.joins}
    return [node.name for node in data.nodes if node.name not in joined and not node.defer]


def _invoke(sides: Sequence[Side], given: Any, limit: int) -> list[Outcome]:
    """Give an input, perhaps with a limit of supersteps, and then go on without."""
    if not limit:
        return [side.call(given) for side in sides]
    # LangGraph counts the input as a superstep, and stops one later than the limit.
    found = [side.call(given, limit - bool(number)) for number, side in enumerate(sides)]
    if any(one.ending == "limit" for one in found[1:]):
        return [side.call(None).without_streams() for side in sides]
    return found


def main(arguments: list[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.gpu_pregel.workflows.langgraph_oracle", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--first", type=int, default=0, help="the first seed (default 0)")
    parser.add_argument("--count", type=int, default=300, help="number of graphs (default 300)")
    parser.add_argument("--workers", type=int, default=0, help="worker processes (default 0)")
    parser.add_argument("--threads", type=int, help="threads, if there are no workers")
    parser.add_argument("--defers", action="store_true", help="only graphs with deferred nodes that send inputs")
    parser.add_argument("--way", choices=_WAYS, help="only graphs built in this way (default both)")
    options = parser.parse_args(arguments)
    different, ways = 0, _WAYS if options.way is None else (options.way,)
    for seed in range(options.first, options.first + options.count):
        found = disagreements(seed, ways, defers=options.defers, workers=options.workers, threads=options.threads)
        if found:
            different += 1
            print("\n  ".join(found), flush=True)
    print(f"{options.count} graphs, {different} with differences")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
