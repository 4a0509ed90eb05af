"""The contestants: one file per peer, listed here by the names that ``--peers`` accepts.

To add a peer, copy ``scipy.py`` (a Python package) or ``gapbs.py`` (a program) and list its classes below.
"""

from __future__ import annotations

from benchmarks.peers._contestant import Contestant
from benchmarks.peers.cugraph import CuGraph, NxCuGraph
from benchmarks.peers.gapbs import Gapbs
from benchmarks.peers.gemini import Gemini
from benchmarks.peers.networkit import NetworKit, NetworKitSerial
from benchmarks.peers.ours import GpuPregel
from benchmarks.peers.rustworkx import Rustworkx
from benchmarks.peers.scipy import SciPy, SciPyStrong

OURS: type[Contestant] = GpuPregel

PEERS: dict[str, tuple[type[Contestant], ...]] = {
    "gapbs": (Gapbs,),
    "gemini": (Gemini,),
    "networkit": (NetworKit, NetworKitSerial),
    "scipy": (SciPy, SciPyStrong),
    "rustworkx": (Rustworkx,),
    "cugraph": (CuGraph,),
    "nx-cugraph": (NxCuGraph,),
}
