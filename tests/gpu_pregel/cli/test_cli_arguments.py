"""Tests of the options that an algorithm's command has by its entry in the registry."""

from __future__ import annotations

import argparse
import json
import shlex
from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.algorithms._entry import Algorithm, Option
from gpu_pregel.algorithms.registry import ALGORITHMS
from gpu_pregel.cli import _arguments, _common, main, make_parser
from gpu_pregel.errors import ArgumentError

ENTRY = Algorithm(
    "search",
    "Hops",
    "search",
    options=(
        Option("-r", "source", "vertex", "first vertex", required=True),
        Option("", "targets", "vertices", "last vertices"),
        Option("", "pairs", "pairs", "pairs of vertices"),
        Option("-i", "max_iterations", "integer", "number of iterations", sample=7, required=True),
        Option("", "fanouts", "integers", "edges per hop", sample=(3, 2), required=True),
        Option("-t", "tolerance", "number", "largest error"),
        Option("", "normalized", "flag", "divide by the largest value"),
        Option("", "direction", "in,out,all", "edges to follow"),
        Option("", "seed", "integer", "seed of the search"),
    ),
)
REQUIRED = "-r 1 -i 3 --fanouts 3 2"
NUMBERED = gp.Graph.from_edgelist([1, 2], [2, 3])
NAMED = gp.Graph.from_edgelist(["1", "b"], ["b", "c"])


def parse(text: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    _arguments.add_options(parser, ENTRY)
    _common.add_generator_options(parser, files=True)
    return parser.parse_args([*shlex.split(text), "-g", "4"])


@pytest.mark.parametrize(
    ("text", "graph", "expected"),
    [
        ("", NUMBERED, {"source": 1, "max_iterations": 3, "fanouts": [3, 2]}),
        ("", NAMED, {"source": "1", "max_iterations": 3, "fanouts": [3, 2]}),
        ("-t 1e-3 --no-normalized", NUMBERED, {"tolerance": 0.001, "normalized": False}),
        ("--normalized --direction all", NUMBERED, {"normalized": True, "direction": "all"}),
        ("--targets 3 1", NUMBERED, {"targets": [3, 1]}),
        ("--targets c --pairs b,c 1,b", NAMED, {"targets": ["c"], "pairs": [("b", "c"), ("1", "b")]}),
        ("--seed 4 --run-seed 5", NUMBERED, {"seed": 5}),
        ("--source 3 --max-iterations 4", NUMBERED, {"source": 3, "max_iterations": 4}),
    ],
)
def test_given_arguments_are_passed_on(text: str, graph: gp.Graph, expected: dict[str, Any]) -> None:
    found = _arguments.given_arguments(parse(f"{REQUIRED} {text}"), ENTRY, graph)
    assert found.keys() >= {"source", "max_iterations", "fanouts"}
    assert {name: found[name] for name in expected} == expected
    assert found.keys() <= expected.keys() | {"source", "max_iterations", "fanouts"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("-r 9", "--source 9: no vertex of the graph has this id"),
        ("-r b", "--source b: no vertex of the graph has this id"),
        ("--targets 1 9", "--targets 9: no vertex of the graph has this id"),
        ("--pairs 1,9", "--pairs 9: no vertex of the graph has this id"),
        ("--pairs 1", "--pairs 1: not of the form ID,ID"),
        ("--pairs 1,2,3", "--pairs 1,2,3: not of the form ID,ID"),
    ],
)
def test_unknown_vertices_are_rejected(text: str, message: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        _arguments.given_arguments(parse(f"{REQUIRED} {text}"), ENTRY, NUMBERED)
    assert str(caught.value) == message


@pytest.mark.parametrize("text", ["-r 1", f"{REQUIRED} -i x", f"{REQUIRED} --direction up", f"{REQUIRED} -t x"])
def test_malformed_options_are_usage_errors(text: str) -> None:
    with pytest.raises(SystemExit) as caught:
        parse(text)
    assert caught.value.code == 2


def test_samples_are_arguments_of_a_call() -> None:
    assert ENTRY.sample_arguments(NAMED) == {"source": "1", "max_iterations": 7, "fanouts": (3, 2)}
    assert ENTRY.sample_arguments(gp.Graph.from_edgelist([], [])) is None
    pairs = ENTRY._replace(options=(Option("", "pairs", "pairs", "pairs", required=True),))
    assert pairs.sample_arguments(NUMBERED) == {"pairs": [(1, 2)]}
    assert pairs.sample_arguments(gp.Graph.from_edgelist([5], [5])) == {"pairs": [(5, 5)]}


def test_the_example_has_every_required_option() -> None:
    assert _arguments.example(ENTRY) == "search -f wiki-Vote.txt -r 30 -i 7 --fanouts 3 2 -v -o hops.parquet"
    directed = ENTRY._replace(options=(), requires=("directed", "weights"))
    assert _arguments.example(directed) == "search -f roads.csv --directed -v -o hops.parquet"


@pytest.mark.parametrize("entry", ALGORITHMS, ids=lambda entry: entry.name)
def test_options_do_not_clash_with_those_of_all_commands(entry: Algorithm) -> None:
    """Argparse refuses an option that exists already, when the parser is built."""
    assert make_parser().parse_args(shlex.split(_arguments.example(entry))).command == entry.command


def test_algorithms_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["algorithms"]) == 0
    out = capsys.readouterr().out
    assert "gpu-pregel cc           gp.connected_components: the connected components (weak if the graph" in out
    assert main(["algorithms", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["algorithms"]
    assert [row["function"] for row in rows] == [f"gp.{entry.name}" for entry in ALGORITHMS]
