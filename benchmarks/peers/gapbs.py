"""The GAP Benchmark Suite's ``cc`` (Afforest, C++ and OpenMP): https://github.com/sbeamer/gapbs."""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.peers._contestant import ProgramContestant


class Gapbs(ProgramContestant):
    """``cc -f FILE.sg -n RUNS -a``; ``-a`` counts the components after the last run, untimed."""

    name = "gapbs"
    locations = ("gapbs/cc", "gapbs-cc")
    run_pattern = re.compile(r"^Trial Time:\s*([\d.]+)", re.MULTILINE)
    components_pattern = re.compile(r"^There are (\d+) components", re.MULTILINE)

    def arguments(self, runs: int) -> list[str | Path]:
        """Return the options to load the graph, run, and analyse the last result."""
        return ["-f", self.path, "-n", str(runs), "-a"]

    def load_seconds(self, output: str, wall: float) -> float:  # noqa: ARG002
        """Return the read time that it prints."""
        match = re.search(r"^Read Time:\s*([\d.]+)", output, re.MULTILINE)
        if match is None:
            raise RuntimeError("gapbs printed no Read Time")
        return float(match[1])
