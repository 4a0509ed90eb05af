"""GVE-Louvain and GVE-Leiden (C++ and OpenMP): https://github.com/puzzlef.

Their number of threads and of repetitions is set when they are built (-DMAX_THREADS=2, -DREPEAT_METHOD=5); each process
prints the mean time of the repetitions.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import ClassVar

from benchmarks.peers._contestant import ProgramContestant


class GveLouvain(ProgramContestant):
    """``gve_louvain FILE.mtx 1 0``; the answer is the modularity."""

    name = "gve-louvain"
    algorithm = "louvain"
    suffix = ".mtx"
    locations: ClassVar[tuple[str, ...]] = ("gve/louvain/gve_louvain",)
    run_pattern = re.compile(r"^.*\{0*([\d.]+)ms,.*\} louvainStaticOmp$", re.MULTILINE)
    answer_pattern = re.compile(r" ([\d.]+) modularity.*\} louvainStaticOmp$", re.MULTILINE)

    def arguments(self, runs: int, source: int | None) -> list[str | Path]:  # noqa: ARG002
        """Return the path, and that the file has each undirected edge twice and no weights."""
        return [self.path, "1", "0"]

    def _seconds(self, output: str) -> list[float]:
        return [milliseconds / 1000 for milliseconds in super()._seconds(output)]


class GveLeiden(GveLouvain):
    """``gve_leiden FILE.mtx 1 0``."""

    name = "gve-leiden"
    algorithm = "leiden"
    locations = ("gve/leiden/gve_leiden",)
    run_pattern = re.compile(r"^.*\{0*([\d.]+)ms,.*\} leidenStaticOmp$", re.MULTILINE)
    answer_pattern = re.compile(r" ([\d.]+) modularity.*\} leidenStaticOmp$", re.MULTILINE)
