"""GPU-accelerated graph processing with Pregel supersteps.

Names are loaded on first use, so importing the package is cheap and touches no device.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
"""Type checkers treat this name as true; importing ``typing`` would take most of the time of importing the package.

They see the names imported below and no others, so an algorithm of the registry is listed here, too.
"""

if TYPE_CHECKING:
    from gpu_pregel import agents as agents
    from gpu_pregel import errors as errors
    from gpu_pregel import networkx as networkx
    from gpu_pregel import workflows as workflows
    from gpu_pregel.algorithms.betweenness_centrality import BetweennessScores as BetweennessScores
    from gpu_pregel.algorithms.betweenness_centrality import EdgeBetweennessScores as EdgeBetweennessScores
    from gpu_pregel.algorithms.betweenness_centrality import betweenness_centrality as betweenness_centrality
    from gpu_pregel.algorithms.betweenness_centrality import edge_betweenness_centrality as edge_betweenness_centrality
    from gpu_pregel.algorithms.bfs import Hops as Hops
    from gpu_pregel.algorithms.bfs import bfs as bfs
    from gpu_pregel.algorithms.bipartite import Bipartition as Bipartition
    from gpu_pregel.algorithms.bipartite import bipartite as bipartite
    from gpu_pregel.algorithms.cdlp import CommunityLabels as CommunityLabels
    from gpu_pregel.algorithms.cdlp import cdlp as cdlp
    from gpu_pregel.algorithms.closeness_centrality import ClosenessScores as ClosenessScores
    from gpu_pregel.algorithms.closeness_centrality import closeness_centrality as closeness_centrality
    from gpu_pregel.algorithms.closeness_centrality import harmonic_centrality as harmonic_centrality
    from gpu_pregel.algorithms.connected_components import Components as Components
    from gpu_pregel.algorithms.connected_components import connected_components as connected_components
    from gpu_pregel.algorithms.core_number import CoreNumbers as CoreNumbers
    from gpu_pregel.algorithms.core_number import core_number as core_number
    from gpu_pregel.algorithms.core_number import k_core as k_core
    from gpu_pregel.algorithms.diameter import Diameter as Diameter
    from gpu_pregel.algorithms.diameter import diameter as diameter
    from gpu_pregel.algorithms.eccentricity import Eccentricities as Eccentricities
    from gpu_pregel.algorithms.eccentricity import eccentricity as eccentricity
    from gpu_pregel.algorithms.eigenvector_centrality import EigenvectorScores as EigenvectorScores
    from gpu_pregel.algorithms.eigenvector_centrality import eigenvector_centrality as eigenvector_centrality
    from gpu_pregel.algorithms.greedy_color import Coloring as Coloring
    from gpu_pregel.algorithms.greedy_color import greedy_color as greedy_color
    from gpu_pregel.algorithms.hits import HitsScores as HitsScores
    from gpu_pregel.algorithms.hits import hits as hits
    from gpu_pregel.algorithms.k_hop import Neighborhood as Neighborhood
    from gpu_pregel.algorithms.k_hop import k_hop as k_hop
    from gpu_pregel.algorithms.katz_centrality import KatzScores as KatzScores
    from gpu_pregel.algorithms.katz_centrality import katz_centrality as katz_centrality
    from gpu_pregel.algorithms.leiden import Communities as Communities
    from gpu_pregel.algorithms.leiden import leiden as leiden
    from gpu_pregel.algorithms.local_clustering import ClusteringCoefficients as ClusteringCoefficients
    from gpu_pregel.algorithms.local_clustering import local_clustering as local_clustering
    from gpu_pregel.algorithms.louvain import louvain as louvain
    from gpu_pregel.algorithms.louvain import modularity as modularity
    from gpu_pregel.algorithms.maximal_independent_set import IndependentSet as IndependentSet
    from gpu_pregel.algorithms.maximal_independent_set import maximal_independent_set as maximal_independent_set
    from gpu_pregel.algorithms.minimum_spanning_forest import SpanningForest as SpanningForest
    from gpu_pregel.algorithms.minimum_spanning_forest import minimum_spanning_forest as minimum_spanning_forest
    from gpu_pregel.algorithms.pagerank import PageRanks as PageRanks
    from gpu_pregel.algorithms.pagerank import pagerank as pagerank
    from gpu_pregel.algorithms.random_walks import Walks as Walks
    from gpu_pregel.algorithms.random_walks import random_walks as random_walks
    from gpu_pregel.algorithms.sample_neighbors import NeighborSample as NeighborSample
    from gpu_pregel.algorithms.sample_neighbors import sample_neighbors as sample_neighbors
    from gpu_pregel.algorithms.similarity import PairScores as PairScores
    from gpu_pregel.algorithms.similarity import cosine as cosine
    from gpu_pregel.algorithms.similarity import jaccard as jaccard
    from gpu_pregel.algorithms.similarity import overlap as overlap
    from gpu_pregel.algorithms.sssp import Distances as Distances
    from gpu_pregel.algorithms.sssp import sssp as sssp
    from gpu_pregel.algorithms.strongly_connected_components import StrongComponents as StrongComponents
    from gpu_pregel.algorithms.strongly_connected_components import (
        strongly_connected_components as strongly_connected_components,
    )
    from gpu_pregel.algorithms.topological_order import TopologicalOrder as TopologicalOrder
    from gpu_pregel.algorithms.topological_order import topological_order as topological_order
    from gpu_pregel.algorithms.triangle_count import TriangleCounts as TriangleCounts
    from gpu_pregel.algorithms.triangle_count import triangle_count as triangle_count
    from gpu_pregel.host.graphs.generators import grid as grid
    from gpu_pregel.host.graphs.generators import kronecker as kronecker
    from gpu_pregel.host.graphs.generators import uniform as uniform
    from gpu_pregel.host.graphs.graph import Graph as Graph
    from gpu_pregel.host.mixed.agent_context import AgentContext as AgentContext
    from gpu_pregel.host.mixed.agents import Agents as Agents
    from gpu_pregel.host.mixed.run import run as run
    from gpu_pregel.host.programs.checkpoints import Checkpoint as Checkpoint
    from gpu_pregel.host.programs.program import VertexProgram as VertexProgram
    from gpu_pregel.host.stores.memory import MemoryStore as MemoryStore
    from gpu_pregel.host.stores.postgres import PostgresStore as PostgresStore
    from gpu_pregel.host.stores.sqlite import SQLiteStore as SQLiteStore
    from gpu_pregel.host.superstep.aggregators import Aggregator as Aggregator
    from gpu_pregel.host.traverse import arrays as arrays
    from gpu_pregel.host.traverse.buckets import Buckets as Buckets
    from gpu_pregel.host.traverse.combiners import Combiner as Combiner
    from gpu_pregel.host.traverse.frontier import Frontier as Frontier
    from gpu_pregel.host.traverse.operators import count_labels as count_labels
    from gpu_pregel.host.traverse.operators import intersect_rows as intersect_rows
    from gpu_pregel.host.traverse.operators import process_edges as process_edges
    from gpu_pregel.host.traverse.operators import process_vertices as process_vertices
    from gpu_pregel.host.traverse.operators import reduce_rows as reduce_rows
    from gpu_pregel.host.traverse.samples import sample_rows as sample_rows
    from gpu_pregel.io import read_graph as read_graph
    from gpu_pregel.kernels.library import atomics as atomics
    from gpu_pregel.kernels.library import sorted_rows as sorted_rows
    from gpu_pregel.kernels.library.draws import random as random
    from gpu_pregel.kernels.programs.functions import VertexContext as VertexContext

__version__ = "0.1.0.dev0"

_HOMES = {
    "AgentContext": "gpu_pregel.host.mixed.agent_context",
    "Agents": "gpu_pregel.host.mixed.agents",
    "Aggregator": "gpu_pregel.host.superstep.aggregators",
    "Buckets": "gpu_pregel.host.traverse.buckets",
    "Checkpoint": "gpu_pregel.host.programs.checkpoints",
    "Combiner": "gpu_pregel.host.traverse.combiners",
    "Frontier": "gpu_pregel.host.traverse.frontier",
    "Graph": "gpu_pregel.host.graphs.graph",
    "MemoryStore": "gpu_pregel.host.stores.memory",
    "PostgresStore": "gpu_pregel.host.stores.postgres",
    "SQLiteStore": "gpu_pregel.host.stores.sqlite",
    "VertexContext": "gpu_pregel.kernels.programs.functions",
    "VertexProgram": "gpu_pregel.host.programs.program",
    "agents": "gpu_pregel",
    "arrays": "gpu_pregel.host.traverse",
    "atomics": "gpu_pregel.kernels.library",
    "count_labels": "gpu_pregel.host.traverse.operators",
    "errors": "gpu_pregel",
    "grid": "gpu_pregel.host.graphs.generators",
    "intersect_rows": "gpu_pregel.host.traverse.operators",
    "kronecker": "gpu_pregel.host.graphs.generators",
    "networkx": "gpu_pregel",
    "process_edges": "gpu_pregel.host.traverse.operators",
    "process_vertices": "gpu_pregel.host.traverse.operators",
    "random": "gpu_pregel.kernels.library.draws",
    "read_graph": "gpu_pregel.io",
    "reduce_rows": "gpu_pregel.host.traverse.operators",
    "run": "gpu_pregel.host.mixed.run",
    "sample_rows": "gpu_pregel.host.traverse.samples",
    "sorted_rows": "gpu_pregel.kernels.library",
    "uniform": "gpu_pregel.host.graphs.generators",
    "workflows": "gpu_pregel",
}
"""The module that defines each public name; those of the algorithms come from their registry."""

_MODULES = ("agents", "arrays", "atomics", "errors", "networkx", "sorted_rows", "workflows")
"""The public names that are modules."""

_FUNCTIONS = {
    "connected_components": "gpu_pregel.algorithms.connected_components",
    "save_graph": "gpu_pregel.io",
    "save_result": "gpu_pregel.io",
}
"""The module of each function that methods of graphs and results call, for ``gpu_pregel.host.graphs.package``."""


def _algorithms() -> dict[str, str]:
    from gpu_pregel.algorithms.registry import exported_names

    return exported_names()


if not TYPE_CHECKING:  # with a module's __getattr__, type checkers accept misspelt names

    def __getattr__(name: str) -> object:
        if name == "__all__":
            # import * must hide neither NetworkX nor the standard library's module.
            return sorted({*_HOMES, *_algorithms()} - {"networkx", "random"})
        home = _HOMES.get(name) or _algorithms().get(name)
        if home is None:
            raise AttributeError(f"module 'gpu_pregel' has no attribute {name!r}")
        value = import_module(f"{home}.{name}") if name in _MODULES else getattr(import_module(home), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return [*_HOMES, *_algorithms(), "__all__", "__version__"]
