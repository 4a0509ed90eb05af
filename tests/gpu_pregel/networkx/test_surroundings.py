"""What surrounds a call: the device, modules and nodes of any kind, generators, interrupts and garbage collection."""

from __future__ import annotations

import gc
import signal
import threading
from contextlib import suppress
from typing import Any

import networkx as nx
import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.algorithms import _driver, registry
from gpu_pregel.host import devices
from gpu_pregel.host.devices import get_device
from gpu_pregel.networkx.garbage import can_pause

pytestmark = pytest.mark.filterwarnings("ignore:Note. conversions to backend graphs are saved to cache")


@pytest.fixture
def priority(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ask the backend about every call."""
    monkeypatch.setattr(nx.config.backend_priority, "algos", ["gpu_pregel"])


@pytest.mark.parametrize(
    ("fewest", "variable", "expected"),
    [(9, None, "cpu"), (8, None, "cuda:0"), (None, None, "cpu"), (9, "python", "auto"), (8, "cpu", "auto")],
)
def test_small_graphs_are_computed_on_the_cpu_also_where_there_is_a_gpu(
    fewest: int | None, variable: str | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cycle of four nodes has eight stored edges; the backend has no rule of its own beside the registry's."""
    monkeypatch.setattr(devices, "_has_gpu", lambda: True)
    monkeypatch.delenv("GPU_PREGEL_DEVICE", raising=False)
    if variable:
        monkeypatch.setenv("GPU_PREGEL_DEVICE", variable)
    entries = [entry._replace(gpu_from=fewest) for entry in registry.ALGORITHMS]
    monkeypatch.setattr(registry, "ALGORITHMS", tuple(entries))
    graph = gp.networkx.Graph(gp.Graph.from_edgelist([0, 1, 2, 3], [1, 2, 3, 0]))
    used: list[str] = []

    def noted(name: str, **_: Any) -> Any:
        used.append(name)
        return get_device("cpu")

    monkeypatch.setattr(_driver, "get_device", noted)
    graph.run_of("closeness_centrality")
    assert nx.number_connected_components(graph) == 1
    assert used == [expected, expected]


@pytest.mark.usefixtures("priority")
def test_nodes_may_have_any_attributes() -> None:
    """Also those that graphs of this package have, and such as answer to every name."""

    class Host:
        def __init__(self, name: str) -> None:
            self.name, self.topology = name, "rack 1"

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            return self

    hosts = [Host(str(i)) for i in range(4)]
    graph = nx.relabel_nodes(nx.path_graph(4), dict(enumerate(hosts)))
    for options in ({}, {"backend": "gpu_pregel"}):
        assert nx.single_source_shortest_path_length(graph, hosts[0], **options) == dict(
            zip(hosts, range(4), strict=True)
        )


@pytest.mark.usefixtures("priority")
def test_modules_may_have_any_name() -> None:
    program = "import networkx as nx\nfound = nx.average_shortest_path_length(nx.path_graph(9))"
    for name in (None, 3):
        names: dict[str, Any] = {"__name__": name}
        exec(program, names)
        assert names["found"] == pytest.approx(10 / 3)


@pytest.mark.parametrize("name", ["minimum_spanning_edges", "edge_boundary", "bfs_edges", "jaccard_coefficient"])
def test_generators_can_be_closed(name: str) -> None:
    graph = nx.path_graph(9)
    arguments: tuple[Any, ...] = {"edge_boundary": ([1, 2],), "bfs_edges": (0,)}.get(name, ())
    found = getattr(nx, name)(graph, *arguments, backend="gpu_pregel")
    assert len(next(found)) > 1
    found.close()
    assert list(found) == []


@pytest.mark.usefixtures("interrupts")
def test_interrupts_and_threads_leave_the_garbage_collector_on() -> None:
    graph = nx.gnm_random_graph(30, 60, seed=1)

    def work() -> None:
        for _ in nx.all_pairs_shortest_path(graph, backend="gpu_pregel"):
            pass

    def interrupt(*_: Any) -> None:
        raise KeyboardInterrupt

    work()
    delays = np.random.default_rng(1).uniform(1e-5, 1e-3, 2_000)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        for delay in delays:
            with suppress(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, delay)
                while True:
                    work()
            assert gc.isenabled()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    seen: list[bool] = []
    thread = threading.Thread(target=lambda: seen.append(can_pause()))
    thread.start()
    thread.join()
    assert (seen, can_pause(), gc.isenabled()) == ([False], True, True)
