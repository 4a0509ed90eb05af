"""Breadth-first search from a named person."""

import gpu_pregel as gp
from gpu_pregel.examples.bfs import hops

friends = [("alice", "bob"), ("bob", "carol"), ("carol", "dave"), ("eve", "frank"), (7, "dave")]
graph = gp.Graph.from_edgelist([a for a, _ in friends], [b for _, b in friends])

result = gp.run(graph, hops, parameters={"source": graph.vertex("alice")})

print(result["dave"], result[7], result["eve"])
print(result.to_dict())
print(list(graph.neighbors("dave")), graph.out_degree("carol"), graph.has_edge("alice", "dave"))
try:
    graph.vertex("7")
except gp.errors.GpuPregelError as error:
    print(error)
