"""The open questions of a run: what its tasks, and those of graphs that are its nodes, wait for."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from itertools import islice
from typing import Any, NamedTuple

from gpu_pregel.errors import ArgumentError
from gpu_pregel.host.agents.codec import decode, encode
from gpu_pregel.host.agents.ledger import Ledger
from gpu_pregel.host.agents.records import Id
from gpu_pregel.workflows.commands import Interrupt
from gpu_pregel.workflows.tasks import node_of

_NESTED = "__nested__"
"""The first item of a payload that has the open questions of a graph that is a node."""
_SHOWN = 20
_ID = re.compile(r"(?s)\d+:.+:\d+")
"""The id of a question."""


class OpenQuestion(NamedTuple):
    """An open question.

    Attributes
    ----------
    vertex : str
        The task that asks.
    nested : str or None
        The id of the question in the run of a graph that is the task's node.
    interrupt : Interrupt
    """

    vertex: str
    nested: str | None
    interrupt: Interrupt


def is_nested(payload: Any) -> bool:
    """Whether a payload has the open questions of a graph that is a node."""
    return isinstance(payload, tuple) and bool(payload) and isinstance(payload[0], str) and payload[0] == _NESTED


def pack_nested(questions: Iterable[OpenQuestion]) -> Any:
    """Return the open questions of a nested run as one payload."""
    return (_NESTED, [(one.interrupt.id, one.interrupt.node, one.interrupt.value) for one in questions])


def open_questions(ledger: Ledger | None) -> list[OpenQuestion]:
    """Return the open questions of a held superstep, in the order of tasks."""
    vertices = () if ledger is None else ledger.interrupts()
    return [one for vertex in vertices for one in last_questions(ledger, vertex)]  # type: ignore[arg-type]


def last_questions(ledger: Ledger, encoded: Id) -> list[OpenQuestion]:
    """Return what a task has asked last in a superstep; several questions if its node is a graph."""
    entry = ledger.find_entry(encoded)
    if entry is None or entry.payload is None:
        return []
    vertex, asked = decode(encoded), decode(entry.payload)
    if not is_nested(asked):
        name = f"{ledger.step}:{vertex}:{entry.asked}"
        return [OpenQuestion(vertex, None, Interrupt(asked, name, node_of(vertex)))]
    return [
        OpenQuestion(vertex, nested, Interrupt(value, f"{ledger.step}:{vertex}|{nested}", f"{node_of(vertex)}|{node}"))
        for nested, node, value in asked[1]
    ]


def answers_by_task(questions: list[OpenQuestion], answer: Any) -> dict[str, Any]:
    """Return the answer to each task, given one answer, or a dict from ids of questions to answers."""
    if not questions:
        raise ArgumentError("the thread waits for no answer: its run has no open question")
    by_id = {one.interrupt.id: one for one in questions}
    if isinstance(answer, dict) and answer and answer.keys() <= by_id.keys():
        given = answer
    elif isinstance(answer, dict) and answer and all(isinstance(one, str) and _ID.fullmatch(one) for one in answer):
        wrong = next(one for one in answer if one not in by_id)
        raise ArgumentError(f"no question {wrong!r} is open; open questions: {_listed(by_id)}")
    elif len(questions) == 1:
        given = {questions[0].interrupt.id: answer}
    else:
        raise ArgumentError(
            f"several questions are open: pass Command(resume={{id: answer}}) with some of the ids {_listed(by_id)}"
        )
    answers: dict[str, Any] = {}
    for name, one in given.items():
        encode(one, name="the answer")
        question = by_id[name]
        if question.nested is None:
            answers[question.vertex] = one
        else:
            answers.setdefault(question.vertex, {})[question.nested] = one
    return answers


def _listed(ids: Collection[str]) -> str:
    """Return ids as text, the first ones of many."""
    shown = ", ".join(map(repr, islice(ids, _SHOWN)))
    return shown if len(ids) <= _SHOWN else f"{shown} and {len(ids) - _SHOWN:,} more"
