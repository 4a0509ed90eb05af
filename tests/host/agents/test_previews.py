"""Previews of values: trees of bounded size, differences, and data of types that are not registered."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
import pytest

from gpu_pregel.errors import CodecError
from gpu_pregel.host.agents.codec import decode, encode, register, types
from gpu_pregel.host.agents.previews import (
    Budget,
    cut,
    decode_to_show,
    find_differences,
    find_encoded_differences,
    one_line,
    show,
    show_encoded,
)


class Colour(Enum):
    RED = 1


class Pair(NamedTuple):
    left: int
    right: str


@dataclass
class Offer:
    price: int
    parts: list[Any] = field(default_factory=list)


class Broken:
    def __str__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, ["NoneType", "None"]),
        (True, ["bool", "True"]),
        (3, ["int", "3"]),
        (float("nan"), ["float", "nan"]),
        ("a\nb", ["str", "a\nb"]),
        (b"\xffa", ["bytes", "\\xffa"]),
        (Colour.RED, ["Colour", "Colour.RED"]),
        ([], ["list", "0", [], 0]),
        ([1, "x"], ["list", "2", [["0", ["int", "1"]], ["1", ["str", "x"]]], 0]),
        ({"b": 1, 2: 3}, ["dict", "2", [["b", ["int", "1"]], ["2", ["int", "3"]]], 0]),
        ({3, 1}, ["set", "2", [["1", ["int", "1"]], ["3", ["int", "3"]]], 0]),
        (Pair(1, "r"), ["Pair", "2", [["left", ["int", "1"]], ["right", ["str", "r"]]], 0]),
        (Offer(5), ["Offer", "2", [["price", ["int", "5"]], ["parts", ["list", "0", [], 0]]], 0]),
        (Broken(), ["Broken", "<no text: RuntimeError>"]),
    ],
)
def test_trees(value: Any, expected: Any) -> None:
    found = show(value)
    assert found == expected
    assert json.loads(json.dumps(found)) == expected


def test_trees_are_bounded() -> None:
    assert show("x" * 5000, Budget(10, 20)) == ["str", "x" * 20 + "… [4,980 more characters]"]
    kind, text, parts, left = show(list(range(1000)), Budget(10))
    assert (kind, text, len(parts), left) == ("list", "1,000", 10, 990)
    deep: Any = 1
    for _ in range(100):
        deep = [deep]
    assert len(json.dumps(show(deep))) < 500
    wide = {str(one): {str(two): list(range(50)) for two in range(50)} for one in range(50)}
    assert len(json.dumps(show(wide))) < 50_000
    assert show_encoded(encode("x" * (5 << 20))) == ["large", f"{len(encode('x' * (5 << 20))):,} bytes"]
    assert show(1 << 100_000) == ["int", "an integer of 100,001 bits"]
    assert show_encoded(b"?")[0] == "unreadable"


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (1, 1, []),
        (float("nan"), float("nan"), []),
        (1, 2, [[[], "changed", ["int", "1"], ["int", "2"]]]),
        (1, True, [[[], "changed", ["int", "1"], ["bool", "True"]]]),
        ("ab", "abcd", [[[], "appended", None, ["str", "cd"]]]),
        ([1], [1, 2], [[["1"], "added", None, ["int", "2"]]]),
        ({"a": 1, "b": 2}, {"b": 2}, [[["a"], "removed", ["int", "1"], None]]),
        (Offer(1, [{"x": 1}]), Offer(1, [{"x": 2}]), [[["parts", "0", "x"], "changed", ["int", "1"], ["int", "2"]]]),
        ({1, 2}, {2, 3}, [[["3"], "added", None, ["int", "3"]], [["1"], "removed", ["int", "1"], None]]),
        (np.arange(3), np.arange(3), []),
        ([np.arange(2)], [np.array([0, 2])], [[["0"], "changed", ["ndarray", "[0 1]"], ["ndarray", "[0 2]"]]]),
    ],
)
def test_differences(before: Any, after: Any, expected: Any) -> None:
    assert find_differences(before, after) == (expected, 0)


def test_many_differences_are_counted() -> None:
    found, more = find_differences(dict.fromkeys(range(100), 0), dict.fromkeys(range(100), 1), most=7)
    assert (len(found), more) == (7, 93)


def test_types_that_are_not_registered_are_shown_by_their_fields_and_refused_otherwise() -> None:
    register(Offer, "offer of this test")
    before, after = encode([Offer(1, ["a"])]), encode([Offer(2, ["a"])])
    types._remove(types.by_name["offer of this test"])
    with pytest.raises(CodecError, match="is not registered"):
        decode(before)
    fields = [["price", ["int", "1"]], ["parts", ["list", "1", [["0", ["str", "a"]]], 0]]]
    assert show_encoded(before) == ["list", "1", [["0", ["offer of this test", "2", fields, 0]]], 0]
    assert find_encoded_differences(before, after) == (
        [[["0", "price"], "changed", ["int", "1"], ["int", "2"]]],
        0,
    )
    assert decode_to_show(before)[0].fields == {"price": 1, "parts": ["a"]}
    with pytest.raises(CodecError, match="is not registered"):  # only while something is shown
        decode(before)


def test_one_line() -> None:
    assert one_line(show({"a": [1, (2,)], "b": Pair(1, "x")})) == "{a: [1, (2)], b: Pair{left: 1, right: 'x'}}"
    assert one_line(show(list(range(3)), Budget(2))) == "[0, 1, … 1 more]"
    assert cut("abc", 3) == "abc"
