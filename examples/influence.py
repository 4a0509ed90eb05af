"""Who matters in a network: PageRank, core numbers and degrees side by side.

python -m gpu_pregel.examples.influence influence.png [FILE]
"""

import sys

import numpy as np

import gpu_pregel as gp


def scores(graph):
    """Return the degree, the PageRank and the core number of each vertex."""
    simple = graph.to_undirected().simplify(combine="min")
    return graph.in_degrees, gp.pagerank(graph).to_numpy(), gp.core_number(simple).to_numpy()


def draw(path, graph):
    """Draw the PageRank against the degree, coloured by core number."""
    import matplotlib.pyplot as plt

    degrees, ranks, cores = scores(graph)
    order = np.argsort(cores, kind="stable")
    figure, axis = plt.subplots(figsize=(6.5, 5))
    points = axis.scatter(1 + degrees[order], ranks[order], c=cores[order], s=4, cmap="viridis")
    figure.colorbar(points, label="core number")
    axis.set(xscale="log", yscale="log", xlabel="in-degree + 1", ylabel="PageRank")
    figure.tight_layout()
    figure.savefig(path, dpi=75)
    print(f"picture: {path}")


if __name__ == "__main__":
    given = gp.read_graph(sys.argv[2], directed=True) if len(sys.argv) > 2 else gp.kronecker(13)
    draw(sys.argv[1] if len(sys.argv) > 1 else "influence.png", given)
