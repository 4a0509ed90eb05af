"""Gemini's ``toolkits/cc`` (OSDI '16, C++, OpenMP and MPI): https://github.com/thu-pacman/GeminiGraph."""

from __future__ import annotations

import os
import re
from pathlib import Path

from benchmarks.peers._contestant import ProgramContestant


class Gemini(ProgramContestant):
    """``cc FILE.bin VERTICES`` as a single process without mpirun; it always runs six times, whatever is asked for."""

    name = "gemini"
    suffix = ".bin"
    places = ("gemini/toolkits/cc", "gemini-cc")
    run_pattern = re.compile(r"^exec_time=([\d.]+)\(s\)", re.MULTILINE)
    components_pattern = re.compile(r"^components = (\d+)", re.MULTILINE)

    @classmethod
    def absent(cls, threads: int) -> str | None:
        """Say also if it cannot keep to the number of threads."""
        if (reason := super().absent(threads)) is not None:
            return reason
        if threads != os.cpu_count():
            return f"it takes all {os.cpu_count()} processors whatever it is told, not {threads}"
        return None

    def arguments(self, runs: int) -> list[str | Path]:  # noqa: ARG002
        """Path and number of vertices."""
        return [self.path, str(self.vertices)]
