"""Dicts that a kernel fills are those that Python makes, references included."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

from gpu_pregel.networkx import filled_dicts
from gpu_pregel.networkx.filled_dicts import filled_dict

NODES = [*range(1000, 1040), *(f"node {v}" for v in range(40)), 0.5, b"bytes", 2**80]


@pytest.fixture
def addresses() -> np.ndarray[Any, Any]:
    return np.array(list(map(id, NODES)))


@pytest.mark.parametrize("is_sized", [True, False])
@pytest.mark.parametrize("dtype", [np.int64, np.float64, np.int32, np.float32])
def test_as_made_by_python(addresses: Any, is_sized: bool, dtype: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filled_dicts, "_BLOCK", 7)
    if not is_sized:
        monkeypatch.setattr(filled_dicts, "_sized", None)
    vertices = np.random.default_rng(1).permutation(len(NODES)).astype(np.uint32)
    values = (np.arange(len(NODES)) * 1001.5 - 3000).astype(dtype)
    result = filled_dict(addresses, vertices, values)
    expected = dict(zip((NODES[v] for v in vertices), values.tolist(), strict=True))
    assert list(map(repr, result.items())) == list(map(repr, expected.items()))
    assert all(one is other for one, other in zip(result, expected, strict=True))


def test_references_are_counted(addresses: Any) -> None:
    before = [sys.getrefcount(node) for node in NODES]
    result = filled_dict(addresses, np.arange(len(NODES), dtype=np.uint32), np.arange(len(NODES)) + 0.5)
    assert [sys.getrefcount(node) for node in NODES] == [count + 1 for count in before]
    expected = dict(zip(NODES, (np.arange(len(NODES)) + 0.5).tolist(), strict=True))
    counts = [[sys.getrefcount(value) for value in one.values()] for one in (result, expected)]
    assert counts[0] == counts[1]
    del result
    assert [sys.getrefcount(node) for node in NODES] == [count + 1 for count in before]
    del expected
    assert [sys.getrefcount(node) for node in NODES] == before


def test_later_values_of_a_node_replace_earlier_ones(addresses: Any) -> None:
    assert filled_dict(addresses, np.array([3, 5, 3], np.uint32), np.array([1, 2, 7])) == {1003: 7, 1005: 2}


@pytest.mark.parametrize("values", [[0.0, -0.0, -0.0, 0.0], [float("nan")] * 4, [2**40] * 4, [1, 2, 2, 1]])
def test_equal_values_in_a_row_share_an_object(addresses: Any, values: list[Any]) -> None:
    column = np.array([[value, 7] for value in values])[:, 0]
    result = list(filled_dict(addresses, np.arange(4, dtype=np.uint32), column).values())
    assert list(map(repr, result)) == list(map(repr, values))
    assert result[1] is result[2]
    assert (result[2] is result[3]) == (repr(values[2]) == repr(values[3]))
    large = result[0] if result[0] == 2**40 else None
    del result
    # Those of the variable, of the tuple of arguments, and none of the dict.
    assert large is None or sys.getrefcount(large) == 2
