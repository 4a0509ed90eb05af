"""Agent vertices and runs side by side, compared with LangGraph: on an event loop, and in busy and idle workers."""

from __future__ import annotations

import argparse
import asyncio
import time

import gpu_pregel as gp
from benchmarks._figures import Figure, Measure, checked_measure, expect, run_trials
from benchmarks._measure import timed
from benchmarks.peers.langgraph import LangGraph
from gpu_pregel.host.agents.codec import id_key, place_of_key

_RUNS, _WORKERS = 40, 4
_TRIALS = 3
"""Trials of measures that sleep, which differ little."""


def measure_side_by_side(
    arguments: argparse.Namespace, peer: type[LangGraph] | None, errors: list[str]
) -> list[Figure]:
    """Measure seconds of many runs at once on one event loop, of one vertex that sleeps."""
    sleep: float = arguments.seconds

    async def compute(ctx: gp.agents.Context) -> None:
        await asyncio.sleep(sleep)
        ctx.value += 1
        ctx.vote_to_halt()

    async def runs() -> list[int]:
        results = await asyncio.gather(
            *[gp.agents.arun([gp.agents.Vertex("sleeps", run)], compute) for run in range(_RUNS)]
        )
        return [result.values["sleeps"] for result in results]

    title = f"{_RUNS} runs of {sleep:g} s on one event loop"
    expected = list(range(1, _RUNS + 1))
    measures = {"ours": checked_measure(lambda: asyncio.run(runs()), expected, 1)}
    if peer is not None:
        measures["theirs"] = checked_measure(peer.side_by_side(_RUNS, sleep), expected, 1)
    trials = run_trials(title, measures, _TRIALS, errors)
    return [Figure.of(title, "s", 1.05 * sleep, "ours", trials["ours"], trials.get("theirs"))]


def measure_async_loop(arguments: argparse.Namespace, peer: type[LangGraph] | None, errors: list[str]) -> list[Figure]:
    """Measure seconds per superstep of the loop with an ``async`` function, on an event loop."""
    steps: int = arguments.steps

    async def compute(ctx: gp.agents.Context) -> None:
        ctx.value += 1
        if ctx.value == steps:
            ctx.vote_to_halt()

    async def run() -> int:
        vertices = [gp.agents.Vertex("count", 0)]
        result = await gp.agents.arun(vertices, compute, max_supersteps=steps + 1)
        return int(result.values["count"])

    title = f"async loop of a vertex, {steps:,} supersteps"
    measures = {"ours": checked_measure(lambda: asyncio.run(run()), steps, steps)}
    if peer is not None:
        measures["theirs"] = checked_measure(peer.async_loop(steps), steps, steps)
    trials = run_trials(title, measures, arguments.trials, errors)
    return [Figure.of(title, "s", None, "ratio", trials["ours"], trials.get("theirs"))]


def measure_one_busy_worker(
    arguments: argparse.Namespace, peer: type[LangGraph] | None, errors: list[str]
) -> list[Figure]:
    """Measure seconds of as many blocking vertices as workers, all placed on the first worker."""
    sleep: float = arguments.seconds

    def compute(ctx: gp.agents.Context) -> None:
        if ctx.value is None:
            time.sleep(sleep)
            ctx.value = 0
        ctx.value += 1
        ctx.vote_to_halt()

    ids = [vertex for vertex in range(99) if place_of_key(id_key(vertex), _WORKERS) == 0][:_WORKERS]

    def ours() -> float:
        with gp.agents.start([gp.agents.Vertex(one) for one in ids], compute, workers=_WORKERS) as agents:
            seconds = timed(agents.step)[1]
            expect(agents.result().values, dict.fromkeys(ids, 1))
        return seconds

    title = f"{_WORKERS} vertices of {sleep:g} s, placed on one of {_WORKERS} workers"
    measures: dict[str, Measure] = {"ours": ours}
    if peer is not None:
        expected = list(range(1, _WORKERS + 1))
        measures["theirs"] = checked_measure(peer.fan_out(_WORKERS, sleep), expected, 1)
    trials = run_trials(title, measures, _TRIALS, errors)
    return [Figure.of(title, "s", 1.1 * sleep, "ours", trials["ours"], trials.get("theirs"))]
