"""The contestants: one file per peer, listed here by the names that ``--peers`` accepts.

To add a peer, copy ``scipy.py`` (a Python package) or ``gapbs.py`` (a program) and list its classes below, one for each
algorithm.
"""

from __future__ import annotations

from benchmarks.peers import gapbs, gbbs, gve, networkit, rustworkx, scipy
from benchmarks.peers._contestant import Contestant
from benchmarks.peers.cugraph import CuGraph, NxCuGraph
from benchmarks.peers.gemini import Gemini
from benchmarks.peers.ours import GpuPregel

OURS: type[Contestant] = GpuPregel

PEERS: dict[str, tuple[type[Contestant], ...]] = {
    "gapbs": (
        gapbs.Gapbs,
        gapbs.GapbsSearch,
        gapbs.GapbsPaths,
        gapbs.GapbsPageRank,
        gapbs.GapbsPageRankGaussSeidel,
        gapbs.GapbsBetweenness,
        gapbs.GapbsTriangles,
    ),
    "gbbs": (
        gbbs.GbbsSearch,
        gbbs.GbbsCores,
        gbbs.GbbsStrongComponents,
        gbbs.GbbsIndependentSet,
        gbbs.GbbsColoring,
        gbbs.GbbsSpanningForest,
        gbbs.GbbsBetweenness,
    ),
    "gve": (gve.GveLouvain, gve.GveLeiden),
    "gemini": (Gemini,),
    "networkit": (
        networkit.NetworKit,
        networkit.NetworKitSerial,
        networkit.NetworKitSearch,
        networkit.NetworKitPaths,
        networkit.NetworKitPageRank,
        networkit.NetworKitCores,
        networkit.NetworKitTriangles,
        networkit.NetworKitClustering,
        networkit.NetworKitStrongComponents,
        networkit.NetworKitSpanningForest,
        networkit.NetworKitCloseness,
        networkit.NetworKitHarmonic,
        networkit.NetworKitDiameter,
        networkit.NetworKitLouvain,
        networkit.NetworKitLeiden,
    ),
    "scipy": (
        scipy.SciPy,
        scipy.SciPyStrong,
        scipy.SciPyStrongComponents,
        scipy.SciPySearch,
        scipy.SciPyPaths,
        scipy.SciPySpanningForest,
    ),
    "rustworkx": (rustworkx.Rustworkx, rustworkx.RustworkxCores),
    "cugraph": (CuGraph,),
    "nx-cugraph": (NxCuGraph,),
}
