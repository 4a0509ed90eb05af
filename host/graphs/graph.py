"""The graph: its queries and transformations; its base classes hold the data, constructors and conversions."""

from __future__ import annotations

import os

from gpu_pregel.errors import ArgumentTypeError
from gpu_pregel.host.graphs.conversions import GraphConversions
from gpu_pregel.host.graphs.writers import writer


class Graph(GraphConversions):
    """An immutable graph in compressed sparse rows (CSR).

    Create one with a constructor such as :meth:`from_edgelist`, with :func:`gpu_pregel.read_graph` or with a
    generator, not by calling the class. An undirected edge is stored in both directions, a self-loop once. Rows are
    sorted by destination, then weight.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> gp.Graph.from_edgelist([0, 1, 3], [1, 2, 4])
    <Graph: 5 vertices, 6 stored edges, undirected>
    """

    def save(self, path: str | os.PathLike[str], format: str | None = None, *, lossy: bool = False) -> None:
        """Write the graph to a file; ``format`` or the suffix selects a format of :func:`gpu_pregel.read_graph`.

        A format that cannot hold the ids, the isolated vertices or the weights raises ``FormatError``, and names others
        that can, unless ``lossy``; the table in :func:`gpu_pregel.io.save_graph` lists what each format holds.
        """
        writer("graph")(self, path, format=format, lossy=lossy)


def check_graph(graph: object) -> None:
    """Raise ``ArgumentTypeError`` unless ``graph`` is a ``Graph``."""
    if not isinstance(graph, Graph):
        raise ArgumentTypeError(f"graph must be a gpu_pregel Graph, not {type(graph).__name__}: use Graph.from_…")
