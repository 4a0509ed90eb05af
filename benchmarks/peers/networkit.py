"""NetworKit (C++ and OpenMP with a Python interface)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from benchmarks._graphs import read_header, read_serialized
from benchmarks.peers._contestant import PythonContestant

_FAR = 1e300
"""Distances above this are unreachable."""


class NetworKit(PythonContestant):
    """``ParallelConnectedComponents``."""

    name = "networkit"
    package = "networkit"
    modules: ClassVar[tuple[str, ...]] = ("networkit",)

    def load(self, path: Path) -> Any:
        """Load the arrays ``(indptr, indices, weights or None)``, and remember whether the graph is directed."""
        self._is_directed = read_header(path)[0]
        return read_serialized(path)

    def convert(self, loaded: Any, threads: int) -> Any:
        """Build from coordinates, its fastest constructor, with each undirected edge once."""
        import networkit

        networkit.setNumberOfThreads(threads)
        indptr, indices, weights = loaded
        n = len(indptr) - 1
        src = np.repeat(np.arange(n, dtype=np.uint64), np.diff(indptr))
        once = slice(None) if self._is_directed else src <= indices.astype(np.uint64)
        places = (src[once], indices[once].astype(np.uint64))
        if weights is None:
            return networkit.GraphFromCoo(places, n=n, directed=self._is_directed)
        values = weights[once].astype(np.float64)
        return networkit.GraphFromCoo((values, places), n=n, weighted=True, directed=self._is_directed)

    def run(self, graph: Any) -> Any:
        """Return the algorithm of NetworKit, not yet run."""
        from networkit import components

        return components.ParallelConnectedComponents(graph)

    def compute(self, graph: Any, threads: int) -> Any:  # noqa: ARG002
        """Run the algorithm; ``convert`` has set its threads."""
        return self.run(graph).run()

    def answer(self, result: Any) -> Any:
        """Return the number that the algorithm reports."""
        return int(result.numberOfComponents())


class NetworKitSerial(NetworKit):
    """``ConnectedComponents``, breadth-first searches on one thread."""

    name = "networkit-serial"

    def run(self, graph: Any) -> Any:
        """Return the algorithm."""
        from networkit import components

        return components.ConnectedComponents(graph)


class NetworKitSearch(NetworKit):
    """``distance.BFS`` from each source, without paths."""

    algorithm = "bfs"
    searcher = "BFS"

    def compute(self, graph: Any, threads: int) -> Any:  # noqa: ARG002
        """Search from each source."""
        from networkit import distance

        return [getattr(distance, self.searcher)(graph, source, False).run() for source in self.sources]

    def answer(self, result: Any) -> Any:
        """Return the number of vertices that each search reaches."""
        return [int((np.asarray(one.getDistances()) < _FAR).sum()) for one in result]


class NetworKitPaths(NetworKitSearch):
    """``distance.Dijkstra`` from each source, without paths."""

    algorithm = "sssp"
    suffix = ".wsg"
    searcher = "Dijkstra"


class NetworKitPageRank(NetworKit):
    """``centrality.PageRank`` with the given number of iterations."""

    algorithm = "pagerank"

    def run(self, graph: Any) -> Any:
        """Return the algorithm."""
        from networkit import centrality

        ranking = centrality.PageRank(graph, damp=0.85, tol=1e-300)
        ranking.maxIterations = self.iterations
        return ranking

    def answer(self, result: Any) -> Any:
        """Return the vertex of the highest score."""
        return int(np.argmax(result.scores()))


class NetworKitCores(NetworKit):
    """``centrality.CoreDecomposition``."""

    algorithm = "core_number"

    def run(self, graph: Any) -> Any:
        """Return the algorithm."""
        from networkit import centrality

        return centrality.CoreDecomposition(graph)

    def answer(self, result: Any) -> Any:
        """Return the largest core number."""
        return int(result.maxCoreNumber())


class NetworKitTriangles(NetworKit):
    """``sparsification.TriangleEdgeScore``, the number of triangles of each edge."""

    algorithm = "triangle_count"

    def convert(self, loaded: Any, threads: int) -> Any:
        """Number the edges, which the algorithm requires."""
        graph = super().convert(loaded, threads)
        graph.indexEdges()
        return graph

    def run(self, graph: Any) -> Any:
        """Return the algorithm."""
        from networkit import sparsification

        return sparsification.TriangleEdgeScore(graph)

    def answer(self, result: Any) -> Any:
        """Return the number of triangles, each of which has three edges."""
        return int(np.sum(result.scores())) // 3


class NetworKitClustering(NetworKit):
    """``centrality.LocalClusteringCoefficient`` in its faster mode."""

    algorithm = "local_clustering"

    def run(self, graph: Any) -> Any:
        """Return the algorithm."""
        from networkit import centrality

        return centrality.LocalClusteringCoefficient(graph, True)

    def answer(self, result: Any) -> Any:
        """Return the mean."""
        return round(float(np.mean(result.scores())), 6)


class NetworKitStrongComponents(NetworKit):
    """``components.StronglyConnectedComponents``, on one thread."""

    algorithm = "strongly_connected_components"

    def run(self, graph: Any) -> Any:
        """Return the algorithm."""
        from networkit import components

        return components.StronglyConnectedComponents(graph)


class NetworKitSpanningForest(NetworKit):
    """``graph.KruskalMSF``."""

    algorithm = "minimum_spanning_forest"
    suffix = ".wsg"

    def run(self, graph: Any) -> Any:
        """Return the algorithm."""
        from networkit import graph as graphs

        return graphs.KruskalMSF(graph)

    def answer(self, result: Any) -> Any:
        """Return the total weight."""
        return int(result.getForest().totalEdgeWeight())


class NetworKitCloseness(NetworKit):
    """``centrality.Closeness`` of all vertices (generalised to disconnected graphs)."""

    algorithm = "closeness_centrality"

    def run(self, graph: Any) -> Any:
        """Return the algorithm."""
        from networkit import centrality

        return centrality.Closeness(graph, True, centrality.ClosenessVariant.GENERALIZED)

    def answer(self, result: Any) -> Any:
        """Return the highest score."""
        return round(float(np.max(result.scores())), 9)


class NetworKitHarmonic(NetworKit):
    """``centrality.HarmonicCloseness`` of all vertices."""

    algorithm = "harmonic_centrality"

    def run(self, graph: Any) -> Any:
        """Return the algorithm."""
        from networkit import centrality

        return centrality.HarmonicCloseness(graph, normalized=False)

    def answer(self, result: Any) -> Any:
        """Return the highest score."""
        return round(float(np.max(result.scores())), 6)


class NetworKitDiameter(NetworKit):
    """``distance.Diameter``, exact."""

    algorithm = "diameter"

    def run(self, graph: Any) -> Any:
        """Return the algorithm."""
        from networkit import distance

        return distance.Diameter(graph, algo=distance.DiameterAlgo.EXACT)

    def answer(self, result: Any) -> Any:
        """Return the diameter."""
        return int(result.getDiameter()[0])


class NetworKitLouvain(NetworKit):
    """``community.PLM``, the parallel Louvain method."""

    algorithm = "louvain"

    def convert(self, loaded: Any, threads: int) -> Any:
        """Keep the graph, of which the modularity is computed later."""
        self._of = super().convert(loaded, threads)
        return self._of

    def run(self, graph: Any) -> Any:
        """Return the algorithm."""
        from networkit import community

        return community.PLM(graph)

    def answer(self, result: Any) -> Any:
        """Return the modularity."""
        from networkit import community

        return float(community.Modularity().getQuality(result.getPartition(), self._of))


class NetworKitLeiden(NetworKitLouvain):
    """``community.ParallelLeiden``."""

    algorithm = "leiden"

    def run(self, graph: Any) -> Any:
        """Return the algorithm."""
        from networkit import community

        return community.ParallelLeiden(graph)
