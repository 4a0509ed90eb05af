"""A PostgreSQL server for tests in a temporary folder, and a proxy that can cut connections to it."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing, suppress
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Any, Self

_SECONDS = 60
_SETTINGS = ("listen_addresses=", "fsync=off", "shared_buffers=16MB", "max_connections=40", "log_min_messages=fatal")


def _program(name: str) -> str | None:
    """Return the path of a program of PostgreSQL, on Debian that of the newest version."""
    versions = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: int(path.parts[4]))
    return str(versions[-1]) if versions else shutil.which(name)


def why_missing() -> str | None:
    """Return why no server can be started on this machine, or None."""
    if find_spec("psycopg") is None:
        return "psycopg is not installed: pip install gpu-pregel[postgres]"
    if _program("initdb") is None or _program("postgres") is None:
        return "PostgreSQL is not installed: apt-get install postgresql"
    return None


def _account() -> dict[str, Any]:
    """Return options that run the server as another user, as it refuses to run as root."""
    if os.geteuid() != 0:
        return {}
    with suppress(KeyError):
        account = pwd.getpwnam("postgres")
        return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
    return {"user": 65534, "group": 65534, "extra_groups": []}


class Cluster:
    """A server that listens only on a Unix socket in its folder."""

    def __init__(self) -> None:
        # Not in pytest's folder, which other users cannot enter; the path of a socket is limited to 107 bytes.
        self.folder = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))
        self.dsn = f"host={self.folder} user=postgres dbname=postgres"
        self._run: dict[str, Any] = {"cwd": self.folder, **_account()}
        if "user" in self._run:
            os.chown(self.folder, self._run["user"], self._run["group"])
        self._server: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            initdb = [
                str(_program("initdb")),
                "-D",
                "data",
                "-U",
                "postgres",
                "-A",
                "trust",
                "-E",
                "UTF8",
                "--locale=C",
            ]
            made = subprocess.run([*initdb, "--no-sync"], check=False, capture_output=True, text=True, **self._run)
            assert made.returncode == 0, made.stderr
            self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def start(self, *settings: str) -> None:
        """Start the server and wait until it accepts connections."""
        import psycopg

        chosen = [word for setting in (*_SETTINGS, *settings) for word in ("-c", setting)]
        command = [str(_program("postgres")), "-D", "data", "-k", str(self.folder), *chosen]
        with open(self.folder / "log", "ab") as log:
            self._server = subprocess.Popen(command, stdout=log, stderr=log, **self._run)
        deadline = time.monotonic() + _SECONDS
        while True:
            try:
                psycopg.connect(self.dsn).close()
            except psycopg.OperationalError:
                log_text = (self.folder / "log").read_text()
                assert self._server.poll() is None, log_text
                assert time.monotonic() < deadline, log_text
                time.sleep(0.05)
            else:
                return

    def stop(self, how: signal.Signals = signal.SIGINT) -> None:
        """Stop the server: SIGINT closes connections and shuts down cleanly, SIGQUIT does not."""
        if self._server is not None:
            self._server.send_signal(how)
            self._server.wait(_SECONDS)
            self._server = None

    def execute(self, statement: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """Execute a statement and return its rows."""
        import psycopg

        with psycopg.connect(self.dsn, autocommit=True) as connection:
            cursor = connection.execute(statement.encode(), parameters or None)
            return cursor.fetchall() if cursor.description else []


class Proxy:
    """Forwards connections to a server; ``watch`` sees all data and may cut a connection.

    Parameters
    ----------
    cluster : Cluster
    """

    def __init__(self, cluster: Cluster) -> None:
        self._target = str(cluster.folder / ".s.PGSQL.5432")
        self._listener = self._listen(0)
        self.port = self._listener.getsockname()[1]
        self.dsn = f"host=127.0.0.1 port={self.port} user=postgres dbname=postgres sslmode=disable gssencmode=disable"
        self.watch: Callable[[bool, bytes], bool] = lambda _to_server, _data: True
        """Called with the direction and the data; the connection is cut unless it returns True."""
        self.connections = 0
        self._open: set[socket.socket] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Refuse new connections and cut the open ones."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for end in list(self._open):
            self._cut(end)

    def reopen(self) -> None:
        """Accept connections again on the same port."""
        self._listener = self._listen(self.port)

    def _listen(self, port: int) -> socket.socket:
        listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        return listener

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._target)
                self.connections += 1
                self._open |= {client, server}
                for source, target, to_server in ((client, server, True), (server, client, False)):
                    threading.Thread(target=self._pump, args=(source, target, to_server), daemon=True).start()

    def _pump(self, source: socket.socket, target: socket.socket, to_server: bool) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if not self.watch(to_server, data):
                    break
                target.sendall(data)
        self._cut(source)
        self._cut(target)

    def _cut(self, end: socket.socket) -> None:
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
        with closing(end):
            self._open.discard(end)


def cut_at_commit(proxy: Proxy, moment: str, after: Callable[[], None] = lambda: None) -> None:
    """Cut the connection once, before the next COMMIT reaches the server or before its reply returns.

    ``after`` is called after the reconnection, before any data pass through it.
    """
    state = "waiting"

    def watch(to_server: bool, data: bytes) -> bool:
        nonlocal state
        if state == "waiting" and to_server and b"COMMIT\0" in data:
            state = "cut" if moment == "request" else "committing"
            return state != "cut"
        if state == "committing" and not to_server:
            state = "cut"
            return False
        if state == "cut" and to_server:
            state = "again"
            after()
        return True

    proxy.watch = watch
