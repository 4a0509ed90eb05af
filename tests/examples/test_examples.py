"""Example programs: compared with NetworkX and with the expected outputs of LDBC Graphalytics.

Most run in one direction only, to compile less; tests/conformance checks that directions agree.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import networkx
import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.cli._programs import load_module, load_program

Array = np.ndarray[Any, Any]
EXAMPLES = Path(gp.__file__).parent / "examples"
PROGRAMS = [
    "label_propagation.py:components",
    "bfs.py:hops",
    "bfs.py:parents",
    "sssp.py:distances",
    "widest_path.py:widths",
    "pagerank.py:pagerank",
    "hits.py:hits",
]
AGENTS = ["agents_pagerank.py", "agents_streaming.py"]
"""Scripts, tested in ``test_agents.py``."""
LOOPS = ["agent_approval.py", "agent_crash_and_resume.py", "agent_supervisor.py", "agent_tool_loop.py"]
"""Scripts, tested in ``test_agent_loops.py``."""
WORKFLOWS = ["agent_map_reduce.py"]
"""Scripts, tested in ``test_map_reduce.py``."""
OPERATORS = ["operators_bellman_ford.py", "operators_bfs.py", "operators_components.py"]
"""Scripts, tested in ``test_operators.py``."""
PICTURES = [
    "bottlenecks.py",
    "communities.py",
    "influence.py",
    "investigators.py",
    "map_coloring.py",
    "maze.py",
    "percolation.py",
    "reading_list.py",
    "roads.py",
    "rumour.py",
]
OTHERS = ["mini_batches.py"]
"""Scripts that draw a picture, and others, tested in ``test_gallery.py`` and ``test_agents_gallery.py``."""


def example(name: str) -> Any:
    path, _, program = name.partition(":")
    return load_program(str(EXAMPLES / path), program)


def weighted(directed: bool, seed: int, n: int = 60, m: int = 130) -> gp.Graph:
    """Return a random graph with dangling vertices, unreachable vertices and repeated weights."""
    random = np.random.default_rng(seed)
    src, dst = random.integers(0, n - 5, m), random.integers(0, n, m)
    keep = (src != dst) & (random.random(m) < 0.95)
    weight = random.integers(1, 9, m) / 4
    # The source has out-edges and reaches other vertices by wide ones.
    src[:4], dst[:4], weight[:4], keep[:4] = 0, [1, 2, 3, 4], [1, 1.5, 2, 2], True
    return gp.Graph.from_edgelist(src[keep], dst[keep], weight[keep], num_vertices=n, directed=directed, combine="min")


GRAPHS = [
    pytest.param(weighted(directed, seed), id=f"{directed}-{seed}") for directed in (False, True) for seed in (1, 2)
]


def ldbc(data: Path, name: str) -> dict[int, float]:
    lines = (data / "graphalytics" / name).read_text().split("\n")
    return {int(vertex): float(value) for vertex, value in (line.split() for line in lines if line)}


def adjacency(path: Path, directed: bool) -> gp.Graph:
    """Read lines of a vertex and its neighbours; weights of 1, as programs compile again without weights."""
    rows = [[int(word) for word in line.split()] for line in path.read_text().splitlines()]
    pairs = np.array([(row[0], v) for row in rows for v in row[1:]])
    vertices = np.unique(np.concatenate([pairs.ravel(), [row[0] for row in rows]]))
    src, dst = np.searchsorted(vertices, pairs).T
    return gp.Graph.from_edgelist(
        src, dst, np.ones(len(src)), num_vertices=len(vertices), directed=directed, combine="min"
    )


def test_every_program_documents_its_command_and_is_tested() -> None:
    documented = {
        f"{path.name}:{name}"
        for path in EXAMPLES.glob("*.py")
        for name in re.findall(rf"gpu-pregel run examples/{path.name}:(\w+)", path.read_text())
    }
    assert documented == set(PROGRAMS)
    files = {path.name for path in EXAMPLES.glob("*.py")}
    assert files == {name.partition(":")[0] for name in PROGRAMS} | {
        *AGENTS,
        *LOOPS,
        *WORKFLOWS,
        *OPERATORS,
        *PICTURES,
        *OTHERS,
    }


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_example_has_a_docstring(name: str) -> None:
    assert isinstance(example(name), gp.VertexProgram)
    assert load_module(str(EXAMPLES / name.partition(":")[0])).__doc__


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("suite", ["bfs", "example"])
def test_hops_agree_with_graphalytics(data: Path, suite: str, directed: bool) -> None:
    folder = data / "graphalytics" / suite
    if suite == "bfs":
        prefix = "dir" if directed else "undir"
        graph = adjacency(folder / f"{prefix}-input", directed)
        expected = ldbc(data, f"bfs/{prefix}-output")
    else:
        kind = "directed" if directed else "undirected"
        graph = gp.read_graph(folder / f"example-{kind}.e", directed=directed)
        expected = ldbc(data, f"example/example-{kind}-BFS")
    reached = [-1 if hops > graph.num_vertices else hops for _, hops in sorted(expected.items())]
    assert gp.run(graph, example("bfs.py:hops")).values.tolist() == reached


@pytest.mark.parametrize("graph", GRAPHS)
def test_hops_and_parents_agree_with_networkx(graph: gp.Graph) -> None:
    oracle = graph.to_networkx()
    lengths = networkx.single_source_shortest_path_length(oracle, 0)
    hops = gp.run(graph, example("bfs.py:hops")).values
    assert hops.tolist() == [lengths.get(v, -1) for v in oracle]
    parents = gp.run(graph, example("bfs.py:parents"), mode="pull").values
    assert 0 < np.count_nonzero(hops == -1) < graph.num_vertices - 10
    for v, parent in enumerate(parents):
        if v == 0 or hops[v] < 0:
            assert parent == (0 if v == 0 else -1)
        else:
            before = oracle.predecessors(v) if graph.is_directed else oracle.neighbors(v)
            assert parent == min(u for u in before if lengths.get(u) == hops[v] - 1)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize("suite", ["sssp", "example"])
def test_distances_agree_with_graphalytics(data: Path, suite: str, directed: bool) -> None:
    kind, short = ("directed", "dir") if directed else ("undirected", "undir")
    stem, answer = (
        (f"{short}-input", f"{short}-output") if suite == "sssp" else (f"example-{kind}", f"example-{kind}-SSSP")
    )
    graph = gp.read_graph(data / "graphalytics" / suite / f"{stem}.e", directed=directed)
    result = gp.run(graph, example("sssp.py:distances"), mode="pull")
    assert result.to_dict() == pytest.approx(ldbc(data, f"{suite}/{answer}"))


@pytest.mark.parametrize("graph", GRAPHS)
def test_distances_agree_with_networkx(graph: gp.Graph) -> None:
    lengths = networkx.single_source_dijkstra_path_length(graph.to_networkx(), 0)
    values = gp.run(graph, example("sssp.py:distances"), mode="pull").values
    assert values.tolist() == [lengths.get(v, np.inf) for v in range(graph.num_vertices)]


@pytest.mark.parametrize("graph", GRAPHS)
def test_widths_agree_with_reachability_over_wide_edges(graph: gp.Graph) -> None:
    oracle = graph.to_networkx()
    expected = np.full(graph.num_vertices, -np.inf)
    for width in sorted(set(graph.weights.tolist() if graph.weights is not None else [])):
        wide = oracle.edge_subgraph([(u, v) for u, v, w in oracle.edges(data="weight") if w >= width])
        if 0 in wide:
            expected[list(networkx.descendants(wide, 0))] = width
    expected[0] = np.inf
    assert len(set(expected)) > 4
    assert np.array_equal(gp.run(graph, example("widest_path.py:widths"), mode="pull").values, expected)


@pytest.mark.parametrize("directed", [False, True])
def test_two_iterations_of_pagerank_agree_with_graphalytics(data: Path, directed: bool) -> None:
    name = f"example/example-{'directed' if directed else 'undirected'}"
    graph = gp.read_graph(data / "graphalytics" / f"{name}.e", directed=directed)
    result = gp.run(graph, example("pagerank.py:pagerank"), max_supersteps=4)
    assert result.to_dict() == pytest.approx(ldbc(data, f"{name}-PR"), rel=1e-12)


@pytest.mark.parametrize("direction", ["dir", "undir"])
def test_26_iterations_of_pagerank_agree_with_graphalytics(data: Path, direction: str) -> None:
    graph = adjacency(data / "graphalytics" / "pr" / f"{direction}-input", direction == "dir")
    result = gp.run(graph, example("pagerank.py:pagerank"), max_supersteps=28)
    expected = [rank for _, rank in sorted(ldbc(data, f"pr/{direction}-output").items())]
    assert result.values.tolist() == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("graph", GRAPHS)
def test_pagerank_agrees_with_networkx(graph: gp.Graph) -> None:
    result = gp.run(graph, example("pagerank.py:pagerank"))
    expected = networkx.pagerank(graph.to_networkx(), weight=None, tol=1e-13, max_iter=1000)
    assert result.status == "halted"
    assert np.count_nonzero(graph.out_degrees == 0) > 0
    assert result.values.sum() == pytest.approx(1)
    assert result.to_dict() == pytest.approx(expected, abs=1e-8)


def unweighted(directed: bool) -> Any:
    random = networkx.gnm_random_graph(50, 260, seed=4, directed=directed)
    random.add_edges_from([(0, v) for v in range(1, 30)])
    return random


def test_hits_on_directed_graph_agrees_with_networkx() -> None:
    module, oracle = load_module(str(EXAMPLES / "hits.py")), unweighted(directed=True)
    graph = gp.Graph.from_networkx(oracle)
    result = gp.run(module.with_transpose(graph), module.hits)
    hubs, authorities = module.normalised(result.values)
    expected_hubs, expected_authorities = networkx.hits(oracle, tol=1e-12)
    assert result.status == "halted"
    assert dict(enumerate(hubs)) == pytest.approx(expected_hubs, abs=1e-8)
    assert dict(enumerate(authorities)) == pytest.approx(expected_authorities, abs=1e-8)
    assert np.abs(hubs - authorities).max() > 0.01


def test_hits_on_undirected_graph_agrees_with_networkx() -> None:
    module, oracle = load_module(str(EXAMPLES / "hits.py")), unweighted(directed=False)
    hubs, authorities = module.normalised(gp.run(gp.Graph.from_networkx(oracle), module.hits).values)
    assert dict(enumerate(hubs)) == pytest.approx(networkx.hits(oracle, tol=1e-12)[0], abs=1e-8)
    assert np.array_equal(hubs, authorities)


def test_components_agree_with_networkx_and_connected_components() -> None:
    graph = weighted(directed=False, seed=3, m=60)
    labels = gp.run(graph, example("label_propagation.py:components"), mode="pull").values
    expected = {v: min(part) for part in networkx.connected_components(graph.to_networkx()) for v in part}
    assert dict(enumerate(labels.tolist())) == expected
    assert len(set(expected.values())) > 3
    assert np.array_equal(labels, gp.connected_components(graph).labels)


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_terminate_without_edges(name: str) -> None:
    apart = gp.Graph.from_edgelist([], [], [], num_vertices=3)
    result = gp.run(apart, example(name), mode="pull")
    values = result.values if isinstance(result.values, tuple) else (result.values,)
    assert result.status in ("completed", "halted")
    assert not any(np.isnan(part.astype(float)).any() for part in values)
