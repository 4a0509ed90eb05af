"""``intersect_rows`` and ``Frontier.edges`` on every device, compared with Python's sets, NetworkX and SciPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import networkx
import numpy as np
import pytest
import scipy.sparse
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, EmulationError, GraphError, ProgramError
from gpu_pregel.host.devices import get_device
from gpu_pregel.host.traverse import operators_cuda
from tests.conformance.test_reduce_rows import DEVICES, with_hubs
from tests.devices import EMULATED, GPUS, examples, is_emulated, on, threads_of
from tests.graphs import arrays, edge_lists

PIECE = 256
"""Shorter rows with more edges are read in pieces."""


def one(i: Any, u: Any, v: Any, w: Any, weight_u: Any, weight_v: Any, *arrays: Any) -> int:
    return 1


def digits(i: Any, u: Any, v: Any, w: Any, weight_u: Any, weight_v: Any, *arrays: Any) -> Any:
    """Return a number that shows every argument."""
    return i + 3 * u + 5 * v + 7 * w + 11 * int(weight_u) + 13 * int(weight_v)


def first_weights(graph: gp.Graph, v: int, *, transpose: bool = False) -> dict[int, Any]:
    """Return the neighbours in a row, each with the smallest weight of its edges."""
    indptr, indices, weights = graph.csc if transpose else graph.to_csr()
    found: dict[int, Any] = {}
    for e in range(indptr[v], indptr[v + 1]):
        weight = 1 if weights is None else weights[e].item()
        found[int(indices[e])] = min(weight, found.get(int(indices[e]), weight))
    return found


def expected(graph: gp.Graph, first: Any, second: Any, visit: Any, *, transpose: bool = False) -> list[Any]:
    """Return the sum of ``visit`` over the intersection of two sets, for each pair."""
    rows = {v: first_weights(graph, v, transpose=transpose) for v in {*map(int, first), *map(int, second)}}
    sums = []
    for i, (u, v) in enumerate(zip(map(int, first), map(int, second), strict=True)):
        common = sorted(rows[u].keys() & rows[v].keys())
        sums.append(sum(visit(i, u, v, w, rows[u][w], rows[v][w]) for w in common))
    return sums


def with_long_rows(*, directed: bool, weight: Any = None) -> gp.Graph:
    """Return a graph in which hubs have 255 to 2,200 neighbours, of the longer rows some twice, and self-loops."""
    sizes = [PIECE - 1, PIECE, PIECE + 1, 700, 1_100, 2_200, 40, 3, 0]
    repeated = slice(3 * PIECE, None, 5)
    src = np.concatenate([np.full(size, k) for k, size in enumerate(sizes)])
    dst = np.concatenate([(np.arange(size) * (k % 3 + 1)) % 2_400 for k, size in enumerate(sizes)])
    src, dst = np.concatenate([src, src[repeated], [3, 5]]), np.concatenate([dst, dst[repeated], [3, 5]])
    weights = None if weight is None else (np.arange(len(src)) * 7 % 13 + 1).astype(weight)
    return gp.Graph.from_edgelist(src, dst, weights, num_vertices=2_400, directed=directed)


def all_pairs(count: int) -> tuple[Any, Any]:
    return np.repeat(np.arange(count), count), np.tile(np.arange(count), count)


@pytest.mark.parametrize(
    ("directed", "weight"),
    [
        pytest.param(True, np.int64, id="directed-int64"),
        pytest.param(False, None, id="undirected"),
        pytest.param(True, np.float32, id="directed-float32"),
    ],
)
@DEVICES
def test_common_neighbours_are_those_of_sets(device: str, directed: bool, weight: Any) -> None:
    graph = with_long_rows(directed=directed, weight=weight)
    frontier = gp.Frontier(graph, device=device)
    hubs = all_pairs(9)
    others = np.arange(9, 1_009), (np.arange(1_000) * 17) % 2_400
    first, second = (np.concatenate([one, two]) for one, two in zip(hubs, others, strict=True))
    pairs = frontier.upload(first), frontier.upload(second.astype(np.uint32))
    for transpose in (False, True) if directed else (False,):
        wanted = expected(graph, first, second, digits, transpose=transpose)
        found: Any = gp.intersect_rows(digits, frontier, pairs=pairs, transpose=transpose)
        assert (found.dtype, frontier.download(found).tolist()) == (np.int64, wanted)
        total = gp.intersect_rows(digits, frontier, pairs=pairs, transpose=transpose, returns="sum")
        assert total == sum(wanted)
    assert max(expected(graph, *hubs, one)) > 4 * PIECE


@DEVICES
def test_sums_of_floats_are_floats_without_common_neighbours(device: str) -> None:
    frontier = gp.Frontier(gp.Graph.from_edgelist([0], [1]), device=device)

    def half(i: Any, u: Any, v: Any, w: Any, weight_u: Any, weight_v: Any) -> Any:
        return 0.5

    assert frontier.download(gp.intersect_rows(half, frontier)).dtype == np.float64
    assert isinstance(gp.intersect_rows(half, frontier, returns="sum"), float)


@DEVICES
def test_random_graphs_with_repeated_edges_and_self_loops(device: str) -> None:
    @examples(device, given=edge_lists(max_vertices=9, max_edges=60), directed=st.booleans(), weighted=st.booleans())
    def check(given: Any, directed: bool, weighted: bool) -> None:
        n, edges = given
        src, dst = arrays(edges)
        weights = (np.arange(len(src)) * 5 % 7 + 1).astype(np.float64) if weighted else None
        graph = gp.Graph.from_edgelist(src, dst, weights, num_vertices=n, directed=directed)
        frontier = gp.Frontier(graph, device=device, **threads_of(device, 2))
        first, second = all_pairs(n)
        pairs = frontier.upload(first), frontier.upload(second)
        found = gp.intersect_rows(digits, frontier, pairs=pairs)
        assert frontier.download(found).tolist() == expected(graph, first, second, digits)

    check()


@DEVICES
def test_edges_are_listed_once(device: str) -> None:
    @examples(device, given=edge_lists(max_vertices=9, max_edges=40), directed=st.booleans(), seed=st.integers(0, 99))
    def check(given: Any, directed: bool, seed: int) -> None:
        n, edges = given
        graph = gp.Graph.from_edgelist(*arrays(edges), num_vertices=n, directed=directed)
        chosen = np.random.default_rng(seed).random(n) < 0.6
        for vertices, flags in ((None, np.ones(n, bool)), (chosen, chosen)):
            frontier = gp.Frontier(graph, vertices, device=device)
            first, second = map(frontier.download, frontier.edges())
            assert first.dtype == second.dtype == np.uint32
            stored = [(u, v) for u, v in edges if flags[u]]
            if not directed:
                ends = [(u, v) if flags[u] and (u <= v or not flags[v]) else (v, u) for u, v in edges]
                stored = [(u, v) for u, v in ends if flags[u]]
            assert list(zip(first.tolist(), second.tolist(), strict=True)) == sorted(stored)

    check()


@DEVICES
def test_edges_of_hubs_and_of_many_words(device: str) -> None:
    graph = with_hubs(directed=False)
    owners = np.repeat(np.arange(graph.num_vertices), graph.out_degrees)
    for vertices in (None, [0, 7, 40]):
        frontier = gp.Frontier(graph, vertices, device=device)
        flags = frontier.flags()
        kept = flags[owners] & ((owners <= graph.indices) | ~flags[graph.indices])
        first, second = map(frontier.download, frontier.edges())
        assert first.tolist() == owners[kept].tolist()
        assert second.tolist() == graph.indices[kept].tolist()


@DEVICES
def test_triangles_of_edges_agree_with_networkx_and_scipy(device: str) -> None:
    graph = gp.kronecker(7, 8)
    frontier = gp.Frontier(graph, device=device)
    matrix = scipy.sparse.csr_array(graph.to_scipy(), dtype=np.int64)
    common = (matrix @ matrix).multiply(matrix).tocsr()
    first, second = map(frontier.download, frontier.edges())
    assert (first < second).all()
    found = frontier.download(gp.intersect_rows(one, frontier))
    assert found.tolist() == np.asarray(common[first, second]).ravel().tolist()
    triangles = sum(networkx.triangles(graph.to_networkx()).values())
    assert gp.intersect_rows(one, frontier, returns="sum") == triangles > 0
    # At every common neighbour.
    at = frontier.full(0, np.int64)

    def add(i: Any, u: Any, v: Any, w: Any, weight_u: Any, weight_v: Any, at: Any) -> None:
        gp.atomics.add(at, w, 1)

    assert gp.intersect_rows(add, frontier, [at], returns=None) is None
    assert frontier.download(at).tolist() == list(networkx.triangles(graph.to_networkx()).values())


@DEVICES
def test_a_common_neighbour_is_visited_once(device: str) -> None:
    graph = with_long_rows(directed=True)
    frontier = gp.Frontier(graph, device=device)
    first, second = all_pairs(9)
    visits = frontier.full(0, np.int64, 81)

    def count(i: Any, u: Any, v: Any, w: Any, weight_u: Any, weight_v: Any, visits: Any) -> None:
        gp.atomics.add(visits, i, 1)

    gp.intersect_rows(count, frontier, [visits], pairs=(frontier.upload(first), frontier.upload(second)), returns=None)
    assert frontier.download(visits).tolist() == expected(graph, first, second, one)


def add_one(i: Any, u: Any, v: Any, w: Any, weight_u: Any, weight_v: Any, degrees: Any, calls: Any) -> Any:
    return 1 / degrees[w]


def per_degree(i: Any, u: Any, v: Any, total: Any, degrees: Any, calls: Any) -> Any:
    calls[i] += 1
    return 1000 * u + 10 * v + total * i + (1 if degrees[u] > degrees[v] else 0)


@DEVICES
def test_a_pair_is_finished_once(device: str) -> None:
    graph = with_long_rows(directed=False)
    frontier = gp.Frontier(graph, device=device)
    first, second = all_pairs(9)
    pairs = frontier.upload(first), frontier.upload(second)
    degrees, calls = frontier.upload(graph.out_degrees.astype(np.float64)), frontier.full(0, np.int64, 81)
    own = graph.out_degrees
    totals = expected(graph, first, second, lambda i, u, v, w, one, other: 1 / own[w])
    wanted = [
        per_degree(i, u, v, total, own, [0] * 81)
        for i, (u, v, total) in enumerate(zip(first.tolist(), second.tolist(), totals, strict=True))
    ]
    options: dict[str, Any] = {"pairs": pairs, "finish": per_degree}
    found = gp.intersect_rows(add_one, frontier, [degrees, calls], **options)
    assert found.dtype == np.float64
    np.testing.assert_allclose(frontier.download(found), wanted, rtol=1e-12)
    total = gp.intersect_rows(add_one, frontier, [degrees, calls], returns="sum", **options)
    assert total == pytest.approx(sum(wanted), rel=1e-12)

    def store(i: Any, u: Any, v: Any, total: Any, degrees: Any, calls: Any) -> None:
        calls[i] = round(1000 * total)

    assert frontier.download(calls).tolist() == [2] * 81
    gp.intersect_rows(add_one, frontier, [degrees, calls], pairs=pairs, finish=store, returns=None)
    assert frontier.download(calls).tolist() == [round(1000 * total) for total in totals]


@DEVICES
def test_sums_of_floats_are_the_same_to_the_bit(device: str) -> None:
    graph = with_long_rows(directed=False)
    n = graph.num_vertices
    values = np.random.default_rng(3).random(n) * 10.0 ** np.random.default_rng(4).integers(-9, 9, n)
    first, second = (np.tile(ends, 7) for ends in all_pairs(9))

    def value_of(i: Any, u: Any, v: Any, w: Any, weight_u: Any, weight_v: Any, values: Any) -> Any:
        return values[w]

    def sums(device: str, **options: Any) -> Any:
        frontier = gp.Frontier(graph, device=device, **options)
        given = frontier.upload(values)
        pairs = frontier.upload(first), frontier.upload(second)
        found = gp.intersect_rows(value_of, frontier, [given], pairs=pairs)
        total = gp.intersect_rows(value_of, frontier, [given], pairs=pairs, returns="sum")
        return np.array(frontier.download(found)).tobytes(), total

    result = sums(device, **threads_of(device, 1))
    assert sums(device, **threads_of(device, 2)) == result
    if is_emulated(device):
        assert sums("emulated:2") == result


@DEVICES
def test_no_pairs(device: str) -> None:
    frontier = gp.Frontier(gp.grid(3), device=device)
    pairs = frontier.full(0, np.int64, 0), frontier.full(0, np.uint32, 0)
    options: Any = ({"pairs": pairs}, {})
    for given in options:
        empty = frontier if given else frontier.chosen([])
        found: Any = gp.intersect_rows(one, empty, **given)
        assert (len(found), found.dtype) == (0, np.int64)
        assert gp.intersect_rows(one, empty, returns="sum", **given) == 0
    without_edges = gp.Frontier(gp.Graph.from_edgelist([], [], num_vertices=2), device=device)
    assert [len(ends) for ends in without_edges.edges()] == [0, 0]
    ends = without_edges.upload(np.array([0, 1]))
    assert without_edges.download(gp.intersect_rows(one, without_edges, pairs=(ends, ends))).tolist() == [0, 0]


@DEVICES
def test_the_trace_counts_pairs(device: str) -> None:
    frontier = gp.Frontier(gp.grid(3, holes=0), device=device)
    gp.intersect_rows(one, frontier)
    row = frontier.trace()[-1]
    assert (row["phase"], row["direction"], row["active_vertices"]) == ("one", "pairs", 12)


@pytest.mark.parametrize("device", [on("emulated"), *(on(name) for name in GPUS)])
def test_only_the_check_of_pairs_is_read_back(device: str) -> None:
    frontier = gp.Frontier(with_long_rows(directed=False), device=device)
    pairs = tuple(map(frontier.upload, all_pairs(9)))
    memory: Any = getattr(get_device(device), "memory", None)
    gp.intersect_rows(one, frontier, pairs=pairs)
    before = 0 if memory is None else memory.readbacks
    gp.intersect_rows(one, frontier, pairs=pairs)
    assert memory is None or memory.readbacks == before + 1


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "text": ({"visit": lambda i, u, v, w, one, other: "a"}, "visit returns a string, but must return a number"),
    "nothing": ({"visit": lambda i, u, v, w, one, other: None}, "visit returns nothing, but must return a number"),
    "arguments": ({"visit": lambda u, v, w: 1}, r"visit takes 3 arguments, but is called with visit\(i, u, v, w, "),
    "finish": (
        {"finish": lambda i, u, v, total: None},
        "finish returns nothing, but must return a number",
    ),
    "finish's": (
        {"finish": lambda total: total},
        r"finish takes 1 argument, but is called with finish\(i, u, v, total, ",
    ),
    "silent": (
        {"visit": lambda i, u, v, w, one, other: None, "finish": lambda i, u, v, total: None, "returns": None},
        "visit returns nothing, but must return a number",
    ),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("device", [on("cpu"), on("emulated")])
def test_functions_that_cannot_be_used(device: str, case: str) -> None:
    changed, problem = WRONG[case]
    options = {"visit": one} | changed
    with pytest.raises(ProgramError, match=problem):
        gp.intersect_rows(options.pop("visit"), gp.Frontier(gp.grid(3), device=device), **options)


NUMBERS = np.array([0, 1, 2])
UNUSABLE: dict[str, tuple[Any, type[Exception], str]] = {
    "one array": ([NUMBERS], ArgumentTypeError, "pairs must be two arrays of vertex numbers, .* not 1"),
    "no sequence": (NUMBERS, ArgumentTypeError, "pairs must be two arrays of vertex numbers, .* not ndarray"),
    "a list": ([NUMBERS, [0, 1, 2]], ArgumentTypeError, r"pairs\[1\] must be a NumPy array"),
    "numbers": ([NUMBERS, 3], ArgumentTypeError, r"pairs\[1\] must be an array of vertex numbers, not int"),
    "a matrix": ([np.zeros((2, 2), int), NUMBERS], ArgumentError, r"pairs\[0\] has 2 dimensions"),
    "floats": ([NUMBERS, NUMBERS / 2], ArgumentTypeError, r"pairs\[1\] has dtype float64, .* convert it by astype"),
    "flags": ([NUMBERS < 1, NUMBERS], ArgumentTypeError, r"pairs\[0\] has dtype bool, but vertex numbers are integers"),
    "lengths": ([NUMBERS, NUMBERS[:2]], ArgumentError, r"pairs\[0\] has 3 vertices and pairs\[1\] 2: pass arrays of"),
}


@pytest.mark.parametrize("case", UNUSABLE)
def test_pairs_that_cannot_be_used(case: str) -> None:
    pairs, error, problem = UNUSABLE[case]
    with pytest.raises(error, match=problem):
        gp.intersect_rows(one, gp.Frontier(gp.grid(3), device="cpu"), pairs=pairs)


@pytest.mark.parametrize("device", [on("emulated")])
def test_pairs_in_host_memory_are_refused_on_a_gpu(device: str) -> None:
    with pytest.raises(ArgumentTypeError, match=r"pairs\[0\] is in host memory, .* use frontier\.upload"):
        gp.intersect_rows(one, gp.Frontier(gp.grid(3), device=device), pairs=[NUMBERS, NUMBERS])


@DEVICES
def test_numbers_of_no_vertex_are_refused_before_any_call(device: str) -> None:
    frontier = gp.Frontier(gp.grid(3, holes=0), device=device)
    calls = frontier.full(0, np.int64)

    def count(i: Any, u: Any, v: Any, w: Any, weight_u: Any, weight_v: Any, calls: Any) -> int:
        gp.atomics.add(calls, w, 1)
        return 1

    wrong: Sequence[tuple[Any, str]] = [
        (np.array([0, 1, 9]), r"\[2\] is 9, but the graph has 9 vertices: use numbers below 9"),
        (np.array([0, -1, 8], np.int8), r"\[1\] is -1, but"),
        (np.array([2**64 - 1, 0, 1], np.uint64), r"\[0\] is 18,446,744,073,709,551,615, but"),
    ]
    good = frontier.upload(np.array([0, 1, 0]))
    for numbers, problem in wrong:
        bad = frontier.upload(numbers)
        for k, pairs in enumerate([(bad, good), (good, bad)]):
            with pytest.raises(GraphError, match=rf"pairs\[{k}\]{problem}"):
                gp.intersect_rows(count, frontier, [calls], pairs=pairs)
    assert not frontier.download(calls).any()
    pairs = frontier.upload(np.array([0, 8], np.int8)), frontier.upload(np.array([4, 4], np.uint64))
    assert frontier.download(gp.intersect_rows(count, frontier, [calls], pairs=pairs)).tolist() == [2, 2]


def test_other_arguments_that_cannot_be_used() -> None:
    frontier = gp.Frontier(gp.grid(3), device="cpu")
    wrong: Any = "all"
    with pytest.raises(ArgumentError, match="returns must be 'pairs' or 'sum'"):
        gp.intersect_rows(one, frontier, returns=wrong)
    with pytest.raises(ArgumentTypeError, match=r"frontier must be a gp\.Frontier"):
        gp.intersect_rows(one, frontier.graph)  # type: ignore[call-overload]
    with pytest.raises(ArgumentTypeError, match="visit must be a function"):
        gp.intersect_rows(wrong, frontier)
    with pytest.raises(ArgumentTypeError, match="finish must be a function"):
        gp.intersect_rows(one, frontier, finish=wrong)
    with pytest.raises(ArgumentTypeError, match="transpose must be True or False"):
        gp.intersect_rows(one, frontier, transpose=wrong)


@EMULATED
def test_more_pairs_than_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(operators_cuda, "_MAX_PAIRS", 11)
    with pytest.raises(ArgumentError, match="12 pairs, but at most 11 at once: pass parts of the arrays"):
        gp.intersect_rows(one, gp.Frontier(gp.grid(3, holes=0), device="emulated"))


@DEVICES
def test_a_row_of_many_pieces(device: str) -> None:
    """A lane adds the sums of several pieces."""
    size = 33 * PIECE + 1
    ends = np.repeat([0, 1], size), np.tile(np.arange(2, size + 2), 2)
    frontier = gp.Frontier(gp.Graph.from_edgelist(*ends, directed=True), device=device)
    given = frontier.upload(np.array([0, 0])), frontier.upload(np.array([1, 0]))
    assert frontier.download(gp.intersect_rows(one, frontier, pairs=given)).tolist() == [size, size]


@EMULATED
def test_more_pieces_than_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = with_long_rows(directed=False)
    frontier = gp.Frontier(graph, device="emulated")
    hub = np.full(12, int(graph.out_degrees.argmax()))
    pieces = 12 * -(-int(graph.out_degrees.max()) // PIECE)
    monkeypatch.setattr(operators_cuda, "_MAX_PAIRS", pieces - 1)
    given = frontier.upload(hub), frontier.upload(hub)
    with pytest.raises(ArgumentError, match=f"the rows of 12 pairs have {pieces} pieces, but at most {pieces - 1} at"):
        gp.intersect_rows(one, frontier, pairs=given)


def fail_in_visit(i: Any, u: Any, v: Any, w: Any, weight_u: Any, weight_v: Any, limit: Any) -> Any:
    if u == 4 and w == limit:
        raise ValueError("no visit")
    return w


def fail_in_finish(i: Any, u: Any, v: Any, total: Any, limit: Any) -> Any:
    if u > limit:
        raise ValueError("no finish")
    return total


@DEVICES
def test_an_exception_names_function_place_and_line(device: str) -> None:
    names = list("abcdefghi")
    grid = gp.grid(3, holes=0).to_csr()
    src = np.repeat(np.arange(9), np.diff(grid.indptr))
    graph = gp.Graph.from_edgelist([names[u] for u in src], [names[v] for v in grid.indices], directed=True)
    frontier = gp.Frontier(graph, device=device)
    pairs = frontier.upload(np.array([0, 4])), frontier.upload(np.array([4, 0]))

    def shown(error: Any) -> str:
        return "\n".join([str(error.value), *getattr(error.value, "__notes__", [])])

    with pytest.raises((ProgramError, ValueError)) as info:
        gp.intersect_rows(fail_in_visit, frontier, [2], pairs=pairs)  # the number of 'd'
    assert "visit" in shown(info)
    assert "the pair of 'e' and 'a' and their neighbour 'd'" in shown(info)
    assert 'raise ValueError("no visit")' in shown(info)
    with pytest.raises((ProgramError, ValueError)) as info:
        gp.intersect_rows(one, frontier, [3], pairs=pairs, finish=fail_in_finish)  # the number of 'c'
    assert "finish" in shown(info)
    assert "the pair of 'e' and 'a' (" in shown(info)
    assert 'raise ValueError("no finish")' in shown(info)
    # The next call works.
    assert gp.intersect_rows(fail_in_visit, frontier, [-1], pairs=pairs, returns="sum") > 0


@EMULATED
def test_a_plain_write_of_a_visit_is_a_race() -> None:
    frontier = gp.Frontier(gp.kronecker(6), device="emulated")

    def write(i: Any, u: Any, v: Any, w: Any, weight_u: Any, weight_v: Any, seen: Any) -> int:
        seen[w] = i
        return 0

    with pytest.raises(EmulationError, match="race"):
        gp.intersect_rows(write, frontier, [frontier.full(0, np.int64)])
