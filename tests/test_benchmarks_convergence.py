"""Tests of the repair of kernels whose lanes do not meet before operations of their whole warp."""

from __future__ import annotations

import re
from collections.abc import Iterator

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.simulator.convergence import converging, split_operations

LANES = frozenset(range(4))
OPERATIONS = ("bar.sync", "bar.cta.sync", "bar.warp.sync", "shfl.sync.idx.b32 %r1, %r1,", "vote.sync.all.pred %p1,")
_END = 10**6
Operations = list[tuple[str, frozenset[int]]]


class Warp:
    """Executes PTX as the simulator does: lanes that part meet at the branch's immediate post-dominator.

    %p0 and %p1 hold for the lanes with bit 0 and 1, %p8 and %p9 for all lanes or none, by the bits of ``uniform``.
    """

    def __init__(self, text: str, uniform: int = 0) -> None:
        self.lines = [line.strip() for line in text.splitlines()]
        self.labels = {line[:-1]: k for k, line in enumerate(self.lines) if line.endswith(":")}
        graph = nx.DiGraph((then, k) for k in range(len(self.lines)) for then in self.successors(k))
        self.points = nx.immediate_dominators(graph, _END)
        self.predicates = {f"%p{k}": {lane for lane in LANES if lane >> k & 1} for k in range(2)}
        self.predicates |= {f"%p{k + 8}": set(LANES if uniform >> k & 1 else ()) for k in range(2)}
        self.registers: dict[tuple[str, int], str] = {}
        self.operations: Operations = []

    def successors(self, k: int) -> list[int]:
        branch = re.fullmatch(r"(@!?%\w+ )?bra (\$\w+);", self.lines[k])
        if self.lines[k] in ("ret;", "}"):
            return [_END]
        return [k + 1] if branch is None else [self.labels[branch[2]], *([k + 1] if branch[1] else [])]

    def run(self, k: int = 0, lanes: frozenset[int] = LANES, until: int = _END) -> Operations:
        while k != until:
            line, ways = self.lines[k], self.successors(k)
            if "sync" in line:
                self.operations.append((line, lanes))
            if copy := re.fullmatch(r"mov.u32 (%\w+), (\d+);", line):
                self.registers.update({(copy[1], lane): copy[2] for lane in lanes})
            if compared := re.fullmatch(r"setp.eq.s32 (%\w+), (%\w+), (\d+);", line):
                holds = {lane for lane in lanes if self.registers[compared[2], lane] == compared[3]}
                self.predicates[compared[1]] = self.predicates.get(compared[1], set()) - lanes | holds
            groups = [lanes]
            if len(ways) == 2:
                guard = line.split()[0].lstrip("@!")
                taken = frozenset(lanes & self.predicates[guard])
                groups = [lanes - taken, taken] if "@!" in line else [taken, lanes - taken]
            if all(groups) and len(groups) == 2:
                for group, way in zip(groups, ways, strict=True):
                    self.run(way, group, self.points[k])
                k = self.points[k]
            else:
                k = next(way for group, way in zip(groups, ways, strict=True) if group)
        return self.operations


def per_lane(operations: Operations) -> dict[int, list[str]]:
    return {lane: [line for line, lanes in operations if lane in lanes] for lane in LANES}


def repaired(text: str) -> str:
    return "\n".join(converging(text.splitlines(), "x"))


THREADED = """
@%p0 bra $TAIL;
@%p8 bra $SHARED;
bra $GLOBAL;
$SHARED:
bra $ALONE;
$TAIL:
@!%p8 bra $GLOBAL;
$ALONE:
bar.sync 0;
bra $JOIN;
$GLOBAL:
bar.sync 1;
$JOIN:
vote.sync.any.pred %p1, %p1, -1;
ret;
}"""
"""Both ``if``s below depend on %p8, which is the same for all lanes, and the second one is threaded through the first:
``if (!p0) add(p8); if (p8) barrier(0); else barrier(1);``, as the kernel ``chain`` has it."""
PLAIN = """
@%p0 bra $THEN;
bar.warp.sync -1;
ret;
$THEN:
@%p1 bra $JOIN;
mov.u32 %r1, 5;
$JOIN:
bar.sync 0;
$LOOP:
shfl.sync.idx.b32 %r1, %r1, 0, 31, -1;
@%p8 bra $LOOP;
@%p1 bra $OVER;
$OVER:
vote.sync.any.pred %p1, %p1, -1;
ret;
}"""
PARTLY = """
@%p0 bra $OTHER;
@%p8 bra $BARRIER;
bra $JOIN;
$OTHER:
@!%p8 bra $JOIN;
$BARRIER:
bar.sync 0;
$JOIN:
shfl.sync.idx.b32 %r1, %r1, 0, 31, -1;
ret;
}"""
"""Only with %p8 the lanes meet late."""
TWO_ENDS = """
@%p0 bra $OTHER;
@%p8 bra $BARRIER;
ret;
$OTHER:
@!%p8 bra $END;
$BARRIER:
bar.sync 0;
$END:
ret;
}"""
"""Lanes may end instead of meeting."""
THREADED_SUM = """mov.u64 %rd6, memory_1;
st.shared.u64 [%rd6], %rd5;
bar.sync 0;
setp.ge.s32 %p3, %r0, 32;
@%p3 bra $L_second;
setp.ne.s32 %p4, %r0, 0;
@%p4 bra $L_others;
atom.shared.add.u64 %rd7, [%rd6], 1;
@%p3 bra $L_never;
bra $L_always;
$L_others:
atom.shared.add.u64 %rd7, [%rd6], 1;
$L_second:
setp.lt.s32 %p5, %r0, 0;
@%p5 bra $L_never;
$L_always:
bar.sync 0;
bra $L_join;
$L_never:
bar.sync 0;
$L_join:
ld.shared.u64 %rd5, [%rd6];"""
"""The lanes of the first warp add, by two ways that meet behind the barrier, while the second warp waits."""


@pytest.mark.parametrize("text", [PARTLY, *(THREADED.replace("bar.sync", one) for one in OPERATIONS)])
@pytest.mark.parametrize("uniform", [0, 1])
def test_lanes_meet_before_operations(text: str, uniform: int) -> None:
    before, after = Warp(text, uniform).run(), Warp(repaired(text), uniform).run()
    assert per_lane(before) == per_lane(after)
    assert all(lanes == LANES for _, lanes in after)
    assert text is PARTLY or any(lanes != LANES for _, lanes in before)


def test_places() -> None:
    lines = THREADED.splitlines()
    assert [lines[k] for k in split_operations(lines)] == ["bar.sync 0;", "bar.sync 1;"]
    lines = PARTLY.splitlines()
    assert [lines[k] for k in split_operations(lines)] == ["bar.sync 0;", "$JOIN:"]
    assert [repaired(text) for text in (PLAIN, TWO_ENDS)] == [PLAIN, TWO_ENDS]


def programs() -> st.SearchStrategy[str]:
    """Generate blocks that only branch forward, so that every lane gets to the end."""
    block = st.tuples(st.integers(0, 2), st.sampled_from(["", "@%p0", "@!%p1", "@%p8", "@!%p9"]), st.integers(1, 4))

    def text(blocks: list[tuple[int, str, int]]) -> str:
        def lines() -> Iterator[str]:
            for k, (operation, guard, distance) in enumerate(blocks):
                yield f"$B{k}:"
                if operation:
                    yield f"bar.sync {k};" if operation == 1 else f"shfl.sync.idx.b32 %r1, %r1, {k}, 31, -1;"
                yield f"{guard} bra $B{min(k + distance, len(blocks))};".strip()
            yield f"$B{len(blocks)}:\nret;\n}}"

        return "\n".join(lines())

    return st.lists(block, min_size=1, max_size=12).map(text)


@settings(max_examples=150)
@given(programs(), st.integers(0, 3))
def test_lanes_keep_their_ways(text: str, uniform: int) -> None:
    after = repaired(text)
    assert per_lane(Warp(after, uniform).run()) == per_lane(Warp(text, uniform).run())
    assert split_operations(after.splitlines()) == []
