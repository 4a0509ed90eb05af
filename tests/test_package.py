"""Tests of the package as a whole: the cost of importing it, its public names, and the list of packages."""

from __future__ import annotations

import ast
import os
import pickle
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

import gpu_pregel as gp
from gpu_pregel.algorithms.registry import exported_names

ROOT = Path(__file__).parents[1]


def run_python(program: str) -> str:
    return subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True, timeout=60
    ).stdout.strip()


@pytest.mark.parametrize(
    "module", ["numpy", "numba", "cupy", "scipy", "pyarrow", "tqdm", "gpu_pregel.host.graphs.graph"]
)
def test_importing_the_package_imports_nothing_heavy(module: str) -> None:
    assert run_python(f"import sys, gpu_pregel; print({module!r} in sys.modules)") == "False"


def test_importing_the_package_loads_no_other_module_of_it() -> None:
    program = "import sys, gpu_pregel; print([name for name in sys.modules if name.startswith('gpu_pregel')])"
    assert run_python(program) == "['gpu_pregel']"


def test_modules_are_loaded_on_first_use() -> None:
    """Neither ``import gpu_pregel`` nor another module has loaded them."""
    for name in ("agents", "workflows", "networkx", "atomics"):
        assert run_python(f"import gpu_pregel as gp; print(gp.{name}.__name__)").endswith(f".{name}")
    program = "import gpu_pregel as gp; print(gp.workflows.StateGraph.__name__)"
    assert run_python(program) == "StateGraph"


def test_graphs_from_another_process_can_be_saved(tmp_path: Path) -> None:
    """Unpickling one loads its class, but no public name."""
    pickled, saved = tmp_path / "graph.pickle", tmp_path / "graph.el"
    pickled.write_bytes(pickle.dumps(gp.Graph.from_edgelist([0], [1])))
    run_python(f"import pickle; pickle.loads(open({str(pickled)!r}, 'rb').read()).save({str(saved)!r})")
    assert saved.read_text() == "0 1\n"


def test_agents_import_nothing_heavy() -> None:
    """Neither importing them does, nor running with plain values, in this process or in workers."""
    program = """if True:
        import sys
        from gpu_pregel.agents import Vertex, run

        def heavy():
            import sys
            return [name for name in ("numpy", "numba", "scipy", "cupy", "pyarrow", "tqdm") if name in sys.modules]

        def compute(ctx):
            ctx.value.append(heavy())
            ctx.send(ctx.vertex_id, {"a": (1, 2.5, b"", None)})
            ctx.aggregate("sum", 1)

        print(heavy())
        for workers in (0, 1):
            options = {"aggregators": {"sum": "sum"}, "combiner": "last", "workers": workers}
            found = run([Vertex("a", [], ["a"])], compute, **options, max_supersteps=2, on_limit="return")
            print(found.values["a"])
    """
    assert run_python(program).split("\n") == ["[]", "[[], []]", "[[], []]"]


def test_the_core_needs_no_optional_package(tmp_path: Path) -> None:
    """What needs one says so; the rest works without."""
    program = f"""if True:
        import sys
        class Missing:
            def find_spec(name, *_):
                if name in ("scipy", "networkx", "pandas", "matplotlib", "numba_cuda", "cupy", "psycopg", "zstandard"):
                    raise ImportError(name)
        sys.meta_path.insert(0, Missing)
        import numpy as np
        import gpu_pregel as gp
        graph = gp.Graph.from_edgelist(["a", "b"], ["b", "c"])
        graph.save({str(tmp_path / "graph.pregel")!r})
        read = gp.read_graph({str(tmp_path / "graph.pregel")!r})
        components = gp.connected_components(read, device="cpu")
        components.save({str(tmp_path / "components.parquet")!r})
        from gpu_pregel.algorithms.registry import algorithm
        algorithm("connected_components").load_checker()(read, components.to_numpy())
        program = gp.VertexProgram(value=np.int64, init=lambda ctx: ctx.vertex, message=lambda value, ctx: value,
                                   combine="min", apply=lambda value, incoming, ctx: min(value, incoming))
        print(gp.run(read, program, device="cpu").to_dict(), components.count)
        for method in ("to_scipy", "to_networkx", "to_pandas"):
            try:
                getattr(read, method)()
            except gp.errors.MissingPackageError as error:
                print(error)
    """
    lines = run_python(program).split("\n")
    assert lines[0] == "{'a': 0, 'b': 0, 'c': 0} 1"
    assert [line.rpartition(" ")[2] for line in lines[1:]] == ["scipy", "networkx", "pandas"]


def test_building_the_parser_imports_nothing_heavy() -> None:
    program = "import sys; from gpu_pregel.cli import make_parser; make_parser(); print('numpy' in sys.modules)"
    assert run_python(program) == "False"


def test_public_names_are_few_loaded_lazily_and_documented() -> None:
    names: list[str] = getattr(gp, "__all__")  # noqa: B009 (type checkers do not see it)
    assert len(set(names) - set(exported_names()) - set(gp._MODULES)) < 25
    assert set(names) <= set(dir(gp))
    for name in names:
        assert getattr(gp, name).__doc__, f"{name} has no docstring"
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = gp.nothing  # type: ignore[attr-defined]


def test_public_names_of_agents_are_documented_and_are_all_that_the_module_shows() -> None:
    assert sorted(name for name in dir(gp.agents) if not name.startswith("_")) == sorted(gp.agents.__all__)
    for name in gp.agents.__all__:
        assert getattr(gp.agents, name).__doc__, f"{name} has no docstring"


def test_names_for_type_checkers_are_the_names_at_run_time() -> None:
    tree = ast.parse(Path(gp.__file__).read_text())
    block, hidden = (node for node in tree.body if isinstance(node, ast.If))
    declared = {
        alias.asname: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom) and node.module != "typing"
        for alias in node.names
    }
    assert declared == {**gp._HOMES, **exported_names()}
    # Type checkers would accept any name of a module with __getattr__.
    assert [node.name for node in hidden.body if isinstance(node, ast.FunctionDef)] == ["__getattr__"]
    assert not any(isinstance(node, ast.FunctionDef) and node.name == "__getattr__" for node in tree.body)


def test_the_version_is_that_of_the_installed_package() -> None:
    assert gp.__version__ == version("gpu-pregel")


def test_every_folder_with_modules_is_listed_as_a_package() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    if not (ROOT / "gpu_pregel").is_dir():
        pytest.skip("there are no folders to compare the list with outside the checkout")
    found = set()
    for folder, _, files in os.walk(ROOT / "gpu_pregel", followlinks=True):
        if any(file.endswith(".py") for file in files):
            found.add(".".join(Path(folder).relative_to(ROOT).parts))
    assert found == set(settings["packages"])


def test_every_listed_package_can_be_imported() -> None:
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    for package in settings["packages"]:
        __import__(package)
    # Wheels and checkouts contain the typing marker.
    assert (Path(gp.__file__).parent / "py.typed").is_file()


def test_the_templates_of_the_page_of_a_run_are_in_the_package() -> None:
    from gpu_pregel.workflows.page.document import make_document

    page = make_document({"run": {"id": "run", "status": "running"}})
    assert all(part in page for part in ("<style>:root", "function main()", "<main"))


def test_the_sizes_that_decide_on_calls_of_networkx_are_in_the_package() -> None:
    from gpu_pregel.networkx.sizes import sizes

    assert "pagerank" in sizes()


def test_modules_have_only_one_name() -> None:
    program = (
        "import sys, gpu_pregel as gp; gp.connected_components; print(sorted({'host', 'kernels'} & set(sys.modules)))"
    )
    assert run_python(program) == "[]"


def test_every_error_is_also_a_built_in_exception() -> None:
    from gpu_pregel import errors

    classes = [value for value in vars(errors).values() if isinstance(value, type)]
    assert len(classes) > 10
    for error in classes:
        if error is not errors.GpuPregelError:
            assert issubclass(error, errors.GpuPregelError)
            assert any(base.__module__ == "builtins" and base is not Exception for base in error.__mro__[2:-3])
        assert error.__doc__
