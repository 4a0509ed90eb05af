"""Leiden's communities: those of Louvain's method, refined so that each is well connected.

V. A. Traag, L. Waltman, N. J. van Eck: From Louvain to Leiden: guaranteeing well-connected communities, Scientific
Reports 9, 2019. Refinement joins each vertex to the community in which it gains most, as in Subhajit Sahu:
GVE-Leiden, 2023, instead of a random one.
"""

from __future__ import annotations

from gpu_pregel.algorithms._driver import AlgorithmRun, documented
from gpu_pregel.algorithms.communities import Communities
from gpu_pregel.algorithms.louvain import find_communities
from gpu_pregel.host.devices import DeviceName
from gpu_pregel.host.graphs.graph import GraphLike

__all__ = ["Communities", "leiden"]


@documented
def leiden(
    graph: GraphLike,
    *,
    resolution: float = 1.0,
    max_levels: int | None = None,
    tolerance: float = 0.01,
    seed: int = 0,
    deterministic: bool = True,
    iterations: int = 2,
    device: DeviceName = "auto",
    threads: int | None = None,
    progress: bool = False,
) -> Communities:
    """Find well-connected communities of large modularity by Leiden's method.

    Weights are used if the graph has them.

    Every community is connected, and each of its vertices joined it, alone or with others that it had been joined with
    before, at no loss of modularity.

    Parameters
    ----------
    {graph}
        Undirected, with weights of at least 0, or none.
    resolution : float, default 1.0
        From 0 to 1,000,000; the larger, the smaller the communities.
    max_levels : int, optional
        Stop after this many levels, with the refined communities of the last one. Default: when no communities can be
        joined any more.
    tolerance : float, default 0.01
        A level ends when moving every vertex once raises modularity by at most this much; the limit is a tenth of it at
        each further level. A smaller one takes longer and finds slightly better communities.
    seed : int, default 0
        Selects the order in which vertices move.
    deterministic : bool, default True
        Find the same communities in every run. False takes less time on the CPU, where vertices then move in the order
        in which threads come to them; it makes no difference on other devices.
    iterations : int, default 2
        How often all levels are searched; the second and further times start from the communities found before. The
        first of several is Louvain's method, without refinement.
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
    >>> found = gp.leiden(gp.Graph.from_edgelist([0, 1, 2, 2, 3, 4, 5], [1, 2, 0, 3, 4, 5, 3]))
    >>> found.labels.tolist(), round(found.modularity, 3)
    ([0, 0, 0, 1, 1, 1], 0.357)
    """
    run = AlgorithmRun("leiden", graph, device, threads, progress)
    return find_communities(run, resolution, max_levels, tolerance, seed, deterministic, iterations, refine=True)
