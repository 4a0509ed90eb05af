"""Tests of the command of every algorithm: verified results, files, JSON, and errors of one line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.csv
import pytest

from gpu_pregel.algorithms._entry import Algorithm
from gpu_pregel.cli import main
from tests.algorithms import EVERY_ALGORITHM, KINDS, allows, call, joined_graph


def words(algorithm: Algorithm, arguments: dict[str, Any]) -> list[str]:
    """Return the options that pass these arguments."""
    found = []
    for option in algorithm.options:
        if option.argument in arguments:
            value = arguments[option.argument]
            values = value if isinstance(value, (list, tuple)) else [value]
            found.append(option.letter or f"--{option.argument.replace('_', '-')}")
            found += [",".join(map(str, one)) if isinstance(one, tuple) else str(one) for one in values]
    return found


@EVERY_ALGORITHM
def test_every_algorithm_runs_and_is_verified(
    algorithm: Algorithm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kind = next(kind for kind in KINDS if allows(algorithm, kind))
    graph = joined_graph(algorithm, kind)
    graph.save(tmp_path / "graph.pregel")
    given = words(algorithm, algorithm.sample_arguments(graph) or {})
    where = ["-f", str(tmp_path / "graph.pregel"), "--device", "cpu"]
    table, array = str(tmp_path / "result.csv"), str(tmp_path / "result.npy")
    assert main([algorithm.command, *given, *where, "-v", "-n", "2", "--json", "-o", table]) == 0
    out, err = capsys.readouterr()
    answer = json.loads(out)
    assert (answer["algorithm"], answer["verified"], answer["device"]) == (algorithm.name, True, "cpu")
    assert len(answer["seconds"]["trials"]) == 2
    expected = call(algorithm, graph, device="cpu")
    assert json.loads(json.dumps(expected.summary())).items() <= answer.items()
    assert f"answer      {expected.describe()}\n" in err
    assert "verified" in err
    columns = pyarrow.csv.read_csv(table)
    assert columns.column_names == expected.to_arrow().column_names
    assert columns.num_rows == expected.to_arrow().num_rows
    assert main([algorithm.command, *given, *where, "-o", array]) == 0
    np.testing.assert_array_equal(np.load(array), expected.to_numpy())


@EVERY_ALGORITHM
def test_unsuitable_graphs_are_errors_of_one_line(
    algorithm: Algorithm, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unsuitable = [kind for kind in KINDS if not allows(algorithm, kind)]
    if not unsuitable:
        pytest.skip(f"{algorithm.name} takes all graphs")
    graph = joined_graph(algorithm, unsuitable[0])
    graph.save(tmp_path / "graph.pregel")
    given = words(algorithm, algorithm.sample_arguments(graph) or {})
    assert main([algorithm.command, *given, "-f", str(tmp_path / "graph.pregel"), "--device", "cpu"]) == 1
    out, err = capsys.readouterr()
    last = err.splitlines()[-1]
    assert out == ""
    assert last.startswith("gpu-pregel: ")
    assert "needs" in last
    assert "graph.to_undirected()" not in last


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("pagerank --damping 2", "--damping must be above 0 and below 1, not 2.0"),
        ("pagerank -i -1", "--max-iterations must be at least "),
        ("mis --run-seed -1", "--run-seed must be from 0 to "),
        ("mis --seed 1 --run-seed -1", "--run-seed must be from 0 to "),
    ],
)
def test_bad_arguments_are_usage_errors(command: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*command.split(), "-g", "4", "--device", "cpu"]) == 2
    out, err = capsys.readouterr()
    assert (out, err.splitlines()[-1].startswith(f"gpu-pregel: {message}")) == ("", True)


def test_errors_name_flags_without_a_value(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.wel").write_text("0 1 0\n")
    assert main(["bc", "-f", str(tmp_path / "a.wel"), "--device", "cpu"]) == 1
    assert "has 0.0: change them, or pass --no-weighted" in capsys.readouterr().err
