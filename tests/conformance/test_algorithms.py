"""Every registered algorithm on every device: checkers, known graphs, determinism and rejected arguments."""

from __future__ import annotations

import math
import re
from typing import Any

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.algorithms._entry import Algorithm
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, DeviceError, GraphError, VerificationError
from tests.algorithms import (
    EVERY_ALGORITHM,
    KINDS,
    allows,
    assert_same,
    call,
    damages,
    joined_graph,
    known_graphs,
    random_graph,
    uses_weights,
)
from tests.devices import emulated, is_slow, on

EVERY_KIND = pytest.mark.parametrize("kind", KINDS)


def skip_unless_allowed(algorithm: Algorithm, kind: str, device: str = "cpu") -> None:
    if not allows(algorithm, kind):
        pytest.skip(f"{algorithm.name} requires graphs that are {' and '.join(algorithm.requires)}")
    if device.partition(":")[0] not in algorithm.devices:
        pytest.skip(f"{algorithm.name} does not run on {device}")


@EVERY_KIND
@EVERY_ALGORITHM
def test_the_checker_accepts_the_results_on_tiny_graphs(algorithm: Algorithm, kind: str) -> None:
    skip_unless_allowed(algorithm, kind)
    check = algorithm.load_checker()
    for graph in known_graphs(algorithm, kind):
        if (result := call(algorithm, graph, device="cpu")) is not None:
            check(graph, result)
            assert result.describe()
            assert repr(result).startswith(f"<{algorithm.result}: ")
            assert result in {result}
            assert result.stats.keys() >= {"device", "device_reason", "threads", "seconds", "compile_seconds"}


@EVERY_ALGORITHM
@pytest.mark.parametrize(
    ("device", "kind"),
    [on(device, kind, name=kind) for device in ("python", "cuda") for kind in KINDS]
    + [on(emulated(seed), kind, name=kind) for seed, kind in enumerate(KINDS[:3])],
)
def test_all_devices_give_the_result_of_the_cpu(device: str, kind: str, algorithm: Algorithm) -> None:
    skip_unless_allowed(algorithm, kind, device)
    if is_slow(device) and "weighted" in kind and not uses_weights(algorithm):
        pytest.skip(f"{algorithm.name} does not read weights, and compiling for them takes seconds")
    graph = joined_graph(algorithm, kind)
    result = call(algorithm, graph, device=device)
    algorithm.load_checker()(graph, result)
    assert not [row for row in result.trace if str(row.get("phase")).startswith(("_", "<"))]
    assert_same(result, call(algorithm, graph, device="cpu"), exact=False)


@pytest.mark.parametrize("device", [on("python"), on("emulated")])
@EVERY_ALGORITHM
def test_the_empty_graph(device: str, algorithm: Algorithm) -> None:
    kind = next(kind for kind in KINDS if allows(algorithm, kind))
    skip_unless_allowed(algorithm, kind, device)
    graph = known_graphs(algorithm, kind)[0]
    if (result := call(algorithm, graph, device=device)) is not None:
        algorithm.load_checker()(graph, result)


@EVERY_ALGORITHM
def test_results_depend_on_neither_threads_nor_the_run(algorithm: Algorithm) -> None:
    kind = [kind for kind in KINDS if allows(algorithm, kind)][-1]
    graph = random_graph(algorithm, kind, 9 if re.match(r"O\(n ?m", algorithm.cost) else 11)
    first = call(algorithm, graph, device="cpu", threads=2)
    for threads in (1, 2, 5):
        assert_same(call(algorithm, graph, device="cpu", threads=threads), first, exact=True)
    assert first.stats["threads"] == 2


@EVERY_ALGORITHM
def test_the_checker_refuses_damaged_results(algorithm: Algorithm) -> None:
    kind = next(kind for kind in KINDS if allows(algorithm, kind))
    graph, check = joined_graph(algorithm, kind), algorithm.load_checker()
    found = list(damages(call(algorithm, graph, device="cpu")))
    assert found
    for damage, result in found:
        with pytest.raises(VerificationError):  # noqa: PT012
            check(graph, result)
            pytest.fail(f"not refused: {damage}")


BAD_VALUES: dict[str, list[Any]] = {
    "vertex": ["nobody", -1],
    "vertices": [["nobody"], [0, -1]],
    "pairs": [[("nobody", 0)], [(0, -1)]],
    "integer": ["x", 1.5, -5],
    "integers": [["x"], [-5]],
    "number": ["x", math.nan],
    "flag": ["yes", 2],
}


@EVERY_ALGORITHM
def test_bad_arguments_are_rejected_before_any_work(algorithm: Algorithm, monkeypatch: pytest.MonkeyPatch) -> None:
    kind = next(kind for kind in KINDS if allows(algorithm, kind))
    graph = joined_graph(algorithm, kind)

    def work(*_: object) -> None:
        raise AssertionError("work has started")

    monkeypatch.setattr("gpu_pregel.host.devices.cpu.CpuDevice.launch", work)
    good = algorithm.sample_arguments(graph) or {}
    for option in algorithm.options:
        for value in BAD_VALUES.get(option.kind, ["nothing", 0]):
            with pytest.raises((ArgumentError, ArgumentTypeError), match=rf"\b{option.argument}\b"):  # noqa: PT012
                algorithm.load()(graph, **{**good, option.argument: value}, device="cpu")
                pytest.fail(f"{option.argument}={value!r} is not rejected")
    with pytest.raises(ArgumentError, match="threads must be from 1 to 4,096, not 0"):
        algorithm.load()(graph, **good, threads=0)
    with pytest.raises(DeviceError, match="unknown device 'tpu'"):
        algorithm.load()(graph, **good, device="tpu")


@EVERY_ALGORITHM
def test_unsuitable_graphs_are_rejected(algorithm: Algorithm) -> None:
    good = algorithm.sample_arguments(gp.Graph.from_edgelist([0], [1])) or {}
    with pytest.raises(ArgumentTypeError, match="graph must be a gpu_pregel Graph"):
        algorithm.load()(np.zeros((2, 2)), **good)
    for requirement, unsuitable, message in (
        ("undirected", gp.Graph.from_edgelist([0], [1], [1.0], directed=True), "needs an undirected graph"),
        ("directed", gp.Graph.from_edgelist([0], [1], [1.0]), "needs a directed graph"),
        ("acyclic", gp.Graph.from_edgelist([0, 1], [1, 0], [1.0, 1.0], directed=True), "cycle"),
        ("weights", gp.Graph.from_edgelist([0], [1], directed="directed" in algorithm.requires), "needs weights"),
    ):
        if requirement in algorithm.requires:
            with pytest.raises(GraphError, match=message):
                algorithm.load()(unsuitable, **good)
