"""Error messages in terms of the command line: ``--to metis`` instead of ``format='metis'``."""

from __future__ import annotations

import argparse
import re
from collections.abc import Container

_FLAGS = {
    "directed=True": "--directed",
    "directed=False": "--undirected",
    "self_loops='drop'": "--drop-self-loops",
    "header=True": "--header",
    "header=False": "--no-header",
    "comments=True": "--comments",
    "comments=False": "--no-comments",
    "lossy=True": "--lossy",
    "formulas='escape'": "--escape-formulas",
    "weight=None": "--no-weights",
    "check=True": "--check",
}
_CALLS = {
    "graph.to_undirected()": "--undirected",
    "graph.to_undirected(combine='sum')": "--undirected --combine sum",
}
_LETTERS = {"edge_factor": "-k"}
_ARGUMENT = re.compile(r"\b([a-z]+(?:_[a-z]+)*)=('[^']*'|\"[^\"]*\"|\([^()]*\)|\w+)?")
"""An argument of a Python call."""
_CALL = re.compile(r"gp\.read_graph\('.*?', ((?:header|source|target|weight)=.+?)\)")
"""The call that names columns, or says whether there is a header."""
_ENDS = re.compile(r"source=(.+?), target=(.+?)(?=, weight=|$)")
_NAME = re.compile(r"^[a-z]+(?:_[a-z]+)*(?= (?:must|is|applies) )|\b[a-z]+(?:_[a-z]+)+\b")
"""The name of an argument: first in a message, or with an underscore."""


def in_options(text: str, options: argparse.Namespace) -> str:
    """Rewrite arguments of Python calls as the options of the command; what has no option is left as it is."""
    known: Container[str] = getattr(options, "option_strings", ())
    given = [value for key in ("f", "o", "store") if isinstance(value := getattr(options, key, None), str) and value]
    run_seed = getattr(options, "argument_seed", None)
    writes = any(text.startswith(value) for value in given if value == getattr(options, "o", None))

    def option(name: str) -> str | None:
        if name == "scale":
            return "-u" if getattr(options, "g", None) is None else "-g"
        if name == "seed" and run_seed not in (None, getattr(options, "seed", None)) and f"not {run_seed:,}" in text:
            return "--run-seed"
        if name in ("rows", "columns") and getattr(options, "grid", None) is not None:
            return f"{name} of --grid"
        if name == "format" and writes and "--to" in known:
            return "--to"
        spelled = _LETTERS.get(name, f"--{name.replace('_', '-')}")
        return spelled if spelled in known else None

    def rewrite_argument(match: re.Match[str]) -> str:
        flag = _FLAGS.get(match[0].replace('"', "'"))
        if flag is not None:
            return flag if flag in known else match[0]
        name, value = option(match[1]), re.sub("[()'\" ]", "", match[2] or "")
        if name is None:
            return match[0]
        opposite = name.replace("--", "--no-", 1)
        if opposite in known and value in ("True", "False"):  # an option without a value
            return name if value == "True" else opposite
        return f"{name} {value}".rstrip()

    def rewrite(part: str) -> str:
        for call, flag in _CALLS.items():
            part = part.replace(call, flag) if flag.split()[0] in known else part
        return _NAME.sub(lambda match: option(match[0]) or match[0], _ARGUMENT.sub(rewrite_argument, part))

    if "--columns" in known:
        text = _CALL.sub(lambda call: _ENDS.sub(_columns, call[1]).replace(", ", " "), text)
    # Names of files are not rewritten.
    separator = "|".join(map(re.escape, sorted(given, key=len, reverse=True)))
    parts = re.split(f"({separator})", text) if separator else [text]
    return "".join(part if number % 2 else rewrite(part) for number, part in enumerate(parts))


def _columns(ends: re.Match[str]) -> str:
    return "--columns " + ",".join(one.strip("'\"") for one in ends.groups())
