"""Gemini's ``toolkits/cc`` (OSDI '16, C++, OpenMP and MPI): https://github.com/thu-pacman/GeminiGraph."""

from __future__ import annotations

import os
import re
from pathlib import Path

from benchmarks.peers._contestant import ProgramContestant


class Gemini(ProgramContestant):
    """``cc FILE.bin VERTICES`` as a single process without mpirun; it always runs six times."""

    name = "gemini"
    suffix = ".bin"
    locations = ("gemini/toolkits/cc", "gemini-cc")
    run_pattern = re.compile(r"^exec_time=([\d.]+)\(s\)", re.MULTILINE)
    answer_pattern = re.compile(r"^components = (\d+)", re.MULTILINE)

    @classmethod
    def why_unavailable(cls, threads: int) -> str | None:
        """Return a reason also if the number of threads differs from the number of processors."""
        if (reason := super().why_unavailable(threads)) is not None:
            return reason
        if threads != os.cpu_count():
            return f"it always uses all {os.cpu_count()} processors, not {threads}"
        return None

    def arguments(self, runs: int, source: int | None) -> list[str | Path]:  # noqa: ARG002
        """Return the path and the number of vertices."""
        return [self.path, str(self.vertices)]
