"""PageRank by agent vertices: the same algorithm as in `pagerank.py`, in plain Python instead of compiled functions.

Lawrence Page et al.: The PageRank Citation Ranking: Bringing Order to the Web, Stanford, 1999. Shows edges and
`send_to_neighbors`, aggregators (the rank of dangling vertices, the total change of all ranks), and master compute
that ends the run. A template for vertices that cannot be compiled; for PageRank itself, `pagerank.py` is far faster.

    python examples/agents_pagerank.py

Vertices read an aggregate one superstep after they contributed to it, when the messages of that superstep arrive: the
rank of dangling vertices and the messages belong to the same iteration.
"""

import gpu_pregel as gp

DAMPING, TOLERANCE = 0.85, 1e-9


def compute(ctx):
    """One iteration at one vertex."""
    if ctx.superstep == 0:
        ctx.value = 1 / ctx.num_vertices
    else:
        everywhere = (1 - DAMPING + DAMPING * ctx.aggregated("dangling")) / ctx.num_vertices
        rank = everywhere + DAMPING * sum(ctx.messages)
        ctx.aggregate("change", abs(rank - ctx.value))
        ctx.value = rank
    if ctx.neighbors:
        ctx.send_to_neighbors(ctx.value / len(ctx.neighbors))
    else:
        ctx.aggregate("dangling", ctx.value)


def master(m):
    """End the run once the ranks have converged, because no vertex votes to halt."""
    if m.superstep > 0 and m.aggregated("change") <= TOLERANCE:
        m.halt()


def pagerank(links, workers=0):
    """Rank pages, given a dict from each page to the pages that it links to."""
    vertices = [gp.agents.Vertex(page, edges=targets) for page, targets in links.items()]
    return gp.agents.run(
        vertices,
        compute,
        workers=workers,
        aggregators={
            "dangling": gp.agents.Aggregator("sum", initial=0.0),
            "change": gp.agents.Aggregator("sum", initial=0.0),
        },
        master=master,
        max_supersteps=1000,
    )


if __name__ == "__main__":
    LINKS = {
        "home": ["news", "shop", "about"],
        "news": ["home", "shop"],
        "shop": ["home", "checkout"],
        "about": ["home"],
        "checkout": [],
    }
    result = pagerank(LINKS, workers=2)
    for page, rank in sorted(result.values.items(), key=lambda pair: -pair[1]):
        print(f"{rank:.4f}  {page}")
    print(result)
