"""ChatModel against a server on loopback: retries, and the errors of refusals, broken answers and connections."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from gpu_pregel.errors import ModelError
from gpu_pregel.workflows.chat_responses import retry_after
from tests.gpu_pregel.workflows.chat_server import (
    body,
    chat_server,
    chunk,
    completion,
    drop,
    events,
)
from tests.gpu_pregel.workflows.ways import (
    ANSWER,
    STREAMS,
    WAYS,
    WHOLE,
    call,
    fragment,
    model,
)
from tests.packages import needs

needs("httpx", "models")


OK = body(completion())


def busy(status: int, **headers: str) -> Any:
    return body({"error": {"message": f"busy {status}"}}, status, **headers)


@WAYS
@pytest.mark.parametrize(
    "failures",
    [
        [busy(429, retry_after="0")],
        [busy(500), busy(503)],
        [busy(408), busy(409)],
        [drop, drop],
        [body(b'{"choices": [', 200)],
    ],
    ids=["429", "5xx", "408", "dropped", "cut"],
)
def test_retried(way: Callable[..., Any], failures: list[Any]) -> None:
    with chat_server(*failures, OK) as server:
        assert way(model(server), "Hello!")["content"] == "Hello."
    assert len(server.requests) == len(failures) + 1
    assert all(request == server.requests[0] for request in server.requests)


@pytest.mark.parametrize(
    "failure, status, retryable, requests, text",
    [
        (busy(500), 500, True, 3, "answered with status 500: busy 500"),
        (busy(400), 400, False, 1, "answered with status 400: busy 400"),
        (busy(401), 401, False, 1, "busy 401; check the key"),
        (busy(404), 404, False, 1, "busy 404; check base_url and the name of the model"),
        (body({"detail": "no"}, 422), 422, False, 1, "status 422: no"),
        (body({"message": "no"}, 422), 422, False, 1, "status 422: no"),
        (body({"error": "no"}, 422, x_request_id="r1"), 422, False, 1, "status 422 (request r1): no"),
        (body(b"<p>bad\ngateway</p>", 502, kind="text/html"), 502, True, 3, "status 502: <p>bad gateway</p>"),
        (body(b"", 504), 504, True, 3, "status 504: without a message"),
        (body(b"", 302, location="/v2"), 302, False, 1, "it redirects to /v2: change base_url"),
        (body({"error": {"message": "pay", "code": "insufficient_quota"}}, 429), 429, False, 1, "status 429: pay"),
        (body(b"<html>", kind="text/html"), None, False, 1, "answered with text/html instead of JSON"),
        (body(b"{1"), None, True, 3, "answered with malformed JSON (application/json): {1"),
        (body({"choices": []}), None, True, 3, 'no choices[0].message: {"choices": []}'),
        (drop, None, True, 3, "failed (RemoteProtocolError"),
    ],
)
def test_errors(failure: Any, status: int | None, retryable: bool, requests: int, text: str) -> None:
    with chat_server(failure) as server, pytest.raises(ModelError) as caught:
        call(model(server), "Hello!")
    assert text in str(caught.value)
    assert (caught.value.status, caught.value.retryable, len(server.requests)) == (status, retryable, requests)
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (str(copy), copy.status, copy.retryable) == (str(caught.value), status, retryable)


@STREAMS
def test_errors_of_streams(way: Callable[..., Any]) -> None:
    with chat_server(busy(400)) as server, pytest.raises(ModelError, match="busy 400"):
        way(model(server), "Hello!")
    with chat_server(body(b"<html>", kind="text/html")) as server, pytest.raises(ModelError, match="text/html"):
        way(model(server), "Hello!")


def test_long_retry_after_is_left_to_the_caller() -> None:
    with chat_server(busy(429, retry_after="3600")) as server, pytest.raises(ModelError) as caught:
        call(model(server), "Hello!")
    assert (len(server.requests), caught.value.retryable, caught.value.retry_after) == (1, True, 3600)


@pytest.mark.parametrize(
    "headers, seconds",
    [
        ({"retry-after": "2"}, 2.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "1500", "retry-after": "9"}, 1.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, 1e9 - 1),
        ({"retry-after": "soon"}, None),
        ({}, None),
        ({"retry-after": "Wed, 21 Oct 2015 07:28:00 GMT"}, 0.0),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == seconds


def test_retry_after_a_date() -> None:
    later = format_datetime(datetime.now(UTC) + timedelta(hours=1), usegmt=True)
    found = retry_after({"retry-after": later})
    assert found is not None
    assert 3000 < found <= 3600


@STREAMS
@pytest.mark.parametrize(
    "broken, text",
    [
        (events(chunk({"content": "Hi,"}), is_complete=False), "connection to .* failed"),
        (events(chunk({"content": "Hi,"})), "ended before the answer was complete"),
        (events(chunk({"content": "Hi,"}), b"data: {1\n\n"), "is not JSON"),
        (events(chunk({"content": "Hi,"}), b"data: [1]\n\n"), "is not a JSON object"),
        (events(chunk({"content": "Hi,"}), chunk(error={"message": "overloaded"})), "answered: overloaded"),
    ],
    ids=["dropped", "incomplete", "malformed", "list", "error"],
)
def test_no_retry_once_a_token_has_been_returned(way: Callable[..., Any], broken: Any, text: str) -> None:
    with chat_server(broken, OK) as server, pytest.raises(ModelError, match=text) as caught:
        way(model(server), "Hello!")
    assert (len(server.requests), caught.value.retryable) == (1, True)


@STREAMS
def test_retry_before_the_first_token(way: Callable[..., Any]) -> None:
    broken = events(chunk({"role": "assistant", "content": ""}), fragment(0, "{", id="1", name="f"), is_complete=False)
    with chat_server(broken, events(*ANSWER)) as server:
        assert way(model(server), "Hello!") == WHOLE
    assert len(server.requests) == 2
