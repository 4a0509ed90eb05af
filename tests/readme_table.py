"""The table of algorithms in README.md, made from the registry.

``python -m tests.readme_table`` rewrites it, and adds its section if there is none.
"""

from __future__ import annotations

import re
from pathlib import Path

from gpu_pregel.algorithms._entry import Algorithm
from gpu_pregel.algorithms.registry import ALGORITHMS

README = Path(__file__).parents[1] / "README.md"
BEGIN, END = "<!-- algorithms: python -m tests.readme_table -->\n", "<!-- end of algorithms -->\n"
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


def rewritten(text: str) -> str:
    """Return the text of README.md with the present table."""
    if BEGIN not in text:
        text = text.replace(_NEXT, f"{_SECTION}{BEGIN}{END}\n{_NEXT}", 1)
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    return f"{before}{BEGIN}\n{table()}\n{END}{after}"


if __name__ == "__main__":
    README.write_text(rewritten(README.read_text()))
