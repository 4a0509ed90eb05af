"""The tables of algorithms and of functions of NetworkX in README.md, made from their registries.

``python -m tests.readme_table`` rewrites them, and adds the section of algorithms if there is none.
"""

from __future__ import annotations

import re
from pathlib import Path

from gpu_pregel.algorithms._entry import Algorithm
from gpu_pregel.algorithms.registry import ALGORITHMS
from gpu_pregel.networkx.function import Function
from gpu_pregel.networkx.registry import FAMILIES, FUNCTIONS

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- algorithms: python -m tests.readme_table -->\n", "<!-- end of algorithms -->\n"
BEGIN_FUNCTIONS = "<!-- functions of NetworkX: python -m tests.readme_table -->\n"
END_FUNCTIONS = "<!-- end of functions -->\n"
_NEXT = "## Vertex programs\n"
_SECTION = """## Algorithms

Each algorithm takes `device=`, `threads=` and `progress=`, runs on the CPU, on CUDA and on the emulator, and returns a
result with `summary()`, `describe()`, `to_numpy()`, `to_pandas()`, `to_arrow()` and `save()`. Its `gpu-pregel` command
verifies it with `-v`.

"""
_HEADING = ("finds", "function", "command", "paper", "cost", "devices", "result")


def table() -> str:
    """Return the table as Markdown, a row for each algorithm."""
    rows = [_HEADING, ("---",) * len(_HEADING), *map(_cells, ALGORITHMS)]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in rows)


def _cells(entry: Algorithm) -> tuple[str, ...]:
    purpose = re.sub("^the ", "", entry.purpose)
    conditions = [*([entry.note] if entry.note else []), *(_CONDITIONS[one] for one in entry.requires)]
    finds = f"{purpose} ({', '.join(conditions)})" if conditions else purpose
    return (
        finds,
        f"`gp.{entry.name}`",
        f"`{entry.command}`",
        entry.paper,
        entry.cost,
        ", ".join(entry.devices),
        f"`{entry.result}`",
    )


_CONDITIONS = {
    "undirected": "of an undirected graph",
    "directed": "of a directed graph",
    "weights": "of a weighted graph",
    "acyclic": "of an acyclic graph",
}


def functions_table() -> str:
    """Return the table of NetworkX's functions as Markdown, a row for each family."""
    rows = [
        f"| {(family.__doc__ or '').strip().removesuffix('.')} | {', '.join(map(_function, family.FUNCTIONS))} |\n"
        for family in FAMILIES
        if family.FUNCTIONS
    ]
    return f"| {len(FUNCTIONS)} functions | without `nx.` |\n| --- | --- |\n{''.join(rows)}"


def _function(function: Function) -> str:
    return f"`{function.path.removeprefix('nx.')}`" + (f" ({function.note})" if function.note else "")


def rewritten(text: str) -> str:
    """Return the text of README.md with the present tables."""
    if BEGIN not in text:
        text = text.replace(_NEXT, f"{_SECTION}{BEGIN}{END}\n{_NEXT}", 1)
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    text = f"{before}{BEGIN}\n{table()}\n{END}{after}"
    if BEGIN_FUNCTIONS not in text:
        return text
    before, rest = text.split(BEGIN_FUNCTIONS)
    return f"{before}{BEGIN_FUNCTIONS}\n{functions_table()}\n{END_FUNCTIONS}{rest.split(END_FUNCTIONS)[1]}"


if __name__ == "__main__":
    README.write_text(rewritten(README.read_text()))
