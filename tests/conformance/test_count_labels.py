"""``count_labels`` on every device, compared with ``collections.Counter``."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.errors import NotEnoughMemoryError, ProgramError
from tests.conformance.test_reduce_rows import DEVICES, with_hubs
from tests.devices import EMULATED, examples, on
from tests.graphs import arrays, edge_lists


def counters(graph: gp.Graph, label: Any, weigh: Any, *, transpose: bool) -> list[Counter[int]]:
    """Return the sums of each vertex's labels."""
    indptr, indices, weights = graph.csc if transpose else graph.to_csr()
    found = []
    for v in range(graph.num_vertices):
        totals: Counter[int] = Counter()
        for e in range(indptr[v], indptr[v + 1]):
            own = label(v, int(indices[e]))
            if own >= 0:
                totals[own] += weigh(1 if weights is None else int(weights[e]))
        found.append(totals)
    return found


def best(totals: Counter[int], score: Any) -> tuple[int, int]:
    """Return the smallest of the labels with the largest score, and its sum."""
    if not totals:
        return -1, 0
    chosen = min(totals, key=lambda one: (-score(one, totals[one]), one))
    return chosen, totals[chosen]


def keep(v: Any, label: Any, total: Any, numbers: Any, found: Any, sums: Any) -> bool:
    found[v] = label
    sums[v] = total
    return bool(v % 3 == 0)


def number_of(v: Any, u: Any, weight: Any, numbers: Any, found: Any, sums: Any) -> Any:
    return numbers[u]


def weight_of(v: Any, u: Any, weight: Any, numbers: Any, found: Any, sums: Any) -> Any:
    return weight


@pytest.mark.parametrize(
    ("directed", "weight", "labels"),
    [
        pytest.param(False, None, 3, id="undirected-few"),
        pytest.param(True, np.int64, 97, id="directed-many"),
        pytest.param(False, None, 10**9, id="undirected-different"),
    ],
)
@DEVICES
def test_the_most_frequent_label_is_found(device: str, directed: bool, weight: Any, labels: int) -> None:
    graph = with_hubs(directed=directed, weight=weight)
    n = graph.num_vertices
    numbers = np.arange(n) * 7_919 % labels * (4 if labels > 1000 else 1)
    every = gp.Frontier(graph, device=device)
    words = gp.process_vertices(lambda v: v % 5 < 2, every, returns="frontier")
    queue = gp.process_vertices(lambda v: v % 5 < 2, every.chosen(np.arange(n)), returns="frontier")
    forms = {"all": every, "words": words, "queue": queue, "hubs": every.chosen([0, 7]), "none": every.chosen([])}
    for transpose in (False, True) if directed else (False,):
        totals = counters(graph, lambda v, u: int(numbers[u]), lambda weight: weight, transpose=transpose)
        expected = [best(one, lambda label, total: total) for one in totals]
        for name, frontier in forms.items():
            given = [frontier.upload(numbers), frontier.full(-7, np.int64), frontier.full(-7, np.int64)]
            options: dict[str, Any] = {"finish": keep, "transpose": transpose}
            if weight:
                options["weigh"] = weight_of
            after = gp.count_labels(number_of, frontier, given, **options)
            flags = frontier.flags()
            wanted = [pair if flag else (-7, -7) for pair, flag in zip(expected, flags, strict=True)]
            assert list(zip(*(frontier.download(one).tolist() for one in given[1:]), strict=True)) == wanted, name
            assert after.vertices().tolist() == [v for v in frontier.vertices().tolist() if v % 3 == 0]


def with_rows_of_many_lengths() -> gp.Graph:
    """Return a graph in which the tables of 32 rows have 352 to 960 places, 384 of which fit in shared memory."""
    degrees = np.repeat([11, 12, 13, 14, 16, 20, 30, 30], 32)
    src = np.repeat(np.arange(256), degrees)
    dst = (src + 7 * (np.arange(len(src)) - np.repeat(np.cumsum(degrees) - degrees, degrees) + 1)) % 256
    return gp.Graph.from_edgelist(src, dst, num_vertices=256, directed=True)


@DEVICES
def test_tables_of_many_lengths(device: str) -> None:
    graph = with_rows_of_many_lengths()
    assert sorted(set(np.add.reduceat(graph.out_degrees, np.arange(0, 256, 32)).tolist()))[:3] == [352, 384, 416]
    # The best label, which is the smallest, is the last one of many rows.
    numbers = 4 * (1_000 - np.arange(256)) * 7_919
    frontier = gp.Frontier(graph, device=device)
    given = [frontier.upload(numbers), frontier.full(-7, np.int64), frontier.full(-7, np.int64)]
    for label, own in ((number_of, lambda u: int(numbers[u])), (few_of, lambda u: int(numbers[u]) % 5)):
        gp.count_labels(label, frontier, given, finish=keep)
        totals = counters(graph, lambda v, u, own=own: own(u), lambda weight: weight, transpose=False)
        expected = [best(one, lambda label, total: total) for one in totals]
        assert list(zip(*(frontier.download(one).tolist() for one in given[1:]), strict=True)) == expected


def few_of(v: Any, u: Any, weight: Any, numbers: Any, found: Any, sums: Any) -> Any:
    return numbers[u] % 5


def shifted(v: Any, u: Any, weight: Any, numbers: Any, found: Any, sums: Any) -> Any:
    return u % 5 - 1


def by_score(v: Any, label: Any, total: Any, numbers: Any, found: Any, sums: Any) -> Any:
    return total / (label + 1.0)


def times_two(v: Any, u: Any, weight: Any, numbers: Any, found: Any, sums: Any) -> Any:
    return 2


@DEVICES
def test_edges_are_left_out_and_scores_decide(device: str) -> None:
    @examples(device, graph=edge_lists())
    def check(graph: Any) -> None:
        n, edges = graph
        built = gp.Graph.from_edgelist(*arrays(edges), num_vertices=n, directed=True)
        frontier = gp.Frontier(built, device=device)
        given = [frontier.full(0, np.int64) for _ in range(3)]
        total = gp.count_labels(
            shifted, frontier, given, weigh=times_two, choose=by_score, finish=keep_and_sum, returns="sum"
        )
        totals = counters(built, lambda v, u: u % 5 - 1, lambda weight: 2, transpose=False)
        expected = [best(one, lambda label, total: total / (label + 1.0)) for one in totals]
        found = list(zip(*(frontier.download(one).tolist() for one in given[1:]), strict=True))
        assert found == expected
        assert total == sum(pair[1] for pair in expected)

    def keep_and_sum(v: Any, label: Any, total: Any, numbers: Any, found: Any, sums: Any) -> Any:
        found[v] = label
        sums[v] = total
        return total

    check()


@DEVICES
def test_largest_label_and_negative_scores(device: str) -> None:
    frontier = gp.Frontier(gp.Graph.from_edgelist([0, 0, 0], [1, 2, 3]), device=device)
    numbers = frontier.upload(np.array([5, 2**32 - 2, 2**32 - 2, 0]))
    found, sums = frontier.full(0, np.int64), frontier.full(0, np.int64)
    options: dict[str, Any] = {"choose": lambda v, label, total, *_: -total, "finish": keep, "returns": None}
    gp.count_labels(number_of, frontier, [numbers, found, sums], **options)
    assert frontier.download(found).tolist() == [0, 5, 5, 5]
    assert frontier.download(sums).tolist() == [1, 1, 1, 1]
    options["choose"] = None
    gp.count_labels(number_of, frontier, [numbers, found, sums], **options)
    assert frontier.download(found).tolist() == [2**32 - 2, 5, 5, 5]
    assert frontier.download(sums).tolist() == [2, 1, 1, 1]


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "label": ({"label": lambda v, u, weight: 0.5}, "label returns float64, but must return an integer"),
    "weigh": ({"weigh": lambda v, u, weight: weight}, "weigh returns float32, but must return an integer"),
    "choose": ({"choose": lambda v, label, total: "a"}, "choose returns a string, but must return a number"),
    "finish": ({"finish": lambda v, label, total: None}, "finish returns nothing, but must return True or False"),
    "arguments": ({"finish": lambda v, label: True}, "finish takes 2 arguments, but is called with"),
}


@pytest.mark.parametrize("case", WRONG)
@pytest.mark.parametrize("device", [on("cpu"), on("emulated")])
def test_functions_that_cannot_be_used(device: str, case: str) -> None:
    changed, problem = WRONG[case]
    functions: dict[str, Any] = {"label": lambda v, u, weight: u, "finish": lambda v, label, total: True} | changed
    with pytest.raises(ProgramError, match=problem):
        gp.count_labels(functions.pop("label"), gp.Frontier(gp.grid(3), device=device), **functions)


def fail(v: Any, u: Any, weight: Any, limit: Any) -> Any:
    if v == 4 and u == limit:
        raise ValueError("no label")
    return u


def fail_at_end(v: Any, label: Any, total: Any, limit: Any) -> Any:
    if v > limit:
        raise ValueError("no end")
    return True


@DEVICES
def test_an_exception_names_function_place_and_line(device: str) -> None:
    frontier = gp.Frontier(gp.grid(3, holes=0), device=device)
    with pytest.raises((ProgramError, ValueError)) as info:
        gp.count_labels(fail, frontier, [5], finish=lambda v, label, total, limit: True)
    shown = "\n".join([str(info.value), *getattr(info.value, "__notes__", [])])
    assert "label" in shown
    assert "the edge from 4 to 5" in shown
    assert 'raise ValueError("no label")' in shown
    with pytest.raises((ProgramError, ValueError)) as info:
        gp.count_labels(lambda v, u, weight, limit: u, frontier, [7], finish=fail_at_end)
    shown = "\n".join([str(info.value), *getattr(info.value, "__notes__", [])])
    assert "finish" in shown
    assert "vertex 8" in shown
    assert 'raise ValueError("no end")' in shown


@pytest.mark.parametrize("device", [on("python")])
def test_labels_that_are_too_large(device: str) -> None:
    frontier = gp.Frontier(gp.grid(3), device=device)
    with pytest.raises(ProgramError, match="label returns 4,294,967,295, but labels are below 4,294,967,295"):
        gp.count_labels(lambda v, u, weight: 2**32 - 1, frontier, finish=lambda v, label, total: True)


@EMULATED
def test_tables_that_do_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    frontier = gp.Frontier(gp.grid(3), device="emulated")

    def require(needed: int, purpose: str) -> None:
        if "labels" in purpose:
            raise NotEnoughMemoryError(f"{purpose}: {needed}")

    monkeypatch.setattr(frontier.device, "require", require, raising=False)
    with pytest.raises(NotEnoughMemoryError, match="counting labels along 16 edges: 192"):
        gp.count_labels(lambda v, u, weight: u, frontier, finish=lambda v, label, total: True)
