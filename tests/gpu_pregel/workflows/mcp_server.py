"""An MCP server over stdio, which the tests start."""

from __future__ import annotations

import asyncio
import os
import sys

from mcp.server import MCPServer

server = MCPServer("test")


@server.tool()
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def fail(text: str) -> str:
    """Fail."""
    raise ValueError(text)


@server.tool()
def die() -> str:
    """End the server."""
    os._exit(3)


@server.tool()
def pid() -> int:
    """Return the id of this process."""
    return os.getpid()


@server.tool()
async def sleep(seconds: float) -> str:
    """Sleep."""
    await asyncio.sleep(seconds)
    return "slept"


@server.tool(name="env.read")
def read_env(name: str) -> str | None:
    """Return an environment variable."""
    return os.environ.get(name)


if __name__ == "__main__":
    if "--broken" in sys.argv:
        print("no configuration file", file=sys.stderr)
        sys.exit(2)
    server.run()
