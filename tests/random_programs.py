"""Random vertex programs, graphs and options of runs, all from a seed."""

from __future__ import annotations

from typing import Any

import numpy as np

import gpu_pregel as gp
from gpu_pregel.kernels.traverse.rows_cuda import HUB_EDGES

Generator = np.random.Generator

_VALUES = ("int64", "int32", "uint32", "uint16", "int8", "float32", "float64")
_MESSAGES = (None, None, None, "int64", "int32", "uint8", "int16", "bool", "float32", "float64")
_INITIAL = (
    "(ctx.vertex * {a} + {b}) % 50",
    "ctx.out_degree % 7 + ctx.vertex % {a}",
    "(ctx.parameters.step + ctx.in_degree) % 9",
)
_SENT = (
    "({value} + ctx.vertex * {a} + ctx.superstep * ctx.parameters.step + ctx.out_degree) % {m}",
    "({value} * {a} + ctx.in_degree + ctx.superstep) % {m}",
    "{value} % {m}",
)
_APPLIED = (
    "({incoming} * {a} + {value} + ctx.superstep + ctx.num_vertices) % {m}",
    "max({value}, {incoming} % {m})",
    "min({value}, {incoming} % {m})",
    "({incoming} + ctx.vertex + ctx.in_degree) % {m}",
)
_RECEIVES = (None, None, "({value} + ctx.superstep + ctx.vertex + ctx.in_degree) % 3 != 0", "{value} < {b} + 20")
_ACTIVE = (
    '"changed"',
    "lambda old, new, ctx: (new + ctx.superstep + ctx.vertex) % {a} != 0",
    "lambda old, new, ctx: new > {b}",
)
_FIRST = (None, "ctx.vertex % {a} == 0", "ctx.vertex == ctx.parameters.source", "ctx.vertex == ctx.parameters.source")


def _pick(random: Generator, choices: Any) -> Any:
    return choices[int(random.integers(len(choices)))]


def _combiners(kind: np.dtype[Any]) -> list[str]:
    """Return the sources of combiners of messages of a type."""
    if kind.kind == "f":
        return ['"min"', '"max"', '"sum"', '"any"']
    if kind.kind == "b":
        return ['"or"', '"and"', '"any"', "gp.Combiner(lambda a, b: a != b, False)"]
    own = ["gp.Combiner(lambda a, b: a ^ b, 0)", "gp.Combiner(lambda a, b: a if a >= b else b, -1)"]
    return ['"min"', '"max"', '"sum"', '"or"', '"and"', '"any"', *own[: 2 if kind.kind == "i" else 1]]


def source_of(random: Generator) -> str:
    """Return the source of a program."""
    value, message = np.dtype(_pick(random, _VALUES)), _pick(random, _MESSAGES)
    sent = value if message is None else np.dtype(message)
    numbers = {"a": int(random.integers(2, 5)), "b": int(random.integers(0, 9)), "m": int(random.integers(5, 60))}
    read = "value" if value.kind != "f" else "np.int64(value)"
    combine, per_edge = _pick(random, _combiners(sent)), bool(random.integers(2))
    ascending = combine == '"min"' and sent.itemsize >= 4 and random.random() < 0.3
    if combine == '"any"':
        term = "(ctx.superstep * {a} + {b}) % {m}"
    else:
        term = _pick(random, _SENT) if not ascending else "ctx.vertex"
        if per_edge and not ascending:
            term = f"({term} + np.int64(weight)) % {{m}}"
    term = term.format(value=read, **numbers)
    if sent.kind == "b":
        term = f"({term}) % 3 == 0"
    taken = "np.int64(incoming)" if sent.kind in "bf" else "incoming"
    given = {"value": read, "incoming": taken, **numbers}
    rows = {
        "value": f"np.{value.name}",
        "parameters": '{"step": 1, "source": np.int64}',
        "init": f"lambda ctx: {_pick(random, _INITIAL)}",
        "message": f"lambda value, {'weight, ' if per_edge else ''}ctx: {term}",
        "combine": combine,
        "apply": f"lambda value, incoming, ctx: {_pick(random, _APPLIED)}",
        "active": _pick(random, _ACTIVE),
    }
    rows |= {} if message is None else {"message_type": f"np.{sent.name}"}
    rows |= {"ascending": "True"} if ascending else {}
    receives, first = _pick(random, _RECEIVES), _pick(random, _FIRST)
    rows |= {} if receives is None else {"receives": f"lambda value, ctx: {receives}"}
    rows |= {} if first is None else {"initially_active": f"lambda ctx: {first}"}
    if random.random() < 0.1:
        rows["aggregators"] = '{{"total": gp.Aggregator("sum", lambda old, new, ctx: np.int64(new))}}'
        rows["halt"] = "lambda aggregated: aggregated.total % 7 == 3"
    return ",\n".join(f"{name}={text if name in FIXED else text.format(**given)}" for name, text in rows.items())


FIXED = ("value", "parameters", "message", "combine", "message_type", "ascending")


def program_of(source: str) -> gp.VertexProgram:
    """Return the program that a source declares."""
    made: Any = eval(f"gp.VertexProgram({source})", {"gp": gp, "np": np})
    return made  # type: ignore[no-any-return]


def graph_of(random: Generator, dtypes: tuple[str | None, ...] = (None, None, "f4", "f8", "i4")) -> gp.Graph:
    """Return a path, tree, star, grid, ring, random graph, hubs, layers or a path with chords, renumbered or not."""
    n, shape = int(random.integers(2, 60)), int(random.integers(9))
    v = np.arange(1, n)
    if shape == 0:
        src, dst = v - 1, v
    elif shape == 1:
        src, dst = random.integers(0, v), v
    elif shape == 2:
        src, dst = 0 * v, v
    elif shape == 3:
        side = max(2, int(n**0.5))
        src, dst, _ = gp.grid(side, holes=0).to_edgelist()
    elif shape == 4:
        src, dst = np.arange(n), (np.arange(n) + 1) % n
    elif shape == 5:
        src, dst = random.integers(0, n, (2, int(random.integers(0, 4 * n))))
    elif shape == 6:
        # Rows around the length of a piece, one behind the other.
        lengths = HUB_EDGES + random.integers(-1, 3, int(random.integers(1, 4))) * int(random.integers(1, 300))
        ends = 3 + np.cumsum(lengths)
        src = np.concatenate([[0, 1], np.repeat([2, *ends[:-1]], lengths)])
        dst = np.concatenate([[1, 2], 3 + np.arange(int(lengths.sum()))])
    elif shape == 7:
        sizes = random.integers(1, 40, int(random.integers(2, 7)))
        firsts = np.cumsum([0, *sizes])
        pairs = [
            np.indices((j - i, k - j)).reshape(2, -1) + np.array([[i], [j]])
            for i, j, k in zip(firsts, firsts[1:], firsts[2:], strict=False)
        ]
        src, dst = np.concatenate(pairs, axis=1)
    else:
        src, dst = np.append(v - 1, random.integers(0, n, n)), np.append(v, random.integers(0, n, n))
    size = int(max(src.max(initial=0), dst.max(initial=0))) + 1 + int(random.integers(0, 40))
    if random.integers(2):
        order = random.permutation(size)
        src, dst = order[src], order[dst]
    dtype = _pick(random, dtypes)
    weights = None if dtype is None else random.integers(1, 8, len(src)).astype(dtype)
    return gp.Graph.from_edgelist(src, dst, weights, num_vertices=size, directed=bool(random.integers(2)))


def limits_of(random: Generator) -> dict[str, int]:
    """Return values of the constants of ``cuda_state`` that decide what one launch runs."""
    return {
        "_ALONE_EDGES": _pick(random, (0, 8, 40, 150, 512)),
        "_BATCH_EDGES": _pick(random, (1 << 16, 1 << 16, 20, 60, 400)),
        "_WIDE_BATCH": _pick(random, (8, 2)),
        "CHAIN": _pick(random, (1024, 1024, 1, 3)),
    }


def options_of(random: Generator, graph: gp.Graph) -> dict[str, Any]:
    """Return options of ``gp.run``."""
    n = graph.num_vertices
    options: dict[str, Any] = {
        "parameters": {"step": int(random.integers(1, 6)), "source": int(random.integers(n))},
        "max_supersteps": int(random.integers(1, 25)),
        "on_limit": "return",
        "deterministic": False,
        "mode": _pick(random, ("push", "push", "push", "auto")),
        "partitions": _pick(random, (1, 1, 1, 1, 2)) if n > 64 else 1,
    }
    if random.integers(2):
        options["frontier"] = np.unique(random.integers(0, n, int(random.integers(1, 12))))
    return options
