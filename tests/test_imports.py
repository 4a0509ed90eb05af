"""Tests of the structure of the package: imports, names of classes, and lengths of files.

Every import counts, including those under ``TYPE_CHECKING`` and in functions.
"""

from __future__ import annotations

import ast
import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "gpu_pregel"

ROOMS = [
    ("gpu_pregel.errors",),
    ("gpu_pregel.kernels",),
    ("gpu_pregel.host.arguments",),
    ("gpu_pregel.host.emulator",),
    ("gpu_pregel.host.devices",),
    ("gpu_pregel.host.stores",),
    ("gpu_pregel.host.superstep",),
    ("gpu_pregel.host.graphs",),
    ("gpu_pregel.host.traverse",),
    ("gpu_pregel.host.programs", "gpu_pregel.host.agents"),
    ("gpu_pregel.host.mixed",),
    ("gpu_pregel",),
]
"""From the bottom; rooms of one line do not import each other."""


def modules() -> dict[str, Path]:
    found = {}
    for folder in (PACKAGE, PACKAGE / "host", PACKAGE / "kernels"):
        for path in folder.resolve().rglob("*.py"):
            parts = (
                *folder.relative_to(PACKAGE.parent).parts,
                *path.relative_to(folder.resolve()).with_suffix("").parts,
            )
            found[".".join(parts).removesuffix(".__init__")] = path
    return found


def imports(path: Path, names: set[str]) -> set[str]:
    """The modules among ``names`` that a file imports anywhere."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}, line {node.lineno}: a relative import"
            # ``from package import module`` imports the module, any other name the package.
            full = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= {name if name in names else str(node.module) for name in full}
    # A checkout has the floors as folders, too; an import by that name would load a module twice.
    short = {name for name in found if name.split(".")[0] in ("host", "kernels")}
    assert not short, f"{path} imports {', '.join(sorted(short))} without gpu_pregel"
    return found & names


@pytest.fixture(scope="module")
def graph() -> dict[str, set[str]]:
    files = modules()
    assert len(files) > 100
    return {name: imports(path, set(files)) for name, path in files.items()}


def room(module: str) -> tuple[int, str]:
    for level, prefixes in enumerate(ROOMS):
        for prefix in prefixes:
            if f"{module}.".startswith(f"{prefix}."):
                assert prefix != PACKAGE.name or not module.startswith("gpu_pregel.host."), f"{module} is in no room"
                return level, prefix
    raise AssertionError(f"{module} is in no room")


def test_no_module_imports_itself_through_others(graph: dict[str, set[str]]) -> None:
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail("circle of imports: " + " <- ".join(error.args[1]))


def test_no_module_imports_from_a_higher_room(graph: dict[str, set[str]]) -> None:
    upward = []
    for name, found in graph.items():
        level, own = room(name)
        for imported in found:
            other, prefix = room(imported)
            if other > level or (other == level and prefix != own):
                upward.append(f"{name} imports {imported}")
    assert not upward


@pytest.mark.parametrize("lodger", ["gpu_pregel.workflows", "gpu_pregel.networkx", "gpu_pregel.kernels.networkx"])
def test_no_test_of_another_room_imports_a_lodger(lodger: str) -> None:
    names = {name for name in modules() if f"{name}.".startswith(f"{lodger}.")}
    folders = ("conformance", "host", "kernels", "gpu_pregel/algorithms", "gpu_pregel/io")
    files = [path for folder in folders for path in (Path(__file__).parent / folder).rglob("*.py")]
    assert len(names) > 10
    assert len(files) > 100
    assert [path for path in files if imports(path, names)] == []


_SEAM = {"gpu_pregel.host.devices.lowering", "gpu_pregel.kernels.library.compiler_cuda"}
"""The only modules that import the compiler of CUDA kernels."""


def uses_of_numba_cuda(path: Path) -> list[int]:
    """The lines of a file that import Numba-CUDA, or name it as an attribute of Numba."""
    lines = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute):
            names = [ast.unparse(node)]
        else:
            continue
        if any(re.match(r"(numba\.cuda|numba_cuda)(\.|$)", name) for name in names):
            lines.append(node.lineno)
    return lines


def test_two_modules_import_numba_cuda() -> None:
    assert {name for name, path in modules().items() if uses_of_numba_cuda(path)} == _SEAM


@pytest.mark.parametrize(
    "source",
    [
        "from numba import types, cuda",
        "from numba.cuda import types",
        "from numba.cuda.core import ir",
        "import numba.cuda.types as types",
        "import numba\nprint(numba.cuda)",
        "def f():\n    import numba_cuda",
    ],
)
def test_every_way_to_numba_cuda_counts(source: str, tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(source)
    assert uses_of_numba_cuda(path) == [len(source.splitlines())]


def test_public_classes_have_distinct_names() -> None:
    homes: dict[str, list[str]] = {}
    for module, path in modules().items():
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, []).append(module)
    repeated = {name: found for name, found in homes.items() if len(found) > 1}
    assert not repeated


def test_a_module_of_the_engine_outside_its_rooms_is_an_error() -> None:
    assert room("gpu_pregel.cli.run") == room("gpu_pregel.host")
    with pytest.raises(AssertionError, match=r"gpu_pregel\.host\.new is in no room"):
        room("gpu_pregel.host.new")


@pytest.mark.parametrize("source", ["import host.agents.policy", "def f():\n    from kernels.graphs import csr_cpu"])
def test_imports_without_the_name_of_the_package_are_errors(source: str, tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(source)
    with pytest.raises(AssertionError, match="without gpu_pregel"):
        imports(path, set())


def test_docstrings_name_existing_modules_of_kernels() -> None:
    files = modules()
    names = {name.rpartition(".")[2] for name in files}
    for name, path in files.items():
        mentioned = set(re.findall(r"``(\w+_(?:cpu|cuda))``", path.read_text())) - {"name_cpu", "name_cuda"}
        assert mentioned <= names, name


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import a.b", {"a.b"}),
        ("from a import b", {"a.b"}),
        ("from a import b, c", {"a", "a.b"}),
        ("from a.b import c", {"a.b"}),
        ("if TYPE_CHECKING:\n    from a.b import c", {"a.b"}),
        ("def f():\n    import a", {"a"}),
        ("import os", set()),
    ],
)
def test_every_kind_of_import_counts(source: str, found: set[str], tmp_path: Path) -> None:
    path = tmp_path / "module.py"
    path.write_text(source)
    assert imports(path, {"a", "a.b"}) == found
