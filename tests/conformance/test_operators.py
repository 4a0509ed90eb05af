"""Frontiers, process_vertices and process_edges on every device, compared with oracles, and their errors."""

from __future__ import annotations

from typing import Any

import networkx
import numpy as np
import pytest
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, GraphError, ProgramError
from tests.devices import GPUS, examples, on, threads_of
from tests.graphs import arrays, edge_lists

OPERATOR_DEVICES = pytest.mark.parametrize("device", [on(name) for name in ("cpu", "emulated", *GPUS, "python")])


def visit(u: Any, v: Any, weight: Any, hops: Any, superstep: Any) -> Any:
    return gp.atomics.compare_and_swap(hops, v, -1, superstep)


def unvisited(v: Any, hops: Any, superstep: Any) -> Any:
    return gp.atomics.load(hops, v) < 0


def relax(u: Any, v: Any, weight: Any, distances: Any) -> Any:
    distance = gp.atomics.load(distances, u) + weight
    return gp.atomics.min(distances, v, distance) > distance


def directed(n: int, edges: Any, weight: Any = None) -> gp.Graph:
    return gp.Graph.from_edgelist(*arrays(edges), weight, num_vertices=n, directed=True)


@OPERATOR_DEVICES
def test_breadth_first_search(device: str) -> None:
    @examples(device, graph=edge_lists(), mode=st.sampled_from(["push", "pull", "auto"]), transpose=st.booleans())
    def check(graph: Any, mode: Any, transpose: bool) -> None:
        n, edges = graph
        oracle = networkx.DiGraph(edges)
        oracle.add_nodes_from(range(n))
        lengths = networkx.single_source_shortest_path_length(oracle.reverse() if transpose else oracle, 0)
        frontier = gp.Frontier(directed(n, edges), [0], device=device, **threads_of(device, 2))
        hops = frontier.upload(np.where(np.arange(n) == 0, 0, -1))
        superstep = 0
        while frontier:
            assert frontier.vertices().tolist() == [v for v in range(n) if lengths.get(v) == superstep]
            assert len(frontier) == len(frontier.vertices())
            superstep += 1
            way = {"receives": unvisited, "transpose": transpose, "mode": mode}
            frontier = gp.process_edges(visit, frontier, [hops, superstep], **way)
        assert frontier.download(hops).tolist() == [lengths.get(v, -1) for v in range(n)]
        assert [row["active_vertices"] for row in frontier.trace()] == [
            list(lengths.values()).count(depth) for depth in range(superstep)
        ]

    check()


@OPERATOR_DEVICES
def test_bellman_ford(device: str) -> None:
    @examples(device, graph=edge_lists(), dtype=st.sampled_from([np.float32, np.float64, np.int64]))
    def check(graph: Any, dtype: Any) -> None:
        n, edges = graph
        weight = (np.arange(len(edges)) % 5 + 1).astype(dtype)
        oracle = networkx.MultiDiGraph()
        oracle.add_nodes_from(range(n))
        oracle.add_weighted_edges_from((u, v, int(w)) for (u, v), w in zip(edges, weight, strict=True))
        expected = networkx.single_source_dijkstra_path_length(oracle, 0)
        for mode in ("push", "pull"):
            frontier = gp.Frontier(directed(n, edges, weight), [0], device=device)
            distances = frontier.upload(np.where(np.arange(n) == 0, 0, 10**6).astype(dtype))
            while frontier:
                frontier = gp.process_edges(relax, frontier, [distances], mode=mode)
            assert frontier.download(distances).tolist() == [expected.get(v, 10**6) for v in range(n)]

    check()


def count_even(v: Any, seen: Any) -> Any:
    seen[v] += 1
    return v % 2 == 0


def weigh(v: Any, weights: Any, factor: Any) -> Any:
    return weights[v] * factor


@pytest.mark.parametrize("n", [0, 1, 31, 32, 33, 63, 64, 65, 256, 20_000])
@OPERATOR_DEVICES
def test_process_vertices_visits_each_vertex_of_the_frontier_once(device: str, n: int) -> None:
    frontier = gp.Frontier(gp.Graph.from_edgelist([], [], num_vertices=n), np.arange(0, n, 3), device=device)
    for form in (frontier, gp.process_vertices(lambda v: v % 3 == 0, frontier.everything(), returns="frontier")):
        seen = frontier.full(0, np.int64)
        total = gp.process_vertices(count_even, form, [seen])
        assert total == len(range(0, n, 6))
        assert isinstance(total, int)
        assert np.flatnonzero(frontier.download(seen)).tolist() == list(range(0, n, 3))
        assert frontier.download(seen).max(initial=0) <= 1
        even = gp.process_vertices(count_even, form, [seen], returns="frontier")
        assert even.vertices().tolist() == list(range(0, n, 6))
    halves = frontier.full(0.5, np.float64)
    assert gp.process_vertices(weigh, frontier.everything(), [halves, 2]) == n
    assert gp.process_vertices(weigh, frontier.everything(), [halves, 2.5]) == n * 1.25


@OPERATOR_DEVICES
def test_a_queue_has_the_vertices_of_its_bitmap(device: str) -> None:
    star = gp.Graph.from_edgelist(np.zeros(300, int), np.arange(1, 301), num_vertices=400, directed=True)
    hub = gp.Frontier(star, [0], device=device)
    seen = hub.full(-1, np.int64)
    pushed = gp.process_edges(visit, hub, [seen, 3], mode="push")
    assert pushed.vertices().tolist() == list(range(1, 301))
    odd = gp.process_vertices(lambda v: v % 2 == 1, pushed, returns="frontier")
    assert odd.vertices().tolist() == list(range(1, 301, 2))
    assert gp.process_vertices(lambda v: v, odd) == sum(range(1, 301, 2))
    assert gp.process_vertices(lambda v: 1 / v, odd) == pytest.approx(sum(1 / v for v in range(1, 301, 2)))
    assert gp.process_vertices(lambda v: v, pushed.chosen([7, 9])) == 16
    assert (hub.download(seen) == 3).sum() == 300


@pytest.mark.parametrize("mode", ["push", "pull", "auto"])
@OPERATOR_DEVICES
def test_sums_over_edges(device: str, mode: Any) -> None:
    graph = directed(70, [(u, (3 * u + k) % 70) for u in range(70) for k in range(u % 4)])
    src, dst, _ = graph.to_edgelist()
    chosen = np.arange(0, 70, 2)
    for frontier, taken in (
        (gp.Frontier(graph, chosen, device=device), np.isin(src, chosen)),
        (gp.Frontier(graph, device=device), np.full(len(src), True)),
    ):
        way = {"returns": "sum", "mode": mode}
        assert gp.process_edges(lambda u, v, weight: u * 100 + v, frontier, **way) == (100 * src + dst)[taken].sum()
        small = taken & (dst < 20)
        total = gp.process_edges(lambda u, v, weight: weight / 4, frontier, receives=lambda v: v < 20, **way)
        assert total == small.sum() / 4
        back = np.isin(dst, chosen) if len(frontier) < 70 else taken
        assert gp.process_edges(lambda u, v, weight: v, frontier, transpose=True, **way) == src[back].sum()


@pytest.mark.parametrize("n", [0, 1, 65])
@pytest.mark.parametrize("mode", ["push", "pull", "auto"])
@OPERATOR_DEVICES
def test_an_empty_frontier_and_a_graph_without_edges_send_nothing(device: str, mode: Any, n: int) -> None:
    frontier = gp.Frontier(gp.Graph.from_edgelist([], [], num_vertices=n), device=device)
    hops = frontier.full(-1, np.int64)
    for one in (frontier, frontier.chosen([])):
        assert not gp.process_edges(visit, one, [hops, 1], mode=mode)
        assert gp.process_edges(lambda u, v, weight: 1, one, returns="sum", mode=mode) == 0
    assert (frontier.download(hops) == -1).all()


@OPERATOR_DEVICES
def test_products_of_narrow_weights_and_constants_are_widened(device: str) -> None:
    frontier = gp.Frontier(directed(2, [(0, 1)], np.array([100], np.int8)), device=device)
    assert gp.process_edges(lambda u, v, weight: weight * 1000, frontier, returns="sum") == 100_000
    for graph in (directed(2, [(0, 1)], np.array([1], np.float32)), directed(2, [(0, 1)])):
        frontier = gp.Frontier(graph, device=device)
        assert gp.process_edges(lambda u, v, weight: weight * 0.1, frontier, returns="sum") == 0.1


def test_results_do_not_depend_on_the_number_of_threads() -> None:
    graph = gp.kronecker(12)
    totals = set()
    for threads in (1, 2, 5):
        frontier = gp.Frontier(graph, np.arange(0, 4096, 5), device="cpu", threads=threads)
        sums = [gp.process_edges(lambda u, v, w: 1 / (u + v + 1), frontier, returns="sum", mode=m) for m in MODES]
        vertices = gp.process_vertices(lambda v: 1 / (v + 1), frontier)
        found = gp.process_edges(lambda u, v, w: (u ^ v) % 3 == 0, frontier, mode="push")
        totals.add((*sums, vertices, found.flags().tobytes(), gp.process_vertices(lambda v: 1 / (v + 2), found)))
    assert len(totals) == 1


def peel(device: str, graph: gp.Graph) -> Any:
    """Return the core numbers: vertices are removed in the order of the degree that is left."""
    frontier = gp.Frontier(graph, device=device)
    degrees = frontier.upload(graph.out_degrees)
    cores = frontier.full(-1, np.int64)
    buckets = gp.Buckets(frontier, remaining, [degrees, cores], window=3)
    while (taken := buckets.pop()) is not None:
        core, peeled = taken
        gp.process_vertices(settle, peeled, [degrees, cores, core])
        buckets.add(gp.process_edges(lose, peeled, [degrees, cores, core]))
    return frontier.download(cores)


def remaining(v: Any, degrees: Any, cores: Any) -> Any:
    return degrees[v] if cores[v] < 0 else -1


def settle(v: Any, degrees: Any, cores: Any, core: Any) -> Any:
    cores[v] = core
    return 1


def lose(u: Any, v: Any, weight: Any, degrees: Any, cores: Any, core: Any) -> Any:
    # Of the threads that take edges from v, some may lower its degree below the current core: it stays at it.
    return (gp.atomics.load(cores, v) < 0 and gp.atomics.add(degrees, v, -1) > core) or restore(v, degrees, cores, core)


def restore(v: Any, degrees: Any, cores: Any, core: Any) -> Any:
    gp.atomics.max(degrees, v, core)
    return False


@OPERATOR_DEVICES
def test_buckets_peel_a_graph(device: str) -> None:
    @examples(device, graph=edge_lists())
    def check(graph: Any) -> None:
        n, edges = graph
        simple = networkx.Graph([(u, v) for u, v in edges if u != v])
        simple.add_nodes_from(range(n))
        built = gp.Graph.from_edgelist(*arrays(simple.edges), num_vertices=n)
        expected = networkx.core_number(simple)
        assert peel(device, built).tolist() == [expected[v] for v in range(n)]

    check()


def put(array: Any, values: dict[int, int]) -> None:
    """Change elements of an array on a device, and wait for CuPy, which uses another stream than the operators."""
    for position, value in values.items():
        array[position] = value
    if hasattr(getattr(array, "device", None), "synchronize"):
        array.device.synchronize()


@OPERATOR_DEVICES
def test_buckets_follow_numbers_that_change(device: str) -> None:
    frontier = gp.Frontier(gp.Graph.from_edgelist([], [], num_vertices=100), np.arange(0, 100, 9), device=device)
    numbers = frontier.upload(np.arange(100) * 1000)
    buckets = gp.Buckets(frontier, lambda v, numbers: numbers[v], [numbers], window=2)
    order = []
    while (taken := buckets.pop()) is not None:
        number, found = taken
        order.append((number, found.vertices().tolist()))
        if number == 9000:
            put(numbers, {18: 70_000, 27: -1})
            buckets.add(frontier.chosen([5, 36, 36]))
    assert order == [
        (0, [0]), (9000, [9]), (5000, [5]), (36_000, [36]), (45_000, [45]), (54_000, [54]), (63_000, [63]),
        (70_000, [18]), (72_000, [72]), (81_000, [81]), (90_000, [90]), (99_000, [99]),
    ]  # fmt: skip
    assert buckets.pop() is None


@OPERATOR_DEVICES
def test_a_vertex_that_moves_is_in_one_bucket(device: str) -> None:
    frontier = gp.Frontier(gp.Graph.from_edgelist([], [], num_vertices=100), np.arange(5), device=device)
    numbers = frontier.upload(np.array([0, 1000, 2000, 1, 3] + [0] * 95))
    buckets = gp.Buckets(frontier, lambda v, numbers: numbers[v], [numbers], window=4)
    order = []
    while (taken := buckets.pop()) is not None:
        number, found = taken
        order.append((number, found.vertices().tolist()))
        if number == 0:
            # From beyond the window into it, to the first number beyond it, and within the window beyond it.
            put(numbers, {1: 2, 2: 4, 3: 4})
            buckets.add(frontier.chosen([1, 2]))
        if number == 2:
            put(numbers, {4: 4})
    assert order == [(0, [0]), (2, [1]), (4, [2, 3, 4])]
    assert buckets.pop() is None


@OPERATOR_DEVICES
def test_unions(device: str) -> None:
    frontier = gp.Frontier(gp.grid(9), [3, 70], device=device)
    assert (frontier | frontier.chosen([4, 70])).vertices().tolist() == [3, 4, 70]
    assert len(frontier | frontier.everything()) == 81
    assert len(frontier.chosen([]) | frontier) == 2
    with pytest.raises(ArgumentError, match="do not derive from the same one"):
        frontier | gp.Frontier(gp.grid(9), [1], device=device)


MODES: tuple[Any, ...] = ("push", "pull")


def test_an_edited_global_is_noticed() -> None:
    namespace: dict[str, Any] = {"step": 1}
    exec("def body(v): return helper(v)\ndef helper(v): return step", namespace)
    frontier = gp.Frontier(gp.grid(3), device="cpu")
    assert gp.process_vertices(namespace["body"], frontier) == 9
    namespace["step"] = 2
    assert gp.process_vertices(namespace["body"], frontier) == 18
    table = np.array([1, 1])
    for expected in (9, 27):
        assert gp.process_vertices(lambda v: table[0], frontier) == expected
        table[0] = 3


def test_frontiers() -> None:
    graph = gp.grid(9)
    full, none, some = gp.Frontier(graph), gp.Frontier(graph, []), gp.Frontier(graph, np.array([80, 3, 3], np.uint8))
    assert (len(full), len(none), len(some)) == (81, 0, 2)
    assert bool(full)
    assert not none
    assert some.vertices().tolist() == [3, 80]
    assert some.flags().sum() == 2
    assert 80 in some
    assert 81 not in full
    assert -1 not in full
    assert repr(some) == "<Frontier: 2 of 81 vertices>"
    assert some.csr() == some.csc()
    assert some.graph is graph


@OPERATOR_DEVICES
def test_invalid_arguments_are_rejected(device: str) -> None:
    graph = gp.grid(3)
    frontier = gp.Frontier(graph, device=device)
    values = frontier.full(0, np.int64)
    with pytest.raises(GraphError, match="no vertex 9 in a graph of 9 vertices: use numbers below 9"):
        gp.Frontier(graph, [2, 9])
    with pytest.raises(ArgumentTypeError, match="vertices must be vertex numbers, not float64"):
        gp.Frontier(graph, [0.5])
    with pytest.raises(ArgumentTypeError, match=r"frontier must be a gp\.Frontier, not list"):
        gp.process_vertices(count_even, [1], [values])  # type: ignore[call-overload]
    with pytest.raises(ProgramError, match="the body returns nothing, but must return a number, such as 0 where"):
        gp.process_vertices(lambda v: None, frontier)
    with pytest.raises(
        ArgumentTypeError,
        match=r"arrays\[0\] must be (an array on the frontier's device|a NumPy array, .*) or a number",
    ):
        gp.process_vertices(count_even, frontier, ["a"])
    with pytest.raises(ArgumentError, match=r"arrays\[1\] is 18446744073709551616, which does not fit 64 bits"):
        gp.process_vertices(count_even, frontier, [values, 2**64])
    for wrong in (np.arange(9, dtype=">i8"), np.full(9, "a"), np.zeros(9, np.float16)):
        with pytest.raises(ArgumentTypeError, match=r"array has dtype .*, but bodies take bools, integers"):
            frontier.upload(wrong)
        with pytest.raises(ArgumentTypeError, match=r"arrays\[0\] (has dtype .*, but bodies take|is in host memory)"):
            gp.process_vertices(count_even, frontier, [wrong])
    with pytest.raises(ArgumentTypeError, match="arrays must be a list or tuple of arrays and numbers, not"):
        gp.process_vertices(count_even, frontier, values)
    with pytest.raises(ArgumentError, match=r"arrays\[0\] has 2 dimensions"):
        gp.process_vertices(count_even, frontier, [np.zeros((3, 3))])
    with pytest.raises(ArgumentError, match="mode must be"):
        gp.process_edges(visit, frontier, [values, 1], mode="both")  # type: ignore[call-overload]
    with pytest.raises(ArgumentError, match="returns must be"):
        gp.process_edges(visit, frontier, [values, 1], returns="all")  # type: ignore[call-overload]
    with pytest.raises(ArgumentTypeError, match=r"receives must be a function \(def or lambda\), not int"):
        gp.process_edges(visit, frontier, [values, 1], receives=1)  # type: ignore[call-overload]
    with pytest.raises(ArgumentTypeError, match=r"the body must be a function \(def or lambda\), not None"):
        gp.process_vertices(None, frontier)  # type: ignore[call-overload]


def test_bodies_that_cannot_be_compiled_are_rejected() -> None:
    frontier, values = gp.Frontier(gp.grid(3), device="cpu"), np.zeros(9, np.int64)
    with pytest.raises(ProgramError, match="the body cannot be compiled"):
        gp.process_vertices(lambda v, values: values.nothing, frontier, [values])
    with pytest.raises(ProgramError, match=r"the body returns float64, but must return True or False .*line"):
        gp.process_vertices(lambda v: v / 2, frontier, returns="frontier")
    with pytest.raises(ProgramError, match=r"receives returns float64, but must return True or False"):
        gp.process_edges(lambda u, v, weight: True, frontier, receives=lambda v: v / 2)
    with pytest.raises(ProgramError, match=r"the body takes 2 arguments, but is called with body\(v, \*arrays\): 3"):
        gp.process_vertices(lambda v, a: 1, frontier, [values, 1])
    with pytest.raises(
        ProgramError, match=r"receives takes 0 arguments, but is called with receives\(v, \*arrays\): 1"
    ):
        gp.process_edges(lambda u, v, weight: True, frontier, receives=lambda: True)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ((-1, np.uint32), ArgumentError, "value is -1, which uint32 cannot hold"),
        ((0.5, np.int64), ArgumentError, "value is 0.5, which int64 cannot hold"),
        ((1e300, np.float32), ArgumentError, r"value is 1e\+300, which float32 cannot hold"),
        (("a", np.int64), ArgumentTypeError, "value must be a number, not 'a'"),
        ((0, "wide"), ArgumentTypeError, "dtype must be of bools, integers.* such as 'int64', not 'wide'"),
        ((0, object), ArgumentTypeError, "dtype must be of bools, integers"),
        ((0, np.int64, -1), ArgumentError, "size must be at least 0, not -1"),
    ],
)
def test_arrays_are_filled_with_numbers_that_they_can_hold(arguments: Any, error: Any, message: str) -> None:
    frontier = gp.Frontier(gp.grid(3), device="python")
    with pytest.raises(error, match=message):
        frontier.full(*arguments)
    given: Any = ((1.0, "u1"), (0.1, np.float32), (-np.inf, float), (True, int))
    assert [frontier.full(value, dtype, 1).tolist() for value, dtype in given] == [
        [1],
        [np.float32(0.1)],
        [-np.inf],
        [1],
    ]
    for wrong in ("a", 1.5, None, True):
        with pytest.raises(ArgumentTypeError, match=r"a frontier contains vertex numbers, not .*graph\.vertex"):
            wrong in frontier  # noqa: B015
