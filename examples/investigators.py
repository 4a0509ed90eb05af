"""Twenty investigators: risk spreads over millions of accounts, and agents decide the cases that it raises.

Shares of risk move along the edges, as in personalised PageRank. An account that crosses a line wakes its agent, which
looks at the neighbours and files a case with one of the investigators: agents at vertices without edges, each of which
decides its riskiest case per superstep. A verdict is a message: a fraud becomes a source of risk, and the risk of a
cleared account is gone. Hidden in the graph are chains of fraudulent accounts, of which the first is known.

python -m gpu_pregel.examples.investigators investigators.png [SCALE]
"""

import sys

import numpy as np

import gpu_pregel as gp

WHOLE, LINE = 1_000_000, 100_000  # risk in millionths, so that sums are exact
FRAUD, CLEARED = 1, -1
INVESTIGATORS = 20


def accounts(scale, shape=(20, 30), seed=1):
    """Return a Kronecker graph, in which accounts of a chain also trade with the next three, and the chains."""
    graph = gp.kronecker(scale, 8)
    small = np.flatnonzero((graph.out_degrees > 0) & (graph.out_degrees < 4))
    chains = np.random.default_rng(seed).choice(small, shape, replace=False)
    pairs = [graph.to_edgelist()[:2], *((chains[:, :-k].ravel(), chains[:, k:].ravel()) for k in (1, 2, 3))]
    source, target = (np.concatenate(ends) for ends in zip(*pairs, strict=True))
    n = graph.num_vertices + INVESTIGATORS  # these come last
    return gp.Graph.from_edgelist(source, target, num_vertices=n, combine="first"), chains


def apply(value, incoming, ctx):
    """Add up shares of risk, until there is a verdict."""
    share, verdict = incoming
    if verdict == 0:
        return value.risk + share, share, 0
    return (WHOLE, WHOLE, FRAUD) if verdict > 0 else (0, 0, CLEARED)


spreading = gp.VertexProgram(
    value={"risk": np.int64, "gain": np.int64, "verdict": np.int64},
    init=lambda ctx: (0, 0, 0),
    message=lambda value, ctx: (value.gain * 85 // (100 * ctx.out_degree), 0),
    message_type=(np.int64, np.int64),  # a share of risk, and a verdict
    combine="sum",
    receives=lambda value, ctx: value.verdict == 0,
    apply=apply,
)


def crosses(old, new, ctx):
    """Whether an account has crossed the line in this superstep."""
    return new.verdict == 0 and old.risk <= LINE < new.risk


def compute(ctx):
    """Compute an account that has crossed the line, or an investigator."""
    if ctx.is_woken:
        risky = sum(one.value.risk > LINE for one in ctx.neighbors)
        case = ctx.value.risk, ctx.vertex_id, risky, len(ctx.neighbors)
        ctx.send(ctx.num_vertices - 1 - ctx.vertex_id % INVESTIGATORS, case)
    else:
        investigate(ctx)


def investigate(ctx):
    """Decide the riskiest case: a fraud if at least three neighbours, and a third of them, are at risk."""
    waiting, verdicts = ctx.state
    waiting = sorted([*waiting, *(message.content for message in ctx.messages)])
    if waiting:
        _, account, risky, neighbors = waiting.pop()
        verdict = FRAUD if risky >= 3 and 3 * risky >= neighbors else CLEARED
        ctx.send(account, (0, verdict))
        verdicts = [*verdicts, (ctx.superstep, account, verdict)]
    ctx.state = waiting, verdicts
    if waiting:
        ctx.stay_awake()


def spread(graph, sources, workers=0):
    """Spread risk from some accounts; return the result, and each verdict with its superstep and account."""
    risk = np.zeros(graph.num_vertices, np.int64)
    risk[sources] = WHOLE
    desks = range(graph.num_vertices - INVESTIGATORS, graph.num_vertices)
    result = gp.run(
        graph,
        spreading,
        initial={"risk": risk, "gain": risk, "verdict": np.sign(risk)},
        frontier=sources,
        agents=gp.Agents(compute, vertices=dict.fromkeys(desks, ([], [])), workers=workers),
        wake=crosses,
    )
    return result, sorted(verdict for desk in desks for verdict in result.agents.values[desk][1])


def draw(path, scale=17, shape=(20, 30)):
    """Draw when each account of the chains was found, and the cases over time."""
    import matplotlib.pyplot as plt

    graph, chains = accounts(scale, shape)
    result, verdicts = spread(graph, chains[:, 0])
    superstep, account, verdict = np.array(verdicts).T
    found = np.full(graph.num_vertices, np.nan)
    found[chains[:, 0]] = 0
    found[account[verdict == FRAUD]] = superstep[verdict == FRAUD]
    figure, axes = plt.subplots(1, 2, figsize=(11, 4.3))
    place, chain = np.meshgrid(*map(np.arange, chains.shape[::-1]))
    axes[0].scatter(place, chain, s=30, color="lightgray")
    points = axes[0].scatter(place, chain, s=30, c=found[chains], cmap="plasma")
    figure.colorbar(points, label="superstep of the verdict")
    axes[0].set(yticks=[], xlabel="place in the chain", ylabel="chain", title="Fraudulent accounts")
    steps = np.arange(len(result.trace))
    decided = [np.bincount(superstep[verdict == one], minlength=len(steps)).cumsum() for one in (FRAUD, CLEARED)]
    raised = np.cumsum([row["woken"] for row in result.trace])
    axes[1].stackplot(steps, *decided, raised - sum(decided), colors=["firebrick", "mediumseagreen", "lightgray"])
    axes[1].legend(axes[1].collections, ["fraud", "cleared", "waiting"], loc="upper left")
    axes[1].set(xlabel="superstep", ylabel="cases", title=f"{graph.num_vertices - INVESTIGATORS:,} accounts")
    figure.tight_layout()
    figure.savefig(path, dpi=75)
    print(f"picture: {path}")


if __name__ == "__main__":
    draw(sys.argv[1] if len(sys.argv) > 1 else "investigators.png", *map(int, sys.argv[2:3]))
