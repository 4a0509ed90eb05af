"""Saving a graph with names and isolated vertices, and loading it again."""

from pathlib import Path

import gpu_pregel as gp

graph = gp.Graph.from_edgelist(["ann", "bob"], ["bob", "cid"], [1.5, 2.5], vertices=["ann", "bob", "cid", "dora"])
for name in ("graph.pregel", "graph.parquet", "graph.csv", "graph.el", "graph.mtx", "graph.graph", "graph.sg"):
    try:
        graph.save(name)
    except gp.errors.FormatError as error:
        print(f"{name}: refused, .pregel is named: {'.pregel' in str(error)}")
        continue
    again = gp.read_graph(name)
    print(f"{name}: {list(again.ids)} {again.weights.tolist()} {again.num_stored_edges}")
gp.connected_components(graph).save("components.csv")
print(Path("components.csv").read_text())
