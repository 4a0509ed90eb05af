"""HTTP clients that keep their connections: one for this process, and one for each event loop."""

from __future__ import annotations

import asyncio
import functools
import os
from collections.abc import AsyncGenerator
from threading import Lock
from typing import Any

from gpu_pregel.host.arguments import require

_CONNECT_TIMEOUT = 10.0


@functools.cache
def _ssl_context() -> Any:
    """Return the context of all clients of this process; reading the certificates takes as long as a request."""
    return require("httpx", "ChatModel", '"gpu-pregel[models]"').create_ssl_context()


class HttpClients:
    """The clients of a model.

    Parameters
    ----------
    timeout : float
        Seconds without any progress after which a request fails.
    """

    def __init__(self, timeout: float) -> None:
        self._httpx = require("httpx", "ChatModel", '"gpu-pregel[models]"')
        # A request that waits for one of the connections is not stuck, so there is no timeout for that.
        self._options: dict[str, Any] = {
            "timeout": self._httpx.Timeout(timeout, connect=min(timeout, _CONNECT_TIMEOUT), pool=None),
            "verify": _ssl_context(),
            "limits": self._httpx.Limits(max_connections=100, max_keepalive_connections=100),
        }
        self._lock = Lock()
        self._client: Any = None
        self._pid = 0
        self._keepers: dict[asyncio.AbstractEventLoop, tuple[AsyncGenerator[Any], Any]] = {}

    def of_process(self) -> Any:
        """Return the client of this process, for all of its threads."""
        with self._lock:
            if self._client is None or self._pid != os.getpid():  # a fork must not use its parent's connections
                self._client, self._pid = self._httpx.Client(**self._options), os.getpid()
            return self._client

    async def of_loop(self) -> Any:
        """Return the client of the running event loop, which closes it when it shuts down."""
        loop = asyncio.get_running_loop()
        if loop not in self._keepers:
            for closed in [other for other in list(self._keepers) if other.is_closed()]:
                self._keepers.pop(closed, None)
            keeper = self._keep(loop)
            self._keepers[loop] = keeper, await anext(keeper)
        return self._keepers[loop][1]

    async def _keep(self, loop: asyncio.AbstractEventLoop) -> AsyncGenerator[Any]:
        """Yield a client, and close it with this generator: loops close their generators when they shut down."""
        client = self._httpx.AsyncClient(**self._options)
        try:
            yield client
        finally:
            self._keepers.pop(loop, None)
            await client.aclose()

    def close(self) -> None:
        """Close the connections of this process."""
        with self._lock:
            if self._client is not None and self._pid == os.getpid():
                self._client.close()
            self._client = None

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        keeper = self._keepers.get(asyncio.get_running_loop())
        if keeper is not None:
            await keeper[0].aclose()
