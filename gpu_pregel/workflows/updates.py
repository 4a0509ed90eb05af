"""``update_state``: a superstep in which a caller takes the place of a node, and the tasks that wait are dropped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpu_pregel.errors import ArgumentError, NodesFailedError, RunExistsError
from gpu_pregel.host.agents.agent_run import AgentRun
from gpu_pregel.host.agents.codec import decode, encode, id_key
from gpu_pregel.host.agents.recovery import RunChangedError, read_records, read_run
from gpu_pregel.workflows.calls import thread_of
from gpu_pregel.workflows.commands import START
from gpu_pregel.workflows.graph_runs import GraphRuns, configurable_of
from gpu_pregel.workflows.schemas import writes_of
from gpu_pregel.workflows.stored_threads import StoredThread, checkpoint_id
from gpu_pregel.workflows.task_messages import DROP, UPDATE, executed
from gpu_pregel.workflows.tasks import node_of


def update_state(runs: GraphRuns, config: Mapping[str, Any], values: Any, as_node: str | None) -> dict[str, Any]:
    """Update the state of a thread as if ``as_node`` had returned ``values``; return the config of the new state."""
    thread, keys = thread_of(runs, config), runs.graph.keys
    writes = dict(writes_of(values or {}, keys, "the update"))
    for name, value in writes.items():
        encode(value, name=f"the update of {name!r}")
    if runs.graph.check is not None:
        runs.graph.check(writes, False)
    if as_node is not None and as_node != START and as_node not in runs.graph.nodes:
        raise ArgumentError(f"as_node is {as_node!r}, which is no node: {', '.join(map(repr, runs.graph.nodes))}")
    checkpoint = configurable_of(config).get("checkpoint_id")
    while True:
        row = thread.current()
        try:
            if row is None:
                if checkpoint is not None:
                    raise ArgumentError(f"there is no thread {thread.name!r} in {thread.store.name}")
                agents, node = runs.begin_empty(thread.name), START if as_node is None else as_node
            else:
                run, superstep, is_input = (row.id, row.head, False)
                if checkpoint is not None:
                    run, superstep, is_input = thread.find(str(checkpoint))
                node = as_node or (START if is_input else _last_node(thread, run, superstep))
                if checkpoint is not None:
                    row = thread.fork_from(str(checkpoint), None, runs.empty_state())
                elif read_run(thread.store, run).begun:
                    row = thread.fork(row)
                agents = runs.reopen(row, runs.run_options(None, row.head + 1), since=row)
        except (RunChangedError, RunExistsError):  # by another program
            if checkpoint is not None:
                raise thread.continued_error() from None
        else:
            return _commit(thread, agents, writes, node)


def _last_node(thread: StoredThread, run: str, superstep: int) -> str:
    """Return the node that ran in a superstep, if it was a single one; the start if it was the input."""
    records = read_records(thread.store, run, superstep)
    nodes = list(dict.fromkeys(node_of(vertex) for vertex, _ in executed(records)))
    if not nodes and (superstep == -1 or id_key(START) in dict(records)):
        return START
    if len(nodes) == 1:
        return nodes[0]
    raise ArgumentError(f"pass as_node=: {', '.join(map(repr, nodes)) or 'no node'} ran in superstep {superstep}")


def _commit(thread: StoredThread, run: AgentRun, writes: dict[str, Any], as_node: str) -> dict[str, Any]:
    """Run the superstep in which the caller takes the place of a node."""
    with run as agents:
        waiting = [decode(vertex) for vertex in sorted(agents._policy._active)]
        for vertex in waiting:
            if vertex != as_node:
                agents.send(vertex, (DROP,))
        agents.send(as_node, (UPDATE, writes))
        agents.step()
        if agents.status == "failed":
            raise NodesFailedError(agents.result())
        if agents.status == "running":
            agents._master.end("stopped")
        superstep = agents._master.superstep - 1
    return {"configurable": {"thread_id": thread.name, "checkpoint_id": checkpoint_id(agents.run_id, superstep)}}
