"""Random vertex programs with several numbers of partitions, and runs that stop after a random superstep and resume.

Results are equal to the bit, except that sums of floats with another number of partitions may differ in rounding.
"""

from __future__ import annotations

import random
import warnings
from typing import Any, NamedTuple

import numpy as np

import gpu_pregel as gp
from gpu_pregel.errors import CheckpointError
from tests.random_programs import graph_of, options_of, program_of, source_of

_PARTITIONS = (1, 2, 5)
_LEAST_VERTICES = 64 * _PARTITIONS[-1]
_FIGURES = ("active_vertices", "active_edges", "messages", "applied")
_ROUNDING = {"float64": 1e-12, "float32": 1e-4}
Array = np.ndarray[Any, Any]


class Outcome(NamedTuple):
    """What a run returns."""

    values: Array
    aggregated: tuple[Any, ...]
    end: tuple[Any, ...]


def try_partitions(chance: random.Random) -> list[str]:
    """Run a random program in several ways; return how results differ."""
    generator = np.random.default_rng(chance.getrandbits(64))
    rounds = chance.random() < 0.35
    source = _rounding_source(chance) if rounds else source_of(generator)
    graph, device = _graph(generator, chance), "emulated" if chance.random() < 0.06 else "cpu"
    options = {**options_of(generator, graph), "device": device}
    if rounds:  # Pushed sums of floats are not the same in every run.
        options |= {"deterministic": True, "mode": chance.choice(("auto", "pull"))}
    program = program_of(source)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            found = differences(chance, graph, program, options, rounds=rounds)
        except Exception as error:
            found = [f"it raises {error!r}"]
    shown = {key: value for key, value in options.items() if key != "frontier"}
    return [f"on {graph} with {shown}: {problem}\n{source}" for problem in found]


def differences(
    chance: random.Random, graph: gp.Graph, program: gp.VertexProgram, options: dict[str, Any], *, rounds: bool
) -> list[str]:
    """Run a program in several ways; return how results differ. ``rounds``: whether values are sums of floats."""
    found, problems = {}, []
    for count in _PARTITIONS:
        found[count] = _run(graph, program, {**options, "partitions": count})
        if problem := _compare(found[count], found[1], rounds=rounds):
            problems.append(f"{count} partitions: {problem}")
    count, other = chance.sample(_PARTITIONS, 2)
    supersteps = found[count].end[1]
    if supersteps < 2:
        return problems
    store, limit = gp.MemoryStore(), chance.randrange(1, supersteps)
    saving = {**options, "partitions": count, "checkpoint": gp.Checkpoint(store, every=chance.randint(1, 4))}
    _run(graph, program, {**saving, "max_supersteps": limit})
    depends = rounds or (program.combine == "sum" and _message_type(program).kind == "f")
    if depends or chance.random() < 0.5:
        try:
            _run(graph, program, {**saving, "partitions": other, "resume": True, "max_supersteps": limit})
            problems += [f"{other} partitions resume a run of {count} whose sums depend on them"] if depends else []
        except CheckpointError as error:
            problems += [] if depends else [f"{other} partitions do not resume a run of {count}: {error!r}"]
    count = count if depends else other
    resumed = _run(graph, program, {**saving, "partitions": count, "resume": True})
    if problem := _compare(resumed, found[count], rounds=False):
        problems.append(f"{count} partitions, resumed after superstep {limit - 1}: {problem}")
    return problems


def _run(graph: gp.Graph, program: gp.VertexProgram, options: dict[str, Any]) -> Outcome:
    found = gp.run(graph, program, **options)
    rows = [tuple(row[name] for name in _FIGURES) for row in found.trace]
    return Outcome(np.array(found), tuple(found.aggregated), (found.status, found.supersteps, rows))


def _compare(one: Outcome, other: Outcome, *, rounds: bool) -> str:
    """Return how two outcomes differ, if they do."""
    if one.end != other.end:
        return f"the run ends with {one.end}, not {other.end}"
    if not rounds:
        same = one.values.tobytes() == other.values.tobytes() and one.aggregated == other.aggregated
    else:
        limit = _ROUNDING[one.values.dtype.name]
        pairs = ((one.values, other.values), (np.array(one.aggregated), np.array(other.aggregated)))
        same = all(np.allclose(a, b, rtol=limit, atol=0) for a, b in pairs)
    if same:
        return ""
    wrong = np.flatnonzero(one.values != other.values)[:3]
    values = f"the values at {wrong} are {one.values[wrong]}, not {other.values[wrong]}"
    return f"{values}, and aggregates {one.aggregated}, not {other.aggregated}"


def _message_type(program: gp.VertexProgram) -> Any:
    return np.dtype(program.value if program.message_type is None else program.message_type)


def _graph(generator: np.random.Generator, chance: random.Random) -> gp.Graph:
    """Return several random graphs as one of enough vertices for partitions, with some edges between them."""
    dtype = chance.choice((None, None, "f4", "f8", "i4"))
    parts, n = [], 0
    while n < _LEAST_VERTICES:
        part = graph_of(generator, (dtype,))
        src, dst, weights = part.to_edgelist()
        parts.append((src.astype(np.int64) + n, dst.astype(np.int64) + n, weights))
        n += part.num_vertices
    ends = generator.integers(0, n, (2, int(generator.integers(0, n))))
    columns = [np.concatenate([*(part[k] for part in parts), ends[k]]) for k in range(2)]
    weights = None
    if dtype is not None:
        added = generator.integers(1, 8, ends.shape[1]).astype(dtype)
        weights = np.concatenate([*(part[2] for part in parts), added])
    src, dst = generator.permutation(n)[columns]
    return gp.Graph.from_edgelist(src, dst, weights, num_vertices=n, directed=chance.random() < 0.5)


def _rounding_source(chance: random.Random) -> str:
    """Return a program whose values are sums of positive floats, so that rounding changes their last digits only."""
    dtype, weight, a = chance.choice(("float64", "float64", "float32")), chance.random() < 0.5, chance.randint(2, 6)
    rows = {
        "value": f"np.{dtype}",
        "parameters": '{"step": 1, "source": np.int64}',
        "init": f"lambda ctx: (ctx.vertex % {a} + ctx.parameters.step) / 3",
        "message": f"lambda value, {'weight, ' if weight else ''}ctx: value * 0.3{' * weight' if weight else ''}",
        "combine": '"sum"',
        "apply": f"lambda value, incoming, ctx: value * 0.7 + (incoming + ctx.superstep) / ({a} + ctx.in_degree)",
        "active": chance.choice(('"always"', f"lambda old, new, ctx: (ctx.superstep + ctx.vertex) % {a} != 0")),
    }
    if chance.random() < 0.5:
        rows["receives"] = f"lambda value, ctx: (ctx.superstep + ctx.vertex) % {a} != 1"
    if chance.random() < 0.5:
        rows["aggregators"] = '{"total": gp.Aggregator("sum", lambda old, new, ctx: new / 3, np.float64)}'
    return ",\n".join(f"{name}={text}" for name, text in rows.items())
