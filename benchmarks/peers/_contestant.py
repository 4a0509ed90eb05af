"""The interface of a contestant, and base classes for Python packages and external programs."""

from __future__ import annotations

import os
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from benchmarks._graphs import read_serialized
from benchmarks._measure import run_program, timed, version_of

PEERS_VARIABLE = "GPU_PREGEL_PEERS"
"""Environment variable with the folder of the peers' programs."""

_TRIAL_SECONDS = 2.0


@dataclass(frozen=True)
class Trial:
    """One turn: seconds of each run of the algorithm alone, and what the last one found."""

    runs: list[float]
    answer: Any


@dataclass(frozen=True)
class Loading:
    """Seconds to load the file, to convert it to the contestant's graph and to run once, and that run's result."""

    load: float
    convert: float
    first: float
    answer: Any


class Contestant(ABC):
    """An implementation of an algorithm on one graph: call ``open`` once, then ``trial`` repeatedly.

    An answer is a number on which all contestants must agree, such as the number of components. An algorithm that
    starts from a source runs once from each of ``sources``, one after the other, and the answer is a list.
    """

    name: ClassVar[str]
    algorithm: ClassVar[str] = "connected_components"
    """The name of the algorithm in the registry."""
    suffix: ClassVar[str] = ".sg"
    """Suffix of the graph file that it loads."""
    sources: Sequence[int] = ()
    """The vertices from which it starts, set before ``open``."""
    iterations: int = 1
    """The number of iterations, set before ``open``."""

    @classmethod
    @abstractmethod
    def why_unavailable(cls, threads: int) -> str | None:
        """Return in one line why the contestant is unavailable, or None if it can run."""

    @classmethod
    @abstractmethod
    def version(cls) -> str:
        """Return the version, for the report."""

    @abstractmethod
    def open(self, path: Path, vertices: int, threads: int) -> Loading:
        """Load the graph and run once, which warms caches and compiles."""

    @abstractmethod
    def trial(self, runs: int) -> Trial:
        """Run the algorithm up to ``runs`` times in a row."""


class PythonContestant(Contestant):
    """A Python package; subclasses define how to ``convert`` the CSR arrays, ``compute`` and ``answer``."""

    package: ClassVar[str]
    modules: ClassVar[tuple[str, ...]] = ()
    """Modules to import before timing starts; by default the package."""
    converts: ClassVar[bool] = True
    """Whether the loaded arrays are converted."""

    @classmethod
    def why_unavailable(cls, threads: int) -> str | None:  # noqa: ARG003
        """Return a reason if the package is not installed."""
        return None if find_spec(cls.package) else f"the package {cls.package} is not installed"

    @classmethod
    def version(cls) -> str:
        """Return the version of the package."""
        return version_of(cls.package)

    def load(self, path: Path) -> Any:
        """Load the file; by default as the arrays ``(indptr, indices)``."""
        return read_serialized(path)

    def convert(self, loaded: Any, threads: int) -> Any:  # noqa: ARG002
        """Convert to the package's own graph."""
        return loaded

    @abstractmethod
    def compute(self, graph: Any, threads: int) -> Any:
        """Run the algorithm; trials time only this call."""

    @abstractmethod
    def answer(self, result: Any) -> Any:
        """Return the answer from the result of ``compute``."""

    def verify(self, graph: Any, result: Any) -> None:
        """Raise an error if the result of the first run is wrong; by default, accept it."""

    def open(self, path: Path, vertices: int, threads: int) -> Loading:  # noqa: ARG002
        """Load, convert, run once and verify the result."""
        for module in self.modules or (self.package,):
            import_module(module)
        loaded, load = timed(self.load, path)
        self._graph, convert = timed(self.convert, loaded, threads) if self.converts else (loaded, 0.0)
        del loaded
        self._threads = threads
        result, first = timed(self.compute, self._graph, threads)
        self.verify(self._graph, result)
        return Loading(load, convert, first, self.answer(result))

    def trial(self, runs: int) -> Trial:
        """Run up to ``runs`` times, but start no further run after two seconds."""
        seconds: list[float] = []
        begin = time.perf_counter()
        result: Any = None
        while len(seconds) < runs and (not seconds or time.perf_counter() - begin < _TRIAL_SECONDS):
            result = None
            result, duration = timed(self.compute, self._graph, self._threads)
            seconds.append(duration)
        return Trial(seconds, self.answer(result))


class ProgramContestant(Contestant):
    """An external program that loads the file, runs the algorithm several times and prints the times."""

    locations: ClassVar[tuple[str, ...]]
    """Possible paths of the program in the folder of the peers."""
    run_pattern: ClassVar[re.Pattern[str]]
    answer_pattern: ClassVar[re.Pattern[str] | None] = None
    """What it prints before its answer; None if it prints none."""

    @classmethod
    def program(cls) -> Path | None:
        """Return the path of the program, or None if it is missing."""
        folder = os.environ.get(PEERS_VARIABLE)
        candidates = [Path(folder) / location for location in cls.locations] if folder else []
        return next((path for path in candidates if os.access(path, os.X_OK) and path.is_file()), None)

    @classmethod
    def why_unavailable(cls, threads: int) -> str | None:  # noqa: ARG003
        """Return a reason if the program is not found."""
        if cls.program():
            return None
        folder = os.environ.get(PEERS_VARIABLE)
        if not folder:
            return f"set {PEERS_VARIABLE} to the folder with its program ({cls.locations[0]})"
        return f"program not found: {' or '.join(str(Path(folder) / place) for place in cls.locations)}"

    @classmethod
    def version(cls) -> str:
        """Return "unknown": programs print no version."""
        return "unknown"

    @abstractmethod
    def arguments(self, runs: int, source: int | None) -> list[str | Path]:
        """Return the arguments that run the program on ``self.path``, from a source if there are any."""

    def load_seconds(self, output: str, wall: float) -> float:
        """Return the seconds of loading; by default the wall time minus the algorithm's time."""
        return wall - sum(self._seconds(output))

    def open(self, path: Path, vertices: int, threads: int) -> Loading:
        """Run the program once with a single run."""
        self.path, self.vertices, self.threads = path, vertices, threads
        outputs, wall = timed(self._outputs, 1)
        load = self.load_seconds(outputs[0], wall / len(outputs))
        return Loading(load, 0.0, self._sums(outputs)[0], self._answer(outputs))

    def trial(self, runs: int) -> Trial:
        """Run one process for each source; its cold first run counts like the others."""
        outputs = self._outputs(runs)
        return Trial(self._sums(outputs), self._answer(outputs))

    def _outputs(self, runs: int) -> list[str]:
        program = self.program()
        if program is None:
            raise FileNotFoundError(f"the program of {self.name} is gone from {os.environ.get(PEERS_VARIABLE)}")
        sources: Sequence[int | None] = self.sources or [None]
        commands = [[program, *self.arguments(runs, source)] for source in sources]
        return [run_program(command, threads=self.threads) for command in commands]

    def _seconds(self, output: str) -> list[float]:
        return [float(text) for text in self.run_pattern.findall(output)]

    def _sums(self, outputs: list[str]) -> list[float]:
        """Return the seconds of each run from all sources."""
        return [sum(seconds) for seconds in zip(*map(self._seconds, outputs), strict=True)]

    def _answer(self, outputs: list[str]) -> Any:
        answers = [self._parse(output) for output in outputs]
        return answers if self.sources else answers[0]

    def _parse(self, output: str) -> int | float | None:
        if self.answer_pattern is None:
            return None
        answers = set(self.answer_pattern.findall(output))
        if len(answers) != 1:
            raise RuntimeError(f"{self.name} printed {len(answers)} different answers instead of one")
        text = answers.pop()
        return int(text) if text.isdecimal() else float(text)
