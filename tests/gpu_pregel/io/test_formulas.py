"""Ids that spreadsheets would compute: escaped in .csv and .tsv files on request, and kept otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pytest

import gpu_pregel as gp
from gpu_pregel.cli import main
from gpu_pregel.errors import ArgumentError
from gpu_pregel.io import check_output, save_result

FORMULAS = ["=1+1", "+1", "-1", "@SUM(1)", "'=1", "''@", "＝1"]
OTHERS = ["a=1", "'", "'a", "1-2"]


def ids_of(graph: gp.Graph) -> list[Any]:
    assert graph.ids is not None
    ids: list[Any] = graph.ids.tolist()
    return ids


def graph_of(ids: list[Any]) -> gp.Graph:
    return gp.Graph.from_edgelist(ids, [*ids[1:], ids[0]], list(range(-3, len(ids) - 3)), directed=True)


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.csv.gz"])
def test_ids_of_graphs_are_escaped_on_request(name: str, tmp_path: Path) -> None:
    graph, path = graph_of(FORMULAS + OTHERS), tmp_path / name
    graph.save(path, formulas="escape")
    assert ids_of(gp.read_graph(path, directed=True)) == [f"'{one}" for one in FORMULAS] + OTHERS
    graph.save(path)
    again = gp.read_graph(path, directed=True)
    assert ids_of(again) == FORMULAS + OTHERS
    np.testing.assert_array_equal(again.weights, graph.weights)


def test_texts_of_results_are_escaped_on_request(tmp_path: Path) -> None:
    texts = [*FORMULAS, *OTHERS, "\tx", "\r\n=1"]
    columns: dict[str, Any] = {"vertex": texts, "score": np.arange(len(texts)) - 3}
    save_result(tmp_path / "a.csv", columns, columns["score"], formulas="escape")
    escaped = [f"'{one}" for one in FORMULAS] + OTHERS + ["'\tx", "'\r\n=1"]
    parsing = pyarrow.csv.ParseOptions(newlines_in_values=True)
    table = pyarrow.csv.read_csv(tmp_path / "a.csv", parse_options=parsing)
    assert table.to_pydict() == {"vertex": escaped, "score": columns["score"].tolist()}
    save_result(tmp_path / "b.csv", columns, columns["score"])
    assert pyarrow.csv.read_csv(tmp_path / "b.csv", parse_options=parsing)["vertex"].to_pylist() == texts


def test_numbers_stay_numbers(tmp_path: Path) -> None:
    graph_of([-7, 3]).save(tmp_path / "a.csv", formulas="escape")
    assert (tmp_path / "a.csv").read_text() == "source,target,weight\n-7,3,-3\n3,-7,-2\n"


def test_the_command_line_escapes(tmp_path: Path, capfdbinary: Any) -> None:
    path, out = tmp_path / "a.csv", tmp_path / "b.csv"
    graph_of(["=1", "-a"]).save(path)
    assert main(["convert", str(path), str(out), "--escape-formulas"]) == 0
    assert out.read_text() == 'source,target,weight\n"\'=1","\'-a",-3\n"\'=1","\'-a",-2\n'
    assert main(["cc", "-f", str(path), "-o", str(out), "--escape-formulas"]) == 0
    expected = b'"vertex","component"\n"\'=1","\'=1"\n"\'-a","\'=1"\n'
    assert out.read_bytes() == expected
    capfdbinary.readouterr()
    assert main(["cc", "-f", str(path), "-o", "-", "--escape-formulas"]) == 0
    assert capfdbinary.readouterr().out == expected


def test_other_files_and_values_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    graph = graph_of(["a", "b"])
    for save in (graph.save, gp.connected_components(graph).save, check_output):
        with pytest.raises(ArgumentError, match=r"a\.parquet: formulas='escape' is for \.csv and \.tsv files: omit it"):
            save(tmp_path / "a.parquet", formulas="escape")
        with pytest.raises(ArgumentError, match="formulas must be 'keep' or 'escape', not 'drop'"):
            save(tmp_path / "a.csv", formulas="drop")
    assert list(tmp_path.iterdir()) == []
    assert main(["cc", "-g", "4", "-o", "a.npy", "--escape-formulas"]) == 2
    assert "a.npy: --escape-formulas is for .csv and .tsv files: omit it" in capsys.readouterr().err
    assert main(["cc", "-g", "4", "--escape-formulas"]) == 2
    assert "--escape-formulas requires -o" in capsys.readouterr().err
