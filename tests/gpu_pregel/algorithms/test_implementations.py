"""Tests of the implementations that the registry names, and of the driver that chooses one of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from inspect import signature
from pathlib import Path

import pytest

import gpu_pregel as gp
from gpu_pregel.algorithms import registry
from gpu_pregel.algorithms._driver import AlgorithmRun, documented
from gpu_pregel.algorithms._entry import Algorithm
from gpu_pregel.algorithms.registry import ALGORITHMS, exported_names
from gpu_pregel.errors import GraphError

FOLDER = Path(registry.__file__).parent
KINDS = ("cpu", "cuda", "emulated", "python")
DRIVER = ("_driver.py", "_entry.py", "registry.py")
"""The files that know the devices."""


@pytest.mark.parametrize(
    "entry", [entry for entry in ALGORITHMS if entry.implementations], ids=lambda entry: entry.name
)
def test_implementations_load_and_have_the_same_parameters(entry: Algorithm) -> None:
    assert set(entry.implementations) <= {*KINDS, "*"}
    found = [entry.load_implementation(device) for device in ("cpu", "cuda:1", "emulated:3", "python")]
    assert len(set(found)) == len(set(entry.implementations.values()))
    assert found[2] is found[1]
    for implementation in found:
        assert implementation.__doc__
        assert list(signature(implementation).parameters) == list(signature(found[0]).parameters)
        assert next(iter(signature(implementation).parameters)) == "run"


def test_the_named_kind_comes_before_cuda_and_the_rest() -> None:
    names = ("_arguments:check_positive", "_vectors:vertex_vector", "_vectors:distribution")
    entry = Algorithm(
        "depths", "Depths", "depths", implementations=dict(zip(("emulated", "cuda", "*"), names, strict=True))
    )
    found = [entry.load_implementation(device).__name__ for device in ("emulated:1", "cuda:0", "cpu", "python")]
    assert found == ["check_positive", "vertex_vector", "distribution", "distribution"]


@pytest.mark.parametrize("path", sorted(set(FOLDER.rglob("*.py"))), ids=lambda path: path.stem)
def test_no_algorithm_names_a_device(path: Path) -> None:
    if path.name not in DRIVER:
        assert list(named_devices(path.read_text())) == []


def named_devices(source: str) -> Iterator[str]:
    """Yield what names or asks for a device in code, other than its docstrings and messages."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Constant(value=str(text)) if text in KINDS:
                yield f"line {node.lineno}: {text!r}"
            case ast.ImportFrom(module=str(module)) if module.startswith("gpu_pregel.host.devices"):
                others = {name.name for name in node.names} - {"Device", "DeviceName"}
                yield from (f"line {node.lineno}: import {name}" for name in others)
            case ast.Attribute(attr="is_host"):
                yield f"line {node.lineno}: is_host"
            case ast.Compare(left=ast.Attribute(value=ast.Name(id="device" | "target"), attr="name")):
                yield f"line {node.lineno}: compares a device's name"


@pytest.mark.parametrize(
    "code",
    [
        "if target.name != other: pass",
        "device = get('cuda')",
        "from gpu_pregel.host.devices.cpu import CpuDevice",
        "size = n if run.device.is_host else m",
    ],
)
def test_a_device_named_in_code_is_found(code: str) -> None:
    assert len(list(named_devices(code))) == 1


@pytest.mark.parametrize("name", sorted(exported_names()))
def test_docstrings_have_the_texts_that_all_share(name: str) -> None:
    text = getattr(gp, name).__doc__
    assert not [part for part in ("{graph}", "{options}", "{errors}") if part in text]


def test_shared_texts_are_indented_as_their_lines() -> None:
    def example() -> None: ...

    example.__doc__ = "Do it.\n\n        {graph}\n        {errors}\n\n    >>> {'graph'}\n    {graph} is no line."
    assert documented(example) is example
    assert example.__doc__.splitlines() == [
        *("Do it.", "", "        graph : Graph, NetworkX graph or SciPy sparse matrix", "        ArgumentTypeError"),
        "            ``graph`` is not a graph, or an argument has the wrong type.",
        *("        DeviceError", "            The device is unknown or cannot be used."),
        *("", "    >>> {'graph'}", "    {graph} is no line."),
    ]


def test_a_run_adds_up_all_of_its_parts() -> None:
    run = AlgorithmRun("bipartite", gp.grid(2), device="cpu", threads=1)
    found = run.call(gp.bfs, run.graph, 0)
    run.add([{"phase": "more", "seconds": 2.0, "compile_seconds": 3.0}], 10.0)
    run.notes["more"] = True
    assert [row["phase"] for row in run.trace()] == [*(row["phase"] for row in found.trace), "more"]
    stats = run.stats()
    assert (stats["device"], stats["device_reason"], stats["threads"]) == ("cpu", "device='cpu' was passed", 1)
    assert stats["more"] is True
    assert stats["seconds"] == pytest.approx(found.stats["seconds"] + 2)
    assert stats["compile_seconds"] == pytest.approx(found.stats["compile_seconds"] + 10)


def test_requirements_are_those_of_the_entry() -> None:
    directed = gp.Graph.from_edgelist([0], [1], directed=True)
    for name, graph, message in (
        ("core_number", directed, "core_number needs an undirected graph"),
        ("topological_order", gp.grid(2), "topological_order needs a directed graph"),
    ):
        with pytest.raises(GraphError, match=message):
            AlgorithmRun(name, graph)
