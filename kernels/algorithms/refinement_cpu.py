"""The kernel of Leiden's refinement on the CPU."""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.library.atomics_cpu import fetch_and_add
from gpu_pregel.kernels.library.jit_cpu import inline, jit
from gpu_pregel.kernels.library.work_cpu import claim


@inline
def _is_connected(outer, total, whole, rate, unit):
    """Whether a part is well connected to the rest of its community, of which ``whole`` is the total degree."""
    return outer * unit >= np.int64(rate * np.float64(total) * np.float64(whole - total))


@jit
def refine(
    work,
    starts,
    members,
    indptr,
    indices,
    weights,
    degrees,
    communities,
    refined,
    totals,
    outer,
    tables,
    found,
    slots,
    rate,
    unit,
):
    """Divide communities into parts, which are single vertices at first; work items are communities.

    In ascending order, each vertex that is still alone joins the part in which it gains most, if vertex and part are
    well connected to the rest of the community. ``outer`` sums the weights from each part to that rest.
    """  # fmt: skip
    mine = fetch_and_add(slots, 0, 1)
    table = tables[mine]
    seen = found[mine]
    first, last = claim(work)
    while first < last:
        for here in range(first, last):
            begin = starts[here]
            end = starts[here + 1]
            whole = np.int64(0)
            for i in range(begin, end):
                u = np.int64(members[i])
                whole += degrees[u]
                total = np.int64(0)
                if end - begin > 1:
                    for e in range(np.uint64(indptr[u]), np.uint64(indptr[u + 1])):
                        v = np.int64(indices[e])
                        weight = np.int64(1) if weights is None else weights[e]
                        total += weight * np.int64((np.int64(communities[v]) == here) & (v != u))
                outer[u] = total
            for i in range(begin, end):
                u = np.int64(members[i])
                alone = np.int64(refined[u]) == u and totals[u] == degrees[u]
                if not alone or outer[u] == 0 or not _is_connected(outer[u], degrees[u], whole, rate, unit):
                    continue
                count = np.uint64(0)
                for e in range(np.uint64(indptr[u]), np.uint64(indptr[u + 1])):
                    v = np.int64(indices[e])
                    if np.int64(communities[v]) == here and v != u:
                        c = refined[v]
                        before = table[c]
                        seen[count] = c
                        if weights is None:
                            table[c] = before + 1
                            count += np.uint64(before == 0)
                        else:
                            table[c] = before + weights[e]
                            count += np.uint64(before == 0) & np.uint64(weights[e] != 0)
                best = np.int64(-1)
                to = np.int64(u)
                inner = np.int64(0)
                pull = rate * np.float64(degrees[u])
                for j in range(count):
                    c = np.int64(seen[j])
                    gain = table[c] * unit - np.int64(pull * np.float64(totals[c]))
                    if gain >= 0 and (gain > best or (gain == best and c < to)):
                        if _is_connected(outer[c], totals[c], whole, rate, unit):
                            best = gain
                            to = c
                            inner = np.int64(table[c])
                    table[c] = 0
                if best >= 0:
                    refined[u] = to
                    totals[to] += degrees[u]
                    outer[to] += outer[u] - 2 * inner
        first, last = claim(work)
