"""What tests of stores share: calls that make a run, what is read back, an encryption."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gpu_pregel.host.stores.rows import Claim
from gpu_pregel.host.stores.saved import Saved
from gpu_pregel.host.stores.store import Store

Open = Callable[..., Store]
STORES = ["memory", "sqlite", "postgres"]


class Xor:
    """An encryption that everybody can see through, but that notices another context."""

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


def run_to(store: Store, claim: Claim, first: int, end: int) -> None:
    for step in range(first, end):
        store.commit(claim, step, b"commit %d" % step, [b"segment %d" % step])


def contents(saved: Saved) -> list[Any]:
    commits = [(commit.step, commit.data, list(commit.segments())) for commit in saved.commits()]
    return [saved.base(), commits, list(saved.held())]


def execute(store: Store, *statements: str) -> None:
    """Do what no store does."""
    first, *rest = [
        (statement.replace("@", store._prefix), ()) for statement in ("UPDATE @runs SET head = head", *statements)
    ]
    store._apply(False, first, rest)
