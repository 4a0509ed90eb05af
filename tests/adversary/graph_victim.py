"""A state graph that is killed: ``python -m tests.adversary.graph_victim`` with a JSON object.

Each node appends the key of its task to a log and forces it to disk.
"""

from __future__ import annotations

import dataclasses
import json
import os
import random
import sys
import time
from functools import partial
from typing import Any, Literal

import gpu_pregel as gp
from gpu_pregel import workflows
from gpu_pregel.host.stores.store import Store
from tests.gpu_pregel.workflows.random_graphs import GraphData, NodeData, World, graph_of, own_of, run_node

THREAD = "t"
CONFIG: dict[str, Any] = {"configurable": {"thread_id": THREAD}}
Carry = Literal["shared", "messages"]
_INPUTS = 2
_MOST_SUPERSTEPS = 60


def graph_to_kill(seed: int, carry: Carry) -> GraphData:
    """Return a random graph that neither fails nor has breakpoints; in one of messages, all nodes lead to the end."""
    data = graph_of(random.Random(f"killed {seed}"))
    nodes = tuple(dataclasses.replace(node, fails="") for node in data.nodes)
    data = dataclasses.replace(data, nodes=nodes, before=(), after=())
    if carry == "shared":
        return data
    nodes = tuple(dataclasses.replace(node, sends=(), defer=False) for node in nodes)
    routers = tuple(dataclasses.replace(router, sends=()) for router in data.routers)
    ends = {(node.name, workflows.END) for node in nodes}
    return dataclasses.replace(data, nodes=nodes, routers=routers, edges=tuple(sorted({*data.edges, *ends})))


def app_of(seed: int, carry: Carry, store: Store, log: str | None = None, workers: int = 0) -> workflows.CompiledGraph:
    """Return the graph; its nodes log their keys and take a few milliseconds."""
    data = graph_to_kill(seed, carry)
    graph = own_of(data, World.own())
    for node in data.nodes:
        function = partial(run_and_log, node, log)
        graph.nodes[node.name] = dataclasses.replace(graph.nodes[node.name], function=function, takes_context=True)
    return graph.compile(store=store, workers=workers, max_supersteps=_MOST_SUPERSTEPS, carry=carry)


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
    is_messages = isinstance(app, workflows.MessagePassingGraph)  # whose start takes one input
    while True:
        state = app.get_state(CONFIG)
        if state.metadata is None:  # there is no thread yet
            app.invoke(_input(0), CONFIG)
            continue
        given = 1 if is_messages else sum(one == "input" for one in state.values["log"])
        if state.interrupts:
            app.invoke(workflows.Command(resume={one.id: repr(one.value) for one in state.interrupts}), CONFIG)
        elif state.next:
            app.invoke(None, CONFIG)
        elif given < _INPUTS and not is_messages:
            app.invoke(_input(given), CONFIG)
        else:
            return state.values


def _input(number: int) -> dict[str, Any]:
    return {"log": ["input"], "mixed": number, "steps": 0}


def main(given: dict[str, Any]) -> None:
    """Run the graph to its end."""
    with gp.SQLiteStore(given["store"]) as store:
        run_to_end(app_of(given["seed"], given["carry"], store, given["log"], given["workers"]))


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
