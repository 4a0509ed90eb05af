"""Ids of vertices: their types, order and placement on workers."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_pregel.errors import CodecError
from gpu_pregel.host.agents.codec import decode, id_key, place_of_key


class StrSubclass(str):
    pass


def test_ids_are_str_int_bytes_or_tuples_of_them() -> None:
    for x in ("", "a", 0, -5, 2**200, 1 - 2**8192, b"", (), (1, "a", b"b"), ((1,), ((2,),))):
        assert decode(id_key(x)) == x
    refused: list[tuple[Any, str]] = [
        (True, r"id is of type bool: ids are str, int, bytes or tuples of them, so convert it$"),
        (None, "id is of type NoneType: ids are str, int, bytes or tuples of them, so pass one$"),
        (1.0, "id is of type float"),
        ([1], "id is of type list"),
        (np.float64(1), "id is of type numpy.float64"),
        (np.True_, "id is of type numpy.bool"),
        (np.timedelta64(1), "id is of type numpy.timedelta64"),
        ((1, np.str_("a")), r"id\[1\] is of type numpy.str_"),
        (StrSubclass("a"), "id is of type .*StrSubclass"),
        ((1, (2, False)), r"id\[1\]\[1\] is of type bool"),
        ((1, len), r"id\[1\] is of type builtin_function_or_method"),
        ("\ud800", "id contains the lone surrogate"),
        (-(2**8192), "id is an integer of 8,193 bits: in ids they have at most 8,192, so use bytes"),
        ((1, (2**20000,)), r"id\[1\]\[0\] is an integer of 20,001 bits"),
        ((1, "\ud800"), r"id\[1\] contains the lone surrogate"),
    ]
    for bad, problem in refused:
        with pytest.raises(CodecError, match=problem):
            id_key(bad)


def test_integers_of_numpy_are_taken_as_int() -> None:
    for x, plain in (
        (np.int64(-5), -5),
        (np.uint8(200), 200),
        ((np.int32(1), "a", (np.uint64(2**64 - 1),)), (1, "a", (2**64 - 1,))),
    ):
        assert id_key(x) == id_key(plain)
        assert repr(decode(id_key(x))) == repr(plain)


@given(st.lists(st.integers(-(2**100), 2**100) | st.integers(-200, 200)))
def test_integer_ids_are_sorted_by_value(ids: list[int]) -> None:
    assert sorted(ids, key=id_key) == sorted(ids)


def test_ids_are_sorted_by_type_first() -> None:
    ids: list[Any] = [(5,), b"\0", "z", 2**200, (), (0.5, 1)[:0], b"a", "", -(2**200), 7]
    ranks = [(int, str, bytes, tuple).index(type(x)) for x in sorted(ids, key=id_key)]
    assert ranks == sorted(ranks)


def test_vertices_are_distributed_evenly_over_workers() -> None:
    many: dict[str, list[Any]] = {
        "counted": list(range(10_000)),
        "even": list(range(0, 20_000, 2)),
        "far": [k << 40 for k in range(10_000)],
        "named": [f"agent-{k}" for k in range(10_000)],
        "pairs": [(k % 100, k // 100) for k in range(10_000)],
        "twins": [(k, k) for k in range(10_000)],
    }
    for name, ids in many.items():
        for workers in (1, 2, 3, 4, 5, 8):
            counts = collections.Counter(place_of_key(id_key(x), workers) for x in ids)
            assert sorted(counts) == list(range(workers)), (name, workers)
            assert max(counts.values()) < 1.25 * len(ids) / workers, (name, workers, counts)
    assert [place_of_key(id_key(x), 1000) for x in ("a", 1, b"c", ("a", 1))] == [730, 697, 523, 456]
