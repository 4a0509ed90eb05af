"""What every store notices: rows that are changed, missing or moved; and what encryption hides."""

from __future__ import annotations

import pickle

import pytest

from gpu_pregel.errors import StoreError
from gpu_pregel.host.stores.store import Store
from tests.stores import STORES, Open, Xor, begin, contents, execute, run_to

# Encryption


def test_encryption_hides_contents_and_needs_its_key(opened: Open) -> None:
    secret = b"very secret contents"
    store = opened(cipher=Xor())
    claim = store.create("run", "agents", secret, owner="me", meta=secret, blobs={"array": secret})
    store.commit(claim, 0, secret, [secret])
    store.flush(claim, 1, [secret])
    store.answer("run", 1, b"v", 0, secret)
    saved = store.load("run")
    assert (saved.base(), saved.blob("array"), saved.run.meta) == (secret, secret, secret)
    assert contents(saved) == [secret, [(0, secret, [secret])], [secret]]
    assert saved.answers[0].data == secret
    found = store._query(f"SELECT * FROM {store._prefix}segments", ())
    assert len(found) == 2
    assert all(secret not in bytes(cell) for row in found for cell in row if isinstance(cell, bytes))


@pytest.mark.parametrize("opened", STORES[1:], indirect=True)
def test_a_store_that_is_encrypted_says_so(opened: Open) -> None:
    store = opened(cipher=Xor())
    store.commit(begin(store), 0, b"")
    with pytest.raises(StoreError, match="superstep -1: is encrypted: open the store with the cipher="):
        opened().load("run")
    with pytest.raises(StoreError, match=r"superstep -1: cannot be decrypted \(ValueError\(.*\): pass the cipher="):
        opened(cipher=Xor(9)).load("run")
    assert [(row.id, row.head, row.status) for row in opened().runs()] == [("run", 0, "running")]
    assert opened().run("run") == store.run("run")


# Blobs that are not what was written


DAMAGES = [
    ("UPDATE @runs SET head = head + 1", "run 'run': its row is damaged"),
    ("UPDATE @runs SET status = 'completed'", "run 'run': its row is damaged"),
    ("UPDATE @runs SET lease = 1", "run 'run': its row is damaged"),
    ("DELETE FROM @metas", "run 'run': has lost its meta"),
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
def test_damage_is_named_by_run_superstep_and_segment(store: Store, statement: str, problem: str) -> None:
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


def test_a_blob_in_another_place_is_noticed(store: Store) -> None:
    claim = begin(store)
    run_to(store, claim, 0, 2)
    execute(store, "UPDATE @segments SET step = step + 10", "UPDATE @segments SET step = 11 - step")
    with pytest.raises(StoreError, match="superstep 0, segment 0: is damaged"):
        contents(store.load("run"))
