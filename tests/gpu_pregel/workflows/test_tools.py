"""Tools: schemas, validation, results, timeouts, retries, pickling; with and without pydantic."""

from __future__ import annotations

import asyncio
import contextvars
import datetime
import enum
import functools
import pickle
import subprocess
import sys
import threading
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import cloudpickle
import numpy as np
import pytest

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, AttemptError
from gpu_pregel.host.agents.retry import RetryPolicy
from gpu_pregel.workflows import Tool, ToolContext, messages, tool
from gpu_pregel.workflows.tool_results import text_of_result
from gpu_pregel.workflows.tools import as_tools, describe
from tests.host.agents.workers.worker_programs import wait_for
from tests.packages import needs

needs("pydantic", "test")

import pydantic  # noqa: E402


@dataclass
class Place:
    name: str
    height: float = 0.0


class Size(enum.Enum):
    SMALL = "s"
    LARGE = "l"


@tool(timeout=20)
def find(
    query: str,
    place: Place | None = None,
    sizes: Annotated[list[Size], "Which sizes."] = [],  # noqa: B006
    day: datetime.date | None = None,
    context: ToolContext | None = None,
    *,
    mode: Literal["all", "any"] = "all",
) -> str:
    """Find documents.

    Parameters
    ----------
    query : str
        What to look for.
    """
    return f"{query} {place} {sizes} {day} {mode}"


@tool
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


def run(tool: Tool, arguments: dict[str, Any], **context: Any) -> Any:
    call = messages.tool_call(tool.name, arguments, id="7")
    given = ToolContext("7", "key", **context) if context else None
    ordinary = tool.run(call, given)
    assert asyncio.run(tool.arun(call, given)) == ordinary
    assert ordinary["tool_call_id"] == "7"
    return ordinary["content"] if "status" not in ordinary else (ordinary["content"], ordinary["status"])


def failed(name: str, text: str) -> tuple[str, str]:
    return f"The tool {name} failed: {text}", "error"


def test_schema() -> None:
    description = find.description_for_models
    properties = description["parameters"]["properties"]
    assert (description["name"], description["description"]) == ("find", "Find documents.")
    assert properties["query"] == {"type": "string", "description": "What to look for."}
    assert properties["sizes"]["description"] == "Which sizes."
    assert properties["mode"] == {"type": "string", "enum": ["all", "any"], "default": "all"}
    assert list(properties) == ["query", "place", "sizes", "day", "mode"]
    assert description["parameters"]["required"] == ["query"]
    assert "title" not in str(description)


def test_arguments_are_converted() -> None:
    given = {"query": "q", "place": {"name": "p", "height": 3}, "sizes": ["s"], "day": "2026-01-02", "mode": "any"}
    size = repr([Size.SMALL])
    assert run(find, given) == f"q Place(name='p', height=3.0) {size} 2026-01-02 any"


@pytest.mark.parametrize(
    "arguments, text",
    [
        ({}, "a is missing"),
        ({"a": "x"}, "a: Input should be a valid integer, unable to parse string as an integer, not 'x'"),
        ({"a": 1, "c": 2}, "c is unknown; known names: a, b"),
        (
            {"a": 1.5, "b": None},
            "a: Input should be a valid integer, got a number with a fractional part, not 1.5; b: ",
        ),
    ],
)
def test_wrong_arguments_are_told_to_the_model(arguments: dict[str, Any], text: str) -> None:
    content, status = run(add, arguments)
    assert status == "error"
    assert content.startswith(f"The tool add failed: {text}")


def test_arguments_that_are_no_json() -> None:
    call = {"id": "7", "name": "add", "arguments": {}, "invalid_arguments": '{"a'}
    assert add.run(call)["content"] == 'The tool add failed: the arguments are not a JSON object: {"a'
    assert add.check(call) == 'the arguments are not a JSON object: {"a'
    assert add.check(messages.tool_call("add", {"a": "2"})) is None


def test_without_pydantic() -> None:
    program = """if True:
        import sys
        sys.modules["pydantic"] = None
        from dataclasses import dataclass
        from gpu_pregel.workflows import tool, messages
        @tool
        def add(a: int, b: list[float] | None = None) -> int:
            '''Add.

            Args:
                a: A number.
            '''
            return a
        print(add.parameters)
        for arguments in ({"a": 1}, {"a": "1"}, {}, {"a": 1, "c": 1}, {"a": 1, "b": ["x"]}):
            print(add.run(messages.tool_call("add", arguments))["content"])
        @dataclass
        class Place: ...
        def go(place: Place): ...
        try:
            tool(go)
        except ValueError as error:
            print(error)
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    b = "{'anyOf': [{'type': 'array', 'items': {'type': 'number'}}, {'type': 'null'}], 'default': None}"
    forms = "b[0] must be of type number, not \"x\"; b must be of type null, not ['x']"
    assert done.stdout.split("\n")[:-1] == [
        "{'type': 'object', 'properties': {'a': {'type': 'integer', 'description': 'A number.'}, "
        f"'b': {b}}}, 'required': ['a'], 'additionalProperties': False}}",
        "1",
        'The tool add failed: a must be of type integer, not "1"',
        "The tool add failed: a is missing",
        "The tool add failed: c is unknown; known names: a, b",
        f"The tool add failed: b has none of the allowed forms: {forms}",
        "tool 'go': the annotation of 'place' needs the package pydantic (pip install pydantic), or must consist of "
        "str, int, float, bool, None, Any, Literal, |, list[…] and dict[str, …]",
    ]


@pytest.mark.parametrize(
    "result, text",
    [
        ("a\n", "a\n"),
        (None, "null"),
        (1.5, "1.5"),
        ({"a": [Place("ü"), Size.SMALL, {2, 1}]}, '{"a": [{"name": "ü", "height": 0.0}, "s", [1, 2]]}'),
        (datetime.date(2026, 1, 2), '"2026-01-02"'),
        (np.arange(3), "[0, 1, 2]"),
        (np.float32(0.5), "0.5"),
        (b"ab", '"ab"'),
        (pydantic.RootModel[list[int]]([1]), "[1]"),
        ({(1, 2): 3}, "{(1, 2): 3}"),
        (object, "\"<class 'object'>\""),
    ],
)
def test_results_become_text(result: Any, text: str) -> None:
    assert text_of_result(result) == text
    assert run(tool(lambda: result, name="get"), {}) == text


def test_failures_are_told_to_the_model() -> None:
    def fail(kind: str) -> None:
        raise {"key": KeyError("a"), "empty": RuntimeError(), "long": ValueError("x" * 5000)}[kind]

    made = tool(fail)
    assert run(made, {"kind": "key"}) == failed("fail", "KeyError: 'a'")
    assert run(made, {"kind": "empty"}) == failed("fail", "RuntimeError")
    assert len(run(made, {"kind": "long"})[0]) < 2100


def test_function_that_returns_a_coroutine() -> None:
    async def answer() -> int:
        return 42

    assert run(tool(lambda: answer(), name="get"), {}) == "42"
    assert run(tool(lambda: answer(), name="get", timeout=60), {}) == "42"
    assert run(tool(functools.partial(answer), name="get"), {}) == "42"


def test_exits_of_functions_are_failures_but_ctrl_c_is_not() -> None:
    def leave() -> None:
        raise SystemExit(3)

    def stop() -> None:
        raise KeyboardInterrupt

    assert run(tool(leave), {}) == failed("leave", "SystemExit: 3")
    with pytest.raises(KeyboardInterrupt):
        tool(stop).run(messages.tool_call("stop"))


class Flaky:
    """Fails a number of times."""

    def __init__(self, *errors: Exception) -> None:
        self.errors, self.attempts = list(errors), []  # type: ignore[var-annotated]

    def __call__(self, context: ToolContext) -> str:
        self.attempts.append((context.attempt, context.key))
        if self.errors:
            raise self.errors.pop(0)
        return "ok"


RETRY = RetryPolicy(attempts=3, wait=0)


@pytest.mark.parametrize(
    "errors, retry, attempts, ends_well",
    [
        ([ValueError("a"), ValueError("b")], RETRY, 3, True),
        ([ValueError("a")] * 3, RETRY, 3, False),
        ([ValueError("a")], None, 1, False),
        ([ValueError("a"), OSError("b")], RetryPolicy(attempts=3, wait=0, exceptions=(ValueError,)), 2, False),
        ([AttemptError("a", retryable=False)], RETRY, 1, False),
        ([AttemptError("a", retry_after=0)], RetryPolicy(attempts=2, wait=1000), 2, True),
    ],
)
def test_retries(errors: list[Exception], retry: RetryPolicy | None, attempts: int, ends_well: bool) -> None:
    call = messages.tool_call("flaky", id="7")
    for way in ("run", "arun"):
        flaky = Flaky(*errors)
        made = tool(flaky, name="flaky", retry=retry)
        context = ToolContext("7", "key")
        answer = made.run(call, context) if way == "run" else asyncio.run(made.arun(call, context))
        assert flaky.attempts == [(k, "key") for k in range(1, attempts + 1)]
        assert ("status" not in answer) is ends_well


def test_timeout_of_an_ordinary_function() -> None:
    released, attempts = threading.Event(), []

    def wait() -> str:
        attempts.append(1)
        released.wait(60)
        return "late"

    made = tool(wait, timeout=0.02, retry=RETRY)
    assert run(made, {}) == failed("wait", "no result after 0.02 s; it may still be running")
    wait_for(lambda: len(attempts) >= 2)  # a thread may begin after its time
    assert len(attempts) == 2  # one for each way: what may still be running is not repeated
    released.set()


def test_timeout_of_an_async_function() -> None:
    cancelled = []

    async def wait() -> None:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(1)
            raise

    assert run(tool(wait, timeout=0.01, retry=RETRY), {}) == failed("wait", "no result after 0.01 s")
    assert len(cancelled) == 6


def test_timeouts_of_the_tool_itself_are_told_apart() -> None:
    async def ask() -> None:
        raise TimeoutError("no route")

    assert run(tool(ask, timeout=60), {}) == failed("ask", "TimeoutError: no route")


def test_context_variables_reach_threads() -> None:
    variable = contextvars.ContextVar("variable", default="unset")
    token = variable.set("set")
    try:
        assert run(tool(variable.get, name="get", parameters={}, timeout=60), {}) == "set"
    finally:
        variable.reset(token)


def test_cancellation_of_a_call() -> None:
    released = threading.Event()

    async def main() -> None:
        task = asyncio.create_task(tool(lambda: released.wait(60), name="wait").arun(messages.tool_call("wait")))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        released.set()

    asyncio.run(main())


def test_context() -> None:
    seen: list[Any] = []

    def report(x: int, context: ToolContext) -> str:
        context.emit(x)
        return f"{context.call_id} {context.key} {context.attempt}"

    assert tool(report).parameters["required"] == ["x"]
    assert run(tool(report), {"x": 3}, emit=seen.append) == "7 key 1"
    assert seen == [3, 3]
    assert run(tool(report), {"x": 3}) == "7 7 1"
    assert run(tool(report), {"x": 3, "context": 1})[1] == "error"


def test_given_schema() -> None:
    made = tool(lambda **arguments: arguments, name="any", parameters={"type": "object"}, description="Anything.")
    assert run(made, {"a": [1]}) == '{"a": [1]}'
    assert describe(made) == {"name": "any", "description": "Anything.", "parameters": {"type": "object"}}


def test_tools_are_pickled() -> None:
    assert pickle.loads(pickle.dumps(add)) is add
    offset = 3
    made = tool(lambda a: a + offset, name="shift", timeout=5, needs_consent=lambda arguments: arguments["a"] > 1)
    copy = cloudpickle.loads(cloudpickle.dumps(made))
    assert run(copy, {"a": 1}) == "4"
    assert (copy.name, copy.timeout, copy.parameters) == ("shift", 5, made.parameters)
    assert [copy.asks_for_consent({"a": a}) for a in (1, 2)] == [False, True]


def test_tools_of_a_script_are_pickled_by_value() -> None:
    program = """if True:
        import sys, subprocess, cloudpickle
        from gpu_pregel.workflows import tool
        @tool
        def add(a: int) -> int:
            return a + 1
        code = "import sys, cloudpickle; print(cloudpickle.load(sys.stdin.buffer)(2))"
        subprocess.run([sys.executable, "-c", code], input=cloudpickle.dumps(add), check=True)
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout == "3\n"


def positional(a: int, /) -> None: ...
def many(*values: int) -> None: ...
def unknown(a: Missing) -> None: ...  # type: ignore[name-defined] # noqa: F821
def opaque(a: threading.Lock) -> None: ...


@pytest.mark.parametrize(
    "function, options, error, text",
    [
        (7, {}, ArgumentTypeError, "a tool is made from a function, not from 7"),
        (lambda: 1, {}, ArgumentError, "a tool's name must have .* not '<lambda>': pass name="),
        (functools.partial(add), {}, ArgumentError, "not None: pass name="),
        (positional, {}, ArgumentError, "tool 'positional': the parameter .* cannot be given by name"),
        (many, {}, ArgumentError, "tool 'many': the parameter .* cannot be given by name"),
        (unknown, {}, ArgumentError, "tool 'unknown': an annotation cannot be resolved .*Missing"),
        (opaque, {}, ArgumentError, "tool 'opaque': an annotation has no JSON schema"),
        (print, {"timeout": 0}, ArgumentError, "tool 'print': timeout must be"),
        (print, {"retry": 3}, ArgumentTypeError, "tool 'print': retry must be a RetryPolicy"),
        (print, {"needs_consent": "yes"}, ArgumentTypeError, "tool 'print': needs_consent must be True or False"),
        (print, {"description": 1}, ArgumentTypeError, "tool 'print': description must be a string"),
        (print, {"parameters": {"type": "array"}}, ArgumentError, "tool 'print': parameters must be a JSON schema"),
    ],
)
def test_bad_tools(function: Any, options: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        tool(function, **options)


def test_lists_of_tools() -> None:
    def sub(a: int) -> int:
        """Negate."""
        return -a

    assert list(as_tools([add, sub])) == ["add", "sub"]
    with pytest.raises(ArgumentError, match="two tools have the name 'add': pass name= to one of them"):
        as_tools([add, tool(sub, name="add")])
    with pytest.raises(ArgumentTypeError, match="tools must be a list of tools or functions, not"):
        as_tools(7)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="a tool's description needs a name and parameters"):
        describe({"function": {}})
