"""The registry of algorithms, used by the package, the command line, the tests, the benchmarks and the README.

Importing it imports no algorithm: an entry loads its function and its checker on first use.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from gpu_pregel.host.graphs.graph import Graph

_PACKAGE = "gpu_pregel.algorithms"


class Option(NamedTuple):
    """An argument of an algorithm, and the option of the command line that passes it.

    Attributes
    ----------
    letter : str
        The option's letter, such as "-r"; "" if it has only the long form. The letters follow GAPBS: -r source,
        -i iterations, -t tolerance, -d delta. Taken: -f -g -k -n -o -u -v.
    argument : str
        The name of the argument; the long form of the option is ``--NAME``, and ``--run-seed`` for "seed".
    kind : str
        "vertex" (an id), "vertices" (ids), "pairs" (pairs of ids), "integer", "integers", "number" (a float), "flag",
        or the values that a string may have, separated by commas: "in,out,all".
    help : str
        The text of ``--help``: a noun phrase, with the default if it has one.
    sample : object
        A value with which tests and benchmarks call the algorithm if the argument is required. Those of the kinds
        "vertex", "vertices" and "pairs" need none: the first vertex, the first two, and the first two as a pair.
    required : bool
        Whether the algorithm cannot be called without it.
    """

    letter: str
    argument: str
    kind: str
    help: str
    sample: Any = None
    required: bool = False

    @property
    def choices(self) -> tuple[str, ...]:
        """The values of an argument that is one of several strings."""
        return () if self.kind in _KINDS else tuple(self.kind.split(","))

    def sample_value(self, graph: Graph) -> Any:
        """Return a value for a graph that has vertices."""
        if self.kind not in ("vertex", "vertices", "pairs"):
            return self.sample
        count = min(graph.num_vertices, 2)
        ids = list(range(count)) if graph.ids is None else graph.ids[:count].tolist()
        return {"vertex": ids[0], "vertices": ids, "pairs": [(ids[0], ids[-1])]}[self.kind]


_KINDS = ("vertex", "vertices", "pairs", "integer", "integers", "number", "flag")


class Algorithm(NamedTuple):
    """One algorithm.

    Attributes
    ----------
    name : str
        The function, exported as ``gp.NAME``. It is called as ``NAME(graph, …, device=…, threads=…, progress=…)``.
    result : str
        The class of its result, a subclass of ``Result`` that its module defines or imports; exported as well.
    command : str
        The subcommand of ``gpu-pregel``.
    finds : str
        What it finds, completing "Find …"; default: "the", and the name in words.
    note : str
        An addition to the description of the command, in parentheses.
    module : str
        The module in this package that defines the function; default: the name.
    exports : tuple of str
        Other functions and classes of the module that the package exports.
    checker : str
        The module in this package that defines ``check_NAME(graph, result)``; default: ``checkers.NAME``.
    requires : tuple of str
        What it requires of the graph: "undirected", "directed", "weights" or "acyclic".
    options : tuple of Option
    paper : str
        Authors, short title and year, for the README.
    cost : str
        Work in terms of n vertices and m stored edges, for the README: "O(n + m)".
    devices : tuple of str
        The devices on which it runs.
    peers : tuple of str
        The names in ``benchmarks.peers`` of the libraries that it is compared with.
    """

    name: str
    result: str
    command: str
    finds: str = ""
    note: str = ""
    module: str = ""
    exports: tuple[str, ...] = ()
    checker: str = ""
    requires: tuple[str, ...] = ()
    options: tuple[Option, ...] = ()
    paper: str = ""
    cost: str = ""
    devices: tuple[str, ...] = ("cpu", "cuda", "emulated", "python")
    peers: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The name in words."""
        return self.name.replace("_", " ")

    @property
    def purpose(self) -> str:
        """What it finds, with an article."""
        return self.finds or f"the {self.title}"

    @property
    def home(self) -> str:
        """The module that defines the function."""
        return f"{_PACKAGE}.{self.module or self.name}"

    def load(self) -> Callable[..., Any]:
        """Import and return the function."""
        function: Callable[..., Any] = getattr(import_module(self.home), self.name)
        return function

    def load_checker(self) -> Callable[..., None]:
        """Import and return the checker, which raises ``VerificationError`` if the result is wrong."""
        module = import_module(f"{_PACKAGE}.{self.checker or f'checkers.{self.name}'}")
        checker: Callable[..., None] = getattr(module, f"check_{self.name}")
        return checker

    def sample_arguments(self, graph: Graph) -> dict[str, Any] | None:
        """Return values for the required arguments; None if they name vertices and the graph has none."""
        required = [option for option in self.options if option.required]
        if graph.num_vertices == 0 and any(option.kind in ("vertex", "vertices", "pairs") for option in required):
            return None
        return {option.argument: option.sample_value(graph) for option in required}


_ALL_PEERS = ("gapbs", "gemini", "networkit", "scipy", "rustworkx", "cugraph", "nx-cugraph")

_SIMILARITY = (
    Option("", "pairs", "pairs", "pairs of vertices (default: all adjacent ones)"),
    Option("", "weighted", "flag", "take the weights of edges into account"),
)

ALGORITHMS = (
    Algorithm(
        "connected_components",
        "Components",
        "cc",
        note="weak if the graph is directed",
        options=(Option("", "method", "afforest,propagation", "how they are found (default afforest)"),),
        paper="Sutton, Ben-Nun, Barak: Afforest, 2018",
        cost="O(n + m)",
        devices=("cpu", "cuda", "emulated"),
        peers=_ALL_PEERS,
    ),
    Algorithm(
        "bfs",
        "Hops",
        "bfs",
        finds="the number of edges on a shortest path to each vertex",
        options=(
            Option("-r", "source", "vertex", "vertex where the search begins", required=True),
            Option("", "max_hops", "integer", "limit of the search (default: none)"),
        ),
        paper="Beamer, Asanović, Patterson: Direction-Optimizing Breadth-First Search, 2012",
        cost="O(n + m)",
        devices=("cpu",),
        peers=("gapbs", "networkit", "scipy", "rustworkx", "cugraph"),
    ),
    Algorithm(
        "sssp",
        "Distances",
        "sssp",
        finds="the length of a shortest path to each vertex",
        options=(
            Option("-r", "source", "vertex", "vertex where the paths begin", required=True),
            Option("-d", "delta", "number", "width of a bin (default: from weights and degrees)"),
        ),
        paper="Meyer, Sanders: Δ-stepping, 2003",
        cost="O(n + m) on average",
        devices=("cpu",),
        peers=("gapbs", "networkit", "scipy", "cugraph"),
    ),
    Algorithm(
        "pagerank",
        "PageRanks",
        "pagerank",
        finds="the PageRank of each vertex",
        options=(
            Option("", "damping", "number", "probability of following an edge (default 0.85)"),
            Option("-t", "tolerance", "number", "stop when the scores change by less in total (default 1e-6)"),
            Option("-i", "max_iterations", "integer", "maximum number of iterations (default 100)"),
        ),
        paper="Page, Brin, Motwani, Winograd: PageRank, 1999",
        cost="O(n + m) per iteration",
    ),
    Algorithm(
        "hits",
        "HitsScores",
        "hits",
        finds="the hub score and the authority score of each vertex",
        options=(
            Option("-t", "tolerance", "number", "stop when the scores change by less in total (default 1e-8)"),
            Option("-i", "max_iterations", "integer", "maximum number of iterations (default 100)"),
        ),
        paper="Kleinberg: Hyperlinked Environment, 1999",
        cost="O(n + m) per iteration",
    ),
    Algorithm(
        "eigenvector_centrality",
        "EigenvectorScores",
        "eigenvector",
        finds="the eigenvector centrality of each vertex",
        options=(
            Option("-t", "tolerance", "number", "stop when the scores change by less in total (default 1e-6)"),
            Option("-i", "max_iterations", "integer", "maximum number of iterations (default 100)"),
        ),
        paper="Bonacich: Power and Centrality, 1987",
        cost="O(n + m) per iteration",
    ),
    Algorithm(
        "katz_centrality",
        "KatzScores",
        "katz",
        finds="the Katz centrality of each vertex",
        options=(
            Option("-a", "alpha", "number", "factor of each edge (default 0.9 / largest in-degree)"),
            Option("-t", "tolerance", "number", "stop when the scores change by less in total (default 1e-6)"),
            Option("-i", "max_iterations", "integer", "maximum number of iterations (default 1000)"),
        ),
        paper="Katz: A New Status Index, 1953",
        cost="O(n + m) per iteration",
    ),
    Algorithm(
        "triangle_count",
        "TriangleCounts",
        "tc",
        finds="the triangles",
        requires=("undirected",),
        paper="Schank, Wagner: Finding, counting and listing all triangles, 2005",
        cost="O(m^1.5)",
        peers=("gapbs", "networkit", "cugraph"),
        devices=("cpu", "python"),
    ),
    Algorithm(
        "local_clustering",
        "ClusteringCoefficients",
        "lcc",
        finds="the local clustering coefficients",
        paper="Iosup et al.: LDBC Graphalytics, 2016",
        cost="O(m^1.5)",
        devices=("cpu", "python"),
    ),
    Algorithm(
        "core_number",
        "CoreNumbers",
        "kcore",
        finds="the core numbers",
        exports=("k_core",),
        requires=("undirected",),
        paper="Kabir, Madduri: Parallel k-core decomposition (PKC), 2017",
        cost="O(n + m)",
        peers=("networkit", "cugraph"),
        devices=("cpu", "python"),
    ),
    Algorithm(
        "jaccard",
        "PairScores",
        "jaccard",
        finds="the Jaccard coefficients of pairs of vertices",
        module="similarity",
        checker="checkers.similarity",
        requires=("undirected",),
        options=_SIMILARITY,
        paper="Jaccard: The distribution of the flora in the alpine zone, 1912",
        cost="O(d) per pair of degrees up to d",
        devices=("cpu", "python"),
    ),
    Algorithm(
        "overlap",
        "PairScores",
        "overlap",
        finds="the overlap coefficients of pairs of vertices",
        module="similarity",
        checker="checkers.similarity",
        requires=("undirected",),
        options=_SIMILARITY,
        paper="Simpson: Mammals and the nature of continents, 1943",
        cost="O(d) per pair of degrees up to d",
        devices=("cpu", "python"),
    ),
    Algorithm(
        "cosine",
        "PairScores",
        "cosine",
        finds="the cosine similarities of pairs of vertices",
        module="similarity",
        checker="checkers.similarity",
        requires=("undirected",),
        options=_SIMILARITY,
        paper="Salton, McGill: Introduction to modern information retrieval, 1983",
        cost="O(d) per pair of degrees up to d",
        devices=("cpu", "python"),
    ),
    Algorithm(
        "cdlp",
        "CommunityLabels",
        "cdlp",
        finds="communities by synchronous label propagation",
        options=(Option("-i", "iterations", "integer", "number of iterations (default 10)"),),
        paper="Raghavan, Albert, Kumara: Label propagation, 2007; Iosup et al.: LDBC Graphalytics, 2016",
        cost="O(m) per iteration",
        peers=("networkit",),
    ),
    Algorithm(
        "louvain",
        "Communities",
        "louvain",
        finds="communities of large modularity by Louvain's method",
        exports=("modularity",),
        requires=("undirected",),
        options=(
            Option("", "resolution", "number", "resolution of the modularity (default 1)"),
            Option("-t", "tolerance", "number", "gain of modularity at which a level ends (default 0.005)"),
            Option("", "max_levels", "integer", "number of levels at most"),
            Option("", "seed", "integer", "the order in which vertices move (default 0)"),
        ),
        paper="Blondel, Guillaume, Lambiotte, Lefebvre: Fast unfolding of communities, 2008; Sahu: GVE-Louvain, 2023",
        cost="O(m) per round",
        peers=("networkit", "gve"),
    ),
    Algorithm(
        "leiden",
        "Communities",
        "leiden",
        finds="communities of large modularity by Leiden's method",
        requires=("undirected",),
        options=(
            Option("", "resolution", "number", "resolution of the modularity (default 1)"),
            Option("-t", "tolerance", "number", "gain of modularity at which a level ends (default 0.01)"),
            Option("", "max_levels", "integer", "number of levels at most"),
            Option("-i", "iterations", "integer", "how often all levels are searched (default 2)"),
            Option("", "seed", "integer", "the order in which vertices move (default 0)"),
        ),
        paper="Traag, Waltman, van Eck: From Louvain to Leiden, 2019; Sahu: GVE-Leiden, 2023",
        cost="O(m) per round",
        peers=("networkit", "gve"),
    ),
    Algorithm(
        "strongly_connected_components",
        "StrongComponents",
        "scc",
        paper="Slota, Rajamanickam, Madduri: Multistep, 2014; Tarjan: Depth-first search, 1972",
        cost="O(n + m)",
        peers=("networkit", "scipy", "rustworkx", "cugraph"),
    ),
    Algorithm(
        "maximal_independent_set",
        "IndependentSet",
        "mis",
        finds="a maximal independent set",
        requires=("undirected",),
        options=(Option("", "seed", "integer", "seed of the random order (default 0)"),),
        paper="Blelloch, Fineman, Shun: Greedy sequential maximal independent set, 2012",
        cost="O(n + m)",
        peers=("networkit",),
    ),
    Algorithm(
        "greedy_color",
        "Coloring",
        "color",
        finds="a greedy colouring",
        requires=("undirected",),
        options=(
            Option("", "order", "log_degree,degree,random", "order of the vertices (default log_degree)"),
            Option("", "seed", "integer", "seed of the random order that breaks ties (default 0)"),
        ),
        paper="Jones, Plassmann: A parallel graph coloring heuristic, 1993; Hasenplaug et al., 2014",
        cost="O(n + m)",
        peers=("rustworkx",),
    ),
    Algorithm(
        "minimum_spanning_forest",
        "SpanningForest",
        "msf",
        requires=("undirected",),
        options=(Option("", "maximum", "flag", "find the forest of the largest total weight"),),
        paper="Fallin, Gonzalez, Seo, Burtscher: ECL-MST, 2023; Osipov, Sanders, Singler: Filter-Kruskal, 2009",
        cost="O(m log n)",
        peers=("networkit", "scipy", "rustworkx"),
    ),
)


def algorithm(name: str) -> Algorithm:
    """Return the entry of the algorithm with this name."""
    return next(entry for entry in ALGORITHMS if entry.name == name)


def exported_names() -> dict[str, str]:
    """Return the names that the package exports, with the module of each."""
    return {name: entry.home for entry in ALGORITHMS for name in (entry.name, entry.result, *entry.exports)}
