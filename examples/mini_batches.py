"""Mini-batches for graph learning: neighbours are sampled around each batch of vertices, then averaged.

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


if __name__ == "__main__":
    network = gp.kronecker(12)
    for vertices, sample in batches(network, 1024, [10, 5]):
        print(f"{len(vertices):,} vertices: {sample.describe()}")
