"""MCP servers as subprocesses: one of each in a process, with a thread whose event loop speaks with it."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections import deque
from collections.abc import AsyncIterator
from concurrent.futures import Future
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from gpu_pregel.errors import ToolError

_MAX_PAGES = 100
_CLOSE_TIMEOUT = 10.0
_ERROR_LINES = 20


@dataclass(frozen=True)
class Server:
    """How a server is started."""

    command: str
    args: tuple[str, ...]
    env: tuple[tuple[str, str], ...] = field(repr=False)
    cwd: str | None
    start_timeout: float

    def __str__(self) -> str:
        return f"the MCP server {' '.join([self.command, *self.args])!r:.200}"

    @property
    def label(self) -> str:
        """What a model may read: the program without its arguments, which may contain a key."""
        return f"the MCP server {os.path.basename(self.command)!r}"


class Connection:
    """A running server and the thread that speaks with it."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._started: Future[None] = Future()
        self._errors = _ErrorOutput()
        self._client: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closing: asyncio.Event | None = None
        self._task: asyncio.Task[Any] | None = None
        self.has_ended = False
        self._thread = threading.Thread(target=self._run, daemon=True, name="mcp")
        self._thread.start()
        try:
            self._started.result(server.start_timeout)
        except TimeoutError:
            self.close()
            raise self._failure(f"did not answer within {server.start_timeout:g} s") from None
        except FileNotFoundError:
            raise ToolError(f"cannot start {server}: there is no program {server.command!r}", retryable=False) from None
        except Exception as error:
            raise self._failure(f"cannot be started: {type(error).__name__}: {error!s:.1000}") from error

    def _failure(self, problem: str) -> ToolError:
        written = self._errors.text()
        return ToolError(f"{self._server} {problem}" + (f"; its error output ends with: {written}" if written else ""))

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # told to whoever waits for the start
            while isinstance(error, BaseExceptionGroup):
                error = error.exceptions[0]
            with suppress(Exception):
                self._started.set_exception(error)
        finally:
            self.has_ended = True
            self._errors.close()

    async def _serve(self) -> None:
        from mcp import Client

        self._closing, self._task = asyncio.Event(), asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        async with Client(self._streams()) as client:
            self._errors.close()
            self._client = client
            self._started.set_result(None)
            await self._closing.wait()

    @asynccontextmanager
    async def _streams(self) -> AsyncIterator[Any]:
        """Start the server, and note when its output ends."""
        from mcp import StdioServerParameters, stdio_client

        server = self._server
        parameters = StdioServerParameters(
            command=server.command, args=list(server.args), env=dict(server.env), cwd=server.cwd
        )
        async with stdio_client(parameters, self._errors.file) as (incoming, outgoing):
            yield _WatchedStream(incoming, self._note_end), outgoing

    def _note_end(self) -> None:
        self.has_ended = True
        if self._closing is not None:
            self._closing.set()

    async def _call(self, name: str, arguments: dict[str, Any]) -> Any:
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED

        try:
            return await self._client.call_tool(name, arguments)
        except MCPError as error:
            if error.code == CONNECTION_CLOSED or self.has_ended:
                raise ToolError(f"{self._server.label} ended during this call; the next one starts it again") from None
            raise ToolError(f"{self._server.label} refuses the call: {error.message:.1000}", retryable=False) from None

    async def _list(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        cursor = None
        for _ in range(_MAX_PAGES):
            page = await self._client.list_tools(cursor=cursor)
            found += [
                {"name": one.name, "description": one.description or "", "parameters": one.input_schema}
                for one in page.tools
            ]
            cursor = page.next_cursor
            if not cursor:
                break
        return found

    def call(self, name: str, arguments: dict[str, Any]) -> Future[Any]:
        """Call a tool, from any thread."""
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(self._call(name, arguments), self._loop)

    def list(self) -> list[dict[str, Any]]:
        """Return name, description and schema of each tool."""
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(self._list(), self._loop).result(self._server.start_timeout)

    def close(self) -> None:
        """End the server."""
        if self._loop is not None and self._closing is not None and self._task is not None:
            end = self._closing.set if self._client is not None else self._task.cancel
            with suppress(RuntimeError):  # the loop has ended
                self._loop.call_soon_threadsafe(end)
        self._thread.join(_CLOSE_TIMEOUT)


class _WatchedStream:
    """A stream of messages that calls a function when it ends."""

    def __init__(self, stream: Any, on_end: Any) -> None:
        self._stream, self._on_end = stream, on_end

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def __aenter__(self) -> _WatchedStream:
        await self._stream.__aenter__()
        return self

    async def __aexit__(self, *error: Any) -> Any:
        return await self._stream.__aexit__(*error)

    def __aiter__(self) -> _WatchedStream:
        return self

    async def __anext__(self) -> Any:
        try:
            return await self._stream.__anext__()
        except BaseException:
            self._on_end()
            raise


class _ErrorOutput:
    """Keeps the last lines of what a server writes to its standard error."""

    def __init__(self) -> None:
        source, sink = os.pipe()
        self.file = os.fdopen(sink, "w")
        self._lines: deque[str] = deque(maxlen=_ERROR_LINES)
        self._reader = threading.Thread(target=self._read, args=(source,), daemon=True, name="mcp-errors")
        self._reader.start()

    def _read(self, source: int) -> None:
        with os.fdopen(source, errors="replace") as lines:
            for line in lines:
                self._lines.append(line[:500].rstrip())

    def close(self) -> None:
        """Leave the pipe to the server, with which it ends."""
        self.file.close()

    def text(self) -> str:
        """Return the last lines, once those of a server that has ended have been read."""
        if self.file.closed:
            self._reader.join(1.0)
        return " | ".join(line for line in list(self._lines) if line.strip())[-2000:]


_connections: dict[Server, Connection] = {}
_lock = threading.Lock()
_pid = os.getpid()


def _connect(server: Server) -> Connection:
    """Return this process's connection to a server, which is started if it does not run."""
    global _pid
    with _lock:
        if _pid != os.getpid():  # the threads of a parent do not exist in its fork
            _connections.clear()
            _pid = os.getpid()
        connection = _connections.get(server)
        if connection is None or connection.has_ended:
            connection = _connections[server] = Connection(server)
        return connection


def list_tools(server: Server) -> list[dict[str, Any]]:
    """Return name, description and schema of each tool of a server."""
    return _connect(server).list()


async def acall(server: Server, tool: str, arguments: dict[str, Any]) -> Any:
    """Call a tool; cancellation cancels the call."""
    connection = _connections.get(server)
    if connection is None or connection.has_ended or _pid != os.getpid():
        try:
            connection = await asyncio.to_thread(_connect, server)
        except ToolError:  # its text is for people
            raise ToolError(f"{server.label} cannot be started") from None
    return await asyncio.wrap_future(connection.call(tool, arguments))


@atexit.register
def close_servers() -> None:
    """End the servers of this process; a later call of a tool starts its server again."""
    with _lock:
        connections, _connections_of_parent = list(_connections.values()), _pid != os.getpid()
        _connections.clear()
    if not _connections_of_parent:
        for connection in connections:
            connection.close()
