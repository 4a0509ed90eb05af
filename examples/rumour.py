"""A rumour in a network, without and with moderators: agents that a popular believer wakes.

Someone with k friends who believe the rumour comes to believe it with probability 1 - 0.97^k in each superstep. A
believer with many friends wakes a moderator, who looks at some of them, waits until it has reached a tenth, and then
answers: the believer and, with probability 0.3, each friend know better from then on.

python -m gpu_pregel.examples.rumour rumour.png [FILE]
"""

import sys

import numpy as np

import gpu_pregel as gp

NEVER = 1_000_000  # later than any superstep


def hear(value, incoming, ctx):
    """Believe the rumour, or know better."""
    believers, answers = incoming
    if answers > 0 and ctx.random(0) < 0.3:
        return value.heard, ctx.superstep
    if value.heard == NEVER and ctx.random(1) >= 0.97**believers:
        return ctx.superstep, NEVER
    return value.heard, value.knows


spreading = gp.VertexProgram(
    value={"heard": np.int64, "knows": np.int64},  # supersteps
    parameters={"source": np.int64, "popular": np.int64},
    init=lambda ctx: (0 if ctx.vertex == ctx.parameters.source else NEVER, NEVER),
    message=lambda value, ctx: (int(value.heard < NEVER and value.knows == NEVER), 0),
    message_type=(np.int64, np.int64),  # believers and answers
    combine="sum",
    receives=lambda value, ctx: value.knows == NEVER,
    apply=hear,
    active="always",
)


def moderate(ctx):
    """Look at some friends of a popular believer; answer once the rumour has reached a tenth of them."""
    reached = sum(one.value.heard < NEVER for one in ctx.neighbors)
    if ctx.value.knows == NEVER and 10 * reached < len(ctx.neighbors):
        ctx.stay_awake()
        return None
    ctx.send_to_neighbors((0, 1))
    return {"knows": ctx.superstep}


def wakes(old, new, ctx):
    """Whether someone with many friends has come to believe the rumour in this superstep."""
    return old.heard == NEVER and new.heard < NEVER and ctx.out_degree >= ctx.parameters.popular


def spread(graph, source, popular, supersteps=40, workers=0):
    """Return when each person heard the rumour and knew better; those with ``popular`` friends are moderated."""
    return gp.run(
        graph,
        spreading,
        parameters={"source": source, "popular": popular},
        max_supersteps=supersteps,
        agents=gp.Agents(moderate, workers=workers),
        wake=wakes,
    )


def counts(values, supersteps):
    """Return how many people believe the rumour, and how many know better, after each superstep."""
    steps = np.arange(supersteps)[:, None]
    return ((values.heard <= steps) & (steps < values.knows)).sum(axis=1), (values.knows <= steps).sum(axis=1)


def draw(path, graph, popular=100):
    """Draw how many people believe the rumour in each superstep."""
    import matplotlib.pyplot as plt

    friends = graph.to_undirected().simplify(combine="min")
    source = int(np.argmax(friends.out_degrees == 4))
    figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharey=True)
    for axis, least in zip(axes, (NEVER, popular), strict=True):
        result = spread(friends, source, least)
        supersteps = len(result.trace)
        axis.stackplot(range(supersteps), *counts(result.values, supersteps), colors=["firebrick", "steelblue"])
        axis.set(xlabel="superstep", title=f"{len(result.agents.values)} moderated")
    axes[0].set(ylabel="people")
    axes[1].legend(axes[1].collections, ["believe the rumour", "know better"], loc="center right")
    figure.tight_layout()
    figure.savefig(path, dpi=75)
    print(f"picture: {path}")


if __name__ == "__main__":
    given = gp.read_graph(sys.argv[2], directed=True) if len(sys.argv) > 2 else gp.kronecker(13)
    draw(sys.argv[1] if len(sys.argv) > 1 else "rumour.png", given)
