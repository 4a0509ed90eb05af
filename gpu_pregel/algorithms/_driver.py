"""What all algorithms of the registry share: the driver of a call, and the docstrings of the common parameters."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import chain
from textwrap import indent
from typing import Any, TypeVar

from gpu_pregel.algorithms._arguments import check_directed, check_undirected, weights_required
from gpu_pregel.algorithms.registry import algorithm
from gpu_pregel.host.arguments import check_flag
from gpu_pregel.host.devices import DeviceName, get_device
from gpu_pregel.host.devices.cpu import CpuDevice
from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.graphs.graph import Graph, GraphLike, as_graph
from gpu_pregel.host.programs.program import VertexProgram
from gpu_pregel.host.programs.run import ProgramResult, run
from gpu_pregel.host.superstep.phases import Phases
from gpu_pregel.host.superstep.trace import stats_of
from gpu_pregel.host.traverse.frontier import Frontier

_Function = TypeVar("_Function", bound=Callable[..., Any])

_REQUIREMENTS: dict[str, Callable[[Graph, str], Any]] = {
    "undirected": check_undirected,
    "directed": check_directed,
    "weights": weights_required,
}
"""What is cheap to check; algorithms that require a graph without cycles find them themselves."""

_TEXTS = {
    "graph": "graph : Graph, NetworkX graph or SciPy sparse matrix",
    "options": """\
device : {"auto", "cpu", "cuda", "cuda:N", "emulated", "emulated:SEED", "python"}
threads : int, optional
    Number of CPU threads. Default: the processors available to this process.
progress : bool, default False
    Show a progress bar on stderr.""",
    "errors": """\
ArgumentTypeError
    ``graph`` is not a graph, or an argument has the wrong type.
DeviceError
    The device is unknown or cannot be used.""",
}


def documented(function: _Function) -> _Function:
    """Replace the lines ``{graph}``, ``{options}`` and ``{errors}`` of a docstring by the texts that all share."""

    def text(line: re.Match[str]) -> str:
        return indent(_TEXTS[line[2]], line[1])

    function.__doc__ = re.sub(rf"^( *)\{{({'|'.join(_TEXTS)})\}}$", text, function.__doc__ or "", flags=re.MULTILINE)
    return function


def host_device(threads: int | None = None) -> CpuDevice:
    """Return the CPU, for work in host memory that is done there whatever the device of the call."""
    return CpuDevice(threads)


class AlgorithmRun:
    """A call of an algorithm: checks the graph, chooses the device, runs its implementation, collects the figures.

    Parameters
    ----------
    name : str
        The algorithm's name in the registry.
    graph, device, threads, progress
        The arguments of the call. "auto" is the device on which the registry says that the algorithm is faster.

    Attributes
    ----------
    name : str
    graph : Graph
        The argument as a graph that meets the requirements of the registry's entry.
    device : Device
    progress : bool
    notes : dict
        What the statistics have in addition.
    """

    def __init__(
        self,
        name: str,
        graph: GraphLike,
        device: DeviceName = "auto",
        threads: int | None = None,
        progress: bool = False,
    ) -> None:
        self.name, self._entry = name, algorithm(name)
        self.graph = as_graph(graph)
        for requirement in self._entry.requires:
            if requirement in _REQUIREMENTS:
                _REQUIREMENTS[requirement](self.graph, name)
        self.progress = check_flag("progress", progress)
        self._threads = threads
        self._device_name, self._reason = self.graph._choose_device(name, self._entry.gpu_from, device, threads)
        self.device: Device = get_device(self._device_name, threads=threads)
        self._traces: list[Callable[[], Sequence[dict[str, Any]]]] = []
        self._unlisted = 0.0
        """The seconds of compiling that no row of the traces has."""
        self.notes: dict[str, Any] = {}

    def execute(self, *arguments: Any, **options: Any) -> Any:
        """Return what the registry's implementation for the device finds: ``implementation(run, *arguments)``."""
        return self._entry.load_implementation(self.device.name)(self, *arguments, **options)

    def move_to_host(self, reason: str) -> None:
        """Continue on the CPU, for a reason that the statistics state."""
        self.device, self._device_name, self._reason = host_device(), "cpu", reason

    @cached_property
    def phases(self) -> Phases:
        """What launches kernels on the device."""
        return self.phases_on(self.device)

    def phases_on(self, device: Device) -> Phases:
        """Return what launches kernels on a device as phases of this run."""
        phases = Phases(device, shown=self.progress)
        self._traces.append(phases.trace)
        return phases

    def frontier(self, vertices: Any = None, *, graph: Graph | None = None) -> Frontier:
        """Return a frontier on the device, of this graph or another one, all of whose operators count for this run."""
        graph = self.graph if graph is None else graph
        frontier = Frontier(graph, vertices, device=self._device_name, threads=self._threads, progress=self.progress)
        self._traces.append(frontier.trace)
        return frontier

    def program(
        self,
        program: VertexProgram,
        *,
        graph: Graph | None = None,
        phase: str = "",
        **options: Any,
    ) -> ProgramResult:
        """Run a vertex program on the device; each superstep is a row of the trace, of a ``phase`` if named."""
        graph = self.graph if graph is None else graph
        common: dict[str, Any] = {"device": self._device_name, "threads": self._threads, "progress": self.progress}
        found = run(graph, program, **common, **options)
        rows: Sequence[dict[str, Any]] = found.trace
        if phase:
            rows = tuple({"phase": phase, **row} for row in rows)
        else:
            self.notes["partitions"] = found.stats["partitions"]
        self.add(rows, found.stats["compile_seconds"])
        return found

    def call(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Call another algorithm with the device and the threads of this run, of which it becomes a part."""
        found = function(*arguments, **options, device=self._device_name, threads=self._threads)
        self.add(found.trace, found.stats["compile_seconds"])
        return found

    def add(self, rows: Sequence[dict[str, Any]], compile_seconds: float) -> None:
        """Add rows to the trace; compiling took ``compile_seconds``, of which the rows may name a part."""
        self._traces.append(lambda: rows)
        self._unlisted += compile_seconds - sum(row["compile_seconds"] for row in rows)

    def trace(self) -> Any:
        """Return one row per phase and superstep, part by part."""
        traces = [trace() for trace in self._traces]
        return traces[0] if len(traces) == 1 else tuple(chain.from_iterable(traces))

    def stats(self) -> dict[str, Any]:
        """Return the device, the reason, the number of threads, and the seconds of all parts, compiling apart."""
        stats = stats_of(self.device, self._reason, self.trace(), **self.notes)
        stats["compile_seconds"] += self._unlisted
        return stats
