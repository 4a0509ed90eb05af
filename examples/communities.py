"""Communities: a graph of groups, found again by the Leiden algorithm from its edges alone.

python -m gpu_pregel.examples.communities communities.png
"""

import sys

import numpy as np

import gpu_pregel as gp


def groups(count=8, size=40, inside=0.3, outside=0.01, seed=4):
    """Return a graph whose vertices have more edges inside their groups; vertices are in a random order."""
    random = np.random.default_rng(seed)
    n = count * size
    group = random.permutation(n) % count
    chance = np.where(group[:, None] == group, inside, outside)
    source, target = np.nonzero(np.triu(random.random((n, n)) < chance, 1))
    return gp.Graph.from_edgelist(source, target, num_vertices=n)


def draw(path):
    """Draw the adjacency matrix as it is, and with the vertices in the order of their communities."""
    import matplotlib.pyplot as plt

    graph = groups()
    found = gp.leiden(graph)
    source, target = np.repeat(np.arange(graph.num_vertices), graph.out_degrees), graph.indices
    place = np.argsort(np.argsort(found.to_numpy(), kind="stable"))
    figure, axes = plt.subplots(1, 2, figsize=(9, 4.7))
    colors = np.where(found.to_numpy()[source] == found.to_numpy()[target], "tab:blue", "lightgray")
    for axis, rows, columns in ((axes[0], source, target), (axes[1], place[source], place[target])):
        axis.scatter(rows, columns, s=0.6, c=colors)
        axis.set(xticks=[], yticks=[], aspect="equal")
    axes[0].set_title(f"{graph.num_vertices} vertices")
    axes[1].set_title(f"{found.count} communities, modularity {found.modularity:.2f}")
    figure.tight_layout()
    figure.savefig(path, dpi=75)
    print(f"picture: {path}")


if __name__ == "__main__":
    draw(sys.argv[1] if len(sys.argv) > 1 else "communities.png")
