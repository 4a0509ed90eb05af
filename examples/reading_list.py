"""A model reads a knowledge graph: PageRank chooses the next document, and what is read changes the weights.

A document passes its rank on to those that it cites, times its weight. In each superstep the unread document of the
highest rank wakes an agent: a scripted model, which judges how well its subject fits the question. Citations in what
fits count in full, and those in what does not hardly at all.

python -m gpu_pregel.examples.reading_list reading_list.png
"""

import sys
from functools import partial

import numpy as np

import gpu_pregel as gp

QUESTION = 0.75, 0.7  # subjects are points of the unit square


def library(documents=600, citations=8, seed=3):
    """Return a graph of documents, most of whose citations stay near their subjects, and these subjects."""
    random = np.random.default_rng(seed)
    subjects = random.random((documents, 2))
    distances = np.hypot(*(subjects[:, None] - subjects).T)
    scores = distances + random.exponential(0.15, (documents, documents)) + 9 * np.eye(documents)
    target = np.argsort(scores, axis=1)[:, :citations].ravel()
    source = np.repeat(np.arange(documents), citations)
    return gp.Graph.from_edgelist(source, target, num_vertices=documents, directed=True), subjects


def is_next(value, ctx):
    """Whether a document had the highest rank of the unread ones after the last superstep."""
    is_due = 1 < ctx.superstep <= ctx.parameters.documents + 1
    return is_due and value.read == 0 and value.rank == ctx.aggregated.highest


def apply(value, incoming, ctx):
    """Rank a document, and note if it is the next to be read."""
    rank = 0.15 / ctx.num_vertices + 0.85 * incoming
    return rank, value.weight, ctx.superstep if is_next(value, ctx) else value.read


ranking = gp.VertexProgram(
    value={"rank": np.float64, "weight": np.float64, "read": np.int64},  # read in a superstep, or 0
    parameters={"documents": np.int64},
    init=lambda ctx: (1 / ctx.num_vertices, 0.2, 0),
    message=lambda value, ctx: value.rank * value.weight / ctx.out_degree,
    message_type=np.float64,
    combine="sum",
    apply=apply,
    active="always",
    aggregators={"highest": gp.Aggregator("max", lambda old, new, ctx: new.rank if new.read == 0 else 0.0)},
)


def read(ctx, subjects):
    """Judge a document: its new weight is from 0.02, if its subject is far from the question, to 1."""
    distance = np.hypot(*(subjects[ctx.vertex_id] - QUESTION))
    return {"weight": max(0.02, 1 - 3 * distance)}


def browse(graph, subjects, documents=60, judge=read, workers=0):
    """Return the result after a model has read some documents."""
    return gp.run(
        graph,
        ranking,
        parameters={"documents": documents},
        agents=gp.Agents(partial(judge, subjects=subjects), workers=workers),
        wake=lambda old, new, ctx: new.read > old.read,
        max_supersteps=documents + 3,
    )


def order(values):
    """Return the documents that were read, in this order."""
    return np.argsort(values.read, kind="stable")[(values.read == 0).sum() :]


def draw(path, documents=60):
    """Draw what was read, and how much of it fits the question, with weights that change and with those at first."""
    import matplotlib.pyplot as plt

    graph, subjects = library()
    values = browse(graph, subjects, documents).values
    fixed = browse(graph, subjects, documents, judge=lambda ctx, subjects: None).values
    fits = np.hypot(*(subjects - QUESTION).T) < 1 / 3
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.4))
    axes[0].scatter(*subjects.T, s=8, color="lightgray")
    axes[0].plot(*subjects[order(values)].T, color="gray", linewidth=0.3)
    sizes = 5e4 * values.rank[order(values)]
    points = axes[0].scatter(*subjects[order(values)].T, s=sizes, c=np.arange(len(sizes)), cmap="viridis")
    axes[0].plot(*QUESTION, "*", color="red", markersize=12)
    figure.colorbar(points, label="read before it")
    axes[0].set(xticks=[], yticks=[], title=f"{len(sizes)} of {len(subjects)} documents")
    for found, color, label in ((values, "seagreen", "what is read changes"), (fixed, "gray", "fixed")):
        axes[1].plot(np.cumsum(fits[order(found)]), color=color, label=f"weights: {label}")
    axes[1].set(xlabel="documents read", ylabel="documents read that fit the question")
    axes[1].legend()
    figure.tight_layout()
    figure.savefig(path, dpi=75)
    print(f"picture: {path}")


if __name__ == "__main__":
    draw(sys.argv[1] if len(sys.argv) > 1 else "reading_list.png")
