"""Durable stores in other processes: pickled as their arguments, and opened once a process."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest

import gpu_pregel as gp
from gpu_pregel.errors import StoreError
from tests.stores import XorCipher, begin, output, python

_READING = """
import pickle, sys
first, second, other = map(pickle.loads, map(bytes.fromhex, sys.argv[1:]))
assert first is second and first is not other
print([row.id for row in first.runs()], bytes(first.load("run").base()))
"""


def test_a_store_is_opened_once_in_another_process(tmp_path: Path) -> None:
    with (
        gp.SQLiteStore(tmp_path / "runs.db", cipher=XorCipher(), patience=5) as store,
        gp.SQLiteStore(tmp_path / "other.db") as other,
    ):
        begin(store)
        given = [pickle.dumps(one).hex() for one in (store, store, other)]
        assert output(python(_READING, *given)) == "['run'] b'base'\n"


def test_schemas_of_one_database_are_distinct(postgres: str) -> None:
    stores = [gp.PostgresStore(postgres, schema=name) for name in ("reopened_1", "reopened_2")]
    begin(stores[0])
    copies = [pickle.loads(pickle.dumps(store)) for store in stores]
    assert [[row.id for row in copy.runs()] for copy in copies] == [["run"], []]
    for store in (*stores, *copies):
        store.close()


def test_a_file_that_is_gone_is_not_created_again(tmp_path: Path) -> None:
    with gp.SQLiteStore(tmp_path / "runs.db") as store:
        data = pickle.dumps(store)
    (tmp_path / "runs.db").unlink()
    with pytest.raises(StoreError, match="does not exist"):
        pickle.loads(data)


def test_a_store_in_memory_cannot_be_opened_again() -> None:
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(gp.MemoryStore())
