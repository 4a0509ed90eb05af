"""Tests of the registry of algorithms: complete entries, and an algorithm added by one file and one line."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from inspect import Parameter, signature
from pathlib import Path
from types import FunctionType

import networkx
import pytest

import gpu_pregel as gp
from benchmarks.peers import PEERS
from gpu_pregel.algorithms._entry import Algorithm
from gpu_pregel.algorithms.registry import ALGORITHMS, exported_names
from gpu_pregel.host.graphs.results import Result
from tests.gpu_pregel.algorithms.depths import check_depths, depths
from tests.graphs import KNOWN, arrays

PACKAGE = Path(gp.__file__).parent

EVERY_ALGORITHM = pytest.mark.parametrize("algorithm", ALGORITHMS, ids=lambda entry: entry.name)


@EVERY_ALGORITHM
def test_entries_name_a_function_a_result_and_a_checker(algorithm: Algorithm) -> None:
    function = algorithm.load()
    assert getattr(gp, algorithm.name) is function
    assert issubclass(getattr(gp, algorithm.result), Result)
    graph, *parameters = signature(function).parameters.values()
    assert graph.name == "graph"
    assert {"device", "threads", "progress"} <= {parameter.name for parameter in parameters}
    required = {parameter.name for parameter in parameters if parameter.default is Parameter.empty}
    positional = {parameter.name for parameter in parameters if parameter.kind is not Parameter.KEYWORD_ONLY}
    assert positional <= {*required, "pairs"}
    assert required == {option.argument for option in algorithm.options if option.required}
    assert {option.argument for option in algorithm.options} <= {parameter.name for parameter in parameters}
    checked, result = signature(algorithm.load_checker()).parameters.values()
    assert (checked.name, result.name) == ("graph", "result")
    assert algorithm.load_checker().__doc__
    assert set(algorithm.requires) <= {"undirected", "directed", "weights", "acyclic"}
    assert set(algorithm.devices) <= {"cpu", "cuda", "emulated", "python"}
    assert set(algorithm.peers) == {
        name for name, contestants in PEERS.items() if algorithm.name in [one.algorithm for one in contestants]
    }


@EVERY_ALGORITHM
def test_docstrings_name_the_errors_of_every_algorithm(algorithm: Algorithm) -> None:
    raises = (algorithm.load().__doc__ or "").split("Raises\n")[1].split("\n\n")[0]
    assert {"ArgumentTypeError", "DeviceError"} <= set(re.findall(r"\w+Error", raises))


@EVERY_ALGORITHM
def test_weights_are_used_by_default_and_the_first_line_says_so(algorithm: Algorithm) -> None:
    function = algorithm.load()
    weighted = signature(function).parameters.get("weighted")
    first = (function.__doc__ or "").splitlines()[0]
    assert first.endswith(".")
    if weighted is not None:
        assert weighted.default is True
        assert "weights" in first


@EVERY_ALGORITHM
def test_results_have_a_repr_of_their_own(algorithm: Algorithm) -> None:
    assert getattr(gp, algorithm.result).__repr__ is not object.__repr__


def test_a_result_without_another_repr_shows_its_description() -> None:
    found = gp.bipartite(gp.grid(2, holes=0), device="cpu")
    assert repr(found) == f"<Bipartition: {found.describe()}>" == "<Bipartition: bipartite, 2 and 2 vertices>"


@EVERY_ALGORITHM
def test_entries_are_complete(algorithm: Algorithm) -> None:
    """The README's table, the help pages and the documentation need these; each algorithm has tests of its own."""
    assert re.fullmatch(r".+ (18|19|20)\d\d", algorithm.paper)
    assert re.fullmatch(r"O\(.+\).*", algorithm.cost)
    for option in algorithm.options:
        assert option.help
        assert not option.help.endswith(".")
        assert re.fullmatch("(-[a-z])?", option.letter)
    tests = (path.read_text() for path in Path(__file__).parent.glob("test_*.py") if path != Path(__file__))
    assert any(f"gp.{algorithm.name}(" in text for text in tests)


@pytest.mark.parametrize("name", sorted(exported_names()))
def test_public_functions_have_numpydoc_sections_and_an_example(name: str) -> None:
    public = getattr(gp, name)
    assert public.__doc__
    if isinstance(public, FunctionType):
        for section in ("Parameters", "Returns", "Raises", "Examples"):
            assert re.search(rf"^ *{section}\n *-+$", public.__doc__, re.MULTILINE), section
        assert ">>> import gpu_pregel as gp" in public.__doc__
        assert f"gp.{name}(" in public.__doc__
        hints = set(public.__annotations__)
        assert hints == {*signature(public).parameters, "return"}


def test_names_and_commands_are_distinct() -> None:
    assert len({entry.command for entry in ALGORITHMS}) == len(ALGORITHMS)
    assert len({entry.name for entry in ALGORITHMS}) == len(ALGORITHMS)
    for name, home in exported_names().items():
        assert getattr(import_module(home), name) is getattr(gp, name)
    assert not set(exported_names()) & set(gp._HOMES)


EXAMPLE = Path(__file__).with_name("depths.py")
EXAMPLE_ENTRY = '    Algorithm("depths", "Depths", "depths", checker="depths"),\n'

PROGRAM = """if True:
    import gpu_pregel as gp
    from gpu_pregel.algorithms.registry import ALGORITHMS

    assert "depths" in dir(gp) and "Depths" in gp.__all__
    assert ALGORITHMS[-1].name == "depths"
    path = gp.Graph.from_edgelist([0, 1, 4], [1, 2, 3])
    for device in ("cpu", "python"):
        found = gp.depths(path, device=device)
        assert type(found) is gp.Depths
        assert found.to_dict() == {0: 0, 1: 1, 2: 2, 3: -1, 4: -1}
"""


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_the_example_passes_on_the_graphs_of_the_conformance_tests(directed: bool) -> None:
    for known in KNOWN:
        graph = gp.Graph.from_edgelist(*arrays(known.edges), num_vertices=known.n, directed=directed)
        check_depths(graph, depths(graph, device="cpu").to_numpy())


def test_the_example_takes_graphs_of_other_libraries() -> None:
    found = depths(networkx.path_graph(["a", "b", "c"]), device="cpu")
    assert found.to_dict() == {"a": 0, "b": 1, "c": 2}


def test_an_algorithm_is_added_by_one_file_and_one_line(tmp_path: Path) -> None:
    """The example of CONTRIBUTING, in a copy of the package."""
    copy = tmp_path / "gpu_pregel"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("examples", "host", "kernels", "__pycache__"))
    for name in ("examples", "host", "kernels"):
        (copy / name).symlink_to((PACKAGE / name).resolve())
    shutil.copy(EXAMPLE, copy / "algorithms")
    registry = copy / "algorithms" / "registry.py"
    text = registry.read_text()
    assert text.count("\nALGORITHMS = (\n") == 1
    begin, end = text.split("\nALGORITHMS = (\n")
    registry.write_text(f"{begin}\nALGORITHMS = (\n" + end.replace("\n)\n", f"\n{EXAMPLE_ENTRY})\n", 1))

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
        command = [sys.executable, *arguments]
        return subprocess.run(
            command, cwd=tmp_path, env=environment, check=True, capture_output=True, text=True, timeout=300
        )

    run("-c", PROGRAM)
    assert "find the depths" in run("-m", "gpu_pregel", "--help").stdout
    done = run("-m", "gpu_pregel", "depths", "-g", "8", "-v", "-o", "depths.csv")
    assert "verified" in done.stderr
    assert (tmp_path / "depths.csv").read_text().startswith('"vertex","depth"\n0,0\n')
