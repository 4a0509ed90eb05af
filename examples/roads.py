"""Travel times on a road network: shortest paths on a grid whose streets have different speeds.

python -m gpu_pregel.examples.roads roads.png
"""

import sys

import numpy as np

import gpu_pregel as gp


def city(size=300):
    """Return a grid with holes whose every 50th street is six times as fast; weights are minutes."""
    source, target, _ = gp.grid(size, holes=0.02).to_edgelist()
    once = source < target
    source, target = source[once], target[once]
    same_row = source // size == target // size
    is_fast = np.where(same_row, source // size % 50 == 20, source % size % 50 == 20)
    minutes = np.where(is_fast, 0.1, 0.6) * np.random.default_rng(2).uniform(0.8, 1.2, len(source))
    return gp.Graph.from_edgelist(source, target, minutes, num_vertices=size * size)


def draw(path, size=300):
    """Draw how far one gets from the centre, with a line every 10 minutes."""
    import matplotlib.pyplot as plt

    roads = city(size)
    largest = roads.largest_component().ids
    centre = largest[np.abs(largest - (size * size + size) // 2).argmin()]
    minutes = gp.sssp(roads, centre).to_numpy().reshape(size, size)
    minutes[~np.isfinite(minutes)] = np.nan
    figure, axis = plt.subplots(figsize=(6.5, 5.5))
    image = axis.imshow(minutes, cmap="magma_r")
    filled = np.where(np.isnan(minutes), np.roll(minutes, 1), minutes)
    axis.contour(filled, levels=np.arange(10, 200, 10), colors="black", linewidths=0.3)
    figure.colorbar(image, label="minutes from the centre")
    axis.set(xticks=[], yticks=[])
    figure.tight_layout()
    figure.savefig(path, dpi=75)
    print(f"picture: {path}")


if __name__ == "__main__":
    draw(sys.argv[1] if len(sys.argv) > 1 else "roads.png")
