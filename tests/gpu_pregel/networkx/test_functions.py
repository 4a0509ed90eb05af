"""Every function of the backend against NetworkX's own, on graphs of every kind."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

import networkx as nx
import pytest

from gpu_pregel.networkx import FUNCTIONS
from gpu_pregel.networkx.backend import backend
from tests.devices import EXHAUSTIVE, LONG, on
from tests.gpu_pregel.networkx.cases import CASES
from tests.gpu_pregel.networkx.comparison import Arguments, Case, assert_same, outcome
from tests.gpu_pregel.networkx.graphs import GRAPHS

_ON_DEVICES = {
    "components": "connected_components weakly_connected_components node_connected_component is_bipartite_node_set "
    "number_strongly_connected_components",
    "iterations": "pagerank hits eigenvector_centrality katz_centrality",
    "searches": "closeness_centrality eccentricity",
    "other searches": "betweenness_centrality edge_betweenness_centrality harmonic_centrality global_efficiency",
    "neighborhoods": "triangles core_number louvain_communities",
}
"""Functions of which the engine computes the whole or a part."""
_FEWEST = 3
"""Of how many graphs each function must compute a result itself."""
_TURNS = 3
"""How many of the later cases of a function have all graphs between them."""
_REFUSED = {
    **dict.fromkeys(("bfs_edges", "bfs_predecessors", "bfs_successors", "bfs_tree", "dfs_edges"), 1),
    **dict.fromkeys(("center", "diameter", "periphery", "radius"), 1),
    **dict.fromkeys(("edge_bfs", "edge_dfs", "find_cycle", "google_matrix"), 1),
    **dict.fromkeys(("closeness_centrality", "eulerian_path", "fast_gnp_random_graph"), 1),
    **dict.fromkeys(("inter_community_edges", "intra_community_edges", "to_numpy_array"), 1),
    **dict.fromkeys(("eulerian_circuit", "gnp_random_graph"), 2),
    "greedy_color": 3,
}
"""How many cases of a function are left to NetworkX on every graph."""


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_function_returns_what_networkx_returns(name: str) -> None:
    function, computed, refused = FUNCTIONS[name].original(), set(), 0
    for number, case in enumerate(CASES[name]):
        found = {graph: _compare(function, name, case, graph) for graph in _graphs_of(case, number)}
        computed |= {graph for graph, end in found.items() if end == "computed"}
        refused += set(found.values()) <= {"refused", "no call"}
    assert len(computed) >= _FEWEST, f"{name} computed results only of {sorted(computed)}"
    assert refused == _REFUSED.get(name, 0)


@pytest.mark.parametrize("device", [on("emulated"), on("cuda")])
@pytest.mark.parametrize(
    "names",
    [
        pytest.param(names, id=name, marks=LONG if name == "other searches" else ())
        for name, names in _ON_DEVICES.items()
    ],
)
def test_results_computed_on_a_device_are_the_same(names: str, device: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPU_PREGEL_DEVICE", device)
    for name in names.split():
        case = CASES[name][0]
        graph_names = [
            graph for graph in ("cycle", "directed cycle", "path", "complete") if graph in (case.graphs or GRAPHS)
        ]
        ends = [_compare(FUNCTIONS[name].original(), name, case, graph) for graph in graph_names]
        assert "computed" in ends, name


def _graphs_of(case: Case, number: int) -> Sequence[str]:
    """Return the graphs of a case of a function: the first case has all, and by default later ones take turns."""
    graphs = case.graphs or (*GRAPHS,)
    few = not EXHAUSTIVE and number > 0 and len(graphs) == len(GRAPHS)
    return graphs[(number - 1) % _TURNS :: _TURNS] if few else graphs


def _compare(function: Any, name: str, case: Case, graph_name: str) -> str:
    """Compare one call; return how it ended: "computed", "raised" an error of NetworkX, "refused" or "no call"."""
    arguments = case.arguments(GRAPHS[graph_name]())
    if arguments is None:
        return "no call"
    ours = outcome(function, arguments, "gpu_pregel")
    if isinstance(ours, NotImplementedError) and _refuses(name, arguments, graph_name, ours):
        return "refused"
    # Random generators among the arguments have been used.
    again = case.arguments(GRAPHS[graph_name]())
    assert again is not None
    # NetworkX declares functions that only backends implement.
    theirs = outcome(function, again, "networkx") if "networkx" in function.__wrapped__.backends else None
    place = f"{name} of {graph_name!r}"
    if case.check is None or isinstance(ours, Exception) or isinstance(theirs, Exception):
        assert_same(ours, theirs, case, place)
    else:
        case.check(again[0][0], ours, theirs)
    return "raised" if isinstance(ours, Exception) else "computed"


def _refuses(name: str, arguments: Arguments, graph_name: str, error: NotImplementedError) -> bool:
    """Return whether the backend leaves a call to NetworkX: by a condition, or for weights that it does not take."""
    args, kwargs = arguments
    # NetworkX wraps what a function raises.
    reason = str(error.__cause__ or error)
    if reason.startswith(("the edges'", "an edge's")):
        return graph_name == "mixed weights" or "'negative'" in reason
    return isinstance(backend.can_run(name, args, kwargs), str)


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_signature_is_that_of_networkx(name: str) -> None:
    theirs = inspect.signature(FUNCTIONS[name].original()).parameters
    expected = [(p.name, p.default, p.kind) for p in theirs.values() if p.name not in ("backend", "backend_kwargs")]
    ours = [
        (p.name, p.default, p.kind) for p in inspect.signature(FUNCTIONS[name].implementation()).parameters.values()
    ]
    assert ours == expected


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_function_is_dispatched_under_its_name(name: str) -> None:
    assert "gpu_pregel" in nx.utils.backends.backend_info
    assert FUNCTIONS[name].original().__wrapped__.name == name
