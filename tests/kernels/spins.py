"""Finds loops in PTX that wait for a plain load to change, which the compiler may hoist and a cache may never renew.

A loop is reported if all conditions on which it ends depend on nothing that it changes itself, but on loads at most.
Loops that pass an atomic operation, a volatile load, a fence or a block barrier in every round are left alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

_ORDERING = ("atom", "red", "bar.sync", "bar.red", "barrier", "membar", "fence", "call", "mbarrier")
_ORDERED_LOADS = {"volatile", "relaxed", "acquire", "mmio", "cv"}
_CLOCKS = ("%clock", "%globaltimer")
_NO_RESULT = ("st", "bra", "ret", "exit", "trap", "bar", "nanosleep", "prefetch", "pragma")
Edge = tuple[str, str]
_REGISTER = re.compile(r"%[\w.]+")


@dataclass(frozen=True)
class Statement:
    """An instruction, and its guard such as ``@%p1``."""

    guard: str | None
    operation: str
    operands: tuple[str, ...]

    @property
    def kind(self) -> str:
        """The first word of the operation."""
        return self.operation.split(".")[0]

    @property
    def written(self) -> list[str]:
        """The registers that it sets."""
        return [] if self.kind in _NO_RESULT else _REGISTER.findall(self.operands[0])

    @property
    def read(self) -> list[str]:
        """The registers that it depends on."""
        operands = self.operands if self.kind in _NO_RESULT else self.operands[1:]
        return _REGISTER.findall(" ".join(operands))

    @property
    def is_ordering(self) -> bool:
        """Whether what it does to memory is seen by others, or shows what others did."""
        if self.operation.startswith(_ORDERING):
            return True
        return self.kind == "ld" and not _ORDERED_LOADS.isdisjoint(self.operation.split("."))


@dataclass
class Block:
    """Statements without a branch between them, and where they lead: to blocks, by guards; None is the end."""

    name: str
    statements: list[Statement] = field(default_factory=list)
    successors: list[tuple[str | None, str | None]] = field(default_factory=list)

    @property
    def is_quiet(self) -> bool:
        """Whether nothing in it is ordering."""
        return not any(statement.is_ordering for statement in self.statements)


def find_spins(ptx: str) -> list[str]:
    """The first labels of all loops of all functions that wait for plain loads, or for nothing."""
    return [name for body in _bodies(ptx) for name in _spins_of(_blocks(body))]


def _bodies(ptx: str) -> Iterator[list[str]]:
    """The lines of each function, without comments and braces."""
    depth = 0
    body: list[str] = []
    for line in re.sub(r"//.*", "", ptx).splitlines():
        text = line.strip()
        if text == "{":
            depth += 1
        elif text == "}":
            depth -= 1
            if depth == 0:
                yield body
                body = []
        elif depth and text and not text.startswith((".loc", ".file")):
            body.append(text)


def _parse(text: str) -> Statement:
    parsed = re.fullmatch(r"(?:(@!?%\w+)\s+)?([\w.:]+)\s*(.*)", text, re.DOTALL)
    assert parsed, text
    guard, operation, rest = parsed.groups()
    return Statement(guard, operation, tuple(re.split(r",\s*(?![^{\[(]*[}\])])", rest)) if rest else ())


def _parts(body: list[str]) -> Iterator[str]:
    """Labels, with their colon, and statements."""
    for text in "\n".join(body).split(";"):
        # No statement begins with a brace, but a scope may.
        part = text.lstrip("{} \t\n")
        while part.startswith("$"):
            label, _, part = part.partition(":")
            yield f"{label}:"
            part = part.lstrip("{} \t\n")
        if part and not part.startswith("."):
            yield part


def _blocks(body: list[str]) -> dict[str, Block]:
    """The blocks of a function, the first one first."""
    blocks = {"": Block("")}
    block, is_open = blocks[""], True

    def begin(name: str) -> Block:
        return blocks.setdefault(name, Block(name))

    for part in _parts(body):
        if part.endswith(":"):
            if is_open:
                block.successors.append((part[:-1], None))
            block, is_open = begin(part[:-1]), True
            continue
        if not is_open:
            block, is_open = begin(f"{block.name}-"), True
        statement = _parse(part)
        if statement.kind == "brx":
            raise ValueError(f"a branch by a table is not understood: {part}")
        block.statements.append(statement)
        if statement.kind in ("bra", "ret", "exit", "trap"):
            block.successors.append((statement.operands[0] if statement.kind == "bra" else None, statement.guard))
            is_open = statement.guard is not None
            if is_open:
                # What follows is reached if the branch is not taken.
                block.successors.append((f"{block.name}+", statement.guard))
                block = begin(f"{block.name}+")
    return blocks


def _spins_of(blocks: dict[str, Block]) -> list[str]:
    quiet = {name for name, block in blocks.items() if block.is_quiet}
    edges = {(name, target) for name in quiet for target, _ in blocks[name].successors if target and target in quiet}
    spins = {}
    for loop in _loops(quiet, edges, blocks):
        if _only_waits([blocks[name] for name in loop], loop):
            spins[frozenset(loop)] = min(loop)
    # Of a loop and one around it that waits no less, the inner one is named.
    return sorted(name for loop, name in spins.items() if not any(other < loop for other in spins))


def _loops(nodes: set[str], edges: set[Edge], blocks: dict[str, Block]) -> Iterator[set[str]]:
    """All loops, inner ones too, and each way round a loop that has several ways back to its beginning."""
    for loop in _strongly_connected(nodes, edges):
        inside = {(a, b) for a, b in edges if a in loop and b in loop}
        if not inside:
            continue
        yield loop
        outside = {target for name, block in blocks.items() if name not in loop for target, _ in block.successors}
        entries = (loop & outside) | (loop & {""}) or {min(loop)}
        back = {(a, b) for a, b in inside if b in entries}
        for tail, entry in back:
            yield _way_round(tail, entry, inside)
        yield from _loops(loop, inside - back, blocks)


def _way_round(tail: str, entry: str, edges: set[Edge]) -> set[str]:
    """The nodes from which ``tail`` is reached without passing ``entry``, and ``entry``."""
    found, waiting = {entry, tail}, [tail]
    while waiting:
        node = waiting.pop()
        if node == entry:
            continue
        for before, after in edges:
            if after == node and before not in found:
                found.add(before)
                waiting.append(before)
    return found


def _strongly_connected(nodes: set[str], edges: Iterable[Edge]) -> list[set[str]]:
    """Components in which each node reaches each other one; few nodes, so by reachability."""
    after: dict[str, set[str]] = {node: set() for node in nodes}
    for a, b in edges:
        after[a].add(b)
    reached = {node: _reach(node, after) for node in nodes}
    components, left = [], set(nodes)
    while left:
        node = min(left)
        component = {other for other in reached[node] if node in reached[other]} | {node}
        left -= component
        components.append(component)
    return components


def _reach(node: str, after: dict[str, set[str]]) -> set[str]:
    found: set[str] = set()
    waiting = [node]
    while waiting:
        for following in after[waiting.pop()] - found:
            found.add(following)
            waiting.append(following)
    return found


def _only_waits(loop: list[Block], names: set[str]) -> bool:
    """Whether no condition to leave the loop is one that the loop changes by itself."""
    unchanged = _unchanged(loop)
    guards = [
        guard for block in loop for target, guard in block.successors if target not in names and guard is not None
    ]
    return all(guard.lstrip("@!") in unchanged for guard in guards)


def _unchanged(loop: list[Block]) -> set[str]:
    """Registers that a round of the loop sets to what the round before did, unless another thread writes memory."""
    statements = [statement for block in loop for statement in block.statements]
    writers: dict[str, list[Statement]] = {}
    used: set[str] = set()
    for statement in statements:
        for register in statement.written:
            writers.setdefault(register, []).append(statement)
        used.update(statement.read)
        used.update(_REGISTER.findall(statement.guard or ""))
    stored = {statement.operands[0] for statement in statements if statement.kind == "st"}
    unchanged = {register for register in used if register not in writers and not register.startswith(_CLOCKS)}
    size = -1
    while len(unchanged) > size:
        size = len(unchanged)
        for register, (first, *others) in writers.items():
            rereads_own = first.kind == "ld" and first.operands[1] in stored
            if not others and first.guard is None and not rereads_own and unchanged.issuperset(first.read):
                unchanged.add(register)
    return unchanged
