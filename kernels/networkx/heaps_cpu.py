"""A binary heap of keys, tickets that decide between equal keys, and items."""

from __future__ import annotations

from gpu_pregel.kernels.library.jit_cpu import inline


@inline
def _swap(keys, tickets, items, i, j):
    keys[i], keys[j] = keys[j], keys[i]
    tickets[i], tickets[j] = tickets[j], tickets[i]
    items[i], items[j] = items[j], items[i]


@inline
def _precedes(keys, tickets, i, j):
    return keys[i] < keys[j] or (keys[i] == keys[j] and tickets[i] < tickets[j])


@inline
def push(keys, tickets, items, size, key, ticket, item):
    """Add an item to a heap; return its new size."""
    keys[size] = key
    tickets[size] = ticket
    items[size] = item
    child = size
    while child > 0:
        parent = (child - 1) // 2
        if not _precedes(keys, tickets, child, parent):
            break
        _swap(keys, tickets, items, child, parent)
        child = parent
    return size + 1


@inline
def pop(keys, tickets, items, size):
    """Move the first item of a heap behind its end; return its new size, which is also the place of the item."""
    size -= 1
    _swap(keys, tickets, items, 0, size)
    parent = 0
    while True:
        child = 2 * parent + 1
        if child >= size:
            return size
        if child + 1 < size and _precedes(keys, tickets, child + 1, child):
            child += 1
        if not _precedes(keys, tickets, child, parent):
            return size
        _swap(keys, tickets, items, child, parent)
        parent = child
