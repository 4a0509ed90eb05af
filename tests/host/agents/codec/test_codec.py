"""Encoding of agent data: round trips of all types, identical bytes in all processes, limits, ids, and errors."""

from __future__ import annotations

import doctest
import math
import struct
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterable
from datetime import UTC, date, datetime, timedelta, timezone
from datetime import time as clock_time
from decimal import Decimal, localcontext
from itertools import product
from typing import Any
from unittest.mock import patch
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_pregel.errors import CodecError
from gpu_pregel.host.agents import codec
from gpu_pregel.host.agents.codec import decode, encode

BERLIN = ZoneInfo("Europe/Berlin")
QUIET_NAN, PAYLOAD_NAN, NEGATIVE_NAN, SIGNALING_NAN = 0x7FF8 << 48, 0x7FF8 << 48 | 5, 0xFFF8 << 48, 0x7FF0 << 48 | 1


def nan(bits: int) -> float:
    x: float = struct.unpack("<d", struct.pack("<Q", bits))[0]
    return x


def same(x: Any, y: Any) -> Any:
    """Return whether two values have the same type and value, to the bit."""
    if type(x) is not type(y):
        return False
    match x:
        case float():
            return struct.pack("<d", x) == struct.pack("<d", y)
        case np.ndarray():
            return x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes()
        case np.str_() | np.bytes_():
            return x[:] == y[:]
        case np.void() if x.dtype.names:
            return x.dtype == y.dtype and same(x.item(), y.item())
        case np.generic():
            return x.dtype == y.dtype and x.tobytes() == y.tobytes()
        case list() | tuple():
            return len(x) == len(y) and all(map(same, x, y))
        case dict():
            return same(list(x.items()), list(y.items()))
        case set() | frozenset():
            return len(x) == len(y) and sorted(map(encode, x)) == sorted(map(encode, y))
        case Decimal():
            return x.as_tuple() == y.as_tuple()
        case datetime() | clock_time():
            return x.replace(tzinfo=None) == y.replace(tzinfo=None) and x.fold == y.fold and same(x.tzinfo, y.tzinfo)
        case timezone():
            return repr(x) == repr(y)
        case ZoneInfo():
            return x.key == y.key
    return bool(x == y)


VALUES: list[Any] = [
    None,
    *(False, True),
    *(0, 1, -1, -16, -17, 111, 112, 255, 256, 2**31, -(2**31), 2**63 - 1, -(2**63), 2**63, -(2**63) - 1),
    *(2**64, 2**100, -(2**100), 10**5000, -(10**5000), 2**71, -(2**71), 2**71 - 1),
    *(
        0.0,
        -0.0,
        1.5,
        -1e308,
        5e-324,
        math.inf,
        -math.inf,
        *map(nan, (QUIET_NAN, PAYLOAD_NAN, NEGATIVE_NAN, SIGNALING_NAN)),
    ),
    *("", "a", "ä€😀", "\0", "x" * 254, "x" * 255, "ä" * 200, "x" * 100_000),
    *(b"", b"a", bytes(range(256)), b"x" * 254, b"x" * 255),
    *(bytearray(), bytearray(b"abc"), bytearray(300)),
    *([], [1], [[]], [None, True, 1, 1.0, "1", b"1"], list(range(7)), list(range(8)), list(range(1000))),
    *(
        [0.5] * 7,
        [0.5] * 8,
        [-0.0, nan(PAYLOAD_NAN), nan(SIGNALING_NAN)] * 5,
        [1] * 7 + [2**70],
        [1] * 7 + [True],
        [1.0] * 8 + [1],
    ),
    *([True] * 9, ["a"] * 300, [[1, 2]] * 300),
    *((), (1,), ((),), tuple(range(20)), (0.5,) * 20, (1, "a", (b"b", 2.0))),
    *({}, {"a": 1}, {"b": 1, "a": 2}, {1: "a", "1": b"a", b"1": None, None: 1, (1, "x"): 2, 2.5: 3}),
    *({str(k): k for k in range(300)}, {"k" * 3000: 1}, {k: [k] for k in range(70)}, {frozenset({1}): {1}}),
    *(set(), {1, 2, 3}, {"b", "a"}, {(1, 2), (1, "2")}, {frozenset({1}), frozenset()}, set(range(-300, 300))),
    *(frozenset(), frozenset("abc"), {nan(QUIET_NAN), nan(PAYLOAD_NAN)}),
    *(date.min, date(2024, 2, 29), date.max),
    *(
        clock_time.min,
        clock_time.max,
        clock_time(1, 2, 3, 4, fold=1),
        clock_time(1, tzinfo=UTC),
        clock_time(2, tzinfo=BERLIN),
    ),
    *(datetime.min, datetime.max, datetime(2024, 2, 29, 1, 2, 3, 4), datetime(2024, 1, 1, tzinfo=UTC)),
    *(datetime(2024, 10, 27, 2, 30, tzinfo=BERLIN), datetime(2024, 10, 27, 2, 30, fold=1, tzinfo=BERLIN)),
    *(datetime(2024, 1, 1, tzinfo=timezone(timedelta(hours=-3, microseconds=1))),),
    *(
        datetime(2024, 1, 1, tzinfo=timezone(timedelta(0), "UTC")),
        datetime(2024, 1, 1, tzinfo=timezone(timedelta(1) / 3, "ä")),
    ),
    *(timedelta.min, timedelta(0), timedelta(days=-1, seconds=3, microseconds=-5), timedelta.max),
    *(Decimal(text) for text in ("0", "-0", "1.0", "1.00", "1E+3", "-1e-400", "NaN", "-NaN12", "sNaN7", "Infinity")),
    *(Decimal("-Infinity"), Decimal(10**500), Decimal("1E+999999999999999999")),
    *(uuid.UUID(int=0), uuid.UUID(int=2**128 - 1), uuid.uuid5(uuid.NAMESPACE_DNS, "x")),
    *(np.arange(6).astype(code).reshape(2, 3) for code in "bBhHiIlLqQefdFD?"),
    *(
        np.arange(3, dtype=">i4"),
        np.array(["a", "bc\0d"]),
        np.array(["\ud800"]),
        np.array(["ä"], ">U3"),
        np.array([("x",)], [("a", "U1", (1,))]),
        np.array([b"a", b"bc"]),
        np.array([b"ab"], dtype="V2"),
    ),
    *(np.array(["2024-01-01", "NaT"], dtype="M8[ns]"), np.array([1, 2], dtype="m8[25s]"), np.array([], dtype="M8[D]")),
    *(
        np.array(5),
        np.array(2.5),
        np.array("x"),
        np.zeros((0, 3)),
        np.zeros((3, 0, 2), dtype="U3"),
        np.zeros((1,) * 20),
    ),
    *(np.array([-0.0, nan(PAYLOAD_NAN)]), np.asfortranarray(np.arange(6).reshape(2, 3)), np.arange(10)[::-2]),
    np.array([(1, 2.5, "x", [[1, 2]])], dtype=[("a", "i1"), ("b", "f8"), ("c", "U2"), ("d", "u2", (1, 2))]),
    np.zeros(3, dtype=np.dtype([("a", "i1"), ("b", [("c", "f8"), ("d", "M8[D]")])], align=True)),
    np.zeros((2, 2), dtype={"names": ["a", "b"], "formats": ["i4", "i2"], "offsets": [4, 4], "itemsize": 20}),
    np.zeros(2, dtype=[(("a title", "a"), "i4"), ("b", "i4")]),
    np.zeros(3, dtype=[]),
    *(np.dtype(code).type(1) for code in "bBhHiIlLqQefdFD?"),
    *(np.str_(""), np.str_("ä\0"), np.bytes_(b""), np.bytes_(b"a\0"), np.float32(nan(QUIET_NAN)), np.void(b"ab\0")),
    *(np.datetime64("2024-01"), np.datetime64("NaT"), np.timedelta64(3, "ms"), np.timedelta64(3)),
    np.array([(1, 2.5)], dtype=np.dtype([("a", "i1"), ("b", "f8")], align=True))[0],
]


@pytest.mark.parametrize("x", VALUES, ids=lambda x: type(x).__name__)
def test_round_trip_preserves_type_and_value(x: Any) -> None:
    data = encode(x)
    y = decode(data)
    assert same(x, y), y
    assert encode(y) == data
    assert encode(x, limit=len(data)) == data
    assert same(decode(memoryview(bytearray(data))), x)
    for outer in ([x], (x, x), {"key": x}, [1, x, "end"]):
        assert same(decode(encode(outer)), outer)


def test_different_values_have_different_bytes() -> None:
    values = [
        1,
        1.0,
        True,
        "1",
        b"1",
        bytearray(b"1"),
        [1],
        (1,),
        {1},
        frozenset({1}),
        {1: None},
        Decimal(1),
        np.int64(1),
    ]
    values += [0.0, -0.0, Decimal("1.0"), np.int32(1), np.longlong(1), np.array(1), np.float64(1), None, "", [], (), {}]
    assert len({encode(x) for x in values}) == len(values)
    assert encode({"a": 1, "b": 2}) != encode({"b": 2, "a": 1})


def test_bytes_of_sets_do_not_depend_on_insertion_order() -> None:
    for numbers in (list(range(0, 2000, 7)), [2**61 - 1, 0, 2 * (2**61 - 1)]):  # The latter have equal hashes.
        forwards, backwards = set(numbers), set()
        for x in numbers[::-1]:
            backwards.add(x)
        assert encode(forwards) == encode(backwards)
        assert encode(frozenset(forwards)) == encode(frozenset(backwards))


@pytest.mark.parametrize("kind", [dict.fromkeys, set, frozenset])
def test_keys_with_equal_hashes_are_limited(kind: Callable[[Iterable[Any]], Any]) -> None:
    """Building a dict from such keys takes quadratic time; 256 of them and any number of others are allowed."""
    equal = [k * (2**61 - 1) for k in range(1, 258)]
    others = range(1, 1000)
    assert same(decode(encode(kind([*equal[:-1], *others]))), kind([*equal[:-1], *others]))
    assert same(decode(encode(kind(product((-1, -2), repeat=8)))), kind(product((-1, -2), repeat=8)))
    with pytest.raises(CodecError, match=r"^value\[0\] has 257 keys or elements with equal hashes"):
        encode([kind([*equal, *others])])
    with patch("gpu_pregel.host.agents.codec.encoder.check_hashes"):
        data = encode([kind([*equal, *others])])
    with pytest.raises(CodecError, match=r"\[0\] has 257 keys or elements with equal hashes"):
        decode(data)


def test_decimals_do_not_depend_on_the_context() -> None:
    x = Decimal("1E+30")
    with localcontext() as context:
        context.capitals = 0
        context.prec = 3
        assert encode(x) == encode(Decimal("1e30"))
        assert decode(encode(Decimal("1.23456E+99"))).as_tuple() == Decimal("1.23456E+99").as_tuple()
        lower = encode(x)
    assert encode(x) == lower


def test_padding_of_structured_arrays_is_ignored() -> None:
    dtype = np.dtype([("a", "i1"), ("b", "f8")], align=True)
    zeros, ones = np.zeros(16, np.uint8).view(dtype), np.full(16, 255, np.uint8).view(dtype)
    ones["a"], ones["b"] = 0, 0
    assert encode(zeros) == encode(ones)
    assert encode(zeros[0]) == encode(ones[0])
    assert zeros.tobytes() != ones.tobytes()


def test_decoded_arrays_own_their_memory() -> None:
    x = np.arange(12).reshape(3, 4)
    x.flags.writeable = False
    y = decode(encode(x.T))
    assert y.flags.owndata
    assert y.flags.writeable
    assert y.flags.c_contiguous
    assert (y == x.T).all()


def test_time_zone_without_a_name_is_decoded_without_one() -> None:
    assert decode(encode(datetime(2024, 1, 1, tzinfo=UTC))).tzinfo is UTC
    assert decode(encode(datetime(2024, 1, 1, tzinfo=timezone(timedelta(0), "UTC")))).tzinfo is not UTC


SCRIPT = """
import sys
from gpu_pregel.host.agents.codec import encode
words = [f"word {k}" for k in range(50)]
x = {"set": set(words), "frozen": frozenset((w, 1) for w in words), "nested": [{frozenset({w}): w} for w in words]}
sys.stdout.buffer.write(encode(x))
assert "numpy" not in sys.modules
"""


def test_bytes_do_not_depend_on_the_hash_seed() -> None:
    outputs = {
        subprocess.run(
            [sys.executable, "-c", SCRIPT], env={"PYTHONHASHSEED": seed}, capture_output=True, check=True
        ).stdout
        for seed in ("0", "1", "4242")
    }
    assert len(outputs) == 1
    assert len(decode(outputs.pop())["set"]) == 50


# Hypothesis


def pick(values: list[Any]) -> st.SearchStrategy[Any]:
    """Select one of the values by index, as some are too large to print."""
    return st.integers(0, len(values) - 1).map(lambda k: values[k])


def is_hashable(x: Any) -> bool:
    try:
        hash(x)
    except (TypeError, ValueError):
        return False
    return True


zones = st.one_of(
    st.none(),
    st.sampled_from([UTC, BERLIN, ZoneInfo("America/New_York")]),
    st.builds(timezone, st.timedeltas(timedelta(hours=-23), timedelta(hours=23))),
)
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(2**80), 2**80),
    st.floats(),
    st.text(),
    st.binary(max_size=300),
    st.datetimes(timezones=zones),
    st.decimals().filter(lambda x: not x.is_snan()),
    pick([x for x in VALUES if is_hashable(x)]),
)
hashables = st.one_of(leaves, st.lists(leaves, max_size=5).map(tuple), st.frozensets(leaves, max_size=5))
data = st.recursive(
    st.one_of(
        leaves,
        pick(VALUES),
        st.lists(st.floats()),
        st.lists(st.integers(-(2**65), 2**65)).map(tuple),
        st.lists(st.floats()).map(np.array),
        st.sets(hashables, max_size=5),
        st.dictionaries(hashables, leaves, max_size=5),
    ),
    lambda inner: st.one_of(
        st.lists(inner),
        st.lists(inner).map(tuple),
        st.dictionaries(st.text(), inner),
    ),
    max_leaves=10,
)


@settings(max_examples=200, deadline=None)
@given(data)
def test_round_trip_of_nested_values(x: Any) -> None:
    try:
        encoded = encode(x)
    except CodecError as error:
        if "the same bytes" not in error.problem:  # Two NaNs in a set.
            raise
        return
    assert same(decode(encoded), x)
    assert encode(decode(encoded)) == encoded


# Limits


def test_lists_without_tags_count_as_levels() -> None:
    def wrap(x: Any, times: int) -> Any:
        for _ in range(times):
            x = [x]
        return x

    assert same(decode(encode(wrap([0.5] * 9, 199))), wrap([0.5] * 9, 199))
    with pytest.raises(CodecError, match="more than 200 levels deep"):
        encode(wrap([0.5] * 9, 200))
    data = encode(wrap([0.5] * 9, 199))
    with pytest.raises(CodecError, match="more than 200 levels deep"):
        decode(data[:1] + b"\xb0\1" + data[1:])


@pytest.mark.parametrize("x", VALUES, ids=lambda x: type(x).__name__)
def test_limit_is_exact(x: Any) -> None:
    size = len(encode([x]))
    assert len(encode([x], limit=size)) == size
    for limit in {size - 1, size // 2, 0}:
        with pytest.raises(CodecError, match=f"^value exceeds the limit of {limit:,} bytes"):
            encode([x], limit=limit)


def test_docstring_examples() -> None:
    assert doctest.testmod(codec, optionflags=doctest.ELLIPSIS).failed == 0
