"""Shortest paths with operators: Bellman and Ford's relaxation, as in Ligra (Shun, Blelloch, PPoPP 2013).

python -m gpu_pregel.examples.operators_bellman_ford
"""

import gpu_pregel as gp


def relax(u, v, weight, distances):
    distance = gp.atomics.load(distances, u) + weight
    return gp.atomics.min(distances, v, distance) > distance


def shortest(graph, source, device="auto"):
    """Return float64[n]: the length of a shortest path from the source, or infinity; weights may be negative."""
    frontier = gp.Frontier(graph, [source], device=device)
    distances = frontier.full(float("inf"), "float64")
    distances[source] = 0
    rounds = 0
    while frontier:
        frontier = gp.process_edges(relax, frontier, [distances])
        rounds += 1
        if rounds == graph.num_vertices and frontier:
            raise ValueError("the graph has a cycle of negative length")
    return distances


if __name__ == "__main__":
    roads = gp.Graph.from_edgelist([0, 0, 1, 2], [1, 2, 2, 3], [5.0, 1.0, 2.0, 4.0])
    print(shortest(roads, source=0).tolist())
