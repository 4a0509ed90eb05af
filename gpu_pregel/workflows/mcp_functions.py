"""The tools of an MCP server that runs as a subprocess, as tools of agents.

The servers and the threads that speak with them are in :mod:`~gpu_pregel.workflows.mcp_servers`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, ToolError
from gpu_pregel.host.agents.retry import RetryPolicy
from gpu_pregel.host.arguments import check_seconds, check_text, require
from gpu_pregel.workflows.mcp_servers import Server, acall, list_tools
from gpu_pregel.workflows.tools import Tool

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_-]+")


def mcp_tools(
    command: str,
    args: Sequence[str] = (),
    *,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    prefix: str = "",
    timeout: float | None = 60.0,
    start_timeout: float = 30.0,
    retry: RetryPolicy | None = None,
    needs_consent: bool | Collection[str] = False,
) -> list[Tool]:
    """Return the tools of an MCP server that is started as a subprocess and speaks over its standard streams.

    The server is started now, to list its tools, and once in every process that calls one of them. It ends with that
    process. If it ends earlier, the running calls fail, which the model is told, and the next call starts it again.

    Parameters
    ----------
    command : str
        The program.
    args : sequence of str
        Its arguments.
    env : mapping of str to str, optional
        Environment variables, beside the few that are harmless to inherit, such as PATH and HOME.
    cwd : str, optional
        The server's working directory.
    prefix : str
        Put before the tools' names, to tell the tools of several servers apart.
    timeout : float, optional
        Seconds of a call.
    start_timeout : float
        Seconds in which the server must answer after its start.
    retry : RetryPolicy, optional
        Attempts at a call. Default: one.
    needs_consent : bool, or collection of str
        Whether a human is asked before each call, or the names (of the server) of the tools for which one is.

    Returns
    -------
    list of Tool

    Raises
    ------
    ToolError
        If the server cannot be started; the end of its error output is quoted.
    MissingPackageError
        If the package mcp is not installed.

    Examples
    --------
    >>> from gpu_pregel.workflows import create_agent, mcp_tools
    >>> tools = mcp_tools("npx", ["-y", "@modelcontextprotocol/server-filesystem", "/data"])  # doctest: +SKIP
    """
    require("mcp", "mcp_tools", '"gpu-pregel[mcp]"')
    check_text("command", command, 4096)
    if isinstance(args, str) or not all(isinstance(one, str) for one in args):
        raise ArgumentTypeError(f"args must be a list of strings, not {args!r:.80}")
    variables = dict(env or {})
    if not all(isinstance(name, str) and isinstance(value, str) for name, value in variables.items()):
        raise ArgumentTypeError("env must be a mapping of strings to strings")
    check_seconds("start_timeout", start_timeout)
    server = Server(command, tuple(args), tuple(sorted(variables.items())), cwd, start_timeout)
    found = list_tools(server)
    asked = set() if isinstance(needs_consent, bool) else set(needs_consent)
    unknown = asked - {one["name"] for one in found}
    if unknown:
        raise ArgumentError(
            f"needs_consent: {server} has no tool {sorted(unknown)[0]!r}; its tools: "
            f"{', '.join(one['name'] for one in found) or 'none'}"
        )
    return [
        Tool(
            McpFunction(server, one["name"]),
            name=prefix + _NOT_IN_NAMES.sub("_", one["name"]),
            description=one["description"],
            parameters=one["parameters"],
            timeout=timeout,
            retry=retry,
            needs_consent=needs_consent is True or one["name"] in asked,
        )
        for one in found
    ]


class McpFunction:
    """Calls a tool of a server; also in another process, where it starts a server of its own."""

    def __init__(self, server: Server, tool: str) -> None:
        self._server, self._tool = server, tool

    async def __call__(self, /, **arguments: Any) -> str:
        """Return the text of the tool's result."""
        result = await acall(self._server, self._tool, arguments)
        text = _text_of(result)
        if result.is_error:
            raise ToolError(text or "the server gives no reason")
        return text


def _text_of(result: Any) -> str:
    """Return the contents of a result as text; binary contents are only mentioned."""
    texts = []
    for part in result.content:
        resource: Any = getattr(part, "resource", None)
        if getattr(part, "text", None) is not None:
            texts.append(part.text)
        elif getattr(resource, "text", None) is not None:
            texts.append(resource.text)
        elif part.type == "resource_link":
            texts.append(f"{part.name}: {part.uri}")
        else:
            data = getattr(part, "data", None) or getattr(resource, "blob", None) or ""
            kind = getattr(part, "mime_type", None) or getattr(resource, "mime_type", None) or part.type
            texts.append(f"[{kind}, {len(data) * 3 // 4:,} bytes, not shown]")
    if not texts and result.structured_content is not None:
        from gpu_pregel.workflows.tool_results import text_of_result

        return text_of_result(result.structured_content)
    return "\n".join(texts)
