"""A map with few colours: greedy colouring of the graph of neighbouring countries.

python -m gpu_pregel.examples.map_coloring map.png
"""

import sys

import numpy as np

import gpu_pregel as gp


def countries(count=60, size=300, seed=8):
    """Return an image of the country at each place: that of the nearest capital."""
    capitals = np.random.default_rng(seed).uniform(0, size, (count, 2))
    places = np.indices((size, size)).reshape(2, -1).T
    squares = ((places[:, None, :] - capitals[None]) ** 2).sum(axis=2)
    return squares.argmin(axis=1).reshape(size, size)


def borders(image):
    """Return the graph of countries with a common border."""
    pairs = [(image[:-1], image[1:]), (image[:, :-1], image[:, 1:])]
    first, second = (np.concatenate([pair[k].ravel() for pair in pairs]) for k in (0, 1))
    differ = first != second
    count = int(image.max()) + 1
    return gp.Graph.from_edgelist(first[differ], second[differ], num_vertices=count, combine="first")


def draw(path):
    """Draw the map."""
    import matplotlib.pyplot as plt

    image = countries()
    coloring = gp.greedy_color(borders(image))
    figure, axis = plt.subplots(figsize=(5, 5))
    axis.imshow(coloring.to_numpy()[image], cmap="Pastel1", interpolation="nearest")
    is_border = (image != np.roll(image, 1, axis=0)) | (image != np.roll(image, 1, axis=1))
    axis.imshow(np.where(is_border, 1.0, np.nan), cmap="gray_r", vmin=0, vmax=1, interpolation="nearest")
    axis.set(xticks=[], yticks=[], title=f"{image.max() + 1} countries, {coloring.count} colours")
    figure.tight_layout()
    figure.savefig(path, dpi=75)
    print(f"picture: {path}")


if __name__ == "__main__":
    draw(sys.argv[1] if len(sys.argv) > 1 else "map.png")
