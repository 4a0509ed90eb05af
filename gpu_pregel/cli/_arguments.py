"""The options of an algorithm, made from its entry in the registry, and the arguments of a call from them."""

from __future__ import annotations

import argparse
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from gpu_pregel.algorithms._entry import Algorithm, Option
from gpu_pregel.errors import ArgumentError, UnknownVertexError

if TYPE_CHECKING:
    from gpu_pregel.host.graphs.graph import Graph

_KINDS: dict[str, dict[str, Any]] = {
    "vertex": {"metavar": "ID"},
    "vertices": {"metavar": "ID", "nargs": "+"},
    "pairs": {"metavar": "ID,ID", "nargs": "+"},
    "integer": {"metavar": "N", "type": int},
    "integers": {"metavar": "N", "nargs": "+", "type": int},
    "number": {"metavar": "X", "type": float},
    "flag": {"action": argparse.BooleanOptionalAction},
}
_EXAMPLES = {"vertex": "30", "vertices": "30 3", "pairs": "30,3"}
"""Vertices of wiki-Vote.txt."""


def add_options(parser: argparse.ArgumentParser, algorithm: Algorithm) -> None:
    """Add an option for each argument of the algorithm; arguments that are not given keep their defaults."""
    for option in algorithm.options:
        names = [option.letter] if option.letter else []
        parser.add_argument(
            *names,
            _long_form(option),
            dest=f"argument_{option.argument}",
            required=option.required,
            default=None,
            help=option.help,
            **_KINDS.get(option.kind, {"choices": option.choices}),
        )


def example(algorithm: Algorithm) -> str:
    """Return a command that uses the algorithm."""
    words = [algorithm.command, "-f", "roads.csv" if "weights" in algorithm.requires else "wiki-Vote.txt"]
    words += ["--directed"] if {"directed", "acyclic"} & set(algorithm.requires) else []
    for option in algorithm.options:
        if option.required:
            sample = option.sample if isinstance(option.sample, (list, tuple)) else [option.sample]
            value = _EXAMPLES.get(option.kind, " ".join(map(str, sample)))
            words += [option.letter or _long_form(option), value]
    return " ".join([*words, "-v", "-o", f"{algorithm.result.lower()}.parquet"])


def given_arguments(options: argparse.Namespace, algorithm: Algorithm, graph: Graph) -> dict[str, Any]:
    """Return the arguments given on the command line, with ids of vertices in the type of the graph's ids."""
    arguments = {}
    for option in algorithm.options:
        value = getattr(options, f"argument_{option.argument}")
        if value is not None:
            arguments[option.argument] = _convert(option, value, graph)
    return arguments


def find_id(graph: Graph, option: str, text: str) -> Any:
    """Return the id that is this text or, if the ids are numbers, this number; raise if no vertex has it."""
    with suppress(ValueError):
        if int(text) in graph:
            return int(text)
    try:
        graph.vertex(text)
    except UnknownVertexError:
        raise ArgumentError(f"{option}{text}: no vertex of the graph has this id") from None
    return text


def _convert(option: Option, value: Any, graph: Graph) -> Any:
    name = f"{_long_form(option)} "
    if option.kind == "vertex":
        return find_id(graph, name, value)
    if option.kind == "vertices":
        return [find_id(graph, name, text) for text in value]
    if option.kind == "pairs":
        return [tuple(find_id(graph, name, text) for text in _pair(name, pair)) for pair in value]
    return value


def _pair(name: str, text: str) -> list[str]:
    ids = text.split(",")
    if len(ids) != 2:
        raise ArgumentError(f"{name}{text}: not of the form ID,ID")
    return ids


def _long_form(option: Option) -> str:
    """Return the long form; --seed is the seed of a generated graph."""
    return "--run-seed" if option.argument == "seed" else f"--{option.argument.replace('_', '-')}"
