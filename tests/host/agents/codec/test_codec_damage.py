"""Damaged and forged bytes: they are decoded to values with the same encoding, or refused with the path."""

from __future__ import annotations

import random
import struct
import sys
import tracemalloc
import uuid
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from datetime import time as clock_time
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpu_pregel.errors import CodecError
from gpu_pregel.host.agents.codec import decode, encode, register


@register(name="damage.Color")
class Color(Enum):
    RED = 1
    BLUE = 2


@register(name="damage.Point")
class Point(NamedTuple):
    x: float
    y: float


@register(name="damage.Note")
@dataclass(frozen=True)
class Note:
    text: str
    tags: Any


SEEDS: list[Any] = [
    [None, True, False, 5, 1000, -1000, 2**80, -(2**80), 1.5, "text ä", b"bytes", bytearray(b"ab"), "x" * 300],
    {"name": "Ada", "seen": {1, 2, (3, "x")}, 5: frozenset({"a", "b"}), (1,): [0.5] * 9, None: (1,) * 9},
    [date(2024, 2, 29), clock_time(1, 2, 3, 4, tzinfo=UTC), datetime(2024, 1, 1, tzinfo=ZoneInfo("Europe/Berlin"))],
    [timedelta(-1, 2, 3), Decimal("-1.5E+7"), Decimal("NaN12"), uuid.UUID(int=7)],
    [np.arange(6).reshape(2, 3), np.array(["a", "bc"]), np.float32(2), np.str_("x"), np.datetime64("2024-01-01")],
    np.array([(1, 2.5, "x")], dtype=np.dtype([("a", "i1"), ("b", "f8", (1,)), ("c", [("d", "U2")])], align=True)),
    [Color.RED, Point(1.0, 2.0), Note("hi", (Color.BLUE, {Note("a", ())})), {Point(0, 0): 1}],
    [[[[[]]]], {"a": {"b": {"c": {}}}}, (((),),), [b"ab"] * 8],
]


def check(data: bytes) -> bool:
    """Return whether ``data`` can be decoded; otherwise it must raise ``CodecError``."""
    try:
        x = decode(data)
    except CodecError as error:
        refused = error
    else:
        assert encode(x) == data
        return True
    assert refused.path.startswith("value")
    assert len(str(refused)) < 1000
    return False


def damaged(data: bytes, r: random.Random) -> bytes:
    """Return a copy of ``data`` with some bytes changed, removed, inserted or repeated."""
    copy = bytearray(data)
    for _ in range(r.choice((1, 1, 1, 2, 5))):
        i, j = sorted((r.randrange(len(copy) + 1), r.randrange(len(copy) + 1)))
        match r.randrange(6):
            case 0:
                copy[i : i + 1] = bytes((r.randrange(256),))
            case 1:
                copy[i : i + 1] = bytes((copy[i] ^ 1 << r.randrange(8),)) if i < len(copy) else b""
            case 2:
                del copy[i:j]
            case 3:
                copy[i:i] = r.randbytes(r.choice((1, 1, 2, 9)))
            case 4:
                copy[i:i] = copy[j : j + r.randrange(20)]
            case _:
                copy[i : i + 1] = b"\xff" + r.choice((r.randbytes(8), b"\xff" * 8, struct.pack(">Q", 2**31), b"\0" * 8))
    return bytes(copy)


@pytest.mark.parametrize("x", SEEDS, ids=lambda x: type(x).__name__)
def test_damaged_bytes_are_decoded_correctly_or_refused(x: Any) -> None:
    data = encode(x)
    assert check(data)
    r = random.Random(7)
    decode(encode([date(2026, 1, 1), np.zeros(1)]))  # loads the codec's own modules for these types
    modules = set(sys.modules)
    read = sum(check(damaged(data, r)) for _ in range(2000))
    assert 0 < read < 2000
    assert set(sys.modules) - modules <= {"tzdata", "tzdata.zoneinfo"} | {
        m for m in sys.modules if m.startswith("tzdata.")
    }


@pytest.mark.parametrize("x", SEEDS, ids=lambda x: type(x).__name__)
def test_truncated_and_extended_bytes_are_refused(x: Any) -> None:
    data = encode(x)
    for n in range(len(data)):
        with pytest.raises(CodecError):
            decode(data[:n])
    with pytest.raises(CodecError, match=r"followed by 1 extra byte$"):
        decode(data + b"\0")
    with pytest.raises(CodecError, match=r"followed by 2 extra bytes$"):
        decode(data + b"\0\0")


@settings(max_examples=500, deadline=None)
@given(st.binary(max_size=60))
@example(b"")
@example(b"\1")
def test_random_bytes_are_decoded_correctly_or_refused(data: bytes) -> None:
    check(b"\1" + data)
    check(data)


def test_excessive_lengths_allocate_no_memory() -> None:
    lengths = [b"\xff" + struct.pack(">Q", n) for n in (255, 2**31, 2**40, 2**63, 2**64 - 1)] + [b"\xfe"]
    array = encode(np.zeros((1, 1), dtype=[]))
    claims = [
        *(bytes((1, tag)) + length + b"\1" * 8 for tag in range(256) for length in lengths),
        *(bytes((1, 0xB3, 1)) + length + b"\1" * 8 for length in lengths),
        *(b"\1\xa1" + struct.pack(">Q", n) + b"\1" * 8 for n in (9, 2**40, 2**64 - 1)),
        encode(np.zeros(1, "U100000"))[:-400_000],
        array.replace(encode((1, 1))[1:], encode((2**40, 2**40))[1:]),
        encode(np.zeros((0, 1))).replace(encode((0, 1))[1:], encode((0, 2**80))[1:]),
        encode(np.zeros((0, 1))).replace(encode((0, 1))[1:], encode((2**40, 1))[1:]),
    ]
    tracemalloc.start()
    for claim in claims:
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        check(claim)
        _, peak = tracemalloc.get_traced_memory()
        assert peak - before < 1_000_000
    tracemalloc.stop()


def item(x: Any) -> bytes:
    return encode(x)[1:]


def array(description: Any, shape: Any, content: bytes = bytes(8)) -> bytes:
    return b"\1\xc6" + item(item(description))[1:] + item(shape) + content


def any_description(r: random.Random, depth: int = 2) -> Any:
    """Return a random description of a dtype, often an invalid one."""
    numbers = [0, 1, 2, 4, 8, 8, 16, -1, 2**31 - 1, 2**31, 2**63, True, None]
    if depth == 0 or r.random() < 0.5:
        units = r.choice(["", f"[{r.choice(['', 0, 1, 25, 2**31, 2**32])}{r.choice('YMWDhms')}]"])
        return r.choice("<>|=") + r.choice("biufcSUVmMOgT") + str(r.choice([0, 1, 3, 4, 8, 8, 16, 2**31])) + units
    if r.random() < 0.4:
        return [any_description(r, depth - 1), tuple(r.choice(numbers) for _ in range(r.randrange(3)))]
    titles = [None, None, None, "title", "a", 5]
    fields = [
        (r.choice("abcd"), r.choice(titles), r.choice(numbers), any_description(r, depth - 1))
        for _ in range(r.randrange(3))
    ]
    return r.choice(numbers), r.random() < 0.3, fields


def test_random_dtype_descriptions_are_decoded_correctly_or_refused() -> None:
    r = random.Random(3)
    read = 0
    for _ in range(10_000):
        shape = tuple(r.choice([0, 1, 1, 2, 3, 2**40]) for _ in range(r.randrange(3)))
        data = array(any_description(r), shape, r.randbytes(r.choice([0, 1, 4, 8, 16, 16, 24])))
        read += check(data)
        check(data[:1] + b"\xc7" + data[2:])
    assert read > 30


REFUSED: list[tuple[bytes, str, str]] = [
    (b"", "value", "does not begin with 1, the format version"),
    (b"\2\1", "value", "does not begin with 1, the format version"),
    (b"\1", "value", "truncated"),
    (b"\1\x05", "value", "unknown tag 0x05"),
    (b"\1\xb0\2\1\xfe", "value[1]", "unknown tag 0xfe"),
    (b"\1\xb0\3\1", "value", "truncated"),
    (b"\1\xb0\2\1\xa8\5ab", "value[1]", "truncated"),
    (b"\1\xb0\2\1\x04\1\1", "value[1]", "truncated"),
    (b"\1\xa8\1\xff", "value", "not valid UTF-8"),
    (b"\1\xb0\1\xa8\2a\xc3", "value[0]", "not valid UTF-8: unexpected end of data at byte 1"),
    (b"\1\xa8\3\xed\xa0\x80", "value", "not valid UTF-8"),
    (b"\1\xa8\xff\0\0\0\0\0\0\0\1a", "value", "canonical form"),
    (b"\1\xa0" + struct.pack(">q", 111), "value", "canonical form"),
    (b"\1\xb0\1\xa0" + struct.pack(">q", -3), "value[0]", "canonical form"),
    (b"\1\x11" + struct.pack(">q", -16), "value", "canonical form"),
    (b"\1\xa1" + struct.pack(">Q", 9) + b"\0" * 8 + b"\1", "value", "canonical form"),
    (b"\1\xa1" + struct.pack(">Q", 9) + b"\xff" * 9, "value", "canonical form"),
    (b"\1\xb1\7" + bytes(56), "value", "canonical form"),
    (b"\1\xb0\x08" + b"\x31" * 8, "value", "canonical form"),
    (b"\1\xb4\2\x32\x31", "value", "unsorted or duplicate elements"),
    (b"\1\xb4\2\x31\x31", "value", "unsorted or duplicate elements"),
    (b"\1\xb4\2" + min(item(1), item(1.0)) + max(item(1), item(1.0)), "value", "duplicate elements"),
    (b"\1\xb4\1" + item([1]), "value", "unhashable"),
    (b"\1\xb4\1\xfe", "value{0}", "unknown tag"),
    (b"\1\xb3\2\6" + item("a") + item("a") + b"\1\1", "value", "a duplicate key"),
    (b"\1\xb3\2\2" + item(1) + item(1) + b"\1\1", "value", "a duplicate key"),
    (b"\1\xb3\2\2" + item(1) + item(True) + b"\1\1", "value", "a duplicate key"),
    (b"\1\xb3\1\2" + item([]) + b"\1", "value", "unhashable"),
    (b"\1\xb3\1\3" + item("a") + b"\xfe", "value['a']", "unknown tag"),
    (b"\1\xb3\1\1\xfe\1", "value.keys()[0]", "unknown tag"),
    (b"\1\xb3\1\2" + item(1) + b"\1\1", "value", "keys that do not take the stated size"),
    (b"\1\xb3\1\x09" + item(1) + b"\1\1", "value", "truncated"),
    (b"\1\xc0" + struct.pack(">HBB", 2023, 2, 29), "value", "is not a date: day is out of range"),
    (b"\1\xc0" + struct.pack(">HBB", 0, 2, 29), "value", "is not a date: year 0"),
    (b"\1\xc1" + struct.pack(">BBBIB", 24, 0, 0, 0, 0) + item(None), "value", "is not a time: hour"),
    (b"\1\xc1" + struct.pack(">BBBIB", 23, 0, 0, 0, 2) + item(None), "value", "is not a time: fold"),
    (
        b"\1\xc1" + struct.pack(">BBBIB", 23, 0, 0, 0, 0) + item("Mars/Olympus"),
        "value.tzinfo",
        "time zone 'Mars/Olympus'",
    ),
    (b"\1\xc1" + struct.pack(">BBBIB", 23, 0, 0, 0, 0) + item("../../etc/passwd"), "value.tzinfo", "not a time zone"),
    (
        b"\1\xc1" + struct.pack(">BBBIB", 23, 0, 0, 0, 0) + item("America"),
        "value.tzinfo",
        "unknown time zone 'America'",
    ),
    (b"\1\xc1" + struct.pack(">BBBIB", 23, 0, 0, 0, 0) + item((86400 * 10**6,)), "value.tzinfo", "not a time zone"),
    (b"\1\xc1" + struct.pack(">BBBIB", 23, 0, 0, 0, 0) + item((10**30,)), "value.tzinfo", "not a time zone"),
    (b"\1\xc1" + struct.pack(">BBBIB", 23, 0, 0, 0, 0) + item((True,)), "value.tzinfo", "not a time zone"),
    (b"\1\xc3" + struct.pack(">iiI", 0, 86400, 0), "value", "canonical form"),
    (b"\1\xc3" + struct.pack(">iiI", 2**31 - 1, 0, 0), "value", "is not a timedelta"),
    (b"\1\xc4\1x", "value", "is not a Decimal"),
    (b"\1\xc4\x03007", "value", "canonical form"),
    (b"\1\xc4\2\xd9\xa1", "value", "is not a Decimal"),
    (b"\1\xc4\x161E+9999999999999999999", "value", "Decimal"),
    (b"\1\xc5" + bytes(15), "value", "truncated"),
    (encode(np.zeros(2)).replace(b"<f8", b"|O8"), "value", "unknown dtype"),
    (encode(np.zeros(2)).replace(b"<f8", b"<g8"), "value", "unknown dtype"),
    (encode(np.zeros((2,), "M8[D]")).replace(b"[D]", b"[Q]"), "value", "unknown dtype"),
    (encode(np.zeros(1, "m8[5s]")).replace(b"[5s]", b"[0s]"), "value", "unknown dtype"),
    (encode(np.zeros(1, "m8[500s]")).replace(b"[500s]", b"[000s]"), "value", "unknown dtype"),
    (encode(np.zeros(1, "m8[123456789s]")).replace(b"m8[123456789s]", b"m8[4294967296]"), "value", "unknown dtype"),
    (encode(np.timedelta64(1, "h")).replace(b"\x08\xa8\x06<m8[h]", b"\x09\xa8\x07<m8[0h]"), "value", "unknown dtype"),
    (encode(np.zeros(16)).replace(b"<f8", b"<i3"), "value", "unknown dtype"),
    (array(["<f8", (1,)], (1,)), "value", "canonical form"),
    (
        array((8, False, [("a", None, 2**31 - 1, "<f8")]), ()),
        "value",
        "unknown dtype",
    ),
    (array((8, False, [("a", None, -8, "<f8")]), ()), "value", "unknown dtype"),
    (array((4, False, [("a", None, 0, "<f8")]), ()), "value", "unknown dtype"),
    (array((True, False, [("a", None, 0, "|b1")]), ()), "value", "unknown dtype"),
    (encode(np.zeros(2)).replace(item((2,)), item([2])), "value", "invalid shape"),
    (encode(np.zeros(2)).replace(item((2,)), item((-2,))), "value", "invalid shape"),
    (encode(np.zeros(2)).replace(item((2,)), item((3,))), "value", "truncated"),
    (encode(np.zeros(2)).replace(item((2,)), item((True,))), "value", "invalid shape"),
    (encode(np.zeros((2, 0))).replace(item((2, 0)), item((2**62, 2**62, 0))), "value", "cannot be created"),
    (encode(np.zeros(())).replace(item(()), item((1,) * 65)), "value", "cannot be created"),
    (encode(np.array(["a"])).replace(b"a\0\0\0", b"a\0\0\x80"), "value", "invalid character code 0x80000061"),
    (encode(np.float64(1)).replace(b"<f8", b">f8"), "value", "canonical form"),
    (encode(np.datetime64("2024-01-01")).replace(b"<M8[D]", b"|S8   "), "value", "unknown dtype"),
    (encode(np.datetime64("2024-01-01")).replace(b"<M8", b">M8"), "value", "canonical form"),
    (encode(np.datetime64("NaT")).replace(b"<M8", b"|S8"), "value", "canonical form"),
    (encode(np.bool_(True))[:-1] + b"\2", "value", "canonical form"),
    (
        encode(Point(1, 2)).replace(b"damage.Point", b"damage.Joint"),
        "value",
        "the type 'damage.Joint', which is not registered",
    ),
    (encode([Note("a", 1)]).replace(b"tags", b"tabs"), "value[0]", "a field 'tabs' that "),
    (encode([Color.RED]).replace(b"RED", b"ROT"), "value[0]", "is 'ROT', and not a member of "),
    (encode(Color.RED).replace(item("RED"), item(10**5000)), "value", "is not a name, and not a member of "),
    (encode(Color.RED).replace(item("RED"), item("x" * 9999)), "value", "x" * 80 + "', and not a member"),
    (encode([Note("a", [1, 2])]).replace(item([1, 2]), b"\xb0\2\x31\xfe"), "value[0].tags[1]", "unknown tag"),
]


@pytest.mark.parametrize(
    ("data", "path", "problem"), REFUSED, ids=[f"{k}-{one[2]:.20}" for k, one in enumerate(REFUSED)]
)
def test_bytes_that_encode_never_writes_are_refused(data: bytes, path: str, problem: str) -> None:
    with pytest.raises(CodecError) as caught:
        decode(data)
    assert caught.value.path == path
    assert problem in caught.value.problem
    with pytest.raises(CodecError) as caught:
        decode(data, name="message 3")
    assert caught.value.path == path.replace("value", "message 3")


def test_cached_keys_are_checked_against_the_count() -> None:
    data = encode({"a": 1, "b": 2})
    assert decode(data) == {"a": 1, "b": 2}
    assert data[2] == 2
    for n in (0, 1, 3):
        with pytest.raises(CodecError):
            decode(data[:2] + bytes((n,)) + data[3:])


def test_cache_of_keys_is_bounded() -> None:
    for k in range(3000):
        assert decode(encode({f"key {k}": k})) == {f"key {k}": k}
    assert decode(encode({"key 1": 1})) == {"key 1": 1}


def test_decoding_imports_and_calls_nothing() -> None:
    name = "antigravity"
    made_up = [
        encode(Point(1, 2)).replace(b"damage.Point", b"os.system___"),
        encode(datetime(2024, 1, 1, tzinfo=ZoneInfo("Europe/Berlin"))).replace(b"Europe/Berlin", b"this/antigrav"),
        encode(np.zeros(2)).replace(b"<f8", b"os."),
    ]
    for data in made_up:
        with pytest.raises(CodecError):
            decode(data)
    assert name not in sys.modules
    assert "this" not in sys.modules
