"""States are read from aggregates, and values that stay the same are decoded once."""

from __future__ import annotations

from typing import Any

import pytest

from gpu_pregel.errors import CodecError
from gpu_pregel.workflows import state_reader
from gpu_pregel.workflows.key_folds import EMPTY, packed_update, unpacked_value
from gpu_pregel.workflows.state_reader import StateReader

VALUES: list[Any] = [1, "text", None, [], [1, "a"], {"a": 1.5}, {"a": [1]}, [[1]], {1, 2}, (1, [2])]


def packed(value: Any) -> bytes:
    """Return the aggregate of a value, in an object of its own."""
    return bytes(bytearray(packed_update(value)))


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_a_value_is_read_as_it_was_and_readers_share_no_part_of_it(value: Any) -> None:
    reader = StateReader()
    for _ in range(3):
        state = reader.read({"x": packed(value)}, ["x"])
        assert state == {"x": value}
        if isinstance(value, list):
            state["x"].append("changed")
        elif isinstance(value, dict):
            state["x"]["changed"] = True
        elif isinstance(value, tuple):
            state["x"][1].append("changed")


@pytest.mark.parametrize(("value", "times"), [(7, 1), ("text", 1), ([1, 2], 1), ({"a": 1}, 1), ([[1]], 3)], ids=repr)
def test_flat_values_with_the_same_bytes_are_decoded_once(
    value: Any, times: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[bytes] = []

    def unpack(data: bytes) -> Any:
        decoded.append(data)
        return unpacked_value(data)

    monkeypatch.setattr(state_reader, "unpacked_value", unpack)
    reader = StateReader()
    for _ in range(3):
        assert reader.read({"x": packed(value)}, ["x"]) == {"x": value}
    assert len(decoded) == times


@pytest.mark.parametrize(("first", "second"), [(1, True), (0, False), (1, 1.0), ([1], [True]), ("1", 1), (0.0, -0.0)])
def test_other_bytes_are_another_value_even_if_it_is_equal(first: Any, second: Any) -> None:
    reader = StateReader()
    for value in (first, second, first):
        assert repr(reader.read({"x": packed(value)}, ["x"])) == repr({"x": value})


def test_keys_without_a_value_and_other_keys_are_left_out() -> None:
    reader = StateReader()
    assert reader.read({"x": packed(1), "y": EMPTY, "z": packed(2)}, ["x", "y"]) == {"x": 1}
    assert reader.read({"x": EMPTY, "y": packed(3), "z": packed(2)}, ["x", "y"]) == {"y": 3}


def test_an_error_names_the_key() -> None:
    with pytest.raises(CodecError, match="the value of key 'y'"):
        StateReader().read({"x": packed(1), "y": packed("text")[:-1]}, ["x", "y"])
