"""A server on loopback that gives prepared answers, and notes what it is asked."""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

Answer = Callable[[Any], None]


class ChatServer(ThreadingHTTPServer):
    """Gives each request the next answer; the last one is repeated."""

    daemon_threads = True
    request_queue_size = 256
    block_on_close = False

    def __init__(self, *answers: Answer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers = list(answers)
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.connections: set[Any] = set()
        self.disconnected = Event()
        """Set when a client leaves an answer that hangs."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ChatServer

    def do_POST(self) -> None:
        server = self.server
        body = self.rfile.read(int(self.headers["content-length"]))
        number = len(server.requests)
        server.requests.append(json.loads(body))
        server.headers.append({name.lower(): value for name, value in self.headers.items()})
        server.paths.append(self.path)
        server.connections.add(self.client_address)
        with suppress(ConnectionError):
            server.answers[min(number, len(server.answers) - 1)](self)

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def chat_server(*answers: Answer) -> Iterator[ChatServer]:
    """Serve answers until the end of the block."""
    with ChatServer(*answers) as server:
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


def body(content: Any, status: int = 200, *, kind: str = "application/json", **headers: str) -> Answer:
    """Answer with JSON, or with bytes as they are."""
    data = content if isinstance(content, bytes) else json.dumps(content).encode()

    def answer(handler: Any) -> None:
        handler.send_response(status)
        handler.send_header("content-type", kind)
        handler.send_header("content-length", str(len(data)))
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.end_headers()
        handler.wfile.write(data)

    return answer


def completion(content: str | None = "Hello.", **message: Any) -> dict[str, Any]:
    """Return the body of a whole answer."""
    return {
        "id": "chat-1",
        "object": "chat.completion",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": content, **message}, "finish_reason": "stop"}
        ],
        "usage": {"prompt_tokens": 9, "completion_tokens": 2, "total_tokens": 11},
    }


def chunk(delta: dict[str, Any] | None = None, finish_reason: str | None = None, **more: Any) -> bytes:
    """Return an event of a stream."""
    choices = [] if delta is None else [{"index": 0, "delta": delta, "finish_reason": finish_reason}]
    return b"data: " + json.dumps({"id": "chat-1", "choices": choices, **more}, ensure_ascii=False).encode() + b"\n\n"


DONE = b"data: [DONE]\n\n"


def events(*pieces: bytes, is_complete: bool = True, hangs: bool = False) -> Answer:
    """Answer with a stream whose pieces arrive apart; then end it, cut the connection, or say nothing more."""

    def answer(handler: Any) -> None:
        handler.send_response(200)
        handler.send_header("content-type", "text/event-stream; charset=utf-8")
        handler.send_header("transfer-encoding", "chunked")
        handler.end_headers()
        for piece in pieces:
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            handler.wfile.flush()
        if hangs:
            wait_for_client(handler)
        elif is_complete:
            handler.wfile.write(b"0\r\n\r\n")
        handler.close_connection = hangs or not is_complete

    return answer


def wait_for_client(handler: Any) -> None:
    """Send nothing until the client leaves."""
    handler.close_connection = True
    handler.connection.settimeout(20)
    with suppress(ConnectionError):
        if handler.connection.recv(1) != b"":
            return
    handler.server.disconnected.set()


def drop(handler: Any) -> None:
    """Cut the connection instead of answering."""
    handler.close_connection = True
    with suppress(OSError):
        handler.connection.shutdown(socket.SHUT_RDWR)
