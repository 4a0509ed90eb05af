"""Tests of what is published: the sdist, the wheel, the editable install, and their metadata."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest

import gpu_pregel as gp
from tests.packages import needs, skip_or_fail

ROOT = Path(__file__).parents[1]
SETTINGS: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())
LINKED = ("examples", "host", "kernels")
"""Folders beside the package that it contains as symbolic links; in a distribution, they are folders of the package."""
NOT_PUBLISHED = {".gitignore"}

if not (ROOT / "gpu_pregel").is_dir():
    pytest.skip("distributions are built from a checkout or an sdist", allow_module_level=True)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout, as building leaves files behind."""
    backend = needs("setuptools", "test")
    if int(backend.__version__.split(".")[0]) < 77:
        skip_or_fail("setuptools is too old to build the package: pip install gpu-pregel[test]")
    copy = tmp_path_factory.mktemp("checkout") / "gpu_pregel"
    if not (ROOT / ".git").exists():
        ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*_cache", ".hypothesis", "build", "dist")
        return Path(shutil.copytree(ROOT, copy, symlinks=True, ignore=ignored))
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in listed.strip("\0").split("\0"):
        if (ROOT / name).is_file() or (ROOT / name).is_symlink():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, copy / name, follow_symlinks=False)
    return copy


def build(kind: str, source: Path, target: Path) -> Path:
    """Build a distribution, as an installer would; return its path."""
    program = f"from setuptools import build_meta; print(build_meta.build_{kind}({str(target)!r}))"
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return target / done.stdout.split()[-1]


@pytest.fixture(scope="module")
def sdist(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an unpacked sdist."""
    folder = tmp_path_factory.mktemp("sdist")
    with tarfile.open(build("sdist", checkout, folder)) as archive:
        assert {member.type for member in archive.getmembers()} == {tarfile.REGTYPE, tarfile.DIRTYPE}
        # Python 3.11 before 3.11.4 has no filters, and ignores the attribute.
        archive.extraction_filter = getattr(tarfile, "data_filter", None)
        archive.extractall(folder)
    return folder / f"gpu_pregel-{gp.__version__}"


@pytest.fixture(scope="module")
def wheel(sdist: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel, built from the sdist."""
    return build("wheel", sdist, tmp_path_factory.mktemp("wheel"))


def files_below(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_the_sdist_has_every_file_of_the_checkout(checkout: Path, sdist: Path) -> None:
    """Tests, benchmarks and documents included; what symbolic links lead to is part of the package."""
    expected = set()
    for name in files_below(checkout):
        top = name.split("/")[0]
        if not top.endswith(".egg-info") and name not in NOT_PUBLISHED:
            expected.add(f"gpu_pregel/{name}" if top in LINKED else name)
    generated = {"PKG-INFO", "setup.cfg"}
    assert {name for name in files_below(sdist) if not name.startswith("gpu_pregel.egg-info/")} - generated == expected


def test_tests_pass_in_the_sdist(sdist: Path) -> None:
    tests = ["tests/test_imports.py", "tests/test_package.py::test_every_folder_with_modules_is_listed_as_a_package"]
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": str(sdist), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=sdist, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout


def test_the_wheel_has_the_package_and_nothing_else(checkout: Path, wheel: Path) -> None:
    expected = {f"gpu_pregel/{name}" for name in files_below(checkout / "gpu_pregel")}
    for name in LINKED:
        expected |= {f"gpu_pregel/{name}/{file}" for file in files_below(checkout / name)}
    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {name for name in names if ".dist-info/" not in name} == expected
    assert {"gpu_pregel/py.typed", "gpu_pregel/examples/bfs.py", "gpu_pregel/host/superstep/master.py"} <= expected


def test_an_editable_install_is_a_line_of_a_pth_file(checkout: Path, tmp_path: Path) -> None:
    """Type checkers and editors follow it, unlike an import hook."""
    with ZipFile(build("editable", checkout, tmp_path)) as archive:
        installed = [name for name in archive.namelist() if ".dist-info/" not in name]
        assert [Path(name).suffix for name in installed] == [".pth"]
        assert archive.read(installed[0]).decode().split() == [str(checkout)]


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        return Parser().parsestr(archive.read(name).decode())


def test_there_is_one_version(metadata: Message) -> None:
    assert SETTINGS["project"]["dynamic"] == ["version"]
    assert metadata["Version"] == gp.__version__


def test_the_metadata_is_complete(metadata: Message) -> None:
    assert metadata["License-Expression"] == "Apache-2.0"
    assert not any("License" in text for text in metadata.get_all("Classifier", []))
    # There is no home page yet.
    assert not metadata.get_all("Project-URL", [])
    versions = {text.split(" :: ")[-1] for text in metadata.get_all("Classifier", []) if "Python :: 3." in text}
    assert {"3.11", "3.12", "3.13"} <= versions
    assert metadata["Requires-Python"] == f">={min(versions, key=lambda text: int(text.split('.')[1]))}"


def requirements(metadata: Message, extra: str | None) -> set[str]:
    """Return the names of the packages that are required always or by an extra; its own extras are followed."""
    found = set()
    for text in metadata.get_all("Requires-Dist", []):
        required, _, marker = text.partition(";")
        if (f'extra == "{extra}"' in marker) if extra else ("extra" not in marker):
            name, extras = re.fullmatch(r"([\w.-]+)(?:\[([\w,-]+)\])?.*", required.strip()).groups()  # type: ignore[union-attr]
            if name == "gpu-pregel":
                for inner in extras.split(","):
                    found |= requirements(metadata, inner)
            else:
                found.add(f"{name}[{extras}]" if extras else name)
    return found


def test_extras(metadata: Message) -> None:
    assert requirements(metadata, None) == {"cloudpickle", "numba", "numpy", "pyarrow", "tqdm"}
    assert requirements(metadata, "networkx") == {"networkx", "scipy"}
    assert requirements(metadata, "pandas") == {"pandas"}
    assert requirements(metadata, "scipy") == {"scipy"}
    assert requirements(metadata, "plot") == {"matplotlib"}
    test, test_cuda = requirements(metadata, "test"), requirements(metadata, "test-cuda")
    assert requirements(metadata, "emulated") <= test
    # NVIDIA's compilers are large; the runtime library has 2.5 MB.
    assert [name for name in test if "nvidia" in name or "cupy" in name or "[cu" in name] == ["nvidia-cuda-runtime"]
    assert test_cuda - test == {"cupy-cuda13x", "numba-cuda[cu13]", "nvidia-cuda-nvcc"}


def test_links_of_the_readme_lead_to_files_of_the_checkout(metadata: Message) -> None:
    text = metadata.get_payload()
    assert isinstance(text, str)
    assert text.strip() == (ROOT / "README.md").read_text().strip()
    prose = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    targets = re.findall(r"\]\(\s*<?([^)\s>]+)", prose) + re.findall(r"^\[[^\]]+\]:\s*(\S+)", prose, re.MULTILINE)
    targets += re.findall(r"(?:src|href)=\"([^\"]+)\"", prose)
    headings = {
        re.sub(r"[^\w\- ]", "", line.lstrip("#").strip().lower()).replace(" ", "-")
        for line in prose.splitlines()
        if line.startswith("#")
    }
    assert targets
    for target in targets:
        path, _, heading = target.partition("#")
        assert (ROOT / path).exists() if path else heading in headings, target
