"""What a contestant must offer, and what Python packages and programs among them have in common."""

from __future__ import annotations

import os
import re
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, ClassVar

from benchmarks._graphs import read_serialized
from benchmarks._measure import run_program, timed, version_of

PEERS_VARIABLE = "GPU_PREGEL_PEERS"
"""Environment variable that names the folder with the peers' programs."""

_TRIAL_SECONDS = 2.0


@dataclass(frozen=True)
class Trial:
    """One turn: seconds of each run of the algorithm alone, and the number of components it found."""

    runs: list[float]
    components: int


@dataclass(frozen=True)
class Loading:
    """Seconds from the file to memory, from there to the contestant's structure, and of a first run with its result."""

    load: float
    convert: float
    first: float
    components: int


class Contestant(ABC):
    """Something that finds connected components, made anew for each graph: ``open`` once, then ``trial`` often."""

    name: ClassVar[str]
    suffix: ClassVar[str] = ".sg"
    """Which of the graph's files it loads."""

    @classmethod
    @abstractmethod
    def absent(cls, threads: int) -> str | None:
        """Say in one line why it has to step aside; None if it can take part."""

    @classmethod
    @abstractmethod
    def version(cls) -> str:
        """Version, for the report."""

    @abstractmethod
    def open(self, path: Path, vertices: int, threads: int) -> Loading:
        """Load the graph and run once, which warms caches and compiles what has to be compiled."""

    @abstractmethod
    def trial(self, runs: int) -> Trial:
        """Run the algorithm up to ``runs`` times in a row."""


class PythonContestant(Contestant):
    """A Python package: say how to ``convert`` the CSR arrays, what to ``compute`` and how to ``count``."""

    package: ClassVar[str]
    modules: ClassVar[tuple[str, ...]] = ()
    """Imported before any clock starts; by default the package."""
    converts: ClassVar[bool] = True
    """Whether there is anything to convert after loading."""

    @classmethod
    def absent(cls, threads: int) -> str | None:  # noqa: ARG003
        """Say if the package is not installed."""
        return None if find_spec(cls.package) else f"the package {cls.package} is not installed"

    @classmethod
    def version(cls) -> str:
        """Version of the package."""
        return version_of(cls.package)

    def load(self, path: Path) -> Any:
        """Bring the file into memory; by default as the arrays ``(indptr, indices)``."""
        return read_serialized(path)

    def convert(self, loaded: Any, threads: int) -> Any:  # noqa: ARG002
        """Make the package's own graph; what it does not need later may be dropped."""
        return loaded

    @abstractmethod
    def compute(self, graph: Any, threads: int) -> Any:
        """Find the components; this alone is what a trial times."""

    @abstractmethod
    def count(self, result: Any) -> int:
        """Number of components in what ``compute`` returned."""

    def open(self, path: Path, vertices: int, threads: int) -> Loading:  # noqa: ARG002
        """Load, convert and run once."""
        for module in self.modules or (self.package,):
            import_module(module)
        loaded, load = timed(self.load, path)
        self._graph, convert = timed(self.convert, loaded, threads) if self.converts else (loaded, 0.0)
        del loaded
        self._threads = threads
        result, first = timed(self.compute, self._graph, threads)
        return Loading(load, convert, first, self.count(result))

    def trial(self, runs: int) -> Trial:
        """Run up to ``runs`` times, and begin no further run once two seconds are spent."""
        seconds: list[float] = []
        begin = time.perf_counter()
        result: Any = None
        while len(seconds) < runs and (not seconds or time.perf_counter() - begin < _TRIAL_SECONDS):
            result = None
            result, duration = timed(self.compute, self._graph, self._threads)
            seconds.append(duration)
        return Trial(seconds, self.count(result))


class ProgramContestant(Contestant):
    """A program that loads the file, runs the algorithm several times and prints what each took."""

    places: ClassVar[tuple[str, ...]]
    """Where it may stand in the folder of the peers."""
    run_pattern: ClassVar[re.Pattern[str]]
    components_pattern: ClassVar[re.Pattern[str]]

    @classmethod
    def program(cls) -> Path | None:
        """The program's path, if it is there."""
        folder = os.environ.get(PEERS_VARIABLE)
        candidates = [Path(folder) / place for place in cls.places] if folder else []
        return next((path for path in candidates if os.access(path, os.X_OK) and path.is_file()), None)

    @classmethod
    def absent(cls, threads: int) -> str | None:  # noqa: ARG003
        """Say if the program is not where it is looked for."""
        if cls.program():
            return None
        folder = os.environ.get(PEERS_VARIABLE)
        if not folder:
            return f"set {PEERS_VARIABLE} to the folder with its program ({cls.places[0]})"
        return f"program not found: {' or '.join(str(Path(folder) / place) for place in cls.places)}"

    @classmethod
    def version(cls) -> str:
        """Programs tell no version."""
        return "unknown"

    @abstractmethod
    def arguments(self, runs: int) -> list[str | Path]:
        """Command line after the program's name, for ``self.path``."""

    def load_seconds(self, output: str, wall: float) -> float:
        """Seconds of loading; what the process took beside the algorithm, where it does not say."""
        return wall - sum(self._seconds(output))

    def open(self, path: Path, vertices: int, threads: int) -> Loading:
        """Run the program once with a single run."""
        self.path, self.vertices, self.threads = path, vertices, threads
        output, wall = timed(self._output, 1)
        return Loading(self.load_seconds(output, wall), 0.0, self._seconds(output)[0], self._components(output))

    def trial(self, runs: int) -> Trial:
        """One process; its first run, which is cold, counts like the others."""
        output = self._output(runs)
        return Trial(self._seconds(output), self._components(output))

    def _output(self, runs: int) -> str:
        program = self.program()
        if program is None:
            raise FileNotFoundError(f"{self.name} has gone")
        return run_program([program, *self.arguments(runs)], threads=self.threads)

    def _seconds(self, output: str) -> list[float]:
        return [float(text) for text in self.run_pattern.findall(output)]

    def _components(self, output: str) -> int:
        counts = {int(text) for text in self.components_pattern.findall(output)}
        if len(counts) != 1:
            raise RuntimeError(f"{self.name} printed {len(counts)} different numbers of components, not one")
        return counts.pop()
