"""Finds spin loops in PTX that poll a plain load, which the compiler may hoist and a cache may never refresh.

A loop is reported if none of its exit conditions depends on a value that the loop itself changes, except by loads.
Loops that execute an atomic, a volatile load, a fence or a block barrier in every iteration are not reported.
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
    """An instruction with an optional guard such as ``@%p1``."""

    guard: str | None
    operation: str
    operands: tuple[str, ...]

    @property
    def kind(self) -> str:
        """The first part of the operation."""
        return self.operation.split(".")[0]

    @property
    def written(self) -> list[str]:
        """The registers that it writes."""
        return [] if self.kind in _NO_RESULT else _REGISTER.findall(self.operands[0])

    @property
    def read(self) -> list[str]:
        """The registers that it reads."""
        operands = self.operands if self.kind in _NO_RESULT else self.operands[1:]
        return _REGISTER.findall(" ".join(operands))

    @property
    def is_ordering(self) -> bool:
        """Whether it makes stores visible to other threads or observes their stores."""
        if self.operation.startswith(_ORDERING):
            return True
        return self.kind == "ld" and not _ORDERED_LOADS.isdisjoint(self.operation.split("."))


@dataclass
class Block:
    """A basic block and its successors, as pairs of a block's name, or None for the end, and a guard."""

    name: str
    statements: list[Statement] = field(default_factory=list)
    successors: list[tuple[str | None, str | None]] = field(default_factory=list)

    @property
    def is_quiet(self) -> bool:
        """Whether it contains no ordering instruction."""
        return not any(statement.is_ordering for statement in self.statements)


def find_spins(ptx: str) -> list[str]:
    """Return the first label of each spin loop in all functions."""
    return [name for body in _bodies(ptx) for name in _spins_of(_blocks(body))]


def _bodies(ptx: str) -> Iterator[list[str]]:
    """Yield the lines of each function without comments and braces."""
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
    """Yield labels, with a colon, and statements."""
    for text in "\n".join(body).split(";"):
        # A brace before a statement opens or closes a scope.
        part = text.lstrip("{} \t\n")
        while part.startswith("$"):
            label, _, part = part.partition(":")
            yield f"{label}:"
            part = part.lstrip("{} \t\n")
        if part and not part.startswith("."):
            yield part


def _blocks(body: list[str]) -> dict[str, Block]:
    """Return the basic blocks of a function, starting with the entry."""
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
            raise ValueError(f"indirect branches are not supported: {part}")
        block.statements.append(statement)
        if statement.kind in ("bra", "ret", "exit", "trap"):
            block.successors.append((statement.operands[0] if statement.kind == "bra" else None, statement.guard))
            is_open = statement.guard is not None
            if is_open:
                # The next statement is reached if the branch is not taken.
                block.successors.append((f"{block.name}+", statement.guard))
                block = begin(f"{block.name}+")
    return blocks


def _spins_of(blocks: dict[str, Block]) -> list[str]:
    quiet = {name for name, block in blocks.items() if block.is_quiet}
    edges = {(name, target) for name in quiet for target, _ in blocks[name].successors if target and target in quiet}
    spins = {}
    for loop in _loops(quiet, edges, blocks):
        if _is_spin([blocks[name] for name in loop], loop):
            spins[frozenset(loop)] = min(loop)
    # Of nested spin loops, only the innermost is reported.
    return sorted(name for loop, name in spins.items() if not any(other < loop for other in spins))


def _loops(nodes: set[str], edges: set[Edge], blocks: dict[str, Block]) -> Iterator[set[str]]:
    """Yield all loops, inner ones included, and each cycle of a loop with several back edges."""
    for loop in _strongly_connected(nodes, edges):
        inside = {(a, b) for a, b in edges if a in loop and b in loop}
        if not inside:
            continue
        yield loop
        outside = {target for name, block in blocks.items() if name not in loop for target, _ in block.successors}
        entries = (loop & outside) | (loop & {""}) or {min(loop)}
        back = {(a, b) for a, b in inside if b in entries}
        for tail, entry in back:
            yield _cycle(tail, entry, inside)
        yield from _loops(loop, inside - back, blocks)


def _cycle(tail: str, entry: str, edges: set[Edge]) -> set[str]:
    """Return ``entry`` and the nodes from which ``tail`` is reachable without passing ``entry``."""
    found, pending = {entry, tail}, [tail]
    while pending:
        node = pending.pop()
        if node == entry:
            continue
        for before, after in edges:
            if after == node and before not in found:
                found.add(before)
                pending.append(before)
    return found


def _strongly_connected(nodes: set[str], edges: Iterable[Edge]) -> list[set[str]]:
    """Return the strongly connected components, by reachability, as the graphs are small."""
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
    pending = [node]
    while pending:
        for following in after[pending.pop()] - found:
            found.add(following)
            pending.append(following)
    return found


def _is_spin(loop: list[Block], names: set[str]) -> bool:
    """Whether the loop changes none of its own exit conditions."""
    unchanged = _unchanged(loop)
    guards = [
        guard for block in loop for target, guard in block.successors if target not in names and guard is not None
    ]
    return all(guard.lstrip("@!") in unchanged for guard in guards)


def _unchanged(loop: list[Block]) -> set[str]:
    """Return the registers with the same value in each iteration, unless another thread writes to memory."""
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
