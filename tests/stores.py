"""Helpers for tests of stores: runs, their contents, a cipher, and other processes."""

from __future__ import annotations

import random
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gpu_pregel as gp
from gpu_pregel.errors import StoreError
from gpu_pregel.host.stores.rows import Claim
from gpu_pregel.host.stores.saved_run import SavedRun
from gpu_pregel.host.stores.store import Store

Open = Callable[..., Store]
STORES = ["memory", "sqlite", "postgres"]


class XorCipher:
    """A cipher without secrecy that verifies the context."""

    def __init__(self, key: int = 7) -> None:
        self.key = key

    def encrypt(self, data: bytes, context: bytes) -> bytes:
        return bytes(byte ^ self.key for byte in context[:40].ljust(40, b"\0") + data)

    def decrypt(self, data: bytes, context: bytes) -> bytes:
        opened = bytes(byte ^ self.key for byte in data)
        if opened[:40] != context[:40].ljust(40, b"\0"):
            raise ValueError("not what was encrypted")
        return opened[40:]


def begin(store: Store, run_id: str = "run", **options: Any) -> Claim:
    return store.create(run_id, "agents", b"base", **{"owner": "first", "durability": "process", **options})


def begin_durable(store: Store, run_id: str = "run", **options: Any) -> Claim:
    """Create a run with the default durability."""
    return store.create(run_id, "agents", b"base", **{"owner": "first", **options})


def run_to(store: Store, claim: Claim, first: int, end: int) -> None:
    for step in range(first, end):
        store.commit(claim, step, b"commit %d" % step, [b"segment %d" % step])


def contents(saved: SavedRun) -> list[Any]:
    commits = [(commit.step, commit.data, list(commit.segments())) for commit in saved.commits()]
    return [saved.base(), commits, list(saved.held())]


def everything(store: Any) -> list[Any]:
    """Return everything that can be read from a store."""
    found: list[Any] = store.runs()
    for row in list(found):
        found.append([commit._replace(base=False) for commit in store.history(row.id)])
        for step in [None, *range(-1 if row.parent is None else row.head, row.head + 1)]:
            saved = store.load(row.id, step)
            commits = [(commit.step, commit.data, list(commit.segments())) for commit in saved.commits()]
            blobs = [bytes(saved.blob(name)) for name in saved.blobs]
            found.append((saved.run, state(saved, commits), blobs, list(saved.held()), saved.answers))
    return found


def state(saved: Any, commits: list[Any]) -> Any:
    """Return the base and the supersteps that lead to it and follow it, the same for any choice of base."""
    return [*range(saved.base_step + 1), *[step for step, *_ in commits]], saved.base()


def execute(store: Store, *statements: str) -> None:
    """Execute statements that no method of a store sends."""
    first, *rest = [
        (statement.replace("@", store._database.dialect.prefix), ())
        for statement in ("UPDATE @runs SET head = head", *statements)
    ]
    store._database.apply(False, first, rest)


def check_damaged_copies(whole: bytes, path: Path, count: int, everything: Callable[[Any], Any], expected: Any) -> None:
    """Damage ``count`` copies of a SQLite file; each must be read correctly or refused."""
    chance = random.Random(count)
    read = refused = 0
    for number in range(count):
        damaged = bytearray(whole)
        # Positions spread over the file, with one in ten in the header.
        at = chance.randrange(100) if number % 10 == 0 else int((number + chance.random()) / count * len(whole))
        if number % 5 == 4:
            del damaged[at:]
        else:
            damaged[at] ^= chance.choice([1, 2, 4, 8, 16, 32, 64, 128, 255])
        path.write_bytes(damaged)
        try:
            with gp.SQLiteStore(path, read_only=number % 2 == 0, create=False) as store:
                assert everything(store) == expected, f"damage {number} at {at} was not detected"
                read += 1
        except StoreError:
            refused += 1
        for leftover in path.parent.iterdir():
            leftover.unlink()
    assert read > count // 50
    assert refused > count // 3


def python(program: str, *arguments: object, prefix: tuple[str, ...] = ()) -> subprocess.Popen[str]:
    """Start a program in another process."""
    command = [*prefix, sys.executable, "-c", textwrap.dedent(program), *map(str, arguments)]
    return subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def output(process: subprocess.Popen[str]) -> str:
    out, err = process.communicate(timeout=200)
    assert process.returncode == 0, err
    return out


def run_together(*processes: subprocess.Popen[str]) -> list[str]:
    """Start processes that wait for a line at the same time, and return their outputs."""
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    outputs = [process.communicate(timeout=200) for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes), outputs
    return [out for out, _ in outputs]


def race_program(opening: str, rounds: int) -> str:
    """Return a program that competes for a run with others; ``opening`` opens the store from ``where``."""
    return f"""
        import sys
        import gpu_pregel as gp
        from gpu_pregel.errors import FencedError
        *where, owner = sys.argv[1:]
        sys.stdout.write("ready\\n"), sys.stdout.flush(), sys.stdin.readline()
        with {opening} as store:
            for _ in range({rounds}):
                claim = store.claim("run", owner=owner, takeover=True, durability="process")
                for step in range(store.run("run").head + 1, store.run("run").head + 4):
                    try:
                        store.commit(claim, step, owner.encode())
                        print(step)
                    except FencedError:
                        break
    """
