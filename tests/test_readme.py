"""Tests that every code block of README.md runs and shows what it says; ``readme.py`` has the rules."""

from __future__ import annotations

import gzip
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.cli import make_parser
from tests import readme_table
from tests.devices import EXHAUSTIVE
from tests.readme import SHELLS, Block, Command, read_blocks, read_commands, run_python, same

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
QUICK = ("gpu-pregel cc", "gpu-pregel examples")
"""Commands without output that are run by default."""
LARGEST_SCALE = 20
"""Commands that show output run as they are written; for others, a graph of scale 8 is enough."""

if not README.is_file():
    pytest.skip("README.md is part of a checkout, not of the package", allow_module_level=True)

BLOCKS = read_blocks(README.read_text())
PYTHON = ("python", "pycon")
PARTS = [part for block in BLOCKS for part in (read_commands(block) if block.language in SHELLS else [block])]
"""The blocks of Python and the commands, in order."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of all blocks, as a reader's: what one writes, later ones read."""
    path, before = tmp_path_factory.mktemp("readme"), Path.cwd()
    os.chdir(path)
    yield path
    os.chdir(before)


@pytest.fixture(scope="module")
def names() -> dict[str, dict[str, Any]]:
    """The names that the blocks of each section have defined."""
    return {}


def test_every_block_is_executed() -> None:
    assert {block.language for block in BLOCKS} <= {*PYTHON, *SHELLS}
    assert {type(part) for part in PARTS} == {Block, Command}


@pytest.mark.parametrize("part", PARTS, ids=lambda part: f"line-{part.line}")
def test_readme(part: Block | Command, folder: Path, names: dict[str, dict[str, Any]]) -> None:
    if isinstance(part, Block):
        run_python(part, names.setdefault(part.section, {"__name__": "readme"}))
    else:
        run_command(part, folder)


def test_links_and_pictures_lead_to_files_of_the_checkout() -> None:
    """An address of a repository or a home page would lead nowhere."""
    links = re.findall(r'\]\(([^)#]+)\)|src="([^"]+)"', README.read_text())
    paths = [link or picture for link, picture in links]
    assert len(paths) > 10
    assert [path for path in paths if not (ROOT / path).exists()] == []
    assert "urls" not in tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_ratios_are_those_of_the_results() -> None:
    text, results = (ROOT / "README.md").read_text(), ROOT / "benchmarks" / "results"
    stored = [json.loads(path.read_text()) for path in results.glob("cc*.json")]
    graphs = [graph for one in stored for graph in one["graphs"]]
    graphs += json.loads((results / "all.json").read_text())["algorithms"]["connected_components"]["graphs"]
    ratios = [one["ratio"] for graph in graphs for one in graph["contestants"] if one["name"] == "gapbs"]
    assert f"components in {min(ratios):.2f} to {max(ratios):.2f} of GAPBS's time" in text
    chain, durable = (
        json.loads((results / "workflows.json").read_text())["figures"][f"chain of three, {store}"]["ratio"]
        for store in ("memory", "SQLite")
    )
    assert f"three nodes takes {chain:.2f} of its time, {durable:.2f} with a durable store" in text


def test_the_table_of_algorithms_is_that_of_the_registry() -> None:
    if readme_table.BEGIN not in README.read_text():
        pytest.skip("README.md has no table of algorithms yet: run python -m tests.readme_table")
    assert readme_table.rewritten(README.read_text()) == README.read_text(), "run python -m tests.readme_table"


def test_the_table_of_algorithms_is_added_and_updated() -> None:
    text = "# Title\n\n## Vertex programs\n\nmore\n"
    first = readme_table.rewritten(text)
    assert first.count("\n## Algorithms\n") == first.count(readme_table.END) == 1
    assert first.index("`gp.connected_components`") < first.index("\n## Vertex programs\n\nmore\n")
    assert readme_table.rewritten(first) == first
    assert readme_table.rewritten(first.replace("`gp.connected_components`", "`gp.gone`")) == first


def run_command(command: Command, folder: Path) -> None:
    """Check the commands of a line, run it if all of them can be run, and compare its output.

    By default only a few of those without output are run: the tests of the command line run each of its commands.
    """
    runnable = [check(words) for words in split(shlex.split(command.text, comments=True))]
    if all(runnable) and (command.output or EXHAUSTIVE or command.text.startswith(QUICK)):
        done = execute(command, folder)
        assert done.returncode == 0, f"README.md, line {command.line}: {command.text}\n{done.stdout}"
        if command.output:
            assert same(command.output, done.stdout), f"README.md, line {command.line}: prints\n{done.stdout}"


def split(words: list[str]) -> list[list[str]]:
    """Divide a line into its commands."""
    found: list[list[str]] = [[]]
    for word in words:
        if word in ("&&", "||", ";", "|"):
            found.append([])
        else:
            found[-1].append(word)
    return found


def check(words: list[str]) -> bool:
    """Check a command; return whether it can be run by the test."""
    program, *arguments = words
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    if program == "gpu-pregel":
        end = next((i for i, word in enumerate(arguments) if word in (">", "2>")), len(arguments))
        make_parser().parse_args(arguments[:end])
        return True
    if program == "python":
        if arguments[:2] != ["-m", "benchmarks"]:
            return True
        assert len(arguments) == 2 or (ROOT / "benchmarks" / f"{arguments[2]}.py").is_file(), arguments
        return False
    if program == "pip":
        assert arguments[0] == "install"
        for extras in re.findall(r"\[(.+?)\]", " ".join(arguments)):
            assert set(extras.split(",")) <= set(settings["optional-dependencies"]), extras
        packages = [word for word in arguments[1:] if not word.startswith("-")]
        assert all(re.fullmatch(r"(\.|gpu-pregel)(\[.+\])?", package) for package in packages), packages
        return False
    if program == "git":
        assert arguments[:2] == ["clone", settings["urls"]["Source"]]
        return False
    assert program in ("cd", "pytest", "eval"), f"{program}: a command that this test does not know"
    return False


def execute(command: Command, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a line by a shell."""
    text = command.text
    if not command.output:
        text = re.sub(r"(?<= )-([gu]) \d+", r"-\1 8", text)
    assert all(int(scale) <= LARGEST_SCALE for scale in re.findall(r" -[gu] (\d+)", text)), "this takes too long"
    programs = folder / ".bin"
    if not programs.is_dir():
        programs.mkdir()
        for name, start in (("gpu-pregel", "-m gpu_pregel "), ("python", "")):
            programs.joinpath(name).write_text(f'#!/bin/sh\nexec {sys.executable} {start}"$@"\n')
            programs.joinpath(name).chmod(0o755)
    if not (folder / "examples").exists():
        shutil.copytree(Path(gp.__file__).parent / "examples", folder / "examples")
    for words in split(shlex.split(text, comments=True)):
        if words[0] == "gpu-pregel":
            end = words.index(">") if ">" in words else len(words)
            source = getattr(make_parser().parse_args(words[1:end]), "f", None)
            if source and not Path(source).exists():
                stand_in(Path(source))
    environment = {
        **os.environ,
        "PATH": f"{programs}:{os.environ['PATH']}",
        "PYTHONPATH": str(Path(gp.__file__).parents[1]),
        "COLUMNS": "120",
    }
    return subprocess.run(
        ["bash", "-e", "-c", text], cwd=folder, env=environment, text=True, timeout=300, check=False,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip


def stand_in(path: Path) -> None:
    """Write a small edge list in place of a reader's own file."""
    assert path.name.removesuffix(".gz").endswith((".txt", ".el", ".tsv", ".csv")), f"{path}: no such file"
    lines = b"10 20\n20 30\n41 42\n"
    path.write_bytes(gzip.compress(lines) if path.suffix == ".gz" else lines)


# Tests of the rules themselves.


def block(text: str) -> Block:
    return Block("python", "", 1, text)


@pytest.mark.parametrize(
    "text",
    [
        "print(3)  # 3\n",
        "for i in range(2):\n    print(i)\n# 0\n# 1\n",
        "1 + 1  # 2\n",
        "1 + 1  # the sum\n",
        "[1, 2]  # [1, ...]\n",
        "x = 2\nprint(x)\n# 2\nx  # 2\n",
        ">>> print(3)\n3\n>>> 1 / 0\nTraceback (most recent call last):\n...\nZeroDivisionError: division by zero\n",
    ],
)
def test_right_blocks_pass(text: str) -> None:
    run_python(block(text), {})


@pytest.mark.parametrize(
    "text",
    [
        "print(3)  # 4\n",
        "print(3)\n",
        "for i in range(2):\n    print(i)\n# 0\n",
        "1 + 1  # 3\n",
        "{'a': 1}  # {'a': 2}\n",
        "1 / 0  # an error\n",
        "import nothing_at_all\n",
        ">>> print(3)\n4\n",
    ],
)
def test_wrong_blocks_fail(text: str) -> None:
    with pytest.raises((AssertionError, ZeroDivisionError, ImportError)):
        run_python(block(text), {})


def test_blocks_and_commands_are_found() -> None:
    text = "# A\n```python\nx\n```\n## B\n```\na \\\n  b\nc  # d\n```\n```console\n$ e\n1\n2\n$ f\n```\n"
    python, shell, console = read_blocks(text)
    assert (python.language, python.section, python.line) == ("python", "A", 3)
    assert (shell.language, shell.section, shell.line) == ("", "B", 7)
    assert (console.language, console.section, console.line) == ("console", "B", 12)
    assert list(read_commands(shell)) == [Command(7, "a  b", None), Command(9, "c  # d", None)]
    assert list(read_commands(console)) == [Command(12, "e", "1\n2"), Command(15, "f", "")]


@pytest.mark.parametrize("text", ["gpu-pregel cc --no-such-option", "pip install gpu-pregel[nothing]", "make install"])
def test_wrong_commands_fail(text: str) -> None:
    with pytest.raises((AssertionError, SystemExit)):
        check(shlex.split(text))
