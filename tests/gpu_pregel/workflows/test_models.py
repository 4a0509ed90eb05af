"""ChatModel against a server on loopback: answers, streams, cancellation, connections, keys."""

from __future__ import annotations

import asyncio
import gzip
import json
import pickle
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, CodecError, ModelError
from gpu_pregel.workflows import ChatModel, messages, tool
from gpu_pregel.workflows.event_stream import EventDecoder
from tests.gpu_pregel.workflows.chat_server import (
    DONE,
    ChatServer,
    body,
    chat_server,
    chunk,
    completion,
    events,
    wait_for_client,
)
from tests.gpu_pregel.workflows.ways import (
    ANSWER,
    KEY,
    STREAMS,
    WAYS,
    WHOLE,
    acall,
    call,
    fragment,
    model,
    stream,
)
from tests.packages import needs

needs("httpx", "models")


OK = body(completion())


@pytest.mark.parametrize("way", [call, acall])
def test_request_and_answer(way: Callable[..., Any]) -> None:
    @tool
    def add(a: int) -> int:
        """Add."""
        return a

    asked = [
        messages.system("Be brief."),
        messages.user("1 + 1?", name="Ada"),
        messages.assistant(None, [messages.tool_call("add", {"a": 1}, id="7")], id="m1", usage={"x": 1}),
        messages.tool_answer("2", messages.tool_call("add", id="7"), failed=True),
    ]
    with chat_server(body(completion("Zwölf."))) as server:
        found = way(model(server, temperature=0, headers={"X-Team": "a"}, extra={"max_tokens": 5}), asked, [add])
    assert found == {
        "role": "assistant",
        "content": "Zwölf.",
        "id": "chat-1",
        "finish_reason": "stop",
        "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11},
    }
    assert server.paths == ["/v1/chat/completions"]
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    assert server.headers[0]["x-team"] == "a"
    arguments = {"properties": {"a": {"type": "integer"}}, "required": ["a"], "type": "object"}
    assert server.requests == [
        {
            "model": "test",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "1 + 1?", "name": "Ada"},
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [
                        {"id": "7", "type": "function", "function": {"name": "add", "arguments": '{"a": 1}'}}
                    ],
                },
                {"role": "tool", "content": "2", "tool_call_id": "7"},
            ],
            "tools": [
                {
                    "type": "function",
                    "function": {
                        "name": "add",
                        "description": "Add.",
                        "parameters": {**arguments, "additionalProperties": False},
                    },
                }
            ],
            "temperature": 0,
            "max_tokens": 5,
        }
    ]


@STREAMS
def test_stream_request(way: Callable[..., Any]) -> None:
    with chat_server(events(chunk({"content": "Hi"}, "stop"), DONE)) as server:
        way(model(server, extra={"stream_options": None}), "Hello!")
    assert server.requests == [{"model": "test", "messages": [{"role": "user", "content": "Hello!"}], "stream": True}]


def called(**function: Any) -> dict[str, Any]:
    return {"tool_calls": [{"id": "1", "type": "function", "function": {"name": "add", **function}}]}


@pytest.mark.parametrize(
    "message, calls",
    [
        (
            called(arguments='{"a": [1, {"b": null}]}'),
            [{"id": "1", "name": "add", "arguments": {"a": [1, {"b": None}]}}],
        ),
        (called(arguments=""), [{"id": "1", "name": "add", "arguments": {}}]),
        (called(), [{"id": "1", "name": "add", "arguments": {}}]),
        (called(arguments={"a": 1}), [{"id": "1", "name": "add", "arguments": {"a": 1}}]),
        (called(arguments="{a"), [{"id": "1", "name": "add", "arguments": {}, "invalid_arguments": "{a"}]),
        (called(arguments="[1]"), [{"id": "1", "name": "add", "arguments": {}, "invalid_arguments": "[1]"}]),
    ],
)
def test_tool_calls(message: dict[str, Any], calls: list[Any]) -> None:
    with chat_server(body(completion(None, **message))) as server:
        found = call(model(server), "Hello!")
    assert (found["content"], found["tool_calls"]) == ("", calls)


def test_tool_calls_without_ids_get_different_ones() -> None:
    made = {"function": {"name": "add", "arguments": "{}"}}
    with chat_server(body(completion(None, tool_calls=[made, made]))) as server:
        found = call(model(server), "Hello!")
    assert len({one["id"] for one in found["tool_calls"]}) == 2


@STREAMS
@pytest.mark.parametrize("size", [1, 7, 100_000])
def test_streams_may_be_cut_anywhere(way: Callable[..., Any], size: int) -> None:
    data = b": a comment\n\n" + b"".join(ANSWER)
    pieces = [data[k : k + size] for k in range(0, len(data), size)]
    with chat_server(events(*pieces)) as server:
        assert way(model(server), "Hello!") == WHOLE


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("size", [1, 2, 3, 1000])
def test_events_with_any_newline(newline: str, size: int) -> None:
    text = "event: x\ndata: a\n\n\nid: 1\ndata:b\ndata:  c\n\n: note\ndata\n\ndata: \u2028\x85\n\ndata: lost"
    data = text.replace("\n", newline).encode()
    decoder = EventDecoder(1000)
    found = [one for k in range(0, len(data), size) for one in decoder.feed(data[k : k + size])]
    assert found == ["a", "b\n c", "", "\u2028\x85"]


def test_endless_event_is_refused() -> None:
    decoder = EventDecoder(1000)
    assert list(decoder.feed(b"data: " + b"x" * 994)) == []
    with pytest.raises(ModelError, match="is longer than 1,000 bytes: increase max_answer_bytes="):
        list(decoder.feed(b"x"))
    with pytest.raises(ModelError, match="is longer than 1,000 bytes"):
        list(EventDecoder(1000).feed(b"data: x\n\n" * 112))


def endless(kind: str) -> Callable[[Any], None]:
    """Answer without end, until the client leaves."""

    def answer(handler: Any) -> None:
        handler.close_connection = True
        handler.send_response(200)
        handler.send_header("content-type", kind)
        handler.end_headers()
        try:
            for _ in range(100_000):
                handler.wfile.write(b" " * 4096 if "json" in kind else chunk({"content": "x" * 1000}))
        except ConnectionError:
            handler.server.disconnected.set()

    return answer


def compressed(size: int, encoding: str = "gzip") -> Callable[[Any], None]:
    """Answer with that many bytes, compressed."""
    return body(gzip.compress(b'{"a": "' + b" " * size), content_encoding=encoding)


@WAYS
@pytest.mark.parametrize(
    "answer", [endless("application/json"), endless("text/event-stream"), compressed(10_000_000)],
    ids=["endless", "endless stream", "compressed"],
)  # fmt: skip
def test_an_answer_beyond_the_limit_is_refused(way: Callable[..., Any], answer: Any) -> None:
    with chat_server(answer) as server:
        with pytest.raises(ModelError, match="increase max_answer_bytes= of ChatModel") as caught:
            way(model(server, max_answer_bytes=1_000_000), "Hello!")
        assert not caught.value.retryable
        assert len(server.requests) == 1
        assert server.headers[0]["accept-encoding"] == "gzip, deflate"
        assert answer.__name__ != "endless" or server.disconnected.wait(20)


@WAYS
def test_an_answer_may_be_as_long_as_the_limit(way: Callable[..., Any]) -> None:
    content = json.dumps(completion("Hello.")).encode()
    with chat_server(body(gzip.compress(content), content_encoding="gzip")) as server:
        assert way(model(server, max_answer_bytes=len(content)), "Hello!")["content"] == "Hello."
        with pytest.raises(ModelError, match="is longer than"):
            way(model(server, max_answer_bytes=len(content) - 1), "Hello!")


@STREAMS
def test_a_stream_of_many_calls_is_limited(way: Callable[..., Any]) -> None:
    calls = [fragment(index) for index in range(1000)]
    with (
        chat_server(events(*calls, chunk({}, "stop"))) as server,
        pytest.raises(ModelError, match="the model's answer is longer than 50,000 bytes"),
    ):
        way(model(server, max_answer_bytes=50_000), "Hello!")


@WAYS
def test_other_compressions_are_refused(way: Callable[..., Any]) -> None:
    with (
        chat_server(compressed(10, "gzip, gzip")) as server,
        pytest.raises(ModelError, match="answered in the content encoding 'gzip, gzip', but was asked for gzip"),
    ):
        way(model(server), "Hello!")


@WAYS
def test_a_refusal_is_read_in_part(way: Callable[..., Any]) -> None:
    with (
        chat_server(body(b"\x1b[31mno" + b"x" * 10_000_000, 400)) as server,
        pytest.raises(ModelError, match=r"status 400: \\x1b\[31mnox+…") as caught,
    ):
        way(model(server, max_answer_bytes=1000), "Hello!")
    assert len(str(caught.value)) < 1000


def test_the_text_of_an_error_is_bounded_and_printable() -> None:
    text = str(ModelError("\x1b]0;title\x07" + "x" * 10_000))
    assert text.startswith(r"\x1b]0;title\x07xx")
    assert text.endswith("x…")
    assert len(text) < 2100
    assert text.isprintable()


def test_calls_that_are_all_numbered_0_stay_apart() -> None:
    parts = [fragment(0, '{"a"', id="1", name="f"), fragment(0, ": 1}"), fragment(0, "{}", id="2", name="g")]
    with chat_server(events(*parts, chunk({}, "stop"))) as server:
        found = stream(model(server), "Hello!")
    assert found["tool_calls"] == [
        {"id": "1", "name": "f", "arguments": {"a": 1}},
        {"id": "2", "name": "g", "arguments": {}},
    ]


@STREAMS
def test_server_that_does_not_stream(way: Callable[..., Any]) -> None:
    with chat_server(body(completion("All at once."))) as server:
        assert way(model(server), "Hello!")["content"] == "All at once."


@WAYS
def test_timeout(way: Callable[..., Any]) -> None:
    with chat_server(wait_for_client) as server, pytest.raises(ModelError, match="did not answer in time") as caught:
        way(model(server, timeout=0.05, retry=None), "Hello!")
    assert caught.value.retryable
    assert server.disconnected.wait(20)


@WAYS
def test_no_server(way: Callable[..., Any]) -> None:
    with chat_server(OK) as server:
        gone = model(server)
    with pytest.raises(ModelError, match=r"cannot connect to http://127\.0\.0\.1"):
        way(gone, "Hello!")


def test_closing_a_stream_closes_the_connection() -> None:
    with chat_server(events(chunk({"content": "Hi,"}), hangs=True)) as server:
        asked = model(server)
        pieces = asked.stream("Hello!")
        assert next(pieces) == "Hi,"
        pieces.close()
        assert server.disconnected.wait(20)
        asked.close()


@pytest.mark.parametrize("streams", [False, True])
def test_cancellation_closes_the_connection(streams: bool) -> None:
    async def main(asked: ChatModel, server: ChatServer) -> None:
        async def ask() -> None:
            if not streams:
                await asked.acall("Hello!")
            async for _ in asked.astream("Hello!"):
                begun.set()

        begun = asyncio.Event()
        task = asyncio.create_task(ask())
        if streams:
            await begun.wait()
        while not server.requests:
            await asyncio.sleep(0.001)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.disconnected.wait, 20)

    answer = events(chunk({"content": "Hi,"}), hangs=True) if streams else wait_for_client
    with chat_server(answer) as server:
        asyncio.run(main(model(server), server))
    assert len(server.requests) == 1


def test_connections_are_kept() -> None:
    with chat_server(OK) as server:
        asked = model(server)
        for _ in range(3):
            asked("Hello!")
        assert len(server.connections) == 1
        asked.close()
        asked("Hello!")
        assert len(server.connections) == 2

        async def main() -> None:
            for _ in range(3):
                await asked.acall("Hello!")

        asyncio.run(main())  # warnings about sockets that are left open would be errors
        asyncio.run(main())
        assert len(server.connections) == 4
        asked.close()


def test_many_at_once() -> None:
    async def main() -> list[Any]:
        return await asyncio.gather(*(asked.acall(f"Hello {k}!") for k in range(150)))

    with chat_server(OK) as server:
        asked = model(server, retry=None)
        assert [one["content"] for one in asyncio.run(main())] == ["Hello."] * 150
    assert len(server.connections) <= 100


def test_key_is_read_where_it_is_used_and_shown_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", f"{KEY}\n")
    quoting = body({"error": {"message": f"Incorrect key Bearer {KEY} for team-secret"}}, 401)
    with chat_server(OK, quoting) as server:
        asked = ChatModel("test", base_url=server.url, headers={"X-Team": "team-secret"})
        pickled = pickle.dumps(asked)
        copy = pickle.loads(pickled)
        call(copy, "Hello!")
        with pytest.raises(ModelError, match=r"Incorrect key Bearer \*\*\* for \*\*\*") as caught:
            call(copy, "Hello!")
    assert server.headers[0]["authorization"] == f"Bearer {KEY}"
    for shown in (pickled.decode("latin-1"), repr(asked), str(caught.value)):
        assert KEY not in shown
    assert repr(copy) == f"ChatModel('test', base_url='{server.url}')"
    assert KEY not in repr(ChatModel("test", base_url=server.url, api_key=KEY))
    assert KEY in pickle.dumps(ChatModel("test", base_url=server.url, api_key=KEY)).decode("latin-1")


def test_servers_of_others_need_no_key() -> None:
    with chat_server(OK) as server:
        call(ChatModel("test", base_url=server.url), "Hello!")
    assert "authorization" not in server.headers[0]


def test_forked_process_uses_a_connection_of_its_own() -> None:
    program = """if True:
        import os, sys
        from gpu_pregel.workflows import ChatModel
        model = ChatModel("test", base_url=sys.argv[1])
        model("Hello!")
        pid = os.fork()
        model("Hello!")
        if not pid:
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
    """
    with chat_server(OK) as server:
        subprocess.run([sys.executable, "-c", program, server.url], check=True, timeout=60)
    assert (len(server.requests), len(server.connections)) == (3, 2)


@pytest.mark.parametrize(
    "arguments, error, text",
    [
        ({"model": ""}, ArgumentError, "model must have"),
        ({"base_url": "localhost:8080"}, ArgumentError, "like https://host/v1"),
        ({"base_url": "ftp://host"}, ArgumentError, "like https://host/v1"),
        ({"base_url": "http://ada:pass@host/v1"}, ArgumentError, "must not contain a password"),
        ({"base_url": "http://host/v1?a=b"}, ArgumentError, "without"),
        ({"base_url": "http://host/v1/chat/completions"}, ArgumentError, "which is added"),
        ({"base_url": 1}, ArgumentTypeError, "must be a string"),
        ({"base_url": None}, ArgumentError, "no key for OpenAI's server: set OPENAI_API_KEY"),
        ({"api_key": ""}, ArgumentError, "api_key must be printable"),
        ({"api_key": "sk-secret\n"}, ArgumentError, "api_key must be printable ASCII without spaces"),
        ({"api_key": b"sk-secret"}, ArgumentTypeError, "api_key must be a string, not a bytes"),
        ({"timeout": 0}, ArgumentError, "timeout must be"),
        ({"retry": 3}, ArgumentTypeError, "retry must be a RetryPolicy or None, not 3"),
        ({"temperature": -1}, ArgumentError, "temperature must be at least 0"),
        ({"headers": {"X": 1}}, ArgumentTypeError, "headers: the name and the value of 'X'"),
        ({"headers": {"X": "a\nb"}}, ArgumentError, "characters that HTTP does not allow"),
        ({"headers": "X"}, ArgumentTypeError, "headers must be a mapping"),
        ({"extra": {"stream": True}}, ArgumentError, "extra must not contain 'stream'"),
        ({"extra": {"n": 2}}, ArgumentError, "extra must not contain 'n'"),
        ({"extra": {"a": {1}}}, ArgumentError, "extra must be JSON"),
        ({"max_answer_bytes": 0}, ArgumentError, "max_answer_bytes must be"),
        ({"max_answer_bytes": 1.5}, ArgumentTypeError, "max_answer_bytes must be"),
        ({"extra": 1}, ArgumentTypeError, "extra must be a mapping"),
    ],
)
def test_bad_arguments(arguments: dict[str, Any], error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text) as caught:
        ChatModel(**{"model": "test", "base_url": "http://host/v1", **arguments})
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "asked, error, text",
    [
        ([{"role": "robot", "content": ""}], ArgumentError, r"messages\[0\]: role must be"),
        (7, ArgumentTypeError, "messages must be a string, a message or a list"),
        (
            [messages.assistant("", [messages.tool_call("f", {"a": {1}}, id="1")])],
            CodecError,
            "the arguments of the tool call '1' are not JSON",
        ),
        ([messages.user([{"type": "text", "text": b""}])], CodecError, "cannot be written as JSON"),
    ],
)
def test_bad_messages_are_refused_before_anything_is_sent(asked: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        ChatModel("test", base_url="http://127.0.0.1:1")(asked)


def test_httpx_is_asked_for_by_the_name_of_the_extra() -> None:
    program = """if True:
        import sys
        sys.modules["httpx"] = None
        from gpu_pregel.workflows import ChatModel
        ChatModel("test", base_url="http://host/v1")
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert 'ChatModel needs the package httpx: pip install "gpu-pregel[models]"' in done.stderr
