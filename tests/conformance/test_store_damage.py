"""All stores: detection of altered, missing and moved rows, and encryption."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from gpu_pregel.errors import ArgumentTypeError, StoreError
from gpu_pregel.host.stores.store import Store
from tests.stores import STORES, Open, XorCipher, begin, contents, execute, run_to

# Encryption


def test_encryption_hides_contents(opened: Open) -> None:
    secret = b"very secret contents"
    store = opened(cipher=XorCipher())
    claim = store.create("run", "agents", secret, owner="me", meta=secret, blobs={"array": secret})
    store.commit(claim, 0, secret, [secret])
    store.flush(claim, 1, [secret])
    store.answer("run", 1, b"v", 0, secret)
    saved = store.load("run")
    assert (saved.base(), saved.blob("array"), saved.run.meta) == (secret, secret, secret)
    assert contents(saved) == [secret, [(0, secret, [secret])], [secret]]
    assert saved.answers[0].data == secret
    found = store._database.query(f"SELECT * FROM {store._database.dialect.prefix}segments", ())
    assert len(found) == 2
    assert all(secret not in bytes(cell) for row in found for cell in row if isinstance(cell, bytes))


@pytest.mark.parametrize("opened", STORES[1:], indirect=True)
@pytest.mark.parametrize("meta", [b"", b"meta"])
def test_encrypted_store_requires_its_cipher(opened: Open, meta: bytes) -> None:
    store = opened(cipher=XorCipher())
    claim = begin(store, meta=meta)
    store.commit(claim, 0, b"")
    store.commit(claim, 1, b"commit", [b"segment"], base=b"state")
    with pytest.raises(StoreError, match="superstep 1: is encrypted: open the store with the cipher="):
        opened().load("run")
    with pytest.raises(StoreError, match=r"superstep 1: cannot be decrypted \(ValueError\(.*\): pass the cipher="):
        opened(cipher=XorCipher(9)).load("run", 1)
    # Readable without the key: the runs, their statuses and their histories.
    assert [(row.id, row.head, row.status, row.meta) for row in opened().runs()] == [("run", 1, "running", None)]
    assert opened().run("run")._replace(meta=meta) == store.run("run")
    assert opened().history("run") == store.history("run")
    execute(store, "UPDATE @commits SET data = seal WHERE step = 0")
    with pytest.raises(StoreError, match="superstep 0: is damaged"):
        opened().history("run")


@pytest.mark.parametrize("opened", STORES[1:], indirect=True)
def test_plain_data_are_refused_with_a_cipher(opened: Open) -> None:
    store = opened()
    claim = begin(store)
    run_to(store, claim, 0, 2)
    store.answer("run", 2, b"vertex", 0, b"answer")
    reads: list[Callable[[Store], Any]] = [
        lambda store: store.load("run", 1),
        lambda store: store.answers("run", 2),
        lambda store: store.last_answer("run", b"vertex"),
    ]
    for read in reads:
        with pytest.raises(StoreError, match="is not encrypted: open the store without cipher="):
            read(opened(cipher=XorCipher()))
    assert opened(cipher=XorCipher()).run("run") == opened().run("run")._replace(meta=None)
    assert opened().load("run").step == 1


def test_invalid_ciphers_are_refused(opened: Open) -> None:
    class Encrypts:
        def encrypt(self, data: bytes, context: bytes) -> str:
            return f"{data!r} {context!r}"

    for cipher in (3, Encrypts, Encrypts()):
        with pytest.raises(ArgumentTypeError, match="cipher must have the methods encrypt and decrypt"):
            opened(cipher=cipher)
    Encrypts.decrypt = Encrypts.encrypt  # type: ignore[attr-defined]
    store = opened(cipher=Encrypts())
    with pytest.raises(ArgumentTypeError, match="encrypt of the store's cipher must return bytes, not"):
        begin(store)
    assert store.runs() == []


# Damage


DAMAGES = [
    ("UPDATE @runs SET head = head + 1", "run 'run': its row is damaged"),
    ("UPDATE @runs SET status = 'completed'", "run 'run': its row is damaged"),
    ("UPDATE @runs SET lease = 1", "run 'run': its row is damaged"),
    ("DELETE FROM @metas", "run 'run': has lost its metadata"),
    ("UPDATE @metas SET data = seal", r"run 'run': is damaged \(its checksum"),
    ("UPDATE @bases SET data = seal", "run 'run', superstep -1: is damaged"),
    ("UPDATE @bases SET data = seal WHERE part = 2", "run 'run', superstep -1: is damaged"),
    ("UPDATE @bases SET part = part + 5", "run 'run', superstep -1: the base or a commit"),
    ("DELETE FROM @bases WHERE part = 0", "run 'run', superstep -1: the base or a commit that it needs is missing"),
    ("DELETE FROM @bases WHERE part = 2", "run 'run', superstep -1: the base or a commit that it needs is missing"),
    ("DELETE FROM @bases", "run 'run', superstep 2: the base or a commit"),
    ("UPDATE @commits SET status = 'failed' WHERE step = 1", "run 'run', superstep 1: is damaged"),
    ("UPDATE @commits SET segments = 0 WHERE step = 1", "run 'run', superstep 1: is damaged"),
    ("UPDATE @commits SET data = seal WHERE step = 1", "run 'run', superstep 1: is damaged"),
    ("UPDATE @commits SET seal = data WHERE step = 1", "run 'run', superstep 1: is damaged"),
    ("DELETE FROM @commits WHERE step = 0", "run 'run', superstep -1: the base or a commit"),
    ("DELETE FROM @commits WHERE step = 1", "run 'run', superstep 0: the base or a commit"),
    ("DELETE FROM @commits WHERE step = 2", "run 'run', superstep 2: the base or a commit"),
    ("DELETE FROM @commits", "run 'run', superstep 2: the base or a commit"),
    ("UPDATE @segments SET data = seal WHERE step = 1 AND number = 1", "superstep 1, segment 1: is damaged"),
    ("DELETE FROM @segments WHERE step = 1 AND number = 0", r"superstep 1, segment 0: is missing \(2 were written"),
    ("DELETE FROM @segments WHERE step = 1 AND number = 1", "superstep 1, segment 1: is missing"),
    ("DELETE FROM @segments WHERE step = 3", r"superstep 3, segment 0: is missing \(1 were written"),
    ("UPDATE @segments SET number = 5 WHERE step = 1 AND number = 1", "superstep 1, segment 1: is missing"),
    ("UPDATE @answers SET data = seal", "run 'run', superstep 3: is damaged"),
    ("UPDATE @answers SET number = 1", "run 'run', superstep 3: is damaged"),
]


@pytest.mark.parametrize(("statement", "problem"), DAMAGES)
def test_damage_names_run_superstep_and_segment(store: Store, statement: str, problem: str) -> None:
    claim = begin(store, blobs={"array": b"123"})
    for step in range(3):
        store.commit(claim, step, b"commit", [b"one", b"two"])
    store.flush(claim, 3, [b"held"])
    store.answer("run", 3, b"v", 0, b"yes")
    execute(store, statement)

    def read_all() -> None:
        saved = store.load("run")
        contents(saved)
        saved.blob("array")

    with pytest.raises(StoreError, match=problem) as caught:
        read_all()
    assert caught.value.store == store.name
    assert str(caught.value).startswith(f"{store.name}, run 'run'")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)
    if "@commits" in statement:
        with pytest.raises(StoreError):
            store.history("run")


def test_moved_blob_is_detected(store: Store) -> None:
    claim = begin(store)
    run_to(store, claim, 0, 2)
    execute(store, "UPDATE @segments SET step = step + 10", "UPDATE @segments SET step = 11 - step")
    with pytest.raises(StoreError, match="superstep 0, segment 0: is damaged"):
        contents(store.load("run"))
