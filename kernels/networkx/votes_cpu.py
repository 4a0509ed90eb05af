"""VoteRank: elections, one after the other, in which neighbours of the elected lose votes."""

from __future__ import annotations

from gpu_pregel.kernels.library.jit_cpu import jit


@jit
def elect(indptr, voters, neighbors, back_indptr, back_neighbors, directed, loss, abilities, votes, stale, elected):
    """Hold an election; return the vertex with the most votes, the first of them, or -1 if nobody has any.

    Only the votes of ``stale`` vertices are counted again. Row u of ``voters`` has the neighbours of u in the order in
    which their votes are added; ``back_indptr`` and ``back_neighbors`` have the vertices for whom each vertex votes.
    """
    n = len(votes)
    chosen = -1
    for u in range(n):
        if stale[u] and not elected[u]:
            total = 0.0
            for e in range(indptr[u], indptr[u + 1]):
                total += abilities[voters[e]]
                if not directed and voters[e] == u:
                    total += abilities[u]
            votes[u] = total
        stale[u] = False
        if votes[u] > 0.0 and (chosen < 0 or votes[u] > votes[chosen]):
            chosen = u
    if chosen < 0:
        return chosen
    elected[chosen] = True
    votes[chosen] = 0.0
    abilities[chosen] = 0.0
    for e in range(back_indptr[chosen], back_indptr[chosen + 1]):
        stale[back_neighbors[e]] = True
    for e in range(indptr[chosen], indptr[chosen + 1]):
        v = neighbors[e]
        abilities[v] = max(abilities[v] - loss, 0.0)
        for f in range(back_indptr[v], back_indptr[v + 1]):
            stale[back_neighbors[f]] = True
    return chosen
