"""Mini-batches for graph learning: neighbours are sampled around each batch of vertices, and their features averaged.

python -m gpu_pregel.examples.mini_batches
"""

import numpy as np

import gpu_pregel as gp


def batches(graph, size, fanouts, seed=0):
    """Yield each batch of vertices, in a random order, with its sample."""
    order = np.random.default_rng(seed).permutation(graph.num_vertices)
    for number, begin in enumerate(range(0, len(order), size)):
        chosen = order[begin : begin + size]
        yield chosen, gp.sample_neighbors(graph, graph.to_ids(chosen), fanouts, seed=seed + number)


def averages(sample, features):
    """Return [s, f]: the mean of the features of the sampled neighbours of each vertex of a sample; 0 without any."""
    sums = np.zeros((len(sample.vertices), features.shape[1]))
    np.add.at(sums, sample.sources, features[sample.vertices[sample.targets]])
    counts = np.bincount(sample.sources, minlength=len(sums))
    return sums / np.maximum(counts, 1)[:, None]


if __name__ == "__main__":
    network = gp.kronecker(12)
    everything = np.random.default_rng(1).random((network.num_vertices, 4))
    for vertices, drawn in batches(network, 1024, [10, 5]):
        means = averages(drawn, everything)[: len(vertices)]  # a sample begins with its seeds
        print(f"{len(vertices):,} vertices: {drawn.describe()}; {means.mean(axis=0).round(3)} on average")
