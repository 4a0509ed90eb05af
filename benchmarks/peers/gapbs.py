"""The GAP Benchmark Suite (C++ and OpenMP): https://github.com/sbeamer/gapbs."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, ClassVar

from benchmarks._measure import run_program
from benchmarks.peers._contestant import Loading, ProgramContestant

_TOP_SCORE = re.compile(r"\A[\s\S]*?^(\d+):[\d.e+-]+$", re.MULTILINE)
"""The vertex of the first line of scores."""
_DELTAS = (1, 2, 4, 8, 16, 32, 64, 128)


class Gapbs(ProgramContestant):
    """``cc -f FILE.sg -n RUNS -a`` (Afforest); ``-a`` prints the answer of the last run, untimed."""

    name = "gapbs"
    locations: ClassVar[tuple[str, ...]] = ("gapbs/cc", "gapbs-cc")
    run_pattern = re.compile(r"^Trial Time:\s*([\d.]+)", re.MULTILINE)
    answer_pattern: ClassVar[re.Pattern[str] | None] = re.compile(r"^There are (\d+) components", re.MULTILINE)

    def arguments(self, runs: int, source: int | None) -> list[str | Path]:
        """Return the options to load the graph, run, and analyse the last result."""
        start = [] if source is None else ["-r", str(source)]
        return ["-f", self.path, "-n", str(runs), "-a", *start]

    def load_seconds(self, output: str, wall: float) -> float:  # noqa: ARG002
        """Return the read time that it prints."""
        match = re.search(r"^Read Time:\s*([\d.]+)", output, re.MULTILINE)
        if match is None:
            raise RuntimeError("gapbs printed no Read Time")
        return float(match[1])


class GapbsSearch(Gapbs):
    """The direction-optimizing ``bfs``; the answer is the number of vertices of the tree."""

    name = "gapbs bfs"
    algorithm = "bfs"
    locations = ("gapbs/bfs", "gapbs-bfs")
    answer_pattern = re.compile(r"^BFS Tree has (\d+) nodes", re.MULTILINE)


class GapbsPaths(Gapbs):
    """Delta-stepping, ``sssp``, with the fastest of several values of delta."""

    name = "gapbs sssp"
    algorithm = "sssp"
    suffix = ".wsg"
    locations = ("gapbs/sssp", "gapbs-sssp")
    answer_pattern = re.compile(r"^SSSP Tree reaches (\d+) nodes", re.MULTILINE)

    def open(self, path: Path, vertices: int, threads: int) -> Loading:
        """Choose delta by one run each from the first source."""
        self.path, self.threads = path, threads
        self._delta = min(_DELTAS, key=self._time)
        return super().open(path, vertices, threads)

    def _time(self, delta: int) -> float:
        self._delta = delta
        program = self.program()
        assert program is not None
        output = run_program([program, *self.arguments(2, self.sources[0])], threads=self.threads)
        return min(self._seconds(output))

    def arguments(self, runs: int, source: int | None) -> list[str | Path]:
        """Return the options with delta."""
        return [*super().arguments(runs, source), "-d", str(self._delta)]


class GapbsPageRank(Gapbs):
    """``pr_spmv`` (Jacobi) with tolerance 0, so that all iterations run; the answer is the vertex of the top score."""

    name = "gapbs pr_spmv"
    algorithm = "pagerank"
    locations = ("gapbs/pr_spmv", "gapbs-pr_spmv")
    answer_pattern: ClassVar[re.Pattern[str] | None] = _TOP_SCORE

    def arguments(self, runs: int, source: int | None) -> list[str | Path]:
        """Return the options with the number of iterations."""
        return [*super().arguments(runs, source), "-i", str(self.iterations), "-t", "0"]


class GapbsPageRankGaussSeidel(GapbsPageRank):
    """``pr``, which updates the scores in place; the answer is not compared, as it depends on the threads."""

    name = "gapbs pr"
    locations = ("gapbs/pr", "gapbs-pr")
    answer_pattern = None


class GapbsBetweenness(Gapbs):
    """Brandes's algorithm from one source at a time, ``bc -i 1``; the answer is the vertex of the top score.

    It gives the source a score, too, which by definition is 0.
    """

    name = "gapbs bc"
    algorithm = "betweenness_centrality"
    locations = ("gapbs/bc", "gapbs-bc")

    def arguments(self, runs: int, source: int | None) -> list[str | Path]:
        """Return the options for one source."""
        return [*super().arguments(runs, source), "-i", "1"]

    def _answer(self, outputs: list[str]) -> Any:
        tops = [[int(v) for v in re.findall(r"^(\d+):", output, re.MULTILINE)] for output in outputs]
        return [next(v for v in top if v != source) for top, source in zip(tops, self.sources, strict=True)]


class GapbsTriangles(Gapbs):
    """``tc``, which relabels skewed graphs by degree; that time counts."""

    name = "gapbs tc"
    algorithm = "triangle_count"
    locations = ("gapbs/tc", "gapbs-tc")
    answer_pattern = re.compile(r"^(\d+) triangles", re.MULTILINE)
