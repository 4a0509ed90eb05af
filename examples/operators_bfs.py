"""Breadth-first search with operators: the parent of each vertex, as in Ligra (Shun, Blelloch, PPoPP 2013).

python -m gpu_pregel.examples.operators_bfs
"""

import gpu_pregel as gp


def visit(u, v, weight, parents):
    return gp.atomics.compare_and_swap(parents, v, -1, u)


def is_unvisited(v, parents):
    return gp.atomics.load(parents, v) < 0


def search(graph, source, device="auto"):
    """Return int64[n], -1 where the source does not reach; which of several parents is found varies."""
    frontier = gp.Frontier(graph, [source], device=device)
    parents = frontier.full(-1, "int64")
    parents[source] = source
    while frontier:
        frontier = gp.process_edges(visit, frontier, [parents], receives=is_unvisited)
    return parents


if __name__ == "__main__":
    found = search(gp.kronecker(16), source=5)
    print(f"{int((found >= 0).sum()):,} vertices reached")
