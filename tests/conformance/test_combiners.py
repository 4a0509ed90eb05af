"""Combination of messages on every device, by combiner, dtype and direction, compared with NumPy's ``ufunc.at``."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from tests.devices import EXHAUSTIVE, LONG, is_slow, spread
from tests.programs import Supersteps

N = 1_300
SMALL = [np.bool_, np.int8, np.int16, np.uint8, np.uint16]
LARGE = [np.uint32, np.int64, np.uint64, np.float64]

# NumPy's equivalents of all combiners, and the user-defined combiners.
UFUNCS = {
    "min": np.fmin,
    "max": np.fmax,
    "sum": np.add,
    "or": np.bitwise_or,
    "and": np.bitwise_and,
    "xor": np.bitwise_xor,
    "negated sum": np.add,
}
USERS = {
    "xor": gp.Combiner(lambda a, b: a ^ b, 0),
    # Combines 1 and -1 to -0.
    "negated sum": gp.Combiner(lambda a, b: -(-a - b), 0),
}
# All combiners for 4-byte numbers; for every other dtype one that compares and one that adds; and combiners without an
# atomic instruction or with wider inbox elements.
ROWS: list[tuple[str, Any]] = [
    *((combine, np.int32) for combine in ("min", "max", "sum", "or", "and", "xor")),
    *((combine, np.float32) for combine in ("min", "max", "sum", "negated sum")),
    *((combine, dtype) for dtype in SMALL for combine in ("min", "sum")),
    *((combine, dtype) for dtype in LARGE for combine in ("min", "sum")),
    *[("and", np.bool_), ("xor", np.uint8)],
]
ONE_WAY = {
    "push": [("sum", np.bool_), ("sum", np.int16), ("sum", np.uint8), ("min", np.uint16), ("sum", np.float64)]
    + [("min", dtype) for dtype in (np.uint32, np.int64, np.uint64)],
    "pull": [("min", np.bool_), ("min", np.int8), ("min", np.int16), ("min", np.uint8), ("min", np.float64)]
    + [("sum", dtype) for dtype in (np.uint32, np.int64, np.uint64)],
}
"""Pairs tried in one direction on the emulator, where compiling takes long; each dtype and combiner has both."""
COMPILED = [
    *((combine, np.int32) for combine in ("min", "sum", "or", "and", "xor")),
    *((combine, np.float32) for combine in ("max", "sum", "negated sum")),
    *[("min", np.bool_), ("sum", np.int8), ("min", np.int16), ("sum", np.uint16)],
    *[("sum", np.uint64), ("min", np.float64)],
]
"""Pairs tried by default where compiling takes long; other tests have minima of uint32 and int64 on every device."""
CHAINS = [
    *[("min", np.int32), ("and", np.int32), ("xor", np.int32), ("sum", np.float32), ("negated sum", np.float32)],
    *[("sum", np.int8), ("min", np.bool_), ("sum", np.uint64), ("min", np.float64)],
]
"""Pairs whose small frontiers are pushed in chains: each combiner, and an element of each size."""
ON_CPU = [
    *((combine, np.int32) for combine in ("or", "xor")),
    *((combine, np.float32) for combine in ("min", "max", "sum", "negated sum")),
    *[("and", np.bool_), ("sum", np.int8)],
]
"""Pairs tried by default on the CPU, whose kernels are the same for all dtypes: each combiner once."""


def cases(rows: list[tuple[Any, ...]], name: Any) -> list[Any]:
    """Return the cases of a table; on the device "python", a sum of signed integers that wraps around is an error."""

    def wraps(device: str, combine: str, dtype: Any = np.int8, *_: Any) -> bool:
        return device == "python" and combine == "sum" and np.dtype(dtype).kind == "i"

    def marks(device: str, combine: str, dtype: Any = None, *_: Any) -> Any:
        quick = ON_CPU if device == "cpu" else COMPILED if is_slow(device) else ROWS
        return () if dtype is None or (combine, dtype) in quick else (LONG,)

    return [
        pytest.param(*case.values, id=case.id, marks=(*case.marks, *marks(*case.values)))
        for case in spread(rows, name)
        if not wraps(*case.values)
    ]


def names(combine: str, dtype: Any) -> str:
    return f"{combine} of {dtype.__name__}"


CASES = pytest.mark.parametrize(("device", "combine", "dtype"), cases(ROWS, names))


@cache
def program(combine: Any, dtype: Any) -> gp.VertexProgram:
    """Return a program in which each vertex takes its combined message as its value."""
    return gp.VertexProgram(
        value=dtype,
        init=lambda ctx: 0,
        message=lambda value, ctx: value,
        combine=USERS.get(combine, combine),
        apply=lambda value, incoming, ctx: incoming,
        active=lambda old, new, ctx: True,
    )


@cache
def graph(with_hub: bool) -> gp.Graph:
    """Return a graph with rows of up to a dozen edges and, in both directions, a hub that is cut into pieces."""
    random = np.random.default_rng(5)
    src, dst = random.integers(0, N, (2, 2 * N))
    if with_hub:
        leaves, hub = np.arange(1, N), np.zeros(N - 1, np.int64)
        src, dst = np.concatenate([src, hub, leaves]), np.concatenate([dst, leaves, hub])
    # The last vertices have no in-edges.
    kept = dst < N - 9
    return gp.Graph.from_edgelist(src[kept], dst[kept], num_vertices=N, directed=True)


def modes(device: str, combine: str, dtype: Any) -> list[str]:
    """Return the directions to try."""
    only = [mode for mode, rows in ONE_WAY.items() if (combine, dtype) in rows]
    return only if only and is_slow(device) else ["push", "pull"]


def identity_of(combine: str, dtype: Any) -> Any:
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return kind.type(combine in ("min", "and"))
    if combine in ("min", "max"):
        limits: Any = np.finfo(kind) if kind.kind == "f" else np.iinfo(kind)
        infinite = np.inf if kind.kind == "f" else limits.max
        return kind.type(infinite if combine == "min" else -infinite if kind.kind == "f" else limits.min)
    return ~kind.type(0) if combine == "and" else kind.type(0)


def numpy_results(edges: gp.Graph, combine: str, values: Any, active: Any) -> tuple[Any, Any]:
    """Compute with NumPy the values after one superstep, and which vertices got a message."""
    src, dst, _ = edges.to_edgelist()
    inbox = np.full(N, identity_of(combine, values.dtype))
    sent = active[src]
    with np.errstate(over="ignore", invalid="ignore"):
        UFUNCS[combine].at(inbox, dst[sent], values[src[sent]])
    received = np.isin(np.arange(N), dst[sent])
    return np.where(received, inbox, values), received


def supersteps(edges: gp.Graph, combine: str, dtype: Any, device: str) -> Supersteps:
    chains = EXHAUSTIVE or (combine, dtype) in CHAINS or not is_slow(device)
    return Supersteps(edges, program(combine, dtype), device, chains=chains)


def device_results(device: str, edges: gp.Graph, combine: str, values: Any, active: Any, mode: str) -> tuple[Any, Any]:
    """Compute the same on a device."""
    (found,), changed = supersteps(edges, combine, values.dtype.type, device).run([values], active, mode)
    return found, changed


def sample(combine: str, dtype: Any, random: Any) -> Any:
    """Return mostly distinct values from the whole range of the dtype; positive floats for sums."""
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return random.integers(0, 2, N).astype(bool)
    if kind.kind != "f":
        limits = np.iinfo(kind)
        return random.integers(limits.min, limits.max, N, kind, endpoint=True)
    if combine == "negated sum":
        return random.integers(-3, 4, N).astype(kind)
    return random.random(N).astype(kind) + kind.type(1) if combine == "sum" else random.normal(0, 1e6, N).astype(kind)


def extremes(combine: str, dtype: Any) -> list[Any]:
    kind = np.dtype(dtype)
    if kind.kind == "b":
        return [False, True]
    if kind.kind == "f":
        limits: Any = np.finfo(kind)
        if "sum" in combine:
            # The order of addition does not matter for these. A GPU's atomic addition treats subnormal numbers as 0.
            return [limits.tiny, limits.max, -0.0, np.inf]
        least = [limits.tiny, limits.smallest_subnormal, -limits.tiny, -limits.smallest_subnormal, -0.0]
        return [*least, limits.max, limits.min, np.inf, -np.inf]
    limits = np.iinfo(kind)
    return [limits.min, limits.max, 0, 1, limits.max - 1, (-1 if limits.min else limits.max // 2)]


@CASES
def test_messages_are_combined_as_by_numpy(device: str, combine: str, dtype: Any) -> None:
    random = np.random.default_rng(11)
    is_rounded = np.dtype(dtype).kind == "f" and combine == "sum"
    # Sums of floats are short, so that their order matters little. A hub requires one more kernel to be compiled.
    edges = graph(with_hub=not is_rounded and (dtype in (np.int32, np.float32) or not is_slow(device)))
    values = sample(combine, dtype, random)
    for active in (np.ones(N, bool), random.random(N) < 0.3, np.arange(N) == 0, np.zeros(N, bool)):
        expected, got = numpy_results(edges, combine, values, active)
        for mode in modes(device, combine, dtype):
            found, applied = device_results(device, edges, combine, values, active, mode)
            assert np.array_equal(applied, got)
            if is_rounded:
                np.testing.assert_allclose(found, expected, rtol=1e-6)
            else:
                # -0 and 0 are equal messages.
                assert np.array_equal(found, expected)
                assert (found + found.dtype.type(0)).tobytes() == (expected + found.dtype.type(0)).tobytes()


@CASES
def test_extreme_messages(device: str, combine: str, dtype: Any) -> None:
    random = np.random.default_rng(13)
    edges = graph(with_hub=dtype in (np.int32, np.float32) or not is_slow(device))
    values = random.choice(np.array(extremes(combine, dtype), dtype), N)
    expected, got = numpy_results(edges, combine, values, np.ones(N, bool))
    for mode in modes(device, combine, dtype):
        found, applied = device_results(device, edges, combine, values, np.ones(N, bool), mode)
        assert np.array_equal(applied, got)
        assert np.array_equal(found, expected)


@pytest.mark.parametrize(
    ("device", "combine", "dtype"),
    cases([row for row in ROWS if np.dtype(row[1]).kind == "f"], names),
)
def test_nan_messages_affect_only_sums(device: str, combine: str, dtype: Any) -> None:
    random = np.random.default_rng(17)
    edges, everyone = graph(with_hub=False), np.ones(N, bool)
    values = sample(combine, dtype, random)
    values[random.random(N) < 0.1] = np.nan
    expected, got = numpy_results(edges, combine, values, everyone)
    for mode in modes(device, combine, dtype):
        found, applied = device_results(device, edges, combine, values, everyone, mode)
        assert np.array_equal(applied, got)
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("device", "combine", "dtype", "parts"),
    cases(
        [
            ("sum", np.int8, (100, 100, 56)),
            ("sum", np.uint16, (40_000, 20_000, 5_536)),
            ("sum", np.int32, (2**31 - 1, 2**31 - 1, 2)),
            ("xor", np.int32, (1, 2, 3)),
            ("negated sum", np.float32, (1, 2, -3)),
        ],
        lambda combine, dtype, _: names(combine, dtype),
    ),
)
@pytest.mark.parametrize("first, second", [("push", "push"), ("pull", "push"), ("push", "pull")])
def test_a_combination_equal_to_the_identity_is_a_message_and_leaves_none_behind(
    device: str, combine: str, dtype: Any, parts: tuple[int, ...], first: Any, second: Any
) -> None:
    star = gp.Graph.from_edgelist([0, 1, 2, 3], [4, 4, 4, 4], directed=True)
    steps = supersteps(star, combine, dtype, device)
    (values,), active = steps.run([np.array([*parts, 5, 9], dtype)], np.arange(5) < 3, first)
    assert values[4] == 0
    assert active.tolist() == [False] * 4 + [True]
    (values,), active = steps.run([values], np.arange(5) == 3, second)
    assert values[4] == 5
    assert active.tolist() == [False] * 4 + [True]


TUPLES = (np.int8, np.float64, np.bool_, np.uint16)


def add_by_field(rows: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    return tuple(np.array(column).sum(dtype=type(column[0])) for column in zip(*rows, strict=True))


@pytest.mark.parametrize(
    ("device", "combine"),
    cases([("min",), ("sum",)], str),
)
def test_tuples_compare_lexicographically_and_are_added_by_field(device: str, combine: Any) -> None:
    random = np.random.default_rng(19)
    edges = graph(with_hub=combine != "sum")
    # First fields are often equal, so that later fields decide.
    fields: list[Any] = [random.integers(0, 3, N).astype(np.int8), random.integers(-2, 3, N) / 4]
    fields += [random.random(N) < 0.5, random.integers(0, 2**16, N).astype(np.uint16)]
    src, dst, _ = edges.to_edgelist()
    expected = [field.copy() for field in fields]
    rows = list(zip(*(field[src] for field in fields), strict=True))
    for v in np.unique(dst):
        sent = [rows[e] for e in np.flatnonzero(dst == v)]
        best = min(sent) if combine == "min" else add_by_field(sent)
        for field, part in zip(expected, best, strict=True):
            field[v] = part
    pairs = gp.VertexProgram(
        value=TUPLES,
        init=lambda ctx: (0, 0.0, False, 0),
        message=lambda value, ctx: value,
        combine=combine,
        apply=lambda value, incoming, ctx: incoming,
    )
    found = [field.astype(dtype) for field, dtype in zip(fields, TUPLES, strict=True)]
    found, _ = Supersteps(edges, pairs, device).run(found, np.full(N, True), "pull")
    for field, wanted in zip(found, expected, strict=True):
        assert field.tobytes() == wanted.astype(field.dtype).tobytes()
