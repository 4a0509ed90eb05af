"""The Graph Based Benchmark Suite (C++ and ParlayLib): https://github.com/ParAlg/gbbs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

from benchmarks.peers._contestant import ProgramContestant


class _Gbbs(ProgramContestant):
    """``PROGRAM -s -stats -rounds RUNS FILE.adj``; the statistics are not part of its time."""

    suffix = ".adj"
    run_pattern = re.compile(r"^### Running Time: ([\d.e+-]+)", re.MULTILINE)
    options: ClassVar[tuple[str, ...]] = ("-s", "-stats")

    def arguments(self, runs: int, source: int | None) -> list[str | Path]:
        """Return the options and the path."""
        start = [] if source is None else ["-src", str(source)]
        return [*self.options, *start, "-rounds", str(runs), self.path]


class GbbsCores(_Gbbs):
    """Julienne's ``KCore``; the answer is the largest core number."""

    name = "gbbs KCore"
    algorithm = "core_number"
    locations = ("gbbs/bin/KCore",)
    answer_pattern = re.compile(r"k_{max} = (\d+)")


class GbbsStrongComponents(_Gbbs):
    """``StronglyConnectedComponents`` (Blelloch, Gu, Shun, Sun 2016)."""

    name = "gbbs SCC"
    algorithm = "strongly_connected_components"
    locations = ("gbbs/bin/StronglyConnectedComponents",)
    options = ("-stats", "-beta", "1.5")
    answer_pattern = re.compile(r"^n_scc = (\d+)", re.MULTILINE)


class GbbsIndependentSet(_Gbbs):
    """``MaximalIndependentSet`` in a random order; its set differs from ours."""

    name = "gbbs MIS"
    algorithm = "maximal_independent_set"
    locations = ("gbbs/bin/MaximalIndependentSet",)
    answer_pattern = re.compile(r"^MaximalIndependentSet size: (\d+)", re.MULTILINE)


class GbbsColoring(_Gbbs):
    """``GraphColoring`` in the order of log-degrees, its default (LLF)."""

    name = "gbbs coloring"
    algorithm = "greedy_color"
    locations = ("gbbs/bin/GraphColoring",)
    answer_pattern = re.compile(r"^num_colors = (\d+)", re.MULTILINE)


class GbbsSpanningForest(_Gbbs):
    """``MinimumSpanningForest`` (Boruvka with filtering); the answer is the total weight."""

    name = "gbbs MSF"
    algorithm = "minimum_spanning_forest"
    suffix = ".wadj"
    locations = ("gbbs/bin/MinimumSpanningForest",)
    options = ("-s", "-w")
    answer_pattern = re.compile(r"^total weight = (\d+)", re.MULTILINE)


class GbbsBetweenness(_Gbbs):
    """``SSBetweennessCentrality`` from one source at a time; it prints scores but no answer to compare."""

    name = "gbbs BC"
    algorithm = "betweenness_centrality"
    locations = ("gbbs/bin/SSBetweennessCentrality",)
    options = ("-s",)


class GbbsSearch(_Gbbs):
    """``BFS``; the answer is the number of reached vertices."""

    name = "gbbs BFS"
    algorithm = "bfs"
    locations = ("gbbs/bin/BFS",)
    options = ("-s",)
    answer_pattern = re.compile(r"^Reachable: (\d+)", re.MULTILINE)
