"""The ten fields of the agent's state, as the origin's document 001 has them: each is kept, and each is used."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, get_type_hints

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import ArgumentError, ArgumentTypeError, ModelError
from gpu_pregel.workflows import (
    END,
    START,
    AgentState,
    GraphState,
    StateGraph,
    ToolContext,
    create_agent,
    messages,
    tool,
)
from gpu_pregel.workflows.agent_state import new_messages
from tests.gpu_pregel.workflows.agent_programs import add, calls, contents, fail, script

WORKERS = pytest.mark.parametrize("workers", [0, 1, 2])
THREAD: dict[str, Any] = {"configurable": {"thread_id": "1"}}


@tool
def greet(greeting: str, context: ToolContext) -> str:
    """Greet the user."""
    return f"{greeting}, {context.context.get('user')}!"


def echo(transcript: list[Any], tools: list[Any]) -> str:
    """Answer with what the model was given."""
    return json.dumps([[one["content"] for one in transcript], [one["name"] for one in tools]])


def said(result: dict[str, Any]) -> list[Any]:
    found: list[Any] = json.loads(result["messages"][-1]["content"])
    return found


def fielded(workers: int = 0, log: Path | None = None, **options: Any) -> Any:
    """An agent that greets, fails, and then says what it has read; its callbacks write to a log."""

    def write(event: dict[str, Any]) -> None:
        assert log is not None
        with log.open("a") as lines:
            lines.write(json.dumps(event) + "\n")

    model = script(calls(("greet", {"greeting": "Good morning"})), calls(("fail", {})), echo)
    functions = {} if log is None else {"note": write, "model": write, "error": write}
    return create_agent(model, [greet, fail], workers=workers, callbacks=functions, **options)


GIVEN: dict[str, Any] = {
    "messages": "Greet me.",
    "context": {"user": "Ada"},
    "callback_meta": {"trace": 7},
}


def test_the_fields_are_those_of_the_document() -> None:
    assert list(get_type_hints(AgentState)) == [*get_type_hints(GraphState), "status", "structured_response"]


@WORKERS
def test_all_fields_of_a_run(workers: int, tmp_path: Path) -> None:
    agent = fielded(workers, tmp_path / "log", system_prompt="You serve {user}.", max_iterations=5)
    result = agent.invoke({**GIVEN, "callbacks": {"tool": "note", "step": "note"}})
    failed = "The tool fail failed: ValueError: boom"
    assert said(result) == [["You serve Ada.", "Greet me.", "", "Good morning, Ada!", "", failed], ["greet", "fail"]]
    steps = [
        {"step": "model", "iteration": 1, "tool_calls": ["greet"]},
        {"step": "tool", "iteration": 1, "name": "greet", "call_id": "0", "status": "ok"},
        {"step": "model", "iteration": 2, "tool_calls": ["fail"]},
        {"step": "tool", "iteration": 2, "name": "fail", "call_id": "0", "status": "error"},
        {"step": "model", "iteration": 3, "tool_calls": []},
    ]
    kept = {name: value for name, value in result.items() if name != "messages"}
    assert kept == {
        "full_messages": result["messages"],
        "system_prompt": "You serve {user}.",
        "tools": [greet.description_for_models, fail.description_for_models],
        "max_iterations": 5,
        "iteration": 3,
        "scratchpad": steps,
        "context": {"user": "Ada"},
        "callbacks": {"tool": "note", "step": "note", "model": "model", "error": "error"},
        "callback_meta": {"trace": 7},
        "status": "completed",
    }
    events = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert all((one["context"], one["meta"]) == ({"user": "Ada"}, {"trace": 7}) for one in events)
    assert [one["event"] for one in events] == [
        *["model", "step", "tool", "step"],
        *["model", "step", "error", "tool", "step"],
        *["model", "step"],
    ]
    assert [one["step"] for one in events if one["event"] == "step"] == steps
    (error,) = [one for one in events if one["event"] == "error"]
    assert (error["where"], error["iteration"], error["attempt"], error["error"]) == ("tool", 2, 1, failed)
    assert (error["call"]["name"], error["call"]["arguments"]) == ("fail", {})
    answered = [one["message"]["content"] for one in events if one["event"] == "tool"]
    assert answered == ["Good morning, Ada!", failed]
    assert [one["message"] for one in events if one["event"] == "model"] == result["messages"][1::2]


# Messages and trimming.


@WORKERS
def test_trimming_keeps_the_whole_transcript(workers: int, tmp_path: Path) -> None:
    with gp.SQLiteStore(tmp_path / "runs.db") as store:
        agent = create_agent(echo, trim=3, store=store, workers=workers)
        shown = []
        for question in ("hi", "hi", "hi", "bye"):  # equal messages are different ones
            result = agent.invoke({"messages": question}, THREAD)
            shown.append(said(result)[0])
    assert [len(one) for one in shown] == [1, 3, 3, 3]
    assert [one[-1] for one in shown] == ["hi", "hi", "hi", "bye"]
    full = result["full_messages"]
    assert [one["role"] for one in full] == ["user", "assistant"] * 4
    assert [one["content"] for one in full[::2]] == ["hi", "hi", "hi", "bye"]
    assert result["messages"] == full[4:]
    assert [one["removed"] for one in result["scratchpad"] if one["step"] == "trim"] == [2, 2]


def test_trimming_never_parts_answers_from_their_calls_or_drops_the_question() -> None:
    def model(transcript: list[Any], tools: list[Any]) -> Any:
        answered = sum(one["role"] == "tool" for one in transcript)
        if transcript[-1]["content"] == "first" or answered == 6:
            return echo(transcript, tools)
        return calls(*[("add", {"a": k, "b": 1}) for k in range(3)])

    agent = create_agent(model, [add], trim=2, store=gp.MemoryStore())
    agent.invoke({"messages": "first"}, THREAD)
    result = agent.invoke({"messages": "second"}, THREAD)
    assert said(result)[0] == ["second", "", "1", "2", "3", "", "1", "2", "3"]
    assert result["full_messages"][0]["content"] == "first"
    assert len(result["full_messages"]) == 2 + 10


def test_trimming_by_a_function() -> None:
    def brief(transcript: list[Any]) -> list[Any]:
        return [messages.user("a summary"), transcript[-1]] if len(transcript) > 2 else transcript

    agent = create_agent(echo, trim=brief, store=gp.MemoryStore())
    for question in ("one", "two", "three"):
        result = agent.invoke({"messages": question}, THREAD)
    assert said(result)[0] == ["a summary", "three"]
    assert [one["content"] for one in result["full_messages"][::2]] == ["one", "two", "three"]


def test_messages_that_the_caller_edits_or_removes() -> None:
    agent = create_agent(script(echo, echo, echo), store=gp.MemoryStore())
    agent.invoke({"messages": {"role": "user", "content": "one", "id": "1"}}, THREAD)
    edit = {"role": "user", "content": "ONE", "id": "1"}
    result = agent.invoke({"messages": [edit, "two"]}, THREAD)
    assert [one["content"] for one in result["full_messages"][::2]] == ["ONE", "two"]
    result = agent.invoke({"messages": [{"role": "remove", "id": "1"}, "three"]}, THREAD)
    assert [one["content"] for one in result["full_messages"][::2]] == ["ONE", "two", "three"]
    assert "ONE" not in contents(result)


A, B, C = (messages.user(text) for text in "abc")


@pytest.mark.parametrize(
    "transcript, full, removed, expected",
    [
        ([A], [], 0, [A]),
        ([A, B, C], [A, B], 0, [C]),
        ([A, A], [A], 0, [A]),
        ([A, A], [A, A], 1, [A]),
        ([B, C], [A, B], 0, [C]),
        ([A, C], [A, B], 0, [C]),
        ([A, B], [A, B], 0, []),
        ([A], [A, B], 0, []),
        ([], [A, B], 0, []),
    ],
)
def test_what_the_whole_transcript_lacks(transcript: Any, full: Any, removed: int, expected: Any) -> None:
    assert new_messages(transcript, full, removed) == expected


# Fields that the caller sets.


def test_the_caller_may_set_the_prompt_the_tools_and_the_limit() -> None:
    model = script(echo, calls(("fail", {})), calls(("greet", {"greeting": "Hi"})))
    agent = create_agent(model, [greet, fail], system_prompt="Be brief.", store=gp.MemoryStore())
    first = agent.invoke({"messages": "?", "system_prompt": "Be verbose.", "tools": ["greet"]}, THREAD)
    assert said(first) == [["Be verbose.", "?"], ["greet"]]
    second = agent.invoke({"messages": "?", "max_iterations": 2}, THREAD)
    assert (second["status"], second["iteration"], second["system_prompt"]) == ("max_iterations", 2, "Be verbose.")
    refused = [one["content"] for one in second["messages"] if one["role"] == "tool"]
    assert refused[0] == "There is no tool 'fail'. Available tools: greet."
    assert "limit of 2 iterations" in refused[1]


def test_the_caller_may_raise_the_limit() -> None:
    agent = create_agent(script(*[calls(("add", {"a": 1, "b": 1}))] * 3, "done"), [add], max_iterations=1)
    result = agent.invoke({"messages": "?", "max_iterations": 4})
    assert (result["status"], result["iteration"], result["max_iterations"]) == ("completed", 4, 4)


def test_a_thread_takes_what_a_newer_agent_says_unless_the_caller_has_set_it() -> None:
    store = gp.MemoryStore()
    old = create_agent(echo, [add], system_prompt="Old.", store=store)
    old.invoke({"messages": "?", "max_iterations": 3}, THREAD)
    new = create_agent(echo, [add, greet], system_prompt="New.", max_iterations=7, store=store)
    result = new.invoke({"messages": "?"}, THREAD)
    assert said(result)[0][0] == "New."
    assert said(result)[1] == ["add", "greet"]
    assert (result["system_prompt"], result["max_iterations"], len(result["tools"])) == ("New.", 3, 2)


def test_a_prompt_may_be_a_function_of_the_state() -> None:
    agent = create_agent(
        script(echo, echo), system_prompt=lambda state: f"{state['context']['user']}, {state['iteration']}",
        store=gp.MemoryStore(),
    )  # fmt: skip
    result = agent.invoke({"messages": "?", "context": {"user": "Ada"}}, THREAD)
    assert (said(result)[0][0], result["system_prompt"]) == ("Ada, 1", "Ada, 1")
    result = agent.invoke({"messages": "?", "context": {"user": "Eve"}}, THREAD)
    assert said(result)[0][0] == "Eve, 1"


def test_other_braces_of_a_prompt_stay() -> None:
    agent = create_agent(script(echo), system_prompt='Answer {"a": {x}} to {user} of {nobody}.')
    result = agent.invoke({"messages": "?", "context": {"user": "Ada"}})
    assert said(result)[0][0] == 'Answer {"a": {x}} to Ada of {nobody}.'


def test_iterations_count_from_each_message_of_the_user() -> None:
    agent = create_agent(script(calls(("add", {"a": 1, "b": 1})), "a", "b"), [add], store=gp.MemoryStore())
    counts = [agent.invoke({"messages": "?"}, THREAD)["iteration"] for _ in range(2)]
    assert counts == [2, 1]


# Callbacks.


def test_errors_of_models_and_async_callbacks() -> None:
    seen: list[Any] = []

    async def on_error(event: dict[str, Any]) -> None:
        seen.append((event["where"], event["attempt"], event["error"], event["meta"]))

    def model(transcript: list[Any], tools: list[Any]) -> str:
        if not seen:
            raise ModelError("busy")
        return "done"

    retry = gp.agents.RetryPolicy(attempts=2, wait=0)
    agent = create_agent(model, callbacks={"error": on_error}, retry=retry)
    assert contents(agent.invoke({"messages": "?", "callback_meta": {"id": 1}}))[-1] == "done"
    assert seen == [("model", 1, "busy", {"id": 1})]


def test_what_a_callback_raises_fails_its_node() -> None:
    def broken(event: dict[str, Any]) -> None:
        raise OSError("the log is full")

    with pytest.raises(gp.errors.AgentsFailedError, match="the log is full") as caught:
        create_agent(script("a"), callbacks={"step": broken}).invoke({"messages": "?"})
    assert "raised by the callback 'step' of the event 'step'" in caught.value.result.failed["llm_call"].traceback


@pytest.mark.parametrize(
    "given, message",
    [
        ({"callbacks": {"model": "nobody"}}, "names 'nobody'; functions of create_agent.*: 'note', 'model', 'error'"),
        ({"callbacks": {"end": "note"}}, "has the unknown event 'end'; events: model, tool, step, error"),
        ({"tools": ["nothing"]}, "has 'nothing', but the agent has the tools"),
        ({"tools": "greet"}, "must be a list of names or descriptions"),
        ({"max_iterations": 0}, 'the state\'s "max_iterations"'),
        ({"system_prompt": 1}, 'the state\'s "system_prompt" must be a string'),
        ({"messages": [1]}, 'the state\'s "messages".0. must be a dictionary such as'),
        ({"messages": []}, 'no message to answer: pass {"messages": "..."}'),
        ({"full_messages": 1}, 'the state\'s "full_messages".0. must be a dictionary such as'),
        ({"tools": [["greet"]]}, "has .'greet'., but the agent has the tools .*: pass some of"),
        ({"max_iterations": "x"}, "the state's \"max_iterations\" must be a whole number, not 'x'"),
        ({"iteration": "x"}, "the state's \"iteration\" .calls of the model so far. must be a whole number, not 'x'"),
        ({"iteration": -1}, 'the state\'s "iteration" .* must be from 0 to'),
        ({"scratchpad": "x"}, "the state's \"scratchpad\" must be a list of steps such as .*, not 'x'"),
        ({"scratchpad": ["x"]}, 'the state\'s "scratchpad" must be a list of steps'),
        ({"context": "x"}, 'the state\'s "context" must be a dict such as {"user": "Ada"}, not \'x\''),
        ({"callbacks": ["note"]}, 'the state\'s "callbacks" must be a dict such as {"tool": "name'),
        ({"callbacks": {"tool": ["note"]}}, "names .'note'.; functions of create_agent"),
        ({"callback_meta": 1}, 'the state\'s "callback_meta" must be a dict such as'),
    ],
)
def test_fields_are_refused_before_any_work(given: dict[str, Any], message: str, tmp_path: Path) -> None:
    agent, store = fielded(log=tmp_path / "log"), gp.MemoryStore()
    with pytest.raises((ArgumentError, ArgumentTypeError), match=message):
        agent.invoke({**GIVEN, **given})
    stored, config = create_agent(script("a"), [greet], store=store), {"configurable": {"thread_id": "1"}}
    with pytest.raises((ArgumentError, ArgumentTypeError)):
        stored.invoke({**GIVEN, "callbacks": {}, **given}, config)
    assert [*store.runs()] == []
    if given != {"messages": []}:
        stored.invoke({"messages": "?"}, config)
        with pytest.raises((ArgumentError, ArgumentTypeError)):
            stored.update_state(config, given)


def test_messages_may_be_removed_by_the_input() -> None:
    agent = create_agent(script("a", "b"), store=gp.MemoryStore())
    config = {"configurable": {"thread_id": "1"}}
    agent.invoke({"messages": [{"role": "user", "content": "one", "id": "1"}]}, config)
    result = agent.invoke({"messages": [{"role": "remove", "id": "1"}, "two"]}, config)
    assert contents(result) == ["a", "two", "b"]


def test_refused_arguments() -> None:
    with pytest.raises(ArgumentTypeError, match="callbacks must be a mapping from names to functions"):
        create_agent(script("a"), callbacks=[print])  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="callbacks: 'model' must be a name of a function"):
        create_agent(script("a"), callbacks={"model": 1})  # type: ignore[dict-item]
    with pytest.raises(ArgumentError, match="trim"):
        create_agent(script("a"), trim=0)


# Agents as nodes.


@pytest.mark.parametrize("workers", [0, 1])
def test_agents_that_are_nodes_share_messages_and_context_only(workers: int) -> None:
    first = create_agent(echo, [greet], system_prompt="First for {user}.", trim=1)
    second = create_agent(echo, [add], system_prompt="Second for {user}.", max_iterations=3, trim=1)
    graph = StateGraph(GraphState).add_node("first", first).add_node("second", second)
    graph.add_edge(START, "first").add_edge("first", "second").add_edge("second", END)
    given = {"messages": ["one", "two"], "context": {"user": "Ada"}, "scratchpad": ["mine"]}
    result = graph.compile(workers=workers).invoke(given)
    assert [one["content"] for one in result["messages"]][:2] == ["one", "two"]
    assert json.loads(result["messages"][2]["content"]) == [["First for Ada.", "two"], ["greet"]]
    assert json.loads(result["messages"][3]["content"])[1] == ["add"]
    assert len(result["messages"]) == 4
    assert (result["scratchpad"], result["context"]) == (["mine"], {"user": "Ada"})


# Crashes.

PROGRAM = """
import json, os, sys
import gpu_pregel as gp
from gpu_pregel.workflows import ScriptedModel, ToolContext, create_agent, messages, tool

folder, workers = sys.argv[1], int(sys.argv[2])

@tool
def look(place: str, context: ToolContext) -> str:
    "Look around."
    if not os.path.exists(folder + "/crashed") and place == "there":
        open(folder + "/crashed", "w").close()
        os.kill(int(open(folder + "/pid").read()), 9)
        while True:
            pass
    return f"{place} with {context.context['user']}"

def note(event):
    with open(folder + "/log", "a") as log:
        log.write(f"{event['event']} {event['meta']['trace']}\\n")

def model(transcript, tools):
    answered = [one["content"] for one in transcript if one["role"] == "tool"]
    if len(answered) < 2:
        return messages.assistant("", [messages.tool_call("look", {"place": ["here", "there"][len(answered)]})])
    return ", ".join(answered)

if __name__ == "__main__":
    open(folder + "/pid", "w").write(str(os.getpid()))
    with gp.SQLiteStore(folder + "/runs.db") as store:
        agent = create_agent(
            model, [look], system_prompt="Serve {user}.", callbacks={"note": note}, trim=3, store=store, workers=workers
        )
        config = {"configurable": {"thread_id": "1"}}
        given = None if os.path.exists(folder + "/crashed") else {
            "messages": "Look.", "context": {"user": "Ada"}, "callback_meta": {"trace": 7},
            "callbacks": {"step": "note"}, "max_iterations": 6,
        }
        print(json.dumps(agent.invoke(given, config)))
"""


@WORKERS
def test_a_crash_keeps_all_fields(workers: int, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    command = [sys.executable, str(program), str(tmp_path), str(workers)]
    crashed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert crashed.returncode == -9, crashed.stderr
    resumed = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    result = json.loads(resumed.stdout)
    assert result["messages"][-1]["content"] == "here with Ada, there with Ada"
    assert result["full_messages"] == result["messages"]
    assert [one["content"] for one in result["full_messages"]][::5] == ["Look.", "here with Ada, there with Ada"]
    assert (result["system_prompt"], result["max_iterations"], result["iteration"]) == ("Serve {user}.", 6, 3)
    assert [one["step"] for one in result["scratchpad"]] == ["model", "tool", "model", "tool", "model"]
    assert (result["context"], result["callback_meta"]) == ({"user": "Ada"}, {"trace": 7})
    assert (result["callbacks"], [one["name"] for one in result["tools"]]) == ({"step": "note"}, ["look"])
    assert (tmp_path / "log").read_text().splitlines() == ["step 7"] * 5
