"""Intersections of sorted rows, for the bodies of operators, the same on every device.

A row is a range ``begin`` to ``end`` of ``indices``, as in a CSR.

Examples
--------
The number of neighbours that the ends of each edge have in common, summed over all stored edges, is six times the
number of triangles:

>>> import gpu_pregel as gp
>>> def common(u, v, weight, indptr, indices):
...     return gp.sorted_rows.count_common(indices, indptr[u], indptr[u + 1], indices, indptr[v], indptr[v + 1])
>>> frontier = gp.Frontier(gp.Graph.from_edgelist([0, 0, 1, 2], [1, 2, 2, 3]), device="cpu")
>>> gp.process_edges(common, frontier, frontier.csr()[:2], returns="sum")
6
"""

from __future__ import annotations

from typing import Any

from numba.extending import register_jitable


@register_jitable
def find(indices: Any, begin: Any, end: Any, vertex: Any) -> Any:
    """Return the first position from ``begin`` to ``end`` at which a sorted row has ``vertex`` or a larger one.

    It gallops: the time is that of a binary search among twice the elements between ``begin`` and the position, so that
    a row can be searched for several ascending vertices from the last position on.
    """
    step = 1
    while begin < end and indices[begin] < vertex:
        # The elements up to begin are smaller: double the step, or halve it after it went too far.
        begin += 1
        if begin + step < end and indices[begin + step] < vertex:
            begin += step
            step += step
        else:
            step = (step + 1) // 2
    return begin


@register_jitable
def _count_in(indices: Any, begin: Any, end: Any, others: Any, other: Any, other_end: Any) -> Any:
    """Count the different vertices of a row that another row, the longer one, has too."""
    common = 0
    for i in range(begin, end):
        vertex = indices[i]
        if i == begin or indices[i - 1] != vertex:
            other = find(others, other, other_end, vertex)
            if other < other_end and others[other] == vertex:
                common += 1
    return common


@register_jitable
def count_common(indices: Any, begin: Any, end: Any, others: Any, other_begin: Any, other_end: Any) -> Any:
    """Return the number of vertices that two sorted rows have in common; a vertex repeated in both counts once.

    The time is O(s log(l / s)) for rows of s and l elements, s being the smaller number.
    """
    if end - begin <= other_end - other_begin:
        return _count_in(indices, begin, end, others, other_begin, other_end)
    return _count_in(others, other_begin, other_end, indices, begin, end)


PORTABLE = (find, _count_in, count_common)
"""The functions above, which are compiled for CUDA as they are."""
