"""Connected components with operators: labels spread along edges, as in Ligra (Shun, Blelloch, PPoPP 2013).

python -m gpu_pregel.examples.operators_components
"""

import gpu_pregel as gp


def number(v, labels):
    labels[v] = v
    return 0


def spread(u, v, weight, labels):
    label = gp.atomics.load(labels, u)
    return gp.atomics.min(labels, v, label) > label


def components(graph, device="auto"):
    """Return int64[n]: the smallest vertex of each vertex's component, in an undirected graph."""
    frontier = gp.Frontier(graph, device=device)
    labels = frontier.full(0, "int64")
    gp.process_vertices(number, frontier, [labels])
    while frontier:
        frontier = gp.process_edges(spread, frontier, [labels])
    return labels


if __name__ == "__main__":
    found = components(gp.kronecker(16))
    print(f"{len(set(found.tolist())):,} components")
