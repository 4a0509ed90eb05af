"""A run of numeric vertices with agents, superstep by superstep in dicts and lists: the oracle of the real one."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from typing import Any


@dataclass
class OracleContext:
    """What the compute function of an agent sees; collects what it does."""

    vertex_id: int
    superstep: int
    num_vertices: int
    value: Any
    state: Any
    is_woken: bool
    neighbors: list[tuple[int, Any]]
    messages: list[tuple[Any, Any]]
    sent: list[tuple[int | None, Any]] = field(default_factory=list)
    is_awake: bool = False

    @property
    def out_degree(self) -> int:
        """Number of out-edges."""
        return len(self.neighbors)

    def send(self, target: int, message: Any) -> None:
        """Send to a vertex."""
        self.sent.append((target, message))

    def send_to_neighbors(self, message: Any) -> None:
        """Send along every out-edge."""
        self.sent.append((None, message))

    def stay_awake(self) -> None:
        """Be computed again."""
        self.is_awake = True


@dataclass
class OracleProgram:
    """A program of integers: its functions take numbers, not contexts."""

    init: Callable[[int], int]
    message: Callable[[int], int]
    combine: Callable[[int, int], int]
    identity: int
    apply: Callable[[int, int], int]
    wake: Callable[[int, int], bool]
    always: bool = False


@dataclass
class OracleResult:
    """Final values, states of agents, and (active, applied, computed, woken) of each superstep."""

    values: list[int]
    states: dict[int, Any]
    rows: list[tuple[int, int, int]]


def simulate(
    rows: list[list[int]],
    program: OracleProgram,
    compute: Any,
    agents: Collection[int],
    supersteps: int,
    open_steps: Collection[int] = (),
) -> OracleResult:
    """Run a program on a graph given by the out-neighbours of each vertex.

    In ``open_steps`` the agents that have begun do not end.
    """
    n = len(rows)
    values = [program.init(v) for v in range(n)]
    active = [v not in agents for v in range(n)]
    states: dict[int, Any] = dict.fromkeys(sorted(agents))
    due, woken = set(agents), set[int]()
    """Agents that are awake or have messages, and those woken, to begin when none is being computed."""
    letters: dict[int, list[tuple[Any, Any]]] = {}
    arrived: dict[int, list[tuple[Any, Any]]] = {}
    posted: dict[int, int] = {}
    flight: list[tuple[OracleContext, Any]] | None = None
    result = OracleResult(values, states, [])
    for step in range(supersteps):
        seen, senders = list(values), [u for u in range(n) if active[u]]
        now_woken: set[int] = set()
        if step > 0:
            sent, inbox = _send(rows, program, seen, senders, agents)
            for v, messages in sent.items():
                arrived.setdefault(v, []).extend(messages)
            if not (senders or due or woken or letters or arrived or posted or flight):
                break
            for v, message in posted.items():
                inbox[v] = program.combine(inbox[v], message) if v in inbox else message
            posted = {}
            now_woken = _apply(program, values, active, inbox, agents)
        if flight is None:
            flight = []
            for v in sorted(due | woken | set(letters) | set(arrived)):
                near = [(u, seen[u]) for u in rows[v]]
                messages = arrived.get(v, []) + letters.get(v, [])
                one = OracleContext(v, step, n, seen[v], states.get(v), v in woken, near, messages)
                flight.append((one, compute(one)))
            due, woken, letters, arrived = set(), set(), {}, {}
        computed = 0
        if step not in open_steps:
            computed = len(flight)
            for one, returned in flight:
                _end(rows, program, one, returned, values, active, states, due, agents, letters, posted)
            flight = None
            states |= {v: None for v in sorted(woken | now_woken) if v not in states}
        woken |= now_woken
        result.rows.append((sum(active), computed, len(now_woken)))
    return result


def _end(
    rows: list[list[int]],
    program: OracleProgram,
    one: OracleContext,
    returned: int | None,
    values: list[int],
    active: list[bool],
    states: dict[int, Any],
    due: set[int],
    agents: Collection[int],
    letters: dict[int, list[tuple[Any, Any]]],
    posted: dict[int, int],
) -> None:
    """Carry out what an agent does."""
    v = one.vertex_id
    states[v] = one.state
    if one.is_awake:
        due.add(v)
    if returned is not None:
        active[v] = active[v] or program.always or returned != values[v]
        values[v] = returned
    for target, message in one.sent:
        for u in rows[v] if target is None else [target]:
            if u in agents:
                letters.setdefault(u, []).append((v, message))
            else:
                posted[u] = program.combine(posted[u], message) if u in posted else message


def _send(
    rows: list[list[int]], program: OracleProgram, values: list[int], senders: list[int], agents: Collection[int]
) -> tuple[dict[int, list[tuple[Any, Any]]], dict[int, int]]:
    """Return the messages to agents, with their senders, and those to others, combined."""
    arrived: dict[int, list[tuple[Any, Any]]] = {}
    inbox: dict[int, int] = {}
    for u in senders:
        for v in rows[u]:
            message = program.message(values[u])
            if v in agents:
                arrived.setdefault(v, []).append((u, message))
            else:
                inbox[v] = program.combine(inbox[v], message) if v in inbox else message
    return arrived, inbox


def _apply(
    program: OracleProgram, values: list[int], active: list[bool], inbox: dict[int, int], agents: Collection[int]
) -> set[int]:
    """Apply the messages; return the vertices that wake agents."""
    woken = set()
    for v, old in enumerate(values):
        active[v] = False
        if v in agents or not (v in inbox or program.always):
            continue
        values[v] = program.apply(old, inbox.get(v, program.identity))
        active[v] = program.always or values[v] != old
        if program.wake(old, values[v]):
            woken.add(v)
    return woken
