"""A maze: the minimum spanning tree of a grid with random weights, and the way through it.

python -m gpu_pregel.examples.maze maze.png
"""

import sys

import numpy as np

import gpu_pregel as gp


def carve(size=40, seed=5):
    """Return the passages of a maze as a graph, and the crossings on the way from the first to the last one."""
    source, target, _ = gp.grid(size, holes=0).to_edgelist()
    once = source < target
    weight = np.random.default_rng(seed).random(once.sum())
    grid = gp.Graph.from_edgelist(source[once], target[once], weight)
    passages = gp.minimum_spanning_forest(grid).tree()
    return passages, gp.bfs(passages, 0).path(size * size - 1)


def draw(path, size=40):
    """Draw the passages, coloured by the distance from the entrance, and the way."""
    import matplotlib.pyplot as plt
    from matplotlib.collections import LineCollection

    passages, way = carve(size)
    hops = gp.bfs(passages, 0).to_numpy()
    source, target, _ = passages.to_edgelist()
    lines = np.stack([np.divmod(source, size), np.divmod(target, size)]).transpose(2, 0, 1)[:, :, ::-1]
    figure, axis = plt.subplots(figsize=(6, 6))
    axis.add_collection(LineCollection(lines, array=hops[source], cmap="viridis", linewidths=5))
    rows, columns = np.divmod(way, size)
    axis.plot(columns, rows, color="red", linewidth=1.5)
    axis.set(xlim=(-1, size), ylim=(size, -1), xticks=[], yticks=[], title=f"{len(way) - 1} steps to the exit")
    figure.tight_layout()
    figure.savefig(path, dpi=75)
    print(f"picture: {path}")


if __name__ == "__main__":
    draw(sys.argv[1] if len(sys.argv) > 1 else "maze.png")
