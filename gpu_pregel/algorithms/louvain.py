"""Louvain's communities: vertices move to the neighbouring community that raises modularity most.

Vincent D. Blondel, Jean-Loup Guillaume, Renaud Lambiotte, Etienne Lefebvre: Fast unfolding of communities in large
networks, Journal of Statistical Mechanics, 2008. Skipping vertices around which nothing changed, the tables of threads
and the loosening of the tolerance follow Subhajit Sahu: GVE-Louvain, 2023. Vertices move in batches, all by the state
before their batch, so that the result does not depend on the number of threads.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpu_pregel.algorithms import _levels
from gpu_pregel.algorithms._arguments import check_open_interval
from gpu_pregel.algorithms._driver import AlgorithmRun, documented, host_device
from gpu_pregel.algorithms._levels import Search, search_communities
from gpu_pregel.algorithms._levels_cpu import CpuLevels
from gpu_pregel.algorithms._levels_operators import OperatorLevels
from gpu_pregel.algorithms.communities import Communities, check_resolution, check_weights, modularity
from gpu_pregel.host.arguments import check_flag, check_integer
from gpu_pregel.host.devices import DeviceName
from gpu_pregel.host.graphs.graph import GraphLike

__all__ = ["Communities", "louvain", "modularity"]


@documented
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
    {graph}
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
    {options}

    Returns
    -------
    Communities
        With ``labels``, ``levels``, ``count``, ``sizes()`` and ``modularity``. Every run, device and number of threads
        gives the same communities unless ``deterministic`` is False.

    Raises
    ------
    ArgumentError
        An argument is out of range.
    GraphError
        The graph is directed, or has a negative weight or weights whose sum is infinite.
    {errors}

    Notes
    -----
    Graphs and levels of up to 2^15 stored edges are searched on the CPU, unless the device is "python"; ``stats`` says
    so in "device" and "device_reason" (all levels) or in "on_cpu" (some).

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> found = gp.louvain(gp.Graph.from_edgelist([0, 1, 2, 2, 3, 4, 5], [1, 2, 0, 3, 4, 5, 3]))
    >>> found.labels.tolist(), round(found.modularity, 3)
    ([0, 0, 0, 1, 1, 1], 0.357)
    """
    run = AlgorithmRun("louvain", graph, device, threads, progress)
    return find_communities(run, resolution, max_levels, tolerance, seed, deterministic)


def find_communities(
    run: AlgorithmRun,
    resolution: float,
    max_levels: int | None,
    tolerance: float,
    seed: int,
    deterministic: bool,
    iterations: int = 1,
    *,
    refine: bool = False,
) -> Communities:
    """Check the arguments of Louvain's or, with ``refine``, of Leiden's method, and search."""
    graph, device = run.graph, run.device
    check_weights(graph, run.name)
    resolution = check_resolution(resolution)
    if max_levels is not None:
        max_levels = check_integer("max_levels", max_levels, 1)
    tolerance = check_open_interval("tolerance", tolerance, 0, 1)
    seed = check_integer("seed", seed, 0)
    iterations = check_integer("iterations", iterations, 1)
    deterministic = check_flag("deterministic", deterministic)
    search = Search(resolution, tolerance, max_levels, seed, deterministic, refine, iterations)
    found = run.execute(search)
    levels = tuple(device.upload(labels) if isinstance(labels, np.ndarray) else labels for labels in found)
    return Communities(graph, run.stats(), run.trace(), labels=levels[-1], levels=levels, resolution=resolution)


def search_by_kernels(run: AlgorithmRun, search: Search) -> list[Any]:
    """On the CPU, return the communities after each level."""
    graph = run.graph
    return search_communities(CpuLevels(run.device, run.phases, graph.num_vertices), graph, search)


def search_by_operators(run: AlgorithmRun, search: Search) -> list[Any]:
    """On the device "python", return the communities after each level."""
    return search_communities(OperatorLevels(run.frontier(), None), run.graph, search)


def search_large_by_operators(run: AlgorithmRun, search: Search) -> list[Any]:
    """On CUDA, do the same; a GPU is slow where there are few edges, which the CPU searches."""
    limit = f"{_levels.SERIAL_EDGES:,} stored edges"
    if run.graph.num_stored_edges <= _levels.SERIAL_EDGES:
        run.move_to_host(f"up to {limit} are searched on the CPU, whatever the device of the call")
        return search_by_kernels(run, search)
    frontier, host = run.frontier(), host_device()
    phases = run.phases_on(host)
    levels = OperatorLevels(frontier, CpuLevels(host, phases, run.graph.num_vertices))
    found = search_communities(levels, run.graph, search)
    if phases.trace():
        run.notes["on_cpu"] = f"levels of up to {limit}"
    return found
