"""Errors of a model's server: refusals, answers that are no JSON, and failed connections."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from gpu_pregel.errors import ModelError
from gpu_pregel.host.arguments import require
from gpu_pregel.workflows.chat_format import error_code, error_text, too_long

_EXCERPT = 200
_REFUSAL_BYTES = 1 << 16
_RETRIED = (408, 409, 429)
_HINTS = {
    401: "check the key",
    403: "check the key's permissions",
    404: "check base_url and the name of the model",
    413: "the request is too long: send fewer or shorter messages",
}
_LONGEST_WAIT = 1e9


class Body:
    """Collects the content of an answer.

    Parameters
    ----------
    response : httpx.Response
        An answer whose content has not been read.
    limit : int
        Bytes after decompression. What a refusal has beyond 64 KiB is left out; a longer answer is an error.
    """

    def __init__(self, response: Any, limit: int) -> None:
        self._response = response
        self._limit = limit
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, piece: bytes) -> bool:
        """Add a piece, and return whether the rest is wanted."""
        self._parts.append(piece)
        self._size += len(piece)
        if not self._response.is_success:
            return self._size <= _REFUSAL_BYTES
        if self._size > self._limit:
            raise too_long("the model's answer", self._limit)
        return True

    def whole(self) -> Any:
        """Return the answer with its content."""
        httpx = require("httpx", "ChatModel", '"gpu-pregel[models]"')
        response = self._response
        content = b"".join(self._parts)
        headers = [(name, value) for name, value in response.headers.multi_items() if name != "content-encoding"]
        if not response.is_success:
            content = content[:_REFUSAL_BYTES]
        return httpx.Response(response.status_code, headers=headers, content=content, request=response.request)


def check_encoding(response: Any) -> None:
    """Raise for a compression that was not asked for, a piece of which could take all of this machine's memory."""
    encoding = response.headers.get("content-encoding", "identity").strip().lower()
    if encoding not in ("identity", "", "gzip", "deflate"):
        raise ModelError(
            f"{_place(response)} answered in the content encoding {encoding[:_EXCERPT]!r}, "
            "but was asked for gzip or none",
            retryable=False,
        )


def decode_json(response: Any) -> Any:
    """Return the JSON of a successful answer."""
    kind = check_content_type(response)
    try:
        return response.json()
    except (ValueError, RecursionError):
        raise ModelError(
            f"{_place(response)} answered with malformed JSON ({kind or 'no content type'}): {_excerpt(response.text)}"
        ) from None


def check_content_type(response: Any) -> str:
    """Return the content type of a successful answer, or raise if it is not that of a model."""
    header = response.headers.get("content-type", "")
    kind = header.partition(";")[0].strip().lower()
    if kind in ("", "text/event-stream", "application/json", "text/plain") or kind.endswith("+json"):
        return str(kind)
    raise ModelError(
        f"{_place(response)} answered with {_excerpt(kind)} instead of JSON or a stream of events: check base_url, "
        "which usually ends in /v1",
        retryable=False,
    )


def refusal(response: Any, secrets: Iterable[str]) -> ModelError:
    """Return the error of an answer with a status that is no success."""
    status = response.status_code
    try:
        body = response.json()
    except (ValueError, RecursionError):
        body = None
    text = error_text(body) if body is not None else _excerpt(response.text)
    # Money, unlike a rate, does not come back by waiting.
    retryable = (status in _RETRIED or status >= 500) and error_code(body) != "insufficient_quota"
    hints = [_HINTS[status]] if status in _HINTS else []
    if 300 <= status < 400:
        hints.append(
            f"it redirects to {_excerpt(response.headers.get('location', 'an unknown address'))}: change base_url"
        )
    request_id = response.headers.get("x-request-id")
    named = f" (request {_excerpt(request_id)})" if request_id else ""
    whole = f"{_place(response)} answered with status {status}{named}: {text or 'without a message'}"
    return ModelError(
        redact("; ".join([whole, *hints]), secrets),
        status=status,
        retryable=retryable,
        retry_after=retry_after(response.headers) if retryable else None,
    )


def transport_error(error: Exception, url: str, secrets: Iterable[str]) -> ModelError | None:
    """Return the error of a failed connection, or None if ``error`` is something else."""
    httpx = require("httpx", "ChatModel", '"gpu-pregel[models]"')
    if not isinstance(error, (httpx.RequestError, httpx.StreamError, httpx.InvalidURL)):
        return None
    detail = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    if isinstance(error, httpx.ConnectTimeout | httpx.ConnectError):
        text = f"cannot connect to {url} ({detail})"
    elif isinstance(error, httpx.TimeoutException):
        text = f"{url} did not answer in time ({detail}): increase timeout="
    else:
        text = f"the connection to {url} failed ({detail})"
    transient = isinstance(error, httpx.TransportError) and not isinstance(error, httpx.UnsupportedProtocol)
    return ModelError(redact(text, secrets), retryable=transient)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds that a server asks to wait, as a number or until a date."""
    for name, unit in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        value = headers.get(name, "").strip()
        try:
            seconds = float(value) * unit
        except ValueError:
            continue
        return min(max(seconds, 0.0), _LONGEST_WAIT - 1) if seconds == seconds else None
    try:
        seconds = parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - time.time()
    except (ValueError, OverflowError):
        return None
    return min(max(seconds, 0.0), _LONGEST_WAIT - 1)


def redact(text: str, secrets: Iterable[str]) -> str:
    """Remove secrets from a text, as a server may quote them."""
    for secret in secrets:
        if len(secret) >= 4:  # a shorter one would blank ordinary words
            text = text.replace(secret, "***")
    return text


def _place(response: Any) -> str:
    url = response.request.url
    return f"{url.scheme}://{url.netloc.decode()}{url.path}"


def _excerpt(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _EXCERPT else f"{text[:_EXCERPT]}…"
