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
    rows: list[list[int]], program: OracleProgram, compute: Any, agents: Collection[int], supersteps: int
) -> OracleResult:
    """Run a program on a graph given by the out-neighbours of each vertex."""
    n = len(rows)
    values = [program.init(v) for v in range(n)]
    active = [v not in agents for v in range(n)]
    states: dict[int, Any] = dict.fromkeys(agents)
    awake, woken = set(agents), set[int]()
    letters: dict[int, list[tuple[Any, Any]]] = {}
    posted: dict[int, int] = {}
    result = OracleResult(values, states, [])
    for step in range(supersteps):
        seen, senders = list(values), [u for u in range(n) if active[u]]
        if step > 0:
            if not senders and not awake and not woken and not letters and not posted:
                break
            arrived, inbox = _send(rows, program, seen, senders, agents)
            for v, message in posted.items():
                inbox[v] = program.combine(inbox[v], message) if v in inbox else message
            now_woken = _apply(program, values, active, inbox, agents)
        else:
            arrived, now_woken = {}, set[int]()
        computed = sorted(awake | woken | set(letters) | set(arrived))
        contexts = []
        for v in computed:
            near = [(u, seen[u]) for u in rows[v]]
            messages = arrived.get(v, []) + letters.get(v, [])
            one = OracleContext(v, step, n, seen[v], states.get(v), v in woken, near, messages)
            contexts.append((one, compute(one)))
        letters, posted, awake = {}, {}, set()
        for one, returned in contexts:
            v = one.vertex_id
            states[v] = one.state
            if one.is_awake:
                awake.add(v)
            if returned is not None:
                active[v] = active[v] or program.always or returned != values[v]
                values[v] = returned
            for target, message in one.sent:
                for u in rows[v] if target is None else [target]:
                    if u in agents:
                        letters.setdefault(u, []).append((v, message))
                    else:
                        posted[u] = program.combine(posted[u], message) if u in posted else message
        woken = now_woken
        states |= {v: None for v in woken if v not in states}
        result.rows.append((sum(active), len(computed), len(woken)))
    return result


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
        message = inbox.get(v, program.identity)
        if v in agents or (message == program.identity and not program.always):
            continue
        values[v] = program.apply(old, message)
        active[v] = program.always or values[v] != old
        if program.wake(old, values[v]):
            woken.add(v)
    return woken
