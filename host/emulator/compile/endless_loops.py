"""Detection of loops without an exit in the control-flow graph of a function."""

from __future__ import annotations

import re
from collections.abc import Iterable

from gpu_pregel.host.emulator.compile.ir_text import NAME

_TERMINATOR = re.compile(r"\s*(ret|br|switch|unreachable)\b")
_CASE = re.compile(rf"\s*i\d+ -?\d+, label %({NAME})")
_LABEL = re.compile(rf"({NAME}):")
_END = "end"


def endless_loop(lines: list[str]) -> str | None:
    """Return the first instruction of a block from which the function cannot return, or None."""
    first, predecessors = _blocks(lines[1:])
    pending, ending = [_END], set()
    while pending:
        block = pending.pop()
        if block not in ending:
            ending.add(block)
            pending += predecessors.get(block, [])
    return next((line for block, line in first.items() if block not in ending), None)


def _blocks(lines: Iterable[str]) -> tuple[dict[str, str], dict[str, list[str]]]:
    """Return the first instruction of each block, and the predecessors of each block."""
    label = ""
    first: dict[str, str] = {}
    predecessors: dict[str, list[str]] = {}
    for line in lines:
        if match := _LABEL.match(line):
            label = match[1]
            continue
        if match := _TERMINATOR.match(line):
            targets = [_END] if match[1] in ("ret", "unreachable") else re.findall(rf"label %({NAME})", line)
        else:
            case = _CASE.match(line)
            targets = [case[1]] if case else []
        for target in targets:
            predecessors.setdefault(target, []).append(label)
        if line.strip():
            first.setdefault(label, line)
    return first, predecessors
