"""Small programs for tests of worker processes, defined inside functions so that they are pickled by value, and
functions that observe processes.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import gpu_pregel.agents as agents
from gpu_pregel.agents import AgentResult, Vertex
from gpu_pregel.host.agents.codec import encode
from gpu_pregel.host.agents.options import make_options
from gpu_pregel.host.agents.partition_options import PartitionOptions


def final_bytes(result: AgentResult) -> bytes:
    """Return the encoded result of a run, in the order of ids."""
    left = [
        (vertex.id, vertex.value, [tuple(edge) for edge in vertex.edges], vertex.halted)
        for vertex in sorted(result.vertices.values(), key=lambda vertex: encode(vertex.id))
    ]
    return encode((left, result.superstep, result.status, result.aggregates))


def pagerank(n: int = 200, steps: int = 12) -> dict[str, Any]:
    """PageRank in plain Python, with an aggregate of the rank of dangling vertices."""

    def compute(ctx: Any) -> None:
        if ctx.superstep == 0:
            ctx.value = 1.0 / ctx.num_vertices
        else:
            stuck = ctx.aggregated("stuck") or 0.0
            ctx.value = 0.15 / ctx.num_vertices + 0.85 * (sum(ctx.messages) + stuck / ctx.num_vertices)
        if ctx.superstep == steps:
            ctx.vote_to_halt()
        elif ctx.neighbors:
            ctx.send_to_neighbors(ctx.value / len(ctx.neighbors))
        else:
            ctx.aggregate("stuck", ctx.value)

    vertices = [Vertex(k, 0.0, [(k * j + j) % n for j in range(1, 1 + k % 5)]) for k in range(n)]
    return {"vertices": vertices, "compute": compute, "aggregators": {"stuck": "sum"}}


def tokens(n: int = 20, rounds: int = 40) -> dict[str, Any]:
    """Tokens that follow the random numbers of vertices, which count them."""

    def compute(ctx: Any) -> None:
        if ctx.superstep == 0 and ctx.vertex_id % 3 == 0:
            ctx.send(ctx.vertex_id, {"left": rounds, "path": []})
        for token in ctx.messages:
            ctx.value = ctx.value + 1
            if token["left"]:
                target = ctx.random.choice(ctx.neighbors)
                ctx.send(target, {"left": token["left"] - 1, "path": [*token["path"], ctx.vertex_id]})
        ctx.vote_to_halt()

    return {"vertices": [Vertex(k, 0, [(k + 1) % n, (k * 7 + 3) % n]) for k in range(n)], "compute": compute}


def growth(steps: int = 6) -> dict[str, Any]:
    """A tree that grows, loses leaves and rewires edges."""

    def compute(ctx: Any) -> None:
        path = ctx.vertex_id
        if ctx.superstep < steps:
            if len(path) == ctx.superstep + 1:
                for k in range(2):
                    ctx.add_vertex((*path, k), ctx.superstep, [agents.Edge(path, 0.5)])
                    ctx.add_edge(path, (*path, k), len(path))
            if len(path) > 2 and sum(path) % 3 == 0 and len(path) < ctx.superstep:
                ctx.remove_edge(path[:-1], path)
                ctx.remove_vertex(path)
        else:
            ctx.vote_to_halt()
        ctx.value = (ctx.value, len(ctx.edges))

    return {"vertices": [Vertex((0,), "root")], "compute": compute, "on_missing": "drop"}


def counting(supersteps: int, seconds: float = 0.0) -> Any:
    """Each vertex counts its supersteps and sends a message to the next one, after ``seconds``."""

    def compute(ctx: Any) -> None:
        import time

        time.sleep(seconds)
        ctx.value = (ctx.value or 0) + 1 + sum(ctx.messages)
        if ctx.superstep < supersteps:
            ctx.send((ctx.vertex_id + 1) % ctx.num_vertices, 1)
        else:
            ctx.vote_to_halt()

    return compute


def running(run: agents.AgentRun) -> list[int]:
    """Return the process ids of the workers of a run."""
    return [process.pid for process in run._policy._transport._processes]  # type: ignore[attr-defined]


def is_alive(pid: int) -> bool:
    """Whether a process exists and is not a zombie."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


_OTHERS = (b"bin/postgres", b"multiprocessing.resource_tracker")


def children() -> list[int]:
    """Return child processes, zombies included, without the server of other tests and Python's own."""
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        started = [int(pid) for pid in file.read().split()]
    commands = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in started}
    return [pid for pid, command in commands.items() if not any(name in command for name in _OTHERS)]


def wait_for(condition: Any, seconds: float = 200.0) -> None:
    """Wait until a condition is true, and fail if it is not in time; machines may be slow and busy."""
    until = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < until
        time.sleep(0.01)


def partition_options(compute: Any, **changes: Any) -> PartitionOptions:
    """Return the options of a partition that computes its vertices by ``compute``."""
    return make_options("run", compute, changes).for_partitions("one", 0)
