"""Tests of the help of the command line, its tab completion, its examples, and the wording of its errors."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import gpu_pregel as gp
from gpu_pregel.cli import main, make_parser
from gpu_pregel.cli._wording import in_options
from tests.packages import needs


def command_parsers(parser: argparse.ArgumentParser) -> Iterator[argparse.ArgumentParser]:
    """Yield the parser and those of all its commands and actions."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from command_parsers(command)


PARSERS = [pytest.param(parser, id=parser.prog.replace(" ", "-")) for parser in command_parsers(make_parser())]


def test_every_command_and_action_is_tested() -> None:
    assert len(PARSERS) >= 13


@pytest.mark.parametrize("parser", PARSERS)
def test_help_pages_are_plain_text_and_explain_every_argument(parser: argparse.ArgumentParser) -> None:
    assert re.fullmatch(r"[A-Z][^`]*\.", parser.description or "")
    for action in parser._actions:
        assert action.help or isinstance(action, argparse._SubParsersAction), action.dest
        for choice in getattr(action, "_choices_actions", ()):
            assert choice.help
    text = parser.format_help()
    assert not re.search(r"`|:\w+:|\*\*|None|True|False|\w='", text)


def test_what_an_algorithm_finds_is_a_sentence() -> None:
    text = " ".join(make_parser().format_help().split())
    assert "find communities by synchronous label propagation louvain" in text
    assert "find the diameter khop find the vertices within k hops of some sources walks" in text


@pytest.mark.parametrize("parser", PARSERS)
def test_every_command_shows_an_example_that_it_accepts(parser: argparse.ArgumentParser) -> None:
    assert parser.epilog
    (text,) = re.findall(r"example: (gpu-pregel [^\n]*?)(?:\.(?: |$)|$)", parser.epilog)
    commands = [part.split(">")[0] for part in text.split("&&")]
    for command in commands:
        name, *arguments = shlex.split(command)
        assert name == "gpu-pregel"
        assert callable(make_parser().parse_args(arguments).run)
    words = parser.prog.replace("runs store", "runs").split()
    assert any([word for word in shlex.split(command) if word in words] == words for command in commands)


def completions(line: str, folder: Path) -> list[str]:
    """Return what a shell would offer for the end of a line."""
    found = folder / "completions"
    environment = {
        **os.environ,
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(found),
        "_ARGCOMPLETE_IFS": "\n",
        "COMP_LINE": line,
        "COMP_POINT": str(len(line)),
        "PYTHONPATH": str(Path(gp.__file__).parents[1]),
    }
    program = "import sys; from gpu_pregel.cli import main; main()"
    subprocess.run([sys.executable, "-c", program], env=environment, cwd=folder, check=True, timeout=60)
    return [word.strip() for word in found.read_text().split("\n") if word.strip()]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("gpu-pregel ex", ["examples"]),
        ("gpu-pregel run", ["run", "runs"]),
        ("gpu-pregel cc --dev", ["--device"]),
        ("gpu-pregel cc --device e", ["emulated"]),
        ("gpu-pregel run p", ["program.py"]),
        ("gpu-pregel run program.py:p -g 4 --mode pu", ["push", "pull"]),
        ("gpu-pregel examples bf", ["bfs"]),
        ("gpu-pregel convert a.el b.mtx --to m", ["matrix-market", "metis"]),
        ("gpu-pregel convert a.dat b.mtx --format gem", ["gemini", "gemini-weighted"]),
        ("gpu-pregel runs runs.db sh", ["show"]),
        ("gpu-pregel runs runs.db show t", ["thursday", "tuesday"]),
        ("gpu-pregel agents serve orders:compute --store runs.db --run th", ["thursday"]),
    ],
)
def test_tab_completion(line: str, expected: list[str], tmp_path: Path) -> None:
    needs("argcomplete", "completion")
    (tmp_path / "program.py").touch()
    if "runs.db" in line:
        for run_id in ("tuesday", "thursday"):
            store = gp.SQLiteStore(tmp_path / "runs.db")
            gp.agents.run([gp.agents.Vertex("a", 1)], lambda ctx: ctx.vote_to_halt(), store=store, run_id=run_id)
    assert sorted(completions(line, tmp_path)) == sorted(expected)


def test_examples_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["examples"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == sorted(line.split()[0] for line in lines)
    assert any(re.match("bfs +Breadth-first search: hops from a source, or the parent", line) for line in lines)
    assert not any("`" in line for line in lines)


def test_a_printed_example_runs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["run", "examples/bfs.py:hops", "-g", "4"]) == 1
    remedy = "gpu-pregel examples bfs --copy examples"
    assert f"examples/bfs.py: no such file; copy the example: {remedy}" in capsys.readouterr().err
    assert main(remedy.split()[1:]) == 0
    assert main(["run", "examples/bfs.py:hops", "-g", "4"]) == 0
    capsys.readouterr()
    assert main(["examples", "bfs"]) == 0
    Path("bfs.py").write_text(capsys.readouterr().out)
    Path("path.el").write_text("0 1\n1 2\n")
    assert main(["run", "bfs.py:hops", "-f", "path.el", "-o", "hops.npy"]) == 0
    assert np.load("hops.npy").tolist() == [0, 1, 2]


def test_examples_are_copied_and_overwrite_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "new" / "examples"
    assert main(["examples", "hits", "--copy", str(folder)]) == 0
    assert capsys.readouterr().out == f"{folder / 'hits.py'}\n"
    (folder / "hits.py").write_text("mine")
    assert main(["examples", "--copy", str(folder)]) == 1
    assert f"{folder / 'hits.py'} exists: delete it, or choose another folder" in capsys.readouterr().err
    assert [path.name for path in folder.iterdir()] == ["hits.py"]
    assert (folder / "hits.py").read_text() == "mine"
    (folder / "hits.py").unlink()
    assert main(["examples", "--copy", str(folder)]) == 0
    source = Path(gp.__file__).parent / "examples"
    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        path.name: path.read_text() for path in source.glob("*.py")
    }
    (tmp_path / "file").touch()
    assert main(["examples", "--copy", str(tmp_path / "file" / "inner")]) == 1
    assert "the examples cannot be copied: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "text", "expected"),
    [
        ("convert a.el format=x", "format=x: unknown: pass format=, or", "format=x: unknown: pass --to, or"),
        ("convert a.xyz b.el", "a.xyz: unknown suffix: pass format=", "a.xyz: unknown suffix: pass --format"),
        ("convert a.el b.graph", "b.graph: build it with directed=False", "b.graph: build it with --undirected"),
        ("convert a.el b.graph", "b.graph: use self_loops='drop'", "b.graph: use --drop-self-loops"),
        ("convert a.el b.sg", "b.sg: save with lossy=True", "b.sg: save with --lossy"),
        ("cc -f a.csv", "a.csv: pass columns=('from', to)", "a.csv: pass --columns from,to"),
        ("cc -f a.csv", "weight='price': no such column", "--weight price: no such column"),
        ("cc -f a.csv", "pass weight=None or header=False", "pass --no-weights or --no-header"),
        ("convert a_b/num_vertices.el b.el", "a_b/num_vertices.el: 4", "a_b/num_vertices.el: 4"),
        ("convert a.el b.el", "num_vertices is 3; raise it", "--num-vertices is 3; raise it"),
        ("cc -g 4", "use device='cpu'", "use --device cpu"),
        ("cc -f a.el", "pass graph.to_undirected()", "pass --undirected"),
        ("cc -f a.el", "or graph.to_undirected(combine='sum'), which", "or --undirected --combine sum, which"),
        ("info", "pass graph.to_undirected()", "pass graph.to_undirected()"),
        ("cc -g 4", "pass self_loops='drop'", "pass self_loops='drop'"),
        ("cc -u 4", "scale must be from 0 to 31", "-u must be from 0 to 31"),
        ("cc -g 4", "edge_factor must be at least 0", "-k must be at least 0"),
        ("run p.py:p -g 4", "raise max_supersteps", "raise --max-supersteps"),
        ("run p.py:p -g 4", 'pass on_limit="return"', "pass --on-limit return"),
        ("info", "device 'auto' uses the CPU", "device 'auto' uses the CPU"),
    ],
)  # fmt: skip
def test_errors_name_options_instead_of_arguments(arguments: str, text: str, expected: str) -> None:
    assert in_options(text, make_parser().parse_args(arguments.split())) == expected


def test_an_unknown_suffix_of_the_output_names_the_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["generate", "-g", "4", "-o", "graph.xyz"]) == 2
    assert "graph.xyz: unknown suffix '.xyz': pass --to, or use one of" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["cc -g 4", "generate -g 4 -o graph.el", "info"])
def test_a_malformed_limit_of_the_cache_is_refused_before_compiling(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GPU_PREGEL_CACHE_BYTES", "1GB")
    assert main(command.split()) == 2
    out, err = capsys.readouterr()
    message = "GPU_PREGEL_CACHE_BYTES must be a number of bytes, such as 268435456, not '1GB'"
    assert (out, err) == ("", f"gpu-pregel: {message}\n")
    assert list(tmp_path.iterdir()) == []
