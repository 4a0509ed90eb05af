"""Reads the code blocks of a README, and runs them as a reader would: in order, in an empty folder.

- A ``python`` block is executed; blocks below one heading ``##`` share their names. What ``print`` writes is the
  comment behind it or, for several lines, the comments below it. A comment behind any other expression is its value if
  it looks like one (a literal, ``array(…)``, ``<…>``), and prose otherwise. A block with prompts ``>>>`` is a doctest.
- A block ``console``, ``sh``, ``bash`` or without a language contains commands, one per line; with prompts ``$``, the
  lines between them are the output of the command before. ``gpu-pregel`` and ``python`` are run. ``pip`` must install
  extras that exist, and ``git clone`` the address of the project.
- In expected output, ``...`` stands for anything, and the amount of blank space does not matter.
"""

from __future__ import annotations

import ast
import doctest
import io
import linecache
import re
from collections.abc import Iterator
from contextlib import redirect_stdout
from dataclasses import dataclass
from typing import Any

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
SHELLS = ("", "bash", "console", "sh", "shell")


@dataclass(frozen=True)
class Block:
    """A fenced code block: its language, its section, the number of its first line, and its text."""

    language: str
    section: str
    line: int
    text: str


def read_blocks(text: str) -> list[Block]:
    """Return the fenced code blocks of a Markdown document."""
    blocks, section, begin, language = [], "", 0, ""
    lines = text.split("\n")
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("```"):
            if not begin:
                begin, language = number + 1, line.strip().removeprefix("```").split(" ")[0]
            else:
                blocks.append(Block(language, section, begin, "\n".join(lines[begin - 1 : number - 1]) + "\n"))
                begin = 0
        elif not begin and re.match(r"##? ", line):
            section = line.lstrip("# ").strip()
    assert not begin, f"the block that begins in line {begin - 1} has no end"
    return blocks


def same(expected: str, found: str) -> bool:
    """Whether output is as expected."""
    return doctest.OutputChecker().check_output(f"{expected.rstrip()}\n", f"{found.rstrip()}\n", OPTIONS)


def run_python(block: Block, names: dict[str, Any]) -> None:
    """Execute a block and compare what it shows; ``names`` are the names that it uses and defines."""
    if re.search(r"^>>> ", block.text, re.MULTILINE):
        _run_doctest(block, names)
        return
    place = f"README.md, block of line {block.line}"
    linecache.cache[place] = (len(block.text), None, block.text.splitlines(keepends=True), place)
    lines = block.text.split("\n")
    for statement in ast.parse(block.text, place).body:
        ast.increment_lineno(statement, 0)
        shown = io.StringIO()
        value = None
        with redirect_stdout(shown):
            if isinstance(statement, ast.Expr):
                value = eval(compile(ast.Expression(statement.value), place, "eval"), names)
            else:
                exec(compile(ast.Module([statement], []), place, "exec"), names)
        _compare(block, lines, statement, shown.getvalue(), value)


def _run_doctest(block: Block, names: dict[str, Any]) -> None:
    case = doctest.DocTestParser().get_doctest(block.text, names, "README.md", "README.md", block.line - 1)
    report = io.StringIO()
    result = doctest.DocTestRunner(optionflags=OPTIONS).run(case, out=report.write, clear_globs=False)
    names.update(case.globs)
    assert result.failed == 0, report.getvalue()


def _compare(block: Block, lines: list[str], statement: ast.stmt, printed: str, value: Any) -> None:
    last = statement.end_lineno or 0
    comment = lines[last - 1][statement.end_col_offset :].strip().removeprefix("#").strip()
    below = []
    for line in lines[last:]:
        if not line.startswith("#"):
            break
        below.append(line.removeprefix("#").removeprefix(" "))
    place = f"README.md, line {block.line + last - 1}"
    if printed:
        expected = comment or "\n".join(below)
        assert same(expected, printed), f"{place}: prints\n{printed}and not\n{expected}"
    elif isinstance(statement, ast.Expr) and _is_value(comment):
        assert same(comment, repr(value)), f"{place}: is {value!r} and not {comment}"


def _is_value(comment: str) -> bool:
    """Whether a comment is the value of the expression before it, and not prose."""
    try:
        ast.literal_eval(comment.replace("...", "0"))
    except (SyntaxError, ValueError):
        return re.match(r"<|\w+\(\S", comment) is not None
    return comment != ""


@dataclass(frozen=True)
class Command:
    """A line of a shell block, and the output below it, None if the block shows no output."""

    line: int
    text: str
    output: str | None


def read_commands(block: Block) -> Iterator[Command]:
    """Yield the commands of a shell block."""
    lines = re.sub(r"\\\n\s*", lambda match: " " + "\x00" * match[0].count("\n"), block.text).rstrip("\n").split("\n")
    prompted = any(line.startswith("$ ") for line in lines)
    number = block.line
    pending: tuple[int, str] | None = None
    output: list[str] = []
    for line in lines:
        if not prompted:
            if line.strip() and not line.startswith("#"):
                yield Command(number, line.replace("\x00", ""), None)
        elif line.startswith("$ "):
            if pending:
                yield Command(*pending, "\n".join(output))
            pending, output = (number, line.removeprefix("$ ").replace("\x00", "")), []
        else:
            output.append(line)
        number += 1 + line.count("\x00")
    if pending:
        yield Command(*pending, "\n".join(output))
