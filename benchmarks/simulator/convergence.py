"""Repair of kernels in which the simulator would run an operation of a whole warp with some of its lanes only.

The simulator lets the lanes of a warp that part at a branch meet again at its immediate post-dominator, as in Fung et
al. (MICRO 2007). If the compiler has threaded a branch through one on the same condition, that may lie behind a
barrier; the simulator then counts the warp once for each group of lanes, so that other warps pass too early. NVIDIA's
assembler makes warps converge (WARPSYNC) before every barrier.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

WHOLE_WARP = re.compile(r"\s*(?:bar(?:\.cta)?\.sync|bar\.warp\.sync|shfl\.sync|vote\.sync)\b")
"""Instructions that all lanes of a warp must execute together."""

_LABEL = re.compile(r"\s*([\w$]+):\s*$")
_BRANCH = re.compile(r"\s*(@!?%\w+)?\s*bra(?:\.uni)?\s+([\w$]+);\s*$")
_END = re.compile(r"\s*(@!?%\w+)?\s*(?:ret|exit);\s*$")
_MOST_REPAIRS = 64


@dataclass
class _Block:
    """Lines that are executed one after the other; an operation of the whole warp begins a block."""

    first: int
    successors: set[int] = field(default_factory=set)
    is_whole: bool = False


def converging(lines: list[str], prefix: str) -> list[str]:
    """Return a kernel's body in which lanes meet before operations of their whole warp.

    Parameters
    ----------
    lines : list of str
    prefix : str
        Begins the names of the labels and registers that are added.
    """
    for number in range(_MOST_REPAIRS):
        places = split_operations(lines)
        if not places:
            return lines
        lines = _joined(lines, places, f"{prefix}{number}")
    raise RuntimeError(f"{prefix}: lanes do not meet before operations of their warp after {_MOST_REPAIRS} repairs")


def split_operations(lines: list[str]) -> list[int]:
    """Return the lines to which lanes must go together as the branch that parts them ends behind such an operation.

    They are of the first such branch; the list is empty if there is none.
    """
    blocks = _blocks(lines)
    meeting_points = _post_dominators(blocks)
    for branch, block in enumerate(blocks):
        point = meeting_points[branch]
        one, *other = [_next_operations(blocks, side, branch, point) for side in block.successors] or [set()]
        # Lanes that part are on their way to the same operations, or the branch is the same for all of them.
        if other == [one] and one - {point} and len(blocks) - 1 not in one:
            return sorted(blocks[each].first for each in one)
    return []


def _joined(lines: list[str], places: list[int], name: str) -> list[str]:
    """Lead the ways to all ``places`` through one block at the end, which is then the point where lanes meet."""
    result = [f"\t.reg .b32 %{name};", f"\t.reg .pred %{name}_p;"]
    for k, line in enumerate(lines):
        if k in places:
            number = places.index(k)
            lead = [f"\tmov.u32 %{name}, {number};", f"\tbra ${name};", f"${name}_{number}:"]
            result += [line, *lead] if _LABEL.match(line) else [*lead, line]
        else:
            result.append(line)
    end = len(result) - 1 - [line.strip() for line in reversed(result)].index("}")
    chosen = [f"${name}:"]
    for number in range(1, len(places)):
        chosen += [f"\tsetp.eq.s32 %{name}_p, %{name}, {number};", f"\t@%{name}_p bra ${name}_{number};"]
    return [*result[:end], *chosen, f"\tbra ${name}_0;", *result[end:]]


def _blocks(lines: list[str]) -> list[_Block]:
    """Return the basic blocks in order, and an empty one at which all ends of the kernel meet."""
    blocks, labels, starts = [_Block(0)], {}, False
    for k, line in enumerate(lines):
        label, is_whole = _LABEL.match(line), WHOLE_WARP.match(line) is not None
        if (starts or label or is_whole) and blocks[-1].first < k:
            blocks.append(_Block(k))
        blocks[-1].is_whole |= is_whole
        if label:
            labels[label[1]] = len(blocks) - 1
        starts = bool(_BRANCH.match(line) or _END.match(line))
    blocks.append(_Block(len(lines)))
    for number, block in enumerate(blocks[:-1]):
        last = lines[blocks[number + 1].first - 1]
        branch, end = _BRANCH.match(last), _END.match(last)
        if branch:
            block.successors.add(labels[branch[2]])
        elif end:
            block.successors.add(len(blocks) - 1)
        leaves = branch or end
        if leaves is None or leaves[1]:
            block.successors.add(number + 1)
    return blocks


def _post_dominators(blocks: list[_Block]) -> list[int]:
    """Return the immediate post-dominator of each block; an end must be reached from all of them."""
    last = len(blocks) - 1
    found = [(1 << len(blocks)) - 1] * last + [1 << last]
    changed = True
    while changed:
        changed = False
        for number in range(last - 1, -1, -1):
            common = -1
            for successor in blocks[number].successors:
                common &= found[successor]
            common |= 1 << number
            changed |= common != found[number]
            found[number] = common
    # The nearest one is post-dominated by all others.
    return [
        max(_bits(among & ~(1 << number)), key=lambda one: found[one].bit_count(), default=last)
        for number, among in enumerate(found)
    ]


def _bits(number: int) -> Iterator[int]:
    while number:
        yield (number & -number).bit_length() - 1
        number &= number - 1


def _next_operations(blocks: list[_Block], start: int, branch: int, meeting_point: int) -> set[int]:
    """Return where paths from ``start`` lead first: operations of the whole warp and the meeting point of a branch."""
    found, seen, waiting = set(), {branch}, [start]
    while waiting:
        number = waiting.pop()
        if number not in seen:
            seen.add(number)
            if blocks[number].is_whole or number == meeting_point:
                found.add(number)
            else:
                waiting += blocks[number].successors
    return found
