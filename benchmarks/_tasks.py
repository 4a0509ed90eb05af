"""What ``python -m benchmarks all`` measures for each algorithm: graphs, arguments, and the answer to compare."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import gpu_pregel as gp
from benchmarks.peers.ours import GpuPregel
from gpu_pregel.algorithms.registry import algorithm

LARGE = "kron:20,uniform:20,grid:22"
SOCIAL = "kron:20,uniform:20"
SMALL = "kron:13,uniform:13"
"""For algorithms that search from every vertex."""


@dataclass(frozen=True)
class Task:
    """The measurement of one algorithm.

    Attributes
    ----------
    name : str
        The name in the registry.
    answer : callable
        What all contestants must agree on, from our result.
    answer_name : str
        Heading of the column.
    graphs : str
        Specs of the graphs.
    arguments : dict
    sources : int
        If above 0, the algorithm runs from this many sources, given by id in the argument ``source_argument``.
    iterations : int
        Times are divided by this number.
    directed, weighted : bool
        Which edges the graphs have.
    variants : dict
        Further arguments by the name of another contestant of ours.
    tolerance : float or None
        Relative difference of answers that is accepted; None if answers legitimately differ.
    """

    name: str
    answer: Callable[[Any], Any]
    answer_name: str
    graphs: str = LARGE
    arguments: dict[str, Any] = field(default_factory=dict)
    sources: int = 0
    source_argument: str = "source"
    iterations: int = 1
    directed: bool = False
    weighted: bool = False
    variants: dict[str, dict[str, Any]] = field(default_factory=dict)
    tolerance: float | None = 0.0

    @property
    def divisor(self) -> int:
        """The number of runs or iterations of which a time is the sum."""
        return max(self.sources, self.iterations)


ANY_ORDER = {"gpu_pregel-any-order": {"deterministic": False}}


def contestant(task: Task, variant: str = GpuPregel.name) -> type[GpuPregel]:
    """Return our contestant for a task, or one of its variants."""
    arguments = {**task.arguments, **task.variants.get(variant, {})}

    class Ours(GpuPregel):
        """The function of the registry, called once from each source."""

        name = variant
        algorithm = task.name
        suffix = ".wsg" if task.weighted else ".sg"

        def compute(self, graph: gp.Graph, threads: int) -> Any:
            function, where = algorithm(task.name).load(), self.device_options(threads)
            if not task.sources:
                return function(graph, **arguments, **where)
            return [
                function(graph, **{task.source_argument: _as_argument(task, source)}, **arguments, **where)
                for source in self.sources
            ]

        def answer(self, result: Any) -> Any:
            return [task.answer(one) for one in result] if task.sources else task.answer(result)

    return Ours


def _as_argument(task: Task, source: int) -> Any:
    return [source] if task.source_argument.endswith("s") else source


def _reached(result: Any) -> int:
    return int(result.summary()["reached"])


def _top(result: Any) -> int:
    return int(np.asarray(result).argmax())


def _distinct(result: Any) -> int:
    return len(np.unique(np.asarray(result)))


TASKS = (
    Task("connected_components", lambda result: int(result.count), "components"),
    Task("bfs", _reached, "reached", sources=4),
    Task("sssp", _reached, "reached", sources=4, weighted=True),
    Task(
        "pagerank",
        _top,
        "top vertex",
        arguments={"tolerance": 1e-30, "max_iterations": 20, "dtype": np.float32},
        iterations=20,
    ),
    Task(
        "betweenness_centrality",
        _top,
        "top vertex",
        arguments={"normalized": False},
        sources=4,
        source_argument="sources",
    ),
    Task("triangle_count", lambda result: int(result.total), "triangles"),
    Task("local_clustering", lambda result: round(float(np.mean(result)), 6), "mean", SOCIAL, tolerance=1e-4),
    Task("core_number", lambda result: int(np.max(result)), "largest core"),
    Task("strongly_connected_components", _distinct, "components", SOCIAL, directed=True),
    Task("maximal_independent_set", lambda result: int(np.sum(result)), "members", tolerance=None),
    Task("greedy_color", lambda result: int(np.max(result)) + 1, "colours", tolerance=None),
    Task("minimum_spanning_forest", lambda result: int(result.total_weight), "weight", weighted=True, tolerance=1e-6),
    Task(
        "louvain",
        lambda result: float(result.modularity),
        "modularity",
        "kron:18,uniform:18",
        variants=ANY_ORDER,
        tolerance=None,
    ),
    Task(
        "leiden",
        lambda result: float(result.modularity),
        "modularity",
        "kron:18,uniform:18",
        variants=ANY_ORDER,
        tolerance=None,
    ),
    Task("closeness_centrality", lambda result: float(np.max(result)), "highest", SMALL, tolerance=1e-6),
    Task("harmonic_centrality", lambda result: float(np.max(result)), "highest", SMALL, tolerance=1e-6),
    Task("diameter", lambda result: int(result.lower), "diameter", SMALL),
)
