"""Weighted shortest paths on a graph from a Parquet file, compared with SciPy."""

import numpy as np
import pandas as pd
from scipy.sparse.csgraph import dijkstra

import gpu_pregel as gp

random = np.random.default_rng(1)
roads = pd.DataFrame({"from": random.integers(0, 300, 900) * 7, "to": random.integers(0, 300, 900) * 7})
roads["weight"] = random.uniform(1, 9, len(roads))
roads.to_parquet("roads.parquet")

graph = gp.read_graph("roads.parquet", directed=True)
shortest = gp.VertexProgram(
    value=np.float64,
    parameters={"source": np.int64},
    init=lambda ctx: 0.0 if ctx.vertex == ctx.parameters.source else np.inf,
    initially_active=lambda ctx: ctx.vertex == ctx.parameters.source,
    message=lambda value, weight, ctx: value + weight,
    combine="min",
    apply=lambda value, incoming, ctx: min(value, incoming),
)
source = graph.vertex(int(roads["from"][0]))
distances = gp.run(graph, shortest, parameters={"source": source})

matrix = graph.simplify(combine="min").to_scipy()  # of parallel roads the shortest
print(np.allclose(distances.values, dijkstra(matrix, indices=source)))
print(distances.to_pandas().shape[0] == graph.num_vertices == len(set(roads["from"]) | set(roads["to"])))
