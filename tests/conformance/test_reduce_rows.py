"""``reduce_rows`` on every device, compared with NumPy, and operators that return nothing."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, EmulationError, ProgramError
from gpu_pregel.host.devices import get_device
from tests.devices import EMULATED, EXHAUSTIVE, GPUS, LONG, examples, is_emulated, on, threads_of
from tests.graphs import arrays, edge_lists

DEVICES = pytest.mark.parametrize("device", [on(name) for name in ("cpu", "emulated", "emulated:1", *GPUS, "python")])
HUB = 1_100
"""More neighbours than a row of a warp has: such rows are read in pieces."""


def with_hubs(*, directed: bool, weight: Any = None) -> gp.Graph:
    """Return a graph with two hubs, one of several pieces, and vertices without out-edges."""
    n = 2 * HUB + 117
    src = np.concatenate([np.zeros(2 * HUB, int), np.full(HUB, 7), np.arange(HUB)])
    dst = np.concatenate([np.arange(1, 2 * HUB + 1), np.arange(9, HUB + 9), np.arange(HUB)[::-1]])
    weights = None if weight is None else (np.arange(len(src)) % 13 + 1).astype(weight)
    return gp.Graph.from_edgelist(src, dst, weights, num_vertices=n, directed=directed)


def rows_of(graph: gp.Graph, *, transpose: bool) -> tuple[Any, Any, Any]:
    """Return the vertex, the neighbour and the weight of every stored edge."""
    indptr, indices, weights = graph.csc if transpose else graph.to_csr()
    owners = np.repeat(np.arange(graph.num_vertices), np.diff(indptr))
    return owners, indices.astype(np.int64), np.ones(len(indices)) if weights is None else np.asarray(weights)


def combined(ufunc: Any, start: Any, graph: gp.Graph, messages: Any, *, transpose: bool) -> Any:
    """Return what NumPy combines the messages of each row to."""
    owners = rows_of(graph, transpose=transpose)[0]
    found = np.full(graph.num_vertices, start, np.asarray(messages).dtype)
    ufunc.at(found, owners, messages)
    return found


def mixed(v: Any, u: Any, weight: Any, keys: Any, found: Any) -> Any:
    return keys[u] * weight + v


def keep(v: Any, result: Any, keys: Any, found: Any) -> Any:
    found[v] = result
    return v % 3 == 0


def count(v: Any, result: Any, keys: Any, found: Any) -> Any:
    found[v] = result
    return 2 if v % 3 == 0 else 1


SUMS = {"sum": (np.add, 0), "min": (np.minimum, 2**63 - 1), "max": (np.maximum, -(2**63))}


@pytest.mark.parametrize(
    ("directed", "weight", "combine"),
    [
        pytest.param(True, np.int64, "sum", id="directed-sum"),
        pytest.param(False, None, "min", id="undirected-min"),
        pytest.param(True, np.int64, "max", id="directed-max", marks=LONG),
    ],
)
@DEVICES
def test_rows_are_combined_as_by_numpy(device: str, directed: bool, weight: Any, combine: Any) -> None:
    graph = with_hubs(directed=directed, weight=weight)
    n = graph.num_vertices
    numbers = np.arange(n) * 7 % 101 - 50
    every = gp.Frontier(graph, device=device)
    words = gp.process_vertices(lambda v: v % 5 < 2, every, returns="frontier")
    queue = gp.process_vertices(lambda v: v % 5 < 2, every.chosen(np.arange(n)), returns="frontier")
    forms = {"all": every, "words": words, "queue": queue, "hubs": every.chosen([0, 7]), "none": every.chosen([])}
    for transpose in (False, True) if directed else (False,):
        owners, others, weights = rows_of(graph, transpose=transpose)
        expected = combined(
            *SUMS[combine], graph, (numbers[others] * weights + owners).astype(np.int64), transpose=transpose
        )
        for name, frontier in forms.items():
            keys, found = frontier.upload(numbers), frontier.full(77, np.int64)
            way: dict[str, Any] = {"transpose": transpose}
            # Without weights, a weight is a float32.
            message = mixed if weight else lambda v, u, weight, keys, found: keys[u] * int(weight) + v
            after = gp.reduce_rows(message, combine, frontier, [keys, found], finish=keep, **way)
            wanted = np.where(frontier.flags(), expected, 77)
            assert frontier.download(found).tolist() == wanted.tolist(), (name, transpose)
            assert after.vertices().tolist() == [v for v in frontier.vertices().tolist() if v % 3 == 0]
            assert len(after) == len(after.vertices())
            degrees = graph.out_degrees if device in ("cpu", "python") else np.bincount(owners, minlength=n)
            assert after._active.edges == degrees[after.flags()].sum()
            total = gp.reduce_rows(message, combine, frontier, [keys, found], finish=count, returns="sum", **way)
            assert total == sum(2 if v % 3 == 0 else 1 for v in frontier.vertices().tolist())
            # The next frontier serves every operator: a queue, its hubs and its bitmap agree.
            seen = frontier.full(0, np.int64)
            gp.process_edges(lambda u, v, weight, seen: gp.atomics.add(seen, u, 1) < 0, after, [seen], mode="push")
            assert frontier.download(seen).tolist() == np.where(after.flags(), graph.out_degrees, 0).tolist()


@DEVICES
def test_random_graphs_and_types(device: str) -> None:
    kinds, combiners = (np.int8, np.uint32, np.int64, np.float32, np.float64), ("min", "max", "sum")
    few = ((np.int8, "sum"), (np.uint32, "max"), (np.int64, "min"), (np.float32, "max"), (np.float64, "sum"))
    chosen = st.sampled_from([*product(kinds, combiners)] if EXHAUSTIVE else few)

    @examples(device, graph=edge_lists(), kind=chosen)
    def check(graph: Any, kind: tuple[Any, Any]) -> None:
        (n, edges), (dtype, combine) = graph, kind
        built = gp.Graph.from_edgelist(*arrays(edges), num_vertices=n, directed=True)
        values = (np.arange(n) * 5 % 7).astype(dtype)
        frontier = gp.Frontier(built, device=device, **threads_of(device, 2))
        keys, found = frontier.upload(values), frontier.full(1, dtype)

        def own(v: Any, u: Any, weight: Any, keys: Any, found: Any) -> Any:
            return keys[u]

        gp.reduce_rows(own, combine, frontier, [keys, found], finish=keep)
        info: Any = np.finfo(dtype) if np.dtype(dtype).kind == "f" else np.iinfo(dtype)
        low, high = (-np.inf, np.inf) if np.dtype(dtype).kind == "f" else (info.min, info.max)
        start = {"min": high, "max": low, "sum": 0}[combine]
        messages = values[built.indices]
        expected = combined(SUMS[combine][0], start, built, messages, transpose=False)
        if device != "python" or combine != "sum" or dtype is not np.int8:
            assert frontier.download(found).tolist() == expected.tolist()

    check()


@DEVICES
def test_bits_flags_tuples_and_own_combiners(device: str) -> None:
    graph = with_hubs(directed=True)
    n = graph.num_vertices
    owners, others, _ = rows_of(graph, transpose=False)
    frontier = gp.Frontier(graph, device=device)
    keys, found = frontier.upload(np.arange(n) % 11), frontier.full(0, np.int64)
    numbers = np.arange(n) % 11

    def results(message: Any, combine: Any, finish: Any = keep) -> list[Any]:
        gp.reduce_rows(message, combine, frontier, [keys, found], finish=finish, returns="frontier")
        result: list[Any] = frontier.download(found).tolist()
        return result

    bits = combined(np.bitwise_or, 0, graph, 1 << numbers[others], transpose=False)
    assert results(lambda v, u, weight, keys, found: 1 << keys[u], "or") == bits.tolist()
    every = combined(np.logical_and, True, graph, numbers[others] < 10, transpose=False)
    assert results(lambda v, u, weight, keys, found: keys[u] < 10, "and") == every.tolist()
    # The pair with the smallest key, and of those the one with the largest number.
    pairs = np.full((n, 2), 2**63 - 1)
    for v in range(n):
        row = others[owners == v]
        if len(row):
            pairs[v] = min((numbers[u], -u) for u in row.tolist())

    def store_second(v: Any, pair: Any, keys: Any, found: Any) -> bool:
        found[v] = pair[1]
        return False

    assert results(lambda v, u, weight, keys, found: (keys[u], -u), "min", store_second) == pairs[:, 1].tolist()
    product = gp.Combiner(lambda a, b: a * b % 1009, 1)
    expected = [1] * n
    for v, u in zip(owners.tolist(), others.tolist(), strict=True):
        expected[v] = expected[v] * (int(numbers[u]) + 1) % 1009
    assert results(lambda v, u, weight, keys, found: keys[u] + 1, product) == expected


@DEVICES
def test_one_message_will_do(device: str) -> None:
    graph = with_hubs(directed=True)
    frontier = gp.Frontier(graph, device=device)
    keys, found = frontier.full(0, np.int64), frontier.full(-5, np.int64)
    gp.reduce_rows(lambda v, u, weight, keys, found: v * 2, "any", frontier, [keys, found], finish=keep)
    nothing = 2**63 - 1
    expected = np.where(np.diff(graph.indptr) > 0, np.arange(graph.num_vertices) * 2, nothing)
    assert frontier.download(found).tolist() == expected.tolist()


@DEVICES
def test_rows_end_at_the_message_that_no_other_changes(device: str) -> None:
    graph = with_hubs(directed=True)
    frontier = gp.Frontier(graph, device=device)
    calls = frontier.full(0, np.int64)

    def is_there(v: Any, u: Any, weight: Any, calls: Any) -> bool:
        gp.atomics.add(calls, v, 1)
        return True

    found = gp.reduce_rows(is_there, "or", frontier, [calls], finish=lambda v, result, calls: result)
    degrees = np.diff(graph.indptr)
    assert found.vertices().tolist() == np.flatnonzero(degrees).tolist()
    read = frontier.download(calls)
    assert (read[degrees > 0] >= 1).all()
    # A GPU reads a row in steps of a warp, and the pieces of a hub apart.
    pieces = -(-degrees // 1024)
    assert (read <= (np.minimum(degrees, 1) if device in ("cpu", "python") else 32 * pieces)).all()


@DEVICES
def test_sums_of_floats_are_the_same_to_the_bit(device: str) -> None:
    graph = with_hubs(directed=False)
    n = graph.num_vertices
    values = np.random.default_rng(3).random(n) * 10.0 ** np.random.default_rng(4).integers(-9, 9, n)

    def sums(start: Any, **options: Any) -> Any:
        frontier = gp.Frontier(graph, start, device=device, **options)
        # A queue that was filled by many warps.
        frontier = gp.process_edges(lambda u, v, weight: True, frontier, mode="push")
        keys, found = frontier.upload(values), frontier.full(0, np.float64)
        gp.reduce_rows(key_of, "sum", frontier, [keys, found], finish=keep)
        kept = np.array(frontier.download(found)).tobytes()
        return kept, gp.reduce_rows(key_of, "sum", frontier, [keys, found], finish=total_of, returns="sum")

    def key_of(v: Any, u: Any, weight: Any, keys: Any, found: Any) -> Any:
        return keys[u]

    def total_of(v: Any, result: Any, keys: Any, found: Any) -> Any:
        found[v] = result
        return result

    first = sums([0, 7], **threads_of(device, 1))
    assert sums([7, 0], **threads_of(device, 2)) == first
    if is_emulated(device):
        device = "emulated:2"
        assert sums([0, 7]) == first


@pytest.mark.parametrize("device", [on("emulated"), *(on(name) for name in GPUS)])
def test_nothing_is_read_back_where_nothing_is_returned(device: str) -> None:
    frontier = gp.Frontier(with_hubs(directed=True), device=device)
    keys, found = frontier.full(2, np.int64), frontier.full(0, np.int64)

    def add(v: Any, keys: Any, found: Any) -> None:
        found[v] += keys[v]

    def send(u: Any, v: Any, weight: Any, keys: Any, found: Any) -> None:
        gp.atomics.add(found, v, keys[u])

    def store(v: Any, result: Any, keys: Any, found: Any) -> None:
        found[v] = result

    def work() -> None:
        gp.process_vertices(add, frontier, [keys, found], returns=None)
        for mode in ("push", "pull"):
            gp.process_edges(send, frontier, [keys, found], returns=None, mode=mode)
        gp.reduce_rows(
            lambda v, u, weight, keys, found: keys[u], "sum", frontier, [keys, found], finish=store, returns=None
        )

    work()
    memory: Any = getattr(get_device(device), "memory", None)
    before = None if memory is None else memory.readbacks
    work()
    assert memory is None or memory.readbacks == before
    assert frontier.download(found).tolist() == (2 * np.diff(frontier.graph.indptr)).tolist()


@DEVICES
def test_a_graph_without_vertices(device: str) -> None:
    frontier = gp.Frontier(gp.Graph.from_edgelist([], [], num_vertices=0), device=device)

    def own(v: Any, u: Any, weight: Any) -> Any:
        return u

    def second(v: Any, result: Any) -> Any:
        return result

    assert gp.reduce_rows(own, "sum", frontier, finish=second, returns="sum") == 0
    assert len(gp.reduce_rows(own, "sum", frontier, finish=second)) == 0


@DEVICES
def test_operators_return_nothing(device: str) -> None:
    graph = with_hubs(directed=True)
    frontier = gp.Frontier(graph, device=device)
    sent = frontier.full(0, np.int64)

    def add(u: Any, v: Any, weight: Any, sent: Any) -> None:
        gp.atomics.add(sent, v, 1)

    nothing = [gp.process_edges(add, frontier, [sent], returns=None, mode=mode) for mode in ("push", "pull")]
    assert frontier.download(sent).tolist() == (2 * graph.in_degrees).tolist()

    def clear(v: Any, sent: Any) -> None:
        sent[v] = 0

    nothing.append(gp.process_vertices(clear, frontier, [sent], returns=None))
    assert nothing == [None] * 3
    assert not frontier.download(sent).any()


def text(v: Any, u: Any, weight: Any) -> Any:
    return "a"


def none(v: Any, u: Any, weight: Any) -> Any:
    return None


WRONG: dict[str, tuple[Any, Any, Any, str]] = {
    "a text": (text, "sum", lambda v, result: False, "message returns a string"),
    "nothing": (none, "sum", lambda v, result: False, "message returns nothing"),
    "finish": (
        lambda v, u, weight: 1,
        "sum",
        lambda v, result: None,
        "finish returns nothing, but must return True or False",
    ),
    "float bits": (lambda v, u, weight: 0.5, "or", lambda v, result: False, "needs integers or bool"),
    "combiner": (
        *(lambda v, u, weight: 1, gp.Combiner(lambda a, b: (a + b) / 2, 0), lambda v, result: False),
        "combine returns float64, but int64 is declared",
    ),
    "arguments": (lambda v, u: 1, "sum", lambda v, result: False, "message takes 2 arguments, but is called with"),
    "finish's": (lambda v, u, weight: 1, "sum", lambda v: False, "finish takes 1 argument, but is called with"),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("device", [on("cpu"), on("emulated")])
def test_functions_that_cannot_be_used(device: str, case: str) -> None:
    message, combine, finish, problem = WRONG[case]
    with pytest.raises(ProgramError, match=problem):
        gp.reduce_rows(message, combine, gp.Frontier(gp.grid(3), device=device), finish=finish)


def test_arguments_that_cannot_be_used() -> None:
    frontier = gp.Frontier(gp.grid(3), device="cpu")

    def one(v: Any, u: Any, weight: Any) -> int:
        return 1

    def no(v: Any, result: Any) -> bool:
        return False

    with pytest.raises(ArgumentError, match="combine must be one of 'min', 'max', 'sum'"):
        gp.reduce_rows(one, "mean", frontier, finish=no)  # type: ignore[call-overload]
    with pytest.raises(ArgumentTypeError, match="finish must be a function"):
        gp.reduce_rows(one, "sum", frontier, finish=3)  # type: ignore[call-overload]
    with pytest.raises(ArgumentError, match="returns must be 'frontier' or 'sum'"):
        gp.reduce_rows(one, "sum", frontier, finish=no, returns="all")  # type: ignore[call-overload]
    with pytest.raises(ArgumentTypeError, match=r"frontier must be a gp\.Frontier"):
        gp.reduce_rows(one, "sum", gp.grid(3), finish=no)  # type: ignore[call-overload]


def fail_in_message(v: Any, u: Any, weight: Any, limit: Any) -> Any:
    if v == 4 and u == limit:
        raise ValueError("no message")
    return u


def fail_in_finish(v: Any, result: Any, limit: Any) -> Any:
    if result > limit:
        raise ValueError("no result")
    return False


@DEVICES
def test_an_exception_names_function_place_and_line(device: str) -> None:
    graph = gp.grid(3, holes=0)
    frontier = gp.Frontier(graph, device=device)
    with pytest.raises((ProgramError, ValueError)) as info:
        gp.reduce_rows(fail_in_message, "sum", frontier, [5], finish=lambda v, result, limit: False)
    shown = "\n".join([str(info.value), *getattr(info.value, "__notes__", [])])
    assert "message" in shown
    assert "the edge from 4 to 5" in shown
    assert 'raise ValueError("no message")' in shown
    with pytest.raises((ProgramError, ValueError)) as info:
        gp.reduce_rows(lambda v, u, weight, limit: u, "sum", frontier, [15], finish=fail_in_finish)
    shown = "\n".join([str(info.value), *getattr(info.value, "__notes__", [])])
    assert "finish" in shown
    assert "vertex 4" in shown
    assert 'raise ValueError("no result")' in shown
    # The next call works.
    assert len(gp.reduce_rows(fail_in_message, "sum", frontier, [-1], finish=lambda v, result, limit: True)) == 9


@EMULATED
def test_a_plain_write_of_what_others_read_is_a_race() -> None:
    frontier = gp.Frontier(gp.grid(20), device="emulated")
    keys = frontier.full(1, np.int64)

    def store(v: Any, result: Any, keys: Any) -> bool:
        keys[v] = result
        return False

    with pytest.raises(EmulationError, match="race"):
        gp.reduce_rows(lambda v, u, weight, keys: keys[u], "sum", frontier, [keys], finish=store)


@EMULATED
def test_a_combiner_that_raises_is_refused() -> None:
    def halve(a: Any, b: Any) -> Any:
        if a > 3:
            raise ValueError
        return a + b

    frontier = gp.Frontier(gp.grid(3), device="emulated")
    with pytest.raises(ProgramError, match=r"combine may raise an exception .*raise it in message or finish"):
        gp.reduce_rows(lambda v, u, weight: u, gp.Combiner(halve, 0), frontier, finish=lambda v, result: False)
