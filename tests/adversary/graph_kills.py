"""State graphs whose process is killed and started again until they have ended: ``python -m tests.adversary.graph_kills``
with a JSON object is that process.

Each node appends the key of its task to a log and forces it to disk. Once the record of a task is in the store, its key must
not be logged again; the last state must be that of an undisturbed run.
"""

from __future__ import annotations

import dataclasses
import json
import os
import random
import signal
import subprocess
import sys
import time
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import gpu_pregel as gp
from gpu_pregel import workflows
from gpu_pregel.errors import ArgumentError, SuperstepLimitError
from gpu_pregel.host.agents.codec import encode, id_key
from gpu_pregel.host.stores.store import Store
from tests.adversary.evidence import Findings
from tests.crashes import recorded
from tests.random_graphs import GraphData, NodeData, World, graph_of, own_of, run_node

ROOT = Path(__file__).parents[2]
THREAD = "t"
CONFIG: dict[str, Any] = {"configurable": {"thread_id": THREAD}}
_INPUTS = 2
_MOST_SUPERSTEPS = 60
_SECONDS = 60.0
"""Seconds after which a process counts as stuck."""


def graph_to_kill(seed: int) -> GraphData:
    """Return a random graph that ends, and neither fails nor has breakpoints."""
    while True:
        data = graph_of(random.Random(f"killed {seed}"))
        nodes = tuple(dataclasses.replace(node, fails="") for node in data.nodes)
        data = dataclasses.replace(data, nodes=nodes, before=(), after=())
        try:
            if run_to_end(app_of(data, gp.MemoryStore(), None))["steps"] > 4:
                return data
        except SuperstepLimitError:
            pass
        seed += 1_000_000


def app_of(data: GraphData, store: Store, log: str | None, workers: int = 0) -> workflows.CompiledGraph:
    """Return the graph; its nodes log their keys and take a few milliseconds."""
    graph = own_of(data, World.own())
    for node in data.nodes:
        function = partial(run_and_log, node, log)
        graph.nodes[node.name] = dataclasses.replace(graph.nodes[node.name], function=function, takes_context=True)
    return graph.compile(store=store, workers=workers, max_supersteps=_MOST_SUPERSTEPS)


def run_and_log(node: NodeData, log: str | None, state: Any, context: workflows.NodeContext) -> Any:
    """Compute a node."""
    if log is not None:
        time.sleep(context.random.random() * 0.003)
        file = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(file, f"{context.key} {context.superstep} {node.name}\n".encode())
        os.fsync(file)
        os.close(file)
        time.sleep(context.random.random() * 0.003)
    return run_node(node, World.own(), state)


def run_to_end(app: workflows.CompiledGraph) -> dict[str, Any]:
    """Give the inputs that are left, and answer all questions; return the last state."""
    while True:
        try:
            state = app.get_state(CONFIG)
        except ArgumentError:
            app.invoke(_input(0), CONFIG)
            continue
        given = sum(one == "input" for one in state.values["log"])
        if state.interrupts:
            app.invoke(workflows.Command(resume={one.id: repr(one.value) for one in state.interrupts}), CONFIG)
        elif state.next:
            app.invoke(None, CONFIG)
        elif given < _INPUTS:
            app.invoke(_input(given), CONFIG)
        else:
            return state.values


def _input(number: int) -> dict[str, Any]:
    return {"log": ["input"], "mixed": number, "steps": 0}


class GraphTrial:
    """A graph that is killed.

    Parameters
    ----------
    seed : int
    folder : Path
        Has the store and the log.
    """

    def __init__(self, seed: int, folder: Path) -> None:
        self._seed, self._chance = seed, random.Random(seed)
        self._path, self._log = folder / "runs.db", folder / "log"
        self.found, self.kills = Findings(), 0
        self._known: list[tuple[int, set[str]]] = []
        """The number of lines of the log at each kill, and the keys that were on record."""

    def run(self, most: int) -> None:
        """Kill the process at most ``most`` times, let the run end, and check it."""
        workers = self._chance.choice([0, 0, 2])
        while self._start(workers, may_kill=self.kills < most):
            self._known.append((len(self._lines()), self._keys_on_record()))
        self._check()

    def _start(self, workers: int, *, may_kill: bool) -> bool:
        """Run a process until it ends or is killed; return whether it was killed."""
        given = json.dumps({"seed": self._seed, "store": str(self._path), "log": str(self._log), "workers": workers})
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.adversary.graph_kills", given],
            cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        try:
            if may_kill:
                self._wait_for_lines(process)
                process.kill()
            _, errors = process.communicate(timeout=_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            _, errors = process.communicate()
            self.found.errors.append(f"the process is stuck: {errors[-2000:]}")
            return False
        if process.returncode == -signal.SIGKILL:
            self.kills += 1
            return True
        if process.returncode:
            self.found.errors.append(f"exit status {process.returncode}: {errors[-2000:]}")
        return False

    def _wait_for_lines(self, process: subprocess.Popen[str]) -> None:
        """Wait until the process has logged a few lines, or ended, and a moment longer."""
        wanted = len(self._lines()) + self._chance.choice([0, 1, 1, 2, 3, 5, 8])
        deadline = time.monotonic() + _SECONDS
        while process.poll() is None and len(self._lines()) < wanted and time.monotonic() < deadline:
            time.sleep(0.001)
        longest = 0.4 if wanted == len(self._lines()) else 0.012  # while the process starts, or between two lines
        time.sleep(self._chance.random() * longest)

    def _lines(self) -> list[str]:
        return self._log.read_text().splitlines() if self._log.exists() else []

    def _keys_on_record(self) -> set[str]:
        """Return the keys of the tasks whose records are in the store."""
        if not self._path.exists():
            return set()
        with gp.SQLiteStore(self._path) as store:
            if all(row.id != THREAD for row in store.runs()):
                return set()
            branch = store.run(THREAD).branch
            places = recorded(store, THREAD)
        return {sha256(encode((THREAD, branch, step, id_key(task)))).hexdigest() for step, task in places}

    def _check(self) -> None:
        """Check that no task that was on record has run again, and the last state."""
        lines = self._lines()
        for start, keys in self._known:
            self.found.twice += [line for line in lines[start:] if line.partition(" ")[0] in keys]
        if self.found.errors:
            return
        expected = run_to_end(app_of(graph_to_kill(self._seed), gp.MemoryStore(), None))
        with gp.SQLiteStore(self._path) as store:
            values = app_of(graph_to_kill(self._seed), store, None).get_state(CONFIG).values
        if values != expected:
            self.found.errors.append(f"the last state is {values}, not {expected}")


def main(given: dict[str, Any]) -> None:
    """Run the graph to its end."""
    with gp.SQLiteStore(given["store"]) as store:
        run_to_end(app_of(graph_to_kill(given["seed"]), store, given["log"], given["workers"]))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
