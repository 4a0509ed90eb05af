"""Percolation: the connected components of a grid with holes, just above and below the critical density.

python -m gpu_pregel.examples.percolation percolation.png
"""

import sys

import numpy as np

import gpu_pregel as gp

SIZE = 400


def clusters(holes):
    """Return the cluster of each crossing, numbered at random, and the share of the largest one."""
    components = gp.connected_components(gp.grid(SIZE, holes=holes))
    sizes = components.sizes()
    numbers = np.random.default_rng(1).permutation(components.count)[components.relabel()]
    return numbers.reshape(SIZE, SIZE), sizes.max() / sizes.sum()


def draw(path):
    """Draw the clusters for three densities of holes."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3, figsize=(12, 4.4))
    for axis, holes in zip(axes, (0.38, 0.41, 0.44), strict=True):
        numbers, largest = clusters(holes)
        axis.imshow(numbers, cmap="prism", interpolation="nearest")
        axis.set(title=f"{holes:.0%} holes: the largest has {largest:.0%}", xticks=[], yticks=[])
    figure.tight_layout()
    figure.savefig(path, dpi=80)


if __name__ == "__main__":
    draw(sys.argv[1] if len(sys.argv) > 1 else "percolation.png")
