"""Tests of the numbering of strings by first appearance: against pandas, a dict, and with equal hashes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpu_pregel as gp
from gpu_pregel.host.graphs import string_table
from gpu_pregel.host.graphs.string_table import StringTable
from tests.packages import needs

pandas = needs("pandas", "test")

Array = np.ndarray[Any, Any]

TYPES = (pa.string(), pa.large_string())
MULTIPLIER = 0x9E3779B97F4A7C15
WORD = (1 << 64) - 1


def number(columns: list[list[list[str]]], *, kind: Any = TYPES[0], threads: int = 2) -> tuple[list[Array], list[str]]:
    """Number columns of chunks of strings, one column after the other."""
    table = StringTable(threads)
    parts, position = [], 0
    for chunks in columns:
        column = pa.chunked_array([pa.array(chunk, kind) for chunk in chunks], kind)
        parts.append(table.add(column, position, 1))
        position += len(column)
    names = table.finish(*parts)
    names.validate(full=True)
    return parts, names.to_pylist()


@pytest.mark.parametrize("kind", TYPES, ids=str)
@pytest.mark.parametrize(
    ("columns", "numbers", "names"),
    [
        ([[["ann", "bob", "ann"]]], [[0, 1, 0]], ["ann", "bob"]),
        ([[["b"], [], ["a", "b"]], [["c", "a"]]], [[0, 1, 0], [2, 1]], ["b", "a", "c"]),
        ([[["", "\0", "\0\0", ""]]], [[0, 1, 2, 0]], ["", "\0", "\0\0"]),
        ([[["12345678", "1234567", "123456789", "12345678"]]], [[0, 1, 2, 0]], ["12345678", "1234567", "123456789"]),
        ([[["é", "e", "日本", "日"]]], [[0, 1, 2, 3]], ["é", "e", "日本", "日"]),
        ([[[]], []], [[], []], []),
        ([[[""]]], [[0]], [""]),
    ],
)
def test_small_columns(kind: Any, columns: Any, numbers: list[list[int]], names: list[str]) -> None:
    parts, found = number(columns, kind=kind)
    assert [part.tolist() for part in parts] == numbers
    assert found == names


@given(
    st.lists(st.lists(st.text(st.sampled_from("ab\0é日"), max_size=20), max_size=30), max_size=4),
    st.sampled_from(TYPES),
)
@settings(deadline=None)
def test_random_chunks_as_pandas(chunks: list[list[str]], kind: Any) -> None:
    values = [value for chunk in chunks for value in chunk]
    codes, uniques = pandas.factorize(np.array(values, object))
    (found,), names = number([chunks], kind=kind)
    assert found.tolist() == codes.tolist()
    assert names == uniques.tolist()


@pytest.mark.parametrize("distinct", [1, 1000, 1_000_000])
def test_many_strings_as_pandas(distinct: int) -> None:
    """A million names make the table grow; one name makes all threads use one record."""
    values = np.random.default_rng(0).integers(0, distinct, 1_500_000).astype(str).astype(object)
    values[7] = "x" * 100_000
    codes, uniques = pandas.factorize(values)
    (found,), names = number([[values[:900_001].tolist(), values[900_001:].tolist()]], threads=3)
    assert np.array_equal(found, codes)
    assert names == uniques.tolist()


def test_slices_of_arrays() -> None:
    column = pa.chunked_array([pa.array(["x", "ann", "bob", "ann", "y"]).slice(1, 3)])
    table = StringTable(1)
    codes = table.add(column, 0, 1)
    assert table.finish(codes).to_pylist() == ["ann", "bob"]
    assert codes.tolist() == [0, 1, 0]


def test_positions_decide_the_order() -> None:
    table = StringTable(1)
    targets = table.add(pa.chunked_array([["bob", "cid"]]), 1, 2)
    sources = table.add(pa.chunked_array([["ann", "bob"]]), 0, 2)
    assert table.finish(sources, targets).to_pylist() == ["ann", "bob", "cid"]
    assert (sources.tolist(), targets.tolist()) == ([0, 1], [1, 2])


def colliding(count: int) -> list[bytes]:
    """Return different strings of 16 bytes with one hash: the second word cancels the state after the first one."""
    strings = []
    for first in range(1, count + 1):
        state = (16 ^ first) * MULTIPLIER & WORD
        state ^= state >> 32
        strings.append(first.to_bytes(8, "little") + state.to_bytes(8, "little"))
    return strings


def test_equal_hashes() -> None:
    strings = colliding(500)
    binary = pa.array([*strings, *strings[::-1]], pa.large_binary())
    column = pa.Array.from_buffers(pa.large_string(), len(binary), binary.buffers())  # not UTF-8
    table = StringTable(2)
    codes = table.add(pa.chunked_array([column]), 0, 1)
    slots = table.memory[0]
    assert len(set((slots[slots != 0] >> np.uint64(32)).tolist())) == 1
    names = table.finish(codes)
    assert names.view(pa.large_binary()).to_pylist() == strings
    assert codes.tolist() == [*range(500), *reversed(range(500))]


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_agree(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(string_table, "_CHUNK", 64)
    monkeypatch.setattr(string_table, "_SLICE", 1000)
    monkeypatch.setattr(string_table, "_FIRST_SLOTS", 16)
    values = [f"name {k * k % 3001}" for k in range(20_000)]
    numbers: dict[str, int] = {}
    expected = [numbers.setdefault(value, len(numbers)) for value in values]
    (found,), names = number([[values]], threads=threads)
    assert found.tolist() == expected
    assert names == list(numbers)


def test_columns_of_arrow_and_pandas_with_chunks_and_dictionaries() -> None:
    edges = {"source": ["ann", "bob", "ann"], "target": ["bob", "cid", "dora"]}
    plain = pa.table(edges)
    tables = [
        plain,
        pa.concat_tables([plain.slice(0, 1), plain.slice(1)]),
        pa.table({name: pa.array(values, pa.large_string()) for name, values in edges.items()}),
        pa.table({name: pa.array(values).dictionary_encode() for name, values in edges.items()}),
    ]
    for graph in [
        *(gp.Graph.from_arrow(table) for table in tables),
        gp.Graph.from_pandas(pandas.DataFrame(edges)),
        gp.Graph.from_edgelist(plain["source"], plain["target"]),
        gp.Graph.from_edgelist(plain["source"].chunk(0), edges["target"]),
    ]:
        assert graph.ids is not None
        assert graph.ids.tolist() == ["ann", "bob", "cid", "dora"]
        assert graph.neighbors("ann").tolist() == ["bob", "dora"]
