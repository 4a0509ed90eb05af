"""Tests of the options for reading and writing files, and of messages that name options."""

from __future__ import annotations

from pathlib import Path

import pytest

import gpu_pregel as gp
from gpu_pregel.cli import main

PEOPLE = "id,amount,by,to\n1,3,ann,bob\n2,4,bob,cid\n"


@pytest.fixture
def people(tmp_path: Path) -> Path:
    path = tmp_path / "people.csv"
    path.write_text(PEOPLE)
    return path


@pytest.mark.parametrize(
    "options, weights",
    [
        (["--columns", "by,to,amount"], [3.0, 4.0]),
        (["--columns", "2,3,1", "--header"], [3.0, 4.0]),
        (["--columns", "by,to", "--weight", "amount", "--weight-dtype", "int32"], [3, 4]),
        (["--columns", "by,to,amount", "--no-weights"], None),
    ],
)
def test_convert_chooses_columns(options: list[str], weights: list[float] | None, people: Path, tmp_path: Path) -> None:
    target = tmp_path / "people.pregel"
    assert main(["convert", str(people), str(target), "--directed", *options]) == 0
    graph = gp.read_graph(target)
    assert graph.ids is not None
    assert graph.ids.tolist() == ["ann", "bob", "cid"]
    assert (None if graph.weights is None else graph.weights.tolist()) == weights


@pytest.mark.parametrize(
    "arguments, status, problem",
    [
        (["missing.el", "b.graph", "--directed"], 2, "b.graph: metis files cannot hold directed graphs: save as .mtx"),
        (["missing.el", "b.graph", "--directed"], 2, "or build the graph with --undirected"),
        (["a.xyz", "b.el"], 1, "unknown suffix '.xyz': pass --format, or use one of"),
        (["a.csv", "b.xyz"], 2, "unknown suffix '.xyz': pass --to, or use one of"),
        (["a.csv", "b.mtx"], 1, "save as .pregel, .parquet or .csv, or pass --lossy to write vertex numbers instead"),
        (["b.csv", "b.el"], 1, "may be names of columns or ids: use --header for names, or --no-header for ids"),
        (["c.csv", "b.el"], 1, "the weight 'x' is not a number: pass --no-weights to ignore it"),
        (
            ["a.csv", "b.el", "--num-vertices", "3"],
            1,
            "the id 'ann' is not an integer, as --num-vertices requires: omit it",
        ),
        (["d.wel", "b.wsg"], 1, ".wsg files require int32 weights, not float64"),
        (["e.wel", "b.wel"], 1, "pass --weight-dtype int64"),
    ],
)
def test_messages_name_options(
    arguments: list[str],
    status: int,
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    files = {
        "a.csv": "source,target\nann,bob\n",
        "a.xyz": "",
        "b.csv": "ann,bob\n",
        "c.csv": "ann,bob,x\n1,2,3\n4,5,6\n",
        "d.wel": "0 1 2\n",
        "e.wel": f"0 1 {2**53 + 1}\n",
    }
    files["c.csv"] = "source,target,weight\n1,2,3\n4,5,x\n"
    for name, text in files.items():
        Path(name).write_text(text)
    assert main(["convert", *arguments]) == status
    message = capsys.readouterr().err
    assert problem in message
    assert "=" not in message.splitlines()[-1]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(files)


def test_lossy_conversion(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("source,target\nann,bob\n")
    assert main(["convert", str(tmp_path / "a.csv"), str(tmp_path / "a.mtx"), "--lossy"]) == 0
    graph = gp.read_graph(tmp_path / "a.mtx")
    assert (graph.num_vertices, graph.ids) == (2, None)


def test_columns_are_checked(people: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["convert", str(people), str(tmp_path / "a.el"), "--columns", "by"])
    assert "'by' is not of the form SOURCE,TARGET or SOURCE,TARGET,WEIGHT" in capsys.readouterr().err
    assert main(["cc", "-f", str(people), "--columns", "by,whom"]) == 2
    assert "line 1: no column 'whom'; available columns: 'id', 'amount', 'by', 'to'" in capsys.readouterr().err


@pytest.mark.parametrize("option", [["--columns", "0,1"], ["--no-weights"], ["--no-header"], ["--directed"]])
def test_options_for_reading_require_a_file(option: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cc", "-g", "4", *option]) == 2
    assert "require -f" in capsys.readouterr().err
