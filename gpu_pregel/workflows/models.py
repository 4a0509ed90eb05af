"""Language models over HTTP: :class:`ChatModel`, for servers that are compatible with OpenAI's chat completions.

A model of an agent may also be any function; :mod:`~gpu_pregel.workflows.model_calls` calls both.
"""

from __future__ import annotations

import asyncio
import functools
import json
import os
import time
from collections.abc import AsyncGenerator, Generator, Iterable, Mapping
from contextlib import aclosing, closing
from threading import Lock
from typing import Any
from urllib.parse import urlsplit

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, CodecError, ModelError
from gpu_pregel.host.agents.retry import RetryPolicy
from gpu_pregel.host.arguments import check_integer, check_number, check_seconds, check_text, require
from gpu_pregel.workflows.chat_format import MessageAssembler, decode_completion, encode_messages, encode_tools
from gpu_pregel.workflows.chat_responses import (
    Body,
    check_content_type,
    check_encoding,
    decode_json,
    refusal,
    transport_error,
)
from gpu_pregel.workflows.event_stream import EventDecoder
from gpu_pregel.workflows.messages import Message, as_messages, text_of
from gpu_pregel.workflows.tools import ToolLike, describe

OPENAI = "https://api.openai.com/v1"
_RESERVED = ("messages", "model", "n", "stream")


class ChatModel:
    """A language model behind an OpenAI-compatible HTTP interface (``POST BASE_URL/chat/completions``).

    A request is repeated after the statuses 408, 409, 429 and 5xx, and if the connection fails, as long as no token has
    been returned. Connections are kept, per process and event loop. The object can be pickled, for worker processes.

    Parameters
    ----------
    model : str
        The server's name of the model.
    base_url : str, optional
        Address of the server, usually ending in ``/v1``. Default: ``OPENAI_BASE_URL`` in the environment, else
        OpenAI's.
    api_key : str, optional
        Default: ``OPENAI_API_KEY`` in the environment of the process that sends the request, so that the key is neither
        pickled nor stored. It is never shown.
    timeout : float
        Seconds to wait for the server's next byte, which may be the first one of the whole answer.
    retry : RetryPolicy, optional
        A server's Retry-After takes precedence over the policy's waits, unless it exceeds ``max_wait``: then the error
        is raised, with ``retry_after``. None: no retries.
    temperature : float, optional
        Default: the server's.
    headers : mapping of str to str, optional
        Further HTTP headers. They are not shown either.
    extra : mapping, optional
        Further fields of the request, such as ``{"max_tokens": 1000}``; None removes a field that is sent by default.
    max_answer_bytes : int, default 16 MiB
        The longest answer, after decompression; a longer one is an error, and its connection is closed. Of a stream it
        limits each event and the message.

    Raises
    ------
    ArgumentError, ArgumentTypeError
        If an argument is invalid, or OpenAI's server is to be asked without a key.
    MissingPackageError
        If the package httpx is not installed.

    Examples
    --------
    >>> import gpu_pregel as gp
    >>> from gpu_pregel.workflows import ChatModel
    >>> model = ChatModel("llama", base_url="http://localhost:8080/v1")
    >>> model
    ChatModel('llama', base_url='http://localhost:8080/v1')

    ``model("Hello!")`` returns a message, ``await model.acall("Hello!")`` does the same on an event loop, and
    ``model.stream("Hello!")`` yields the tokens and then the message.
    """

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        timeout: float = 60.0,
        retry: RetryPolicy | None = RetryPolicy(attempts=3, wait=0.5, max_wait=60.0),  # noqa: B008 (immutable)
        temperature: float | None = None,
        headers: Mapping[str, str] | None = None,
        extra: Mapping[str, Any] | None = None,
        max_answer_bytes: int = 16 << 20,
    ) -> None:
        self.model = check_text("model", model)
        self.base_url = _check_url(base_url or os.environ.get("OPENAI_BASE_URL") or OPENAI)
        self._api_key = None if api_key is None else _check_key(api_key, "api_key")
        self._timeout = check_seconds("timeout", timeout)
        if not isinstance(retry, RetryPolicy | None):
            raise ArgumentTypeError(f"retry must be a RetryPolicy or None, not {retry!r:.80}")
        self._retry = retry or RetryPolicy(attempts=1)
        self._fields: dict[str, Any] = {}
        if temperature is not None:
            self._fields["temperature"] = check_number("temperature", temperature, 0)
        self._fields.update(_check_extra(extra))
        self._headers = _check_headers(headers)
        self._limit = check_integer("max_answer_bytes", max_answer_bytes, 1)
        self._read_key()
        self._clients = HttpClients(self._timeout)

    def __repr__(self) -> str:
        return f"ChatModel({self.model!r}, base_url={self.base_url!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in self.__dict__.items() if key != "_clients"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._clients = HttpClients(self._timeout)

    def __call__(self, messages: str | Iterable[Message | str], tools: Iterable[ToolLike] = ()) -> Message:
        """Ask the model.

        Parameters
        ----------
        messages : str, or iterable of messages
        tools : iterable of tools
            Tools, functions, or descriptions as :attr:`Tool.description_for_models` returns them.

        Returns
        -------
        dict
            The model's message, with ``usage`` and ``finish_reason`` as the server states them.

        Raises
        ------
        ModelError
            If the server cannot be reached or refuses, after all retries.
        """
        request = self._request(messages, tools, is_streaming=False)
        attempt = 1
        while True:
            try:
                with self._clients.of_process().stream(**request) as response:
                    return self._decode(self._read(response))
            except Exception as error:
                wait = self._wait_after(error, attempt)
            time.sleep(wait)
            attempt += 1

    async def acall(self, messages: str | Iterable[Message | str], tools: Iterable[ToolLike] = ()) -> Message:
        """Ask the model on the running event loop; cancellation closes the connection."""
        request = self._request(messages, tools, is_streaming=False)
        attempt = 1
        while True:
            try:
                async with (await self._clients.of_loop()).stream(**request) as response:
                    return self._decode(await self._aread(response))
            except Exception as error:
                wait = self._wait_after(error, attempt)
            await asyncio.sleep(wait)
            attempt += 1

    def stream(
        self, messages: str | Iterable[Message | str], tools: Iterable[ToolLike] = ()
    ) -> Generator[str | Message]:
        """Ask the model, and yield each piece of its text as it arrives, and finally the whole message.

        Closing the generator closes the connection, which tells the server to stop.
        """
        request = self._request(messages, tools, is_streaming=True)
        attempt, has_begun = 1, False
        while True:
            try:
                with closing(self._stream_once(request)) as pieces:
                    for piece in pieces:
                        has_begun = True
                        yield piece
                return
            except Exception as error:
                wait = self._wait_after(error, attempt, has_begun)
            time.sleep(wait)
            attempt += 1

    async def astream(
        self, messages: str | Iterable[Message | str], tools: Iterable[ToolLike] = ()
    ) -> AsyncGenerator[str | Message]:
        """Do what :meth:`stream` does on the running event loop; cancellation closes the connection."""
        request = self._request(messages, tools, is_streaming=True)
        attempt, has_begun = 1, False
        while True:
            try:
                async with aclosing(self._astream_once(request)) as pieces:
                    async for piece in pieces:
                        has_begun = True
                        yield piece
                return
            except Exception as error:
                wait = self._wait_after(error, attempt, has_begun)
            await asyncio.sleep(wait)
            attempt += 1

    def close(self) -> None:
        """Close the connections of this process; later calls open new ones."""
        self._clients.close()

    async def aclose(self) -> None:
        """Close the connections of the running event loop, which it also does when it shuts down."""
        await self._clients.aclose()

    def _stream_once(self, request: dict[str, Any]) -> Generator[str | Message]:
        decoder, assembler = EventDecoder(self._limit), MessageAssembler(self._limit)
        with self._clients.of_process().stream(**request) as response:
            if not _is_stream(response):
                yield from _whole(self._decode(self._read(response)))
                return
            check_encoding(response)
            for piece in response.iter_bytes():
                yield from _texts(decoder, assembler, piece)
        yield assembler.message()

    async def _astream_once(self, request: dict[str, Any]) -> AsyncGenerator[str | Message]:
        decoder, assembler = EventDecoder(self._limit), MessageAssembler(self._limit)
        async with (await self._clients.of_loop()).stream(**request) as response:
            if not _is_stream(response):
                for text in _whole(self._decode(await self._aread(response))):
                    yield text
                return
            check_encoding(response)
            async for piece in response.aiter_bytes():
                for text in _texts(decoder, assembler, piece):
                    yield text
        yield assembler.message()

    def _read(self, response: Any) -> Any:
        """Return an answer with its content."""
        check_encoding(response)
        body = Body(response, self._limit)
        for piece in response.iter_bytes():
            if not body.add(piece):
                break
        return body.whole()

    async def _aread(self, response: Any) -> Any:
        """Return an answer with its content."""
        check_encoding(response)
        body = Body(response, self._limit)
        async for piece in response.aiter_bytes():
            if not body.add(piece):
                break
        return body.whole()

    def _request(self, messages: Any, tools: Iterable[ToolLike], is_streaming: bool) -> dict[str, Any]:
        """Return the arguments of an HTTP request."""
        body: dict[str, Any] = {"model": self.model, "messages": encode_messages(as_messages(messages))}
        described = encode_tools(map(describe, tools))
        if described:
            body["tools"] = described
        if is_streaming:
            body["stream"] = True
            body["stream_options"] = {"include_usage": True}
        body.update(self._fields)
        body = {key: value for key, value in body.items() if value is not None}
        try:
            text = json.dumps(body, ensure_ascii=False, allow_nan=False)
        except (TypeError, ValueError) as error:
            raise CodecError(f"the request to the model cannot be written as JSON: {error}") from None
        # Of other compressions, a piece may take all of this machine's memory.
        headers = {"content-type": "application/json", "accept-encoding": "gzip, deflate", **self._headers}
        key = self._read_key()
        if key is not None:
            headers.setdefault("authorization", f"Bearer {key}")
        url = f"{self.base_url}/chat/completions"
        # A lone surrogate, which a tool may return, is not valid UTF-8.
        content = text.encode("utf-8", "replace")
        return {"method": "POST", "url": url, "content": content, "headers": headers}

    def _read_key(self) -> str | None:
        if self._api_key is not None:
            return self._api_key
        key = os.environ.get("OPENAI_API_KEY", "").strip()
        if key:
            return _check_key(key, "OPENAI_API_KEY")
        if self.base_url == OPENAI and "authorization" not in self._headers:
            raise ArgumentError(
                "no key for OpenAI's server: set OPENAI_API_KEY, pass api_key=, or the base_url of another server"
            )
        return None

    def _decode(self, response: Any) -> Message:
        if not response.is_success:
            raise refusal(response, self._secrets())
        return decode_completion(decode_json(response))

    def _wait_after(self, error: Exception, attempt: int, has_begun: bool = False) -> float:
        """Return the seconds until the next attempt, or raise if there is none."""
        failure = error if isinstance(error, ModelError) else transport_error(error, self.base_url, self._secrets())
        if failure is None:
            raise error
        policy = self._retry
        is_last = attempt >= policy.attempts or has_begun or not failure.retryable or not policy.matches(failure)
        if is_last or (failure.retry_after or 0) > policy.max_wait:
            if failure is error:
                raise error
            raise failure from error
        return policy.seconds_before(attempt + 1) if failure.retry_after is None else failure.retry_after

    def _secrets(self) -> list[str]:
        """Return what no error may show."""
        key = self._read_key()
        return [*([key] if key else []), *self._headers.values()]


def _is_stream(response: Any) -> bool:
    """Whether a successful answer is a stream; some servers send the whole message although a stream was asked for."""
    if not response.is_success:
        return False
    return check_content_type(response) == "text/event-stream"


def _texts(decoder: EventDecoder, assembler: MessageAssembler, piece: bytes) -> Generator[str]:
    """Yield the texts that a piece of a stream completes."""
    for data in decoder.feed(piece):
        if data.strip() == "[DONE]":
            continue
        try:
            chunk = json.loads(data)
        except (ValueError, RecursionError):
            raise ModelError(f"a piece of the model's stream is not JSON: {data[:200]!r}") from None
        text = assembler.add(chunk)
        if text:
            yield text


def _whole(message: Message) -> Generator[str | Message]:
    text = text_of(message)
    if text:
        yield text
    yield message


def _check_url(url: object) -> str:
    if not isinstance(url, str):
        raise ArgumentTypeError(f"base_url must be a string, not {url!r:.80}")
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ArgumentError(f"base_url must be like https://host/v1, not {url!r:.80}")
    if "@" in parts.netloc:
        raise ArgumentError("base_url must not contain a password: pass api_key= or headers=")
    if parts.query or parts.fragment:
        raise ArgumentError(f"base_url must end with a path, without ? and #: {url!r:.80}")
    trimmed = url.rstrip("/")
    if trimmed.endswith("/chat/completions"):
        raise ArgumentError(f"base_url must end before /chat/completions, which is added: {url!r:.80}")
    return trimmed


def _check_key(key: object, name: str) -> str:
    """Return a key, or raise without showing it."""
    if not isinstance(key, str):
        raise ArgumentTypeError(f"{name} must be a string, not a {type(key).__name__}")
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        raise ArgumentError(f"{name} must be printable ASCII without spaces, as it is sent in an HTTP header")
    return key


def _check_headers(headers: object) -> dict[str, str]:
    if headers is None:
        return {}
    if not isinstance(headers, Mapping):
        raise ArgumentTypeError(f"headers must be a mapping of names to strings, not a {type(headers).__name__}")
    for name, value in headers.items():
        if not isinstance(name, str) or not isinstance(value, str) or not (name + value).isascii():
            raise ArgumentTypeError(f"headers: the name and the value of {name!r:.80} must be ASCII strings")
        if not value.isprintable():
            raise ArgumentError(f"headers: the value of {name!r:.80} has characters that HTTP does not allow")
    return {name.lower(): value for name, value in headers.items()}


def _check_extra(extra: object) -> dict[str, Any]:
    if extra is None:
        return {}
    if not isinstance(extra, Mapping):
        raise ArgumentTypeError(f"extra must be a mapping of fields of the request, not {extra!r:.80}")
    for name in _RESERVED:
        if name in extra:
            raise ArgumentError(f"extra must not contain {name!r}, which ChatModel sets")
    try:
        json.dumps(dict(extra), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ArgumentError(f"extra must be JSON: {error}") from None
    return dict(extra)


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
