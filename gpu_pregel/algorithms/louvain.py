"""Louvain's communities: vertices move to the neighbouring community that raises modularity most.

Vincent D. Blondel, Jean-Loup Guillaume, Renaud Lambiotte, Etienne Lefebvre: Fast unfolding of communities in large
networks, Journal of Statistical Mechanics, 2008. Skipping vertices around which nothing changed, the tables of threads
and the loosening of the tolerance follow Subhajit Sahu: GVE-Louvain, 2023. Vertices move in batches, all by the state
before their batch, so that the result does not depend on the number of threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from gpu_pregel.algorithms import _levels
from gpu_pregel.algorithms._arguments import check_open_interval
from gpu_pregel.algorithms._devices import chooses_device
from gpu_pregel.algorithms._levels import LevelPhases, Search, search_communities
from gpu_pregel.algorithms._levels_cpu import CpuLevels
from gpu_pregel.algorithms._levels_operators import OperatorLevels
from gpu_pregel.algorithms.communities import Communities, check_resolution, check_weights, modularity
from gpu_pregel.host.arguments import check_flag, check_integer
from gpu_pregel.host.devices import DeviceName, get_device
from gpu_pregel.host.devices.cpu import CpuDevice
from gpu_pregel.host.devices.device import Device
from gpu_pregel.host.graphs.graph import Graph, GraphLike, as_graph
from gpu_pregel.host.superstep.phases import Phases
from gpu_pregel.host.traverse.frontier import Frontier

_Close = Callable[[], tuple[dict[str, Any], tuple[dict[str, Any], ...]]]

__all__ = ["Communities", "louvain", "modularity"]


@chooses_device
def louvain(
    graph: GraphLike,
    *,
    resolution: float = 1.0,
    max_levels: int | None = None,
    tolerance: float = 0.003,
    seed: int = 0,
    deterministic: bool = True,
    device: DeviceName = "auto",
    threads: int | None = None,
    progress: bool = False,
) -> Communities:
    """Find communities of large modularity by Louvain's method.

    Weights are used if the graph has them.

    Parameters
    ----------
    graph : Graph, NetworkX graph or SciPy sparse matrix
        Undirected, with weights of at least 0, or none.
    resolution : float, default 1.0
        From 0 to 1,000,000; the larger, the smaller the communities.
    max_levels : int, optional
        Stop after this many levels. Default: when no communities can be joined any more.
    tolerance : float, default 0.003
        A level ends when moving every vertex once raises modularity by at most this much; the limit is a tenth of it at
        each further level. A smaller one takes longer and finds slightly better communities.
    seed : int, default 0
        Selects the order in which vertices move.
    deterministic : bool, default True
        Find the same communities in every run. False takes less time on the CPU, where vertices then move in the order
        in which threads come to them; it makes no difference on other devices.
    device : {"auto", "cpu", "cuda", "cuda:N", "emulated", "emulated:SEED", "python"}
        Graphs and levels of up to 2^15 stored edges are searched on the CPU, unless it is "python"; ``stats`` says so
        in "device" and "device_reason" (all levels) or in "on_cpu" (some).
    threads : int, optional
        Number of CPU threads. Default: the processors available to this process.
    progress : bool, default False
        Show a progress bar on stderr.

    Returns
    -------
    Communities
        With ``labels``, ``levels``, ``count``, ``sizes()`` and ``modularity``. Every run, device and number of threads
        gives the same communities unless ``deterministic`` is False.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        An argument is invalid.
    GraphError
        The graph is directed, or has a negative weight or weights whose sum is infinite.
    DeviceError
        The device is unknown or cannot be used.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> found = gp.louvain(gp.Graph.from_edgelist([0, 1, 2, 2, 3, 4, 5], [1, 2, 0, 3, 4, 5, 3]))
    >>> found.labels.tolist(), round(found.modularity, 3)
    ([0, 0, 0, 1, 1, 1], 0.357)
    """
    return find_communities(
        "louvain",
        graph,
        resolution,
        max_levels,
        tolerance,
        seed,
        deterministic=deterministic,
        device=device,
        threads=threads,
        progress=progress,
    )


def find_communities(
    name: str,
    graph: GraphLike,
    resolution: float,
    max_levels: int | None,
    tolerance: float,
    seed: int,
    iterations: int = 1,
    *,
    deterministic: bool,
    device: DeviceName,
    threads: int | None,
    progress: bool,
) -> Communities:
    """Check the arguments of the algorithm ``name`` and run it; "leiden" refines communities."""
    graph = as_graph(graph)
    check_weights(graph, name)
    resolution = check_resolution(resolution)
    if max_levels is not None:
        max_levels = check_integer("max_levels", max_levels, 1)
    tolerance = check_open_interval("tolerance", tolerance, 0, 1)
    seed = check_integer("seed", seed, 0)
    iterations = check_integer("iterations", iterations, 1)
    deterministic = check_flag("deterministic", deterministic)
    target = get_device(device, threads=threads)
    levels, close = _levels_on(target, graph, device, progress)
    search = Search(resolution, tolerance, max_levels, seed, deterministic, name == "leiden", iterations)
    found = search_communities(levels, graph, search) if graph.num_vertices else [np.empty(0, np.uint32)]
    found = [target.upload(labels) if isinstance(labels, np.ndarray) else labels for labels in found]
    stats, trace = close()
    return Communities(
        graph=graph, stats=stats, trace=trace, labels=found[-1], levels=tuple(found), resolution=resolution
    )


def _levels_on(target: Device, graph: Graph, device: DeviceName, progress: bool) -> tuple[LevelPhases, _Close]:
    """Return what searches levels on a device, and a function that returns its statistics and its trace."""
    host = target if isinstance(target, CpuDevice) else get_device("cpu")
    assert isinstance(host, CpuDevice)
    phases = Phases(host, shown=progress)
    interpreted = target.name == "python"
    # A GPU is slow where there are few edges; on the device "python", everything is interpreted.
    cpu = None if interpreted else CpuLevels(host, phases, graph.num_vertices)
    if cpu is not None and (host is target or graph.num_stored_edges <= _levels.SERIAL_EDGES):
        reason = f"up to {_levels.SERIAL_EDGES:,} stored edges are searched on the CPU, whatever the device of the call"
        return cpu, lambda: ({**phases.stats(), "device_reason": reason}, phases.trace())
    frontier = Frontier(graph, device=device, progress=progress)

    def close() -> tuple[dict[str, Any], tuple[dict[str, Any], ...]]:
        stats, other = frontier.stats(), phases.stats()
        for key in ("seconds", "compile_seconds"):
            stats[key] += other[key]
        if phases.trace():
            stats["on_cpu"] = f"levels of up to {_levels.SERIAL_EDGES:,} stored edges"
        return stats, (*frontier.trace(), *phases.trace())

    return OperatorLevels(frontier, cpu), close
