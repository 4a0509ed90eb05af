"""Bottlenecks of a city: the crossings that most shortest paths pass, by betweenness centrality.

python -m gpu_pregel.examples.bottlenecks bottlenecks.png
"""

import sys

import numpy as np

import gpu_pregel as gp


def river(size=60, bridges=(12, 41)):
    """Return a grid that is cut in two by a river with some bridges."""
    source, target, _ = gp.grid(size, holes=0.1, seed=2).to_edgelist()
    row, column = np.divmod(source, size)
    crosses = (column == size // 2) & (target == source + 1)
    keep = (source < target) & (~crosses | np.isin(row, bridges))
    return gp.Graph.from_edgelist(source[keep], target[keep], num_vertices=size * size)


def draw(path, size=60):
    """Draw the betweenness of each crossing."""
    import matplotlib.pyplot as plt

    scores = gp.betweenness_centrality(river(size)).to_numpy().reshape(size, size)
    figure, axis = plt.subplots(figsize=(6.5, 5.5))
    figure.colorbar(axis.imshow(np.sqrt(scores), cmap="inferno"), label="square root of the betweenness")
    axis.set(xticks=[], yticks=[], title="two bridges over a river")
    figure.tight_layout()
    figure.savefig(path, dpi=75)
    print(f"picture: {path}")


if __name__ == "__main__":
    draw(sys.argv[1] if len(sys.argv) > 1 else "bottlenecks.png")
