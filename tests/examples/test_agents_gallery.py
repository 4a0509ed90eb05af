"""The scripts of the gallery that have agents among numeric vertices: compared with simulations in plain Python."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import networkx
import numpy as np
import pytest

import gpu_pregel as gp
from tests.draws import drawn

Array = np.ndarray[Any, Any]
WORKERS = pytest.mark.parametrize("workers", [0, 2])


def script(name: str) -> Any:
    return import_module(f"gpu_pregel.examples.{name}")


class Bank:
    """Accounts, their investigators and what is on the way to them, superstep by superstep."""

    def __init__(self, graph: Any, sources: list[int]) -> None:
        self.graph, self.verdict = graph, dict.fromkeys(sources, 1)
        self.risk = {v: 1_000_000 if v in sources else 0 for v in graph}
        self.gain = dict.fromkeys(sources, 1_000_000)
        self.crossed: list[int] = []
        self.filed: list[tuple[int, ...]] = []
        self.announced: dict[int, int] = {}
        self.cases: list[list[tuple[int, ...]]] = [[] for _ in range(20)]
        self.verdicts: list[tuple[int, int, int]] = []
        self.longest = 0
        """The most cases that one investigator has had at a time."""

    def run(self) -> None:
        """Run until nothing is left to do."""
        superstep = 0
        while self.gain or self.crossed or self.filed or self.announced or any(self.cases):
            superstep += 1
            before = dict(self.risk)
            announced, filed = self.announced, self.filed
            self.decide(superstep, filed)
            self.filed = [self.case(v, before) for v in self.crossed]
            self.spread(before, announced)

    def case(self, account: int, risk: dict[int, int]) -> tuple[int, ...]:
        others = sorted(self.graph[account])[:64]
        return risk[account], account, sum(risk[v] > 100_000 for v in others), len(others)

    def decide(self, superstep: int, filed: list[tuple[int, ...]]) -> None:
        self.announced = {}
        for case in filed:
            self.cases[case[1] % 20].append(case)
        for cases in self.cases:
            self.longest = max(self.longest, len(cases))
            if cases:
                case = max(cases)
                cases.remove(case)
                _, account, risky, count = case
                self.announced[account] = 1 if risky >= 3 and risky >= count / 3 else -1
                self.verdicts.append((superstep, account, self.announced[account]))

    def spread(self, before: dict[int, int], announced: dict[int, int]) -> None:
        shares = dict.fromkeys(self.graph, 0)
        for v, gain in self.gain.items():
            for u in self.graph[v]:
                shares[u] += gain * 85 // (100 * len(self.graph[v]))
        self.gain = {}
        for v, share in shares.items():
            if v in announced:
                self.verdict[v] = announced[v]
                self.risk[v] = 1_000_000 if announced[v] > 0 else 0
                self.gain |= {v: 1_000_000} if announced[v] > 0 else {}
            elif share and v not in self.verdict:
                self.risk[v] += share
                self.gain[v] = share
        undecided = [v for v in self.graph if v not in self.verdict]
        self.crossed = [v for v in undecided if before[v] <= 100_000 < self.risk[v]]


@WORKERS
def test_verdicts_are_those_of_a_simulation(workers: int) -> None:
    module = script("investigators")
    graph, chains = module.accounts(9, (3, 8))
    result, verdicts = module.spread(graph, chains[:, 0], workers=workers)
    bank = Bank(graph.to_networkx(), chains[:, 0].tolist())
    bank.run()
    assert verdicts == sorted(bank.verdicts)
    assert {verdict for *_, verdict in verdicts} == {-1, 1}
    assert result.values.risk.tolist() == [bank.risk[v] for v in range(graph.num_vertices)]
    assert result.values.verdict.tolist() == [bank.verdict.get(v, 0) for v in range(graph.num_vertices)]
    assert bank.longest > 1


def test_a_chain_is_found_and_its_customer_cleared() -> None:
    module = script("investigators")
    chain = [(v, v + k) for k in (1, 2, 3) for v in range(10 - k)]
    source, target = zip(*chain, (0, 10), (1, 10), strict=True)
    graph = gp.Graph.from_edgelist(source, target, num_vertices=11 + 20)
    result, verdicts = module.spread(graph, [0])
    assert [account for *_, account, verdict in verdicts if verdict == module.FRAUD] == list(range(1, 10))
    assert [account for *_, account, verdict in verdicts if verdict == module.CLEARED] == [10]
    assert result.values.risk.tolist() == [1_000_000] * 10 + [0] * 21


def test_hidden_chains_have_edges_to_the_next_three() -> None:
    graph, chains = script("investigators").accounts(8, (2, 6))
    assert graph.num_vertices == 256 + 20
    assert len(set(chains.ravel().tolist())) == 12
    for chain in chains.tolist():
        assert all(graph.has_edge(u, v) for k in (1, 2, 3) for u, v in zip(chain, chain[k:], strict=False))
    assert graph.out_degrees[-20:].tolist() == [0] * 20


def rumour(graph: Any, source: int, popular: int, supersteps: int) -> tuple[list[int], list[int], int]:
    """Return when each person heard the rumour and knew better, and how many were moderated."""
    never = script("rumour").NEVER
    heard, knows = (dict.fromkeys(graph, never) for _ in range(2))
    heard[source] = 0
    watched: set[int] = set()
    answered: list[int] = []
    moderated = set()
    for superstep in range(1, supersteps):
        heard_before, knows_before = dict(heard), dict(knows)
        for v in graph:
            friends = list(graph[v])
            if knows_before[v] < never or not friends:
                continue
            believers = sum(heard_before[u] < never and knows_before[u] == never for u in friends)
            answers = sum(u in graph[v] for u in answered)
            answered_by, convinced = (drawn(0, "apply", v, superstep, draw) for draw in range(2))
            if answers and answered_by < 0.3:
                knows[v] = superstep
            elif believers and heard[v] == never and convinced >= 0.97**believers:
                heard[v] = superstep
        answered = []
        for v in sorted(watched):
            sample = sorted(graph[v])[:64]
            if knows_before[v] < never or sum(heard_before[u] < never for u in sample) * 10 >= len(sample):
                knows[v] = superstep
                answered.append(v)
        watched -= set(answered)
        watched |= {v for v in graph if heard[v] == superstep and len(graph[v]) >= popular}
        moderated |= watched
    return [heard[v] for v in range(len(heard))], [knows[v] for v in range(len(knows))], len(moderated)


@pytest.mark.parametrize(("popular", "workers"), [(20, 0), (20, 2), (1_000_000, 0)])
def test_a_rumour_spreads_as_in_a_simulation(popular: int, workers: int) -> None:
    module = script("rumour")
    graph = gp.kronecker(8, 6)
    source = int(np.argmax(graph.out_degrees == 4))
    result = module.spread(graph, source, popular, supersteps=30, workers=workers)
    heard, knows, moderated = rumour(graph.to_networkx(), source, popular, 30)
    assert result.values.heard.tolist() == heard
    assert result.values.knows.tolist() == knows
    assert len(result.agents.values) == moderated
    assert sum(time < module.NEVER for time in heard) > 30
    assert any(time < module.NEVER for time in knows) == (popular == 20)
    looks = sum(row["computed"] for row in result.trace)
    assert (looks > moderated) == (popular == 20)  # some moderators look more than once


def test_counts_of_a_rumour() -> None:
    module = script("rumour")
    never = module.NEVER
    values = SimpleNamespace(heard=np.array([0, 1, never, never]), knows=np.array([2, never, 1, never]))
    believe, know = module.counts(values, 3)
    assert believe.tolist() == [1, 2, 1]
    assert know.tolist() == [0, 1, 2]


@WORKERS
def test_documents_are_read_in_the_order_of_their_ranks(workers: int) -> None:
    module = script("reading_list")
    graph, subjects = module.library(60, 4)
    result = module.browse(graph, subjects, 15, workers=workers)
    citations = networkx.to_numpy_array(graph.to_networkx(), nodelist=range(60)) / 4
    fits = [max(0.02, 1 - 3 * np.hypot(x - 0.75, y - 0.7)) for x, y in subjects]
    ranks, weights = np.full(60, 1 / 60), np.full(60, 0.2)
    read: list[int] = []
    for superstep in range(1, 18):
        following = 0.15 / 60 + 0.85 * citations.T @ (ranks * weights)
        weights[read] = np.array(fits)[read]  # an agent woken in the superstep before, and those before it
        if 2 <= superstep <= 16:
            read.append(max((v for v in range(60) if v not in read), key=lambda v: ranks[v]))
        ranks = following
    assert module.order(result.values).tolist() == read
    assert result.values.rank == pytest.approx(ranks)
    assert result.values.weight == pytest.approx(weights)
    assert len(result.agents.values) == len(set(read)) == 15


def test_ranks_with_fixed_weights_solve_their_equation() -> None:
    module = script("reading_list")
    graph, subjects = module.library(60, 4)
    result = module.browse(graph, subjects, 25, judge=lambda ctx, subjects: None)
    citations = networkx.to_numpy_array(graph.to_networkx(), nodelist=range(60)) / 4
    expected = np.linalg.solve(np.eye(60) - 0.85 * 0.2 * citations.T, np.full(60, 0.15 / 60))
    assert result.values.rank == pytest.approx(expected, rel=1e-12)
    assert set(result.values.weight) == {0.2}


def test_documents_cite_those_of_near_subjects() -> None:
    graph, subjects = script("reading_list").library(100, 5)
    assert graph.out_degrees.tolist() == [5] * 100
    source, target, _ = graph.to_edgelist()
    assert (source != target).all()
    everywhere = np.hypot(*(subjects[:, None] - subjects).T).mean()
    assert np.hypot(*(subjects[source] - subjects[target]).T).mean() < everywhere / 2


@pytest.fixture
def axes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Any]]:
    """Return a function that draws the picture of a script, and returns its axes."""
    monkeypatch.setenv("MPLBACKEND", "agg")
    import matplotlib.pyplot as plt

    def drawn(name: str, *arguments: Any) -> list[Any]:
        script(name).draw(tmp_path / "picture.png", *arguments)
        figure = plt.gcf()
        plt.close(figure)
        found: list[Any] = figure.axes
        return found

    return drawn


def areas(axis: Any) -> Array:
    """Return the heights of a stack of areas: one row for each, one column per superstep."""
    tops = []
    for area in axis.collections:
        points = area.get_paths()[0].vertices
        tops.append([points[points[:, 0] == x, 1].max() for x in np.unique(points[:, 0])])
    return np.diff(tops, axis=0, prepend=0)


def test_the_picture_of_investigators_has_every_verdict(axes: Callable[..., list[Any]]) -> None:
    left, right, *_ = axes("investigators", 9, (3, 8))
    graph, chains = script("investigators").accounts(9, (3, 8))
    bank = Bank(graph.to_networkx(), chains[:, 0].tolist())
    bank.run()
    frauds = {account: superstep for superstep, account, verdict in bank.verdicts if verdict == 1}
    shown = left.collections[1].get_array().reshape(chains.shape)
    assert shown.tolist() == [[0, *(frauds[v] for v in chain[1:])] for chain in chains.tolist()]
    fraud, cleared, waiting = areas(right)
    assert (fraud[-1], cleared[-1], waiting[-1]) == (len(frauds), len(bank.verdicts) - len(frauds), 0)
    assert waiting.max() > 20


def test_the_picture_of_a_rumour_has_everybody(axes: Callable[..., list[Any]]) -> None:
    graph = gp.kronecker(8, 6)
    without, moderated = axes("rumour", graph, 20)
    source = int(np.argmax(graph.out_degrees == 4))
    for axis, popular in ((without, 1_000_000), (moderated, 20)):
        heard, knows, count = rumour(graph.to_networkx(), source, popular, 40)
        believe = [sum(h <= step < k for h, k in zip(heard, knows, strict=True)) for step in range(40)]
        better = [sum(k <= step for k in knows) for step in range(40)]
        assert areas(axis).tolist() == [believe, better]
        assert axis.get_title() == f"{count} moderated"


def test_the_picture_of_a_reading_list_has_its_documents(axes: Callable[..., list[Any]]) -> None:
    left, right, *_ = axes("reading_list", 20)
    module = script("reading_list")
    graph, subjects = module.library()
    values = module.browse(graph, subjects, 20).values
    read = sorted(np.flatnonzero(values.read), key=lambda v: values.read[v])
    near = [np.hypot(x - 0.75, y - 0.7) < 1 / 3 for x, y in subjects[read]]
    assert left.collections[1].get_offsets().tolist() == subjects[read].tolist()
    assert right.lines[0].get_ydata().tolist() == np.cumsum(near).tolist()
    assert right.lines[0].get_ydata()[-1] > right.lines[1].get_ydata()[-1]
