"""Tracebacks of failed vertices: of the result, and as notes of the error that a run raises."""

from __future__ import annotations

from typing import Any

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import AgentsFailedError


def call_tool(name: str) -> None:
    raise LookupError(f"no tool {name}")


def compute(ctx: Any) -> None:
    if ctx.vertex_id == "unsent":
        ctx.value = object()
    elif ctx.vertex_id != "fine":
        call_tool(ctx.value)
    ctx.vote_to_halt()


def failed(*vertices: tuple[str, str], workers: int = 0) -> AgentsFailedError:
    once = gp.agents.RetryPolicy(attempts=1)
    with pytest.raises(AgentsFailedError) as info:
        gp.agents.run([gp.agents.Vertex(*one) for one in vertices], compute, retry=once, workers=workers)
    return info.value


@pytest.mark.parametrize("workers", [0, 1])
def test_a_users_traceback_begins_in_the_users_function(workers: int) -> None:
    failure = failed(("a", "x"), ("fine", ""), workers=workers).result.failed["a"]
    heading, first, *rest = failure.users_traceback.splitlines()
    assert heading == "Traceback (most recent call last):"
    assert first.startswith(f'  File "{__file__}", line ')
    assert first.endswith("in compute")
    assert rest[-1] == "LookupError: no tool x"
    assert "in call_tool" in failure.users_traceback
    assert failure.traceback.endswith("\n".join([first, *rest, ""]))


def test_an_error_has_a_traceback_for_each_cause_as_notes() -> None:
    error = failed(("a", "x"), ("b", "y"), ("c", "x"), ("fine", ""))
    notes = error.__notes__
    assert [note.strip().splitlines()[0] for note in notes] == [
        "vertex 'a': Traceback (most recent call last):",
        "vertex 'b': Traceback (most recent call last):",
    ]
    assert [note.splitlines()[-1] for note in notes] == ["LookupError: no tool x", "LookupError: no tool y"]


def test_there_is_no_note_where_no_frame_is_the_users() -> None:
    error = failed(("unsent", ""))
    assert error.result.failed["unsent"].users_traceback == ""
    assert not hasattr(error, "__notes__")


def test_the_text_of_a_run_within_a_vertex_has_no_tracebacks_but_its_traceback_has() -> None:
    def nested(ctx: Any) -> None:
        gp.agents.run([gp.agents.Vertex("inner", "x")], compute, retry=gp.agents.RetryPolicy(attempts=1))

    with pytest.raises(AgentsFailedError) as info:
        gp.agents.run([gp.agents.Vertex("outer")], nested, retry=gp.agents.RetryPolicy(attempts=1))
    failure = info.value.result.failed["outer"]
    assert failure.text.endswith("vertex 'inner': LookupError: no tool x")
    assert "in call_tool" in failure.users_traceback
