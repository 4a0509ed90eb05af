"""Depth-first searches in the order of NetworkX, on one thread, and the components that they find.

Rows are in the order of NetworkX's dicts. None of these searches is recursive.
"""

from __future__ import annotations

import numpy as np

from gpu_pregel.kernels.library.jit_cpu import inline, jit

FORWARD, NONTREE, REVERSE, LIMITED = 0, 1, 2, 3
"""What a search reports: a vertex is found, an edge leads to a known vertex, a vertex is left, or is not entered."""


@inline
def _report(u, v, kind, kept, count, sources, targets, kinds):
    if (kept >> kind) & 1:
        sources[count] = u
        targets[count] = v
        kinds[count] = kind
        count += 1
    return count


@jit
def depth_first(indptr, neighbors, starts, limit, kept, sources, targets, kinds):
    """Search from each vertex of ``starts`` that is not known yet; return the number of events.

    ``kept`` has a bit for each kind of event to report. A start is found, and left, by an edge to itself. Vertices
    ``limit`` steps away are not entered.
    """
    n = len(indptr) - 1
    visited = np.zeros(n, np.bool_)
    stack = np.empty(n, np.uint32)
    edges = np.empty(n, np.int64)
    count = 0
    for start in starts:
        if visited[start]:
            continue
        visited[start] = True
        count = _report(start, start, FORWARD, kept, count, sources, targets, kinds)
        stack[0] = start
        edges[0] = indptr[start]
        height = 1
        while height > 0:
            u = stack[height - 1]
            e, end = edges[height - 1], indptr[u + 1]
            entered = False
            while e < end and not entered:
                v = neighbors[e]
                e += 1
                if visited[v]:
                    count = _report(u, v, NONTREE, kept, count, sources, targets, kinds)
                    continue
                visited[v] = True
                count = _report(u, v, FORWARD, kept, count, sources, targets, kinds)
                entered = height < limit
                if not entered:
                    count = _report(u, v, LIMITED, kept, count, sources, targets, kinds)
            if entered:
                edges[height - 1] = e
                stack[height] = v
                edges[height] = indptr[v]
                height += 1
                continue
            height -= 1
            if height > 0:
                count = _report(stack[height - 1], u, REVERSE, kept, count, sources, targets, kinds)
        count = _report(start, start, REVERSE, kept, count, sources, targets, kinds)
    return count


@jit
def depth_first_edges(indptr, neighbors, reverse, starts, found):
    """Follow each edge once, from its end on if edges are left there; return how many are found.

    ``reverse`` has the position of the same edge in the other row, or its own position if the graph is directed.
    """
    n = len(indptr) - 1
    seen = np.zeros(len(neighbors), np.bool_)
    edges = np.empty(n, np.int64)
    edges[:] = indptr[:n]
    stack = np.empty(len(neighbors) + 1, np.uint32)
    count = 0
    for start in starts:
        stack[0] = start
        height = 1
        while height > 0:
            u = stack[height - 1]
            e = edges[u]
            if e == indptr[u + 1]:
                height -= 1
                continue
            edges[u] = e + 1
            if not seen[e]:
                seen[e] = True
                seen[reverse[e]] = True
                found[count] = e
                count += 1
                stack[height] = neighbors[e]
                height += 1
    return count


@jit
def strong_components(indptr, neighbors, order, ends):
    """Find the strongly connected components as Tarjan and Nuutila do; return their number.

    ``order`` gets the vertices by component, each component's root first; component ``i`` ends at ``ends[i]``. The
    components are in reverse topological order.
    """
    n = len(indptr) - 1
    numbers, low = np.zeros(n, np.int64), np.zeros(n, np.int64)
    done = np.zeros(n, np.bool_)
    stack, left = np.empty(n, np.uint32), np.empty(n, np.uint32)
    edges = np.empty(n, np.int64)
    found = waiting = size = count = 0
    for start in range(n):
        if numbers[start] > 0:
            continue
        stack[0] = start
        edges[0] = indptr[start]
        found += 1
        numbers[start] = found
        height = 1
        while height > 0:
            v = stack[height - 1]
            e, end = edges[height - 1], indptr[v + 1]
            while e < end and numbers[neighbors[e]] > 0:
                e += 1
            if e < end:
                edges[height - 1] = e + 1
                w = neighbors[e]
                stack[height] = w
                edges[height] = indptr[w]
                found += 1
                numbers[w] = found
                height += 1
                continue
            height -= 1
            lowest = numbers[v]
            for e in range(indptr[v], end):
                w = neighbors[e]
                if not done[w]:
                    lowest = min(lowest, low[w] if numbers[w] > numbers[v] else numbers[w])
            low[v] = lowest
            if lowest < numbers[v]:
                left[waiting] = v
                waiting += 1
                continue
            order[size] = v
            size += 1
            done[v] = True
            while waiting > 0 and numbers[left[waiting - 1]] > numbers[v]:
                waiting -= 1
                order[size] = left[waiting]
                size += 1
                done[left[waiting]] = True
            ends[count] = size
            count += 1
    return count


@jit
def reachable_groups(indptr, neighbors, starts, order, ends):
    """Group vertices by the last of ``starts`` that reaches them, in Kosaraju's second phase; return the groups.

    It stops when as many vertices as ``starts`` has are known, as NetworkX does.
    """
    n = len(indptr) - 1
    seen = np.zeros(n, np.bool_)
    stack = np.empty(n, np.uint32)
    remaining = len(starts)
    size = count = 0
    while remaining > 0 and size < len(starts):
        remaining -= 1
        start = starts[remaining]
        if seen[start]:
            continue
        seen[start] = True
        order[size] = start
        size += 1
        stack[0] = start
        height = 1
        while height > 0 and size < len(starts):
            height -= 1
            v = stack[height]
            for e in range(indptr[v], indptr[v + 1]):
                w = neighbors[e]
                if not seen[w]:
                    seen[w] = True
                    order[size] = w
                    size += 1
                    stack[height] = w
                    height += 1
        ends[count] = size
        count += 1
    return count


@jit
def biconnected_components(indptr, neighbors, sources, targets, ends, is_cut, cuts):
    """Find the biconnected components; return the number of components and of cut vertices.

    ``sources`` and ``targets`` get the edges by component, component ``i`` ends at ``ends[i]``; ``cuts`` gets the cut
    vertices as they are found. Rows have no parallel edges. As in NetworkX, an edge from a vertex that is not the start
    of a search to itself belongs to a component.
    """
    n = len(indptr) - 1
    numbers, low, firsts = np.zeros(n, np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    stack, edges = np.empty(n + 1, np.uint32), np.empty(n + 1, np.int64)
    edge_sources, edge_targets = np.empty(len(neighbors), np.uint32), np.empty(len(neighbors), np.uint32)
    found = size = count = cut_count = pending = 0
    for start in range(n):
        if numbers[start] > 0:
            continue
        found += 1
        numbers[start] = low[start] = found
        # The start is its own parent, so that a row of the stack is never missing.
        stack[0] = stack[1] = start
        edges[1] = indptr[start]
        height = 2
        children = 0
        while height > 1:
            before, v = stack[height - 2], stack[height - 1]
            e, end = edges[height - 1], indptr[v + 1]
            lowest = low[v]
            entered = False
            while e < end and not entered:
                w = neighbors[e]
                e += 1
                if w == before or numbers[w] > numbers[v]:
                    continue
                edge_sources[pending] = v
                edge_targets[pending] = w
                pending += 1
                if numbers[w] > 0:
                    lowest = min(lowest, numbers[w])
                else:
                    entered = True
            low[v] = lowest
            if entered:
                edges[height - 1] = e
                found += 1
                numbers[w] = low[w] = found
                firsts[w] = pending - 1
                stack[height] = w
                edges[height] = indptr[w]
                height += 1
                continue
            height -= 1
            if height == 1:
                continue
            low[before] = min(low[before], low[v])
            is_root = height == 2
            children += is_root
            if is_root or low[v] >= numbers[before]:
                for i in range(firsts[v], pending):
                    sources[size] = edge_sources[i]
                    targets[size] = edge_targets[i]
                    size += 1
                pending = firsts[v]
                ends[count] = size
                count += 1
                if (not is_root or children > 1) and not is_cut[before]:
                    is_cut[before] = True
                    # The start of a search comes after the cut vertices behind it.
                    if not is_root:
                        cuts[cut_count] = before
                        cut_count += 1
        if is_cut[start]:
            cuts[cut_count] = start
            cut_count += 1
    return count, cut_count
