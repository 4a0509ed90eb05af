"""Percolation: the connected components of a grid with holes, around the critical density.

python -m gpu_pregel.examples.percolation percolation.png
"""

import sys

import numpy as np

import gpu_pregel as gp


def clusters(holes, size=300):
    """Return a number from 0 to 19 for the cluster of each crossing, NaN for holes, and the largest one's share."""
    graph = gp.grid(size, holes=holes)
    components = gp.connected_components(graph)
    numbers = np.random.default_rng(1).integers(20, size=components.count)[components.relabel()]
    picture = np.where(graph.out_degrees > 0, numbers, np.nan).reshape(size, size)
    return picture, components.sizes().max() / (graph.out_degrees > 0).sum()


def draw(path):
    """Draw the clusters for three densities of holes."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(12, 4.3))
    for axis, holes in zip(axes, (0.38, 0.41, 0.44), strict=True):
        picture, largest = clusters(holes)
        axis.imshow(picture, cmap="tab20", interpolation="nearest")
        axis.set(title=f"{holes:.0%} holes: the largest cluster has {largest:.0%}", xticks=[], yticks=[])
    figure.tight_layout()
    figure.savefig(path, dpi=75)
    print(f"picture: {path}")


if __name__ == "__main__":
    draw(sys.argv[1] if len(sys.argv) > 1 else "percolation.png")
