"""Options that several algorithms of the registry share."""

from __future__ import annotations

from gpu_pregel.algorithms._entry import Option

SEED = Option("", "seed", "integer", "seed of the random numbers (default 0)")

TOLERANCE = Option("-t", "tolerance", "number", "stop when the scores change by less in total (default 1e-6)")

ITERATIONS = Option("-i", "max_iterations", "integer", "maximum number of iterations (default 100)")

BETWEENNESS = (
    Option("-i", "sources", "integer", "number of sources chosen at random (default: all vertices)"),
    SEED,
    Option("", "weighted", "flag", "take weights as lengths (default, if there are any)"),
    Option("", "normalized", "flag", "divide by the number of pairs of vertices (default)"),
)

COMMUNITIES = (
    Option("", "resolution", "number", "resolution of the modularity (default 1)"),
    Option("-t", "tolerance", "number", "gain of modularity at which a level ends (default 0.003; Leiden 0.01)"),
    Option("", "max_levels", "integer", "number of levels at most"),
    Option("", "seed", "integer", "the order in which vertices move (default 0)"),
    Option("", "deterministic", "flag", "the same communities in every run (default)"),
)

SIMILARITY = (
    Option("", "pairs", "pairs", "pairs of vertices (default: all adjacent ones)"),
    Option("", "weighted", "flag", "use the weights of edges (default, if there are any)"),
)

CLOSENESS = (
    Option("-r", "sources", "vertices", "vertices whose scores to find (default: all)"),
    Option("", "samples", "integer", "number of random vertices to estimate from (default: exact scores)"),
    SEED,
)
