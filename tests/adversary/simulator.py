"""An independent simulator of runs of agents: plain dictionaries of decoded values, and one vertex after the other.

It shares with the package only the codec, for keys and to compare values, and the classes of vertices.
"""

from __future__ import annotations

import copy
import hashlib
import random
from collections.abc import Callable
from typing import Any

from gpu_pregel.agents import Edge, Vertex
from gpu_pregel.host.agents.codec import encode, id_key

ATTEMPTS = 3


def order_of(vertex: Any) -> tuple[Any, ...]:
    """Order ids by type, integers by value, all others by length and content."""
    if isinstance(vertex, int):
        return 0, vertex
    if isinstance(vertex, str):
        return 1, len(vertex.encode()), vertex.encode()
    if isinstance(vertex, bytes):
        return 2, len(vertex), vertex
    return 3, len(vertex), tuple(map(order_of, vertex))


class Question(BaseException):
    """Ends an attempt that has no answer yet."""


class Attempt:
    """What a compute function is given; see ``Context``."""

    def __init__(self, simulation: Simulation, vertex: Any, attempt: int, messages: list[Any]) -> None:
        one = simulation.vertices[vertex]
        self.vertex_id, self.attempt, self.superstep = vertex, attempt, simulation.superstep
        self.value, self.num_vertices = copy.deepcopy(one.value), len(simulation.vertices)
        self.edges, self.neighbors = copy.deepcopy(one.edges), [edge.target for edge in one.edges]
        self.messages = simulation.combine(copy.deepcopy(messages))
        digest = hashlib.sha256(encode((simulation.run_id, 0, simulation.superstep, id_key(vertex)))).digest()
        self.key, self.random = digest.hex(), random.Random(digest)
        self.halted, self._simulation, self._asked = False, simulation, 0
        self.outbox: list[tuple[Any, Any]] = []
        self.contributions: list[tuple[str, Any]] = []
        self.requests: list[tuple[Any, ...]] = []

    def send(self, target: Any, message: Any) -> None:
        self.outbox.append((target, copy.deepcopy(message)))

    def send_to_neighbors(self, message: Any) -> None:
        for target in self.neighbors:
            self.send(target, message)

    def vote_to_halt(self) -> None:
        self.halted = True

    def aggregate(self, name: str, value: Any) -> None:
        self.contributions.append((name, copy.deepcopy(value)))

    def aggregated(self, name: str) -> Any:
        return copy.deepcopy(self._simulation.aggregates[name])

    def add_vertex(self, vertex: Any, value: Any, edges: list[Any]) -> None:
        new = Vertex(vertex, copy.deepcopy(value), [Edge(target, 1) for target in edges])
        self.requests.append(("add_vertex", vertex, new))

    def remove_vertex(self, vertex: Any) -> None:
        self.requests.append(("remove_vertex", vertex))

    def add_edge(self, source: Any, target: Any, weight: Any) -> None:
        self.requests.append(("add_edge", source, Edge(target, copy.deepcopy(weight))))

    def remove_edge(self, source: Any, target: Any) -> None:
        self.requests.append(("remove_edge", source, target))

    def interrupt(self, payload: Any) -> Any:
        self._asked += 1
        answers = self._simulation.answers.setdefault(self.vertex_id, [])
        if len(answers) < self._asked:
            answers.append(self._simulation.answer(payload))
            raise Question
        return answers[self._asked - 1]


def content(vertex: Vertex) -> bytes:
    """Return bytes by which vertices are compared."""
    return encode((vertex.value, [tuple(edge) for edge in vertex.edges], vertex.halted))


class Draft:
    """The vertices after a superstep, while requests are carried out; see ``resolve_mutations``."""

    def __init__(self, vertices: dict[Any, Vertex]) -> None:
        self.vertices = dict(vertices)

    def carry_out(
        self, simulation: Simulation, made: dict[Any, Attempt], inbox: dict[Any, list[Any]], bad: set[Any]
    ) -> None:
        """Carry out all requests in their order; extend ``bad``, the vertices that made impossible ones."""
        order = ["remove_edge", "remove_vertex", "add_vertex", "add_edge"]
        requests = [(order.index(one[0]), vertex, one) for vertex, attempt in made.items() for one in attempt.requests]
        requests.sort(key=lambda request: request[0])
        added: dict[Any, list[tuple[Any, Vertex]]] = {}
        for _, vertex, (kind, subject, *rest) in requests:
            if vertex in bad:
                continue
            one = self.vertices.get(subject)
            if kind == "remove_edge" and one is not None:
                edges = [edge for edge in one.edges if edge.target != rest[0]]
                self.vertices[subject] = Vertex(subject, one.value, edges, one.halted)
            elif kind == "remove_vertex":
                self.vertices.pop(subject, None)
            elif kind == "add_vertex":
                added.setdefault(subject, []).append((vertex, rest[0]))
        for subject, asked in added.items():
            if not self._add(simulation, subject, [new for _, new in asked], inbox.get(subject, [])):
                bad.update(vertex for vertex, _ in asked)
        for _, vertex, (kind, subject, *_rest) in requests:  # a vertex that a refused request concerns may exist
            if vertex in bad and kind in ("add_vertex", "remove_vertex"):
                self.vertices.setdefault(subject, Vertex(subject))
        for _, vertex, (kind, subject, *rest) in requests:
            if kind == "add_edge" and not self._connect(simulation, subject, rest[0]):
                bad.add(vertex)

    def _add(self, simulation: Simulation, subject: Any, asked: list[Vertex], messages: list[Any]) -> bool:
        existing = self.vertices.get(subject)
        if simulation.resolve is not None:
            chosen = simulation.resolve(subject, existing, asked, messages)
            if chosen is not None:
                self.vertices[subject] = chosen
            else:
                self.vertices.pop(subject, None)
            return True
        if existing is not None or len(set(map(content, asked))) > 1:
            return False
        self.vertices[subject] = asked[0]
        return True

    def _connect(self, simulation: Simulation, subject: Any, edge: Edge) -> bool:
        one = self.vertices.get(subject)
        if one is None and simulation.on_missing != "create":
            return simulation.on_missing == "drop"
        one = one or Vertex(subject)
        self.vertices[subject] = Vertex(subject, one.value, [*one.edges, edge], one.halted)
        return True


class Simulation:
    """A run.

    Parameters
    ----------
    vertices : list of Vertex
    functions : dict of str to callable
        Ordinary compute functions; the first one is "compute".
    aggregators : dict
        For each name a function that extends a total by a contribution, the initial total, and whether it is kept.
    combine : callable
        Combines a list of messages into one of at most one.
    is_exact : bool
        Whether messages are combined by their senders, too.
    resolve : callable or None
    on_missing : str
    direct : callable
        ``direct(superstep)`` returns the name of the next function, or None, and whether the run ends.
    answer : callable
        Returns the answer to a payload.
    run_id : str
    """

    def __init__(
        self,
        vertices: list[Vertex],
        functions: dict[str, Callable[[Any], None]],
        aggregators: dict[str, tuple[Callable[[Any, Any], Any], Any, bool]],
        *,
        combine: Callable[[list[Any]], list[Any]],
        is_exact: bool,
        resolve: Any,
        on_missing: str,
        direct: Callable[[int], tuple[str | None, bool]],
        answer: Callable[[Any], Any],
        run_id: str,
    ) -> None:
        self.vertices = {one.id: Vertex(one.id, one.value, list(one.edges), one.halted) for one in vertices}
        self.inbox: dict[Any, list[Any]] = {}
        self.aggregates = {name: initial for name, (_, initial, _) in aggregators.items()}
        self.failed: dict[Any, tuple[int, str, list[Any]]] = {}
        self.superstep, self.status = 0, "running"
        self.answers: dict[Any, list[Any]] = {}
        self._functions, self._function, self._aggregators = functions, "compute", aggregators
        self.combine, self._is_exact, self.resolve, self.on_missing = combine, is_exact, resolve, on_missing
        self._direct, self.answer, self.run_id = direct, answer, run_id

    def send(self, target: Any, message: Any) -> None:
        """Send a message from outside; a run that had completed continues."""
        self.inbox.setdefault(target, []).append(message)

    def step(self, most: int) -> None:
        """Run a superstep, unless the run has ended."""
        active = [one for one in self.vertices if not self.vertices[one].halted or one in self.inbox]
        if not active or self.superstep >= most:
            self._end(bool(active))
            return
        active.sort(key=order_of)
        made: dict[Any, Attempt | str] = {}
        numbers = dict.fromkeys(active, 0)
        self.answers, todo = {}, list(active)
        while True:
            for vertex in todo:
                made[vertex] = self._compute(vertex, numbers)
            done = {one: attempt for one in active if isinstance(attempt := made[one], Attempt)}
            bad, after, inbox, totals = self._fold(done, set(active) - done.keys())
            if not bad:
                break
            todo = [vertex for vertex in bad if numbers[vertex] < ATTEMPTS]
            made.update(dict.fromkeys(bad - set(todo), "request"))
        for vertex in active:
            if isinstance(kind := made[vertex], str):
                self.failed[vertex] = self.superstep, kind, self.inbox.get(vertex, [])
        self.vertices, self.inbox, self.aggregates = after, inbox, totals
        name, halts = self._direct(self.superstep)
        self._function, self.superstep = name or self._function, self.superstep + 1
        if halts:
            self.status = "halted"
        elif self.superstep >= most or not self._is_active():
            self._end(self._is_active())

    def _is_active(self) -> bool:
        return bool(self.inbox) or any(not one.halted for one in self.vertices.values())

    def _end(self, is_active: bool) -> None:
        self.status = "max_supersteps" if is_active else "partial" if self.failed else "completed"

    def _compute(self, vertex: Any, numbers: dict[Any, int]) -> Attempt | str:
        """Compute a vertex until it completes; return why it fails otherwise."""
        while numbers[vertex] < ATTEMPTS:
            attempt = Attempt(self, vertex, numbers[vertex] + 1, self.inbox.get(vertex, []))
            try:
                self._functions[self._function](attempt)
            except Question:
                continue
            except Exception:
                numbers[vertex] += 1
                continue
            numbers[vertex] += 1
            if self._is_exact:
                targets = dict.fromkeys(target for target, _ in attempt.outbox)
                attempt.outbox = [
                    (target, one)
                    for target in targets
                    for one in self.combine([message for to, message in attempt.outbox if to == target])
                ]
            return attempt
        return "exception"

    def _fold(self, made: dict[Any, Attempt], failed: set[Any]) -> tuple[set[Any], Any, Any, Any]:
        """Return the vertices whose records cannot be folded; then the vertices, the inbox and the aggregates."""
        after = dict(self.vertices)
        for vertex in failed:
            one = after[vertex]
            after[vertex] = Vertex(vertex, one.value, one.edges, True)
        inbox: dict[Any, list[Any]] = {}
        for vertex, attempt in made.items():
            after[vertex] = Vertex(vertex, attempt.value, self.vertices[vertex].edges, attempt.halted)
            for target, message in attempt.outbox:
                inbox.setdefault(target, []).append(message)
        bad, totals = self._total(made)
        draft = Draft(after)
        draft.carry_out(self, made, inbox, bad)
        after = draft.vertices
        missing = [target for target in inbox if target not in after]
        if self.on_missing == "error":
            self._refuse_senders(made, missing, bad)
        for target in missing:
            if self.on_missing == "create":
                after[target] = Vertex(target)
            else:
                del inbox[target]
        return bad, after, inbox, totals

    def _total(self, made: dict[Any, Attempt]) -> tuple[set[Any], dict[str, Any]]:
        """Return the vertices with contributions that cannot be folded, and the aggregates of all others."""
        bad, totals = set(), {}
        for name, (extend, initial, is_kept) in self._aggregators.items():
            total = self.aggregates[name] if is_kept else initial
            for vertex, attempt in made.items():
                for contribution in [value for to, value in attempt.contributions if to == name]:
                    try:
                        total = extend(total, contribution)
                    except TypeError:
                        bad.add(vertex)
            totals[name] = total
        return bad, totals

    def _refuse_senders(self, made: dict[Any, Attempt], missing: list[Any], bad: set[Any]) -> None:
        """Refuse those that sent messages to missing vertices, unless a refused vertex may have removed these."""
        removers = {
            target: {
                vertex
                for vertex, attempt in made.items()
                for kind, subject, *_ in attempt.requests
                if subject == target and kind in ("remove_vertex", "add_vertex")
            }
            for target in missing
        }
        for target in sorted(missing, key=lambda target: (bool(removers[target]), order_of(target))):
            if not bad & removers[target]:
                senders = {vertex for vertex, one in made.items() for to, _ in one.outbox if to == target}
                bad |= senders or removers[target]
