"""Tools of a real MCP server over stdio."""

from __future__ import annotations

import asyncio
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, ToolError
from gpu_pregel.workflows import Tool, mcp_tools, messages
from gpu_pregel.workflows.mcp_servers import close_servers
from tests.packages import needs

needs("mcp", "mcp")


SERVER = str(Path(__file__).with_name("mcp_server.py"))
Tools = dict[str, Tool]


@pytest.fixture(scope="module")
def tools() -> Iterator[Tools]:
    found = mcp_tools(sys.executable, [SERVER], env={"COLOUR": "blue"}, needs_consent=["die"])
    yield {tool.name: tool for tool in found}
    close_servers()


def run(tools: Tools, name: str, /, **arguments: Any) -> Any:
    answer = tools[name].run(messages.tool_call(name, arguments))
    return (answer["content"], "error") if "status" in answer else answer["content"]


def test_tools_are_listed(tools: Tools) -> None:
    assert list(tools) == ["add", "fail", "die", "pid", "sleep", "env_read"]
    add = tools["add"].description_for_models
    assert add["description"] == "Add two numbers."
    assert add["parameters"]["required"] == ["a"]
    assert [name for name, tool in tools.items() if tool.asks_for_consent({})] == ["die"]


def test_calls(tools: Tools) -> None:
    assert run(tools, "add", a=3, b=4) == "7"
    assert run(tools, "env_read", name="COLOUR") == "blue"
    text, status = run(tools, "fail", text="boom")
    assert (text.startswith("The tool fail failed: "), status) == (True, "error")
    assert run(tools, "add", a="x")[1] == "error"


def test_calls_from_event_loops(tools: Tools) -> None:
    async def main() -> list[str]:
        calls = [tools["add"].arun(messages.tool_call("add", {"a": k})) for k in range(20)]
        return [answer["content"] for answer in await asyncio.gather(*calls)]

    for _ in range(2):
        assert asyncio.run(main()) == [str(k + 1) for k in range(20)]


def test_one_server_in_a_process(tools: Tools) -> None:
    again = {tool.name: tool for tool in mcp_tools(sys.executable, [SERVER], env={"COLOUR": "blue"}, prefix="test-")}
    assert next(iter(again)) == "test-add"
    assert run(again, "test-pid") == run(tools, "pid")
    other = {tool.name: tool for tool in mcp_tools(sys.executable, [SERVER], env={"COLOUR": "red"})}
    assert run(other, "pid") != run(tools, "pid")
    assert run(other, "env_read", name="COLOUR") == "red"


def test_dead_server_is_started_again(tools: Tools) -> None:
    before = run(tools, "pid")
    text, status = run(tools, "die")
    name = os.path.basename(sys.executable)
    assert text == f"The tool die failed: the MCP server '{name}' ended during this call; the next one starts it again"
    assert status == "error"
    assert run(tools, "pid") != before
    os.kill(int(run(tools, "pid")), 9)
    found = [run(tools, "add", a=1) for _ in range(3)]
    assert found[-2:] == ["2", "2"]  # the first call may have come before the end was noticed


def test_timeout_and_cancellation_leave_the_server_usable(tools: Tools) -> None:
    slow = pickle.loads(pickle.dumps(tools["sleep"]))
    slow.timeout = 0.05
    assert slow.run(messages.tool_call("sleep", {"seconds": 60}))["content"].endswith("no result after 0.05 s")

    async def main() -> None:
        task = asyncio.create_task(tools["sleep"].arun(messages.tool_call("sleep", {"seconds": 60})))
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert run(tools, "add", a=1) == "2"


def test_other_processes_start_servers_that_end_with_them(tools: Tools) -> None:
    program = """if True:
        import pickle, sys
        from gpu_pregel.workflows import messages
        tool = pickle.load(sys.stdin.buffer)
        print(tool.run(messages.tool_call("pid"))["content"])
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        input=pickle.dumps(tools["pid"]),
        capture_output=True,
        timeout=60,
        check=True,
    )
    assert done.stderr == b""
    other = int(done.stdout)
    assert other != int(run(tools, "pid"))
    with pytest.raises(ProcessLookupError):
        os.kill(other, 0)


@pytest.mark.parametrize(
    "command, args, options, error, text",
    [
        ("no-such-program", [], {}, ToolError, "cannot start the MCP server 'no-such-program x'|there is no program"),
        (sys.executable, [SERVER, "--broken"], {}, ToolError, "error output ends with: no configuration file"),
        (
            sys.executable,
            ["-c", "import sys; sys.stdin.read()"],
            {"start_timeout": 0.3},
            ToolError,
            "did not answer within 0.3 s",
        ),
        (sys.executable, SERVER, {}, ArgumentTypeError, "args must be a list of strings"),
        (sys.executable, [SERVER], {"env": {"A": 1}}, ArgumentTypeError, "env must be a mapping of strings"),
        (
            sys.executable,
            [SERVER],
            {"env": {"COLOUR": "blue"}, "needs_consent": ["add", "ad"]},
            ArgumentError,
            "has no tool 'ad'; its tools: add, fail",
        ),
        ("", [], {}, ArgumentError, "command must have"),
    ],
)
def test_errors(
    tools: Tools, command: str, args: Any, options: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text) as caught:
        mcp_tools(command, args, **options)
    assert "blue" not in str(caught.value)


def test_mcp_is_asked_for_by_the_name_of_the_extra() -> None:
    program = "import sys; sys.modules['mcp'] = None; from gpu_pregel.workflows import mcp_tools; mcp_tools('a')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert 'mcp_tools needs the package mcp: pip install "gpu-pregel[mcp]"' in done.stderr
