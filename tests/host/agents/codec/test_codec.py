"""Encoding of agent data: round trips of all types, identical bytes in all processes, limits, ids, and errors."""

from __future__ import annotations

import collections
import doctest
import enum
import io
import math
import pickle
import struct
import subprocess
import sys
import time
import uuid
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from datetime import time as clock_time
from decimal import Decimal, localcontext
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_pregel.errors import ArgumentTypeError, CodecError
from gpu_pregel.host.agents import codec
from gpu_pregel.host.agents.codec import check_id, decode, encode, id_key, place, place_of_key

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


# Refusals


class Subclasses:
    """Subclasses of types that can be encoded."""

    class Bool(enum.IntFlag):
        A = 1

    class Int(int):
        pass

    class Str(str):
        pass

    class Float(float):
        pass

    class Bytes(bytes):
        pass

    class List(list[Any]):
        pass

    class Tuple(tuple[Any, ...]):
        pass

    class Array(np.ndarray[Any, Any]):
        pass

    class Date(datetime):
        pass


REFUSED: list[tuple[Any, str, str]] = [
    (Subclasses.Int(1), "value", "a subclass of int:"),
    (Subclasses.Bool.A, "value", "a subclass of int:"),
    ([Subclasses.Str("x")], "value[0]", "a subclass of str:"),
    ({Subclasses.Str("x"): 1}, "value.keys()[0]", "a subclass of str:"),
    ((1, Subclasses.Float(1)), "value[1]", "a subclass of float:"),
    ({"a": [0, {"b": Subclasses.Bytes(b"")}]}, "value['a'][1]['b']", "a subclass of bytes:"),
    ([1, 2, {"x": Subclasses.List()}], "value[2]['x']", "a subclass of list:"),
    (Subclasses.Tuple(), "value", "a subclass of tuple:"),
    (collections.OrderedDict(a=1), "value", "a subclass of dict:"),
    (collections.defaultdict(int), "value", "a subclass of dict:"),
    (Subclasses.Date(2024, 1, 1), "value", "a subclass of datetime:"),
    ([np.zeros(2).view(Subclasses.Array)], "value[0]", "a subclass of ndarray:"),
    (np.rec.array([(1,)], dtype=[("a", "i4")]), "value", "a subclass of ndarray:"),
    (np.ma.masked_array([1.0]), "value", "a subclass of ndarray:"),
    ([1] * 300 + [object()], "value[300]", "cannot be encoded"),
    ({"f": len}, "value['f']", "cannot be encoded"),
    ({3: {(1, 2): object}}, "value[3][key 0]", "cannot be encoded"),
    ({(1, len): 1}, "value.keys()[0][1]", "cannot be encoded"),
    ({1, (2, Ellipsis)} - {1}, "value{0}[1]", "cannot be encoded"),
    ({"k" * 99: 1j}, f"value['{'k' * 36}'…]", "cannot be encoded"),
    ({10**5000: {-5: len}}, "value[key 0][-5]", "cannot be encoded"),
    ({b"": len}, "value[b'']", "cannot be encoded"),
    (memoryview(b"abc"), "value", "use bytes"),
    (iter([]), "value", "cannot be encoded"),
    (ValueError("x"), "value", "cannot be encoded"),
    (["a", "b\ud800"], "value[1]", "lone surrogate '\\ud800' at index 1"),
    ("\ud800", "value", "lone surrogate"),
    ({"\ud800": 1}, "value.keys()[0]", "lone surrogate"),
    ({float("nan"), float("nan")}, "value", "the same bytes"),
    (np.array([None]), "value", "dtype object"),
    (np.array([0x110000], np.uint32).view("U1"), "value", "invalid character code 0x110000"),
    (np.array([[1, 2**31]], ">u4").view([("a", "i4"), ("b", ">U1")]), "value", "invalid character code 0x80000000"),
    (np.zeros(1, dtype=[("a", "i4"), ("b", "U0")]), "value", "has no bytes"),
    (np.zeros(1, dtype=[("a", "O")]), "value", "dtype object"),
    (np.zeros(1, dtype=np.longdouble), "value", "differs between machines: use float64"),
    (np.clongdouble(1), "value", "differs between machines: use complex128"),
    (np.zeros(1, dtype="M8[0s]"), "value", "cannot be encoded"),
    (np.zeros(1, dtype=np.dtype("i4", metadata={"a": 1})), "value", "metadata"),
    (np.array(["a"], dtype=np.dtypes.StringDType()), "value", "cannot be encoded"),
    (np.zeros(1, dtype=np.dtype((np.record, [("a", "i4")]))), "value", "cannot be encoded"),
]


@pytest.mark.parametrize(
    ("x", "path", "problem"), REFUSED, ids=lambda x: x[:30] if isinstance(x, str) else type(x).__name__
)
def test_invalid_values_are_refused_with_their_path(x: Any, path: str, problem: str) -> None:
    for limit in (None, 10**6):
        with pytest.raises(CodecError) as caught:
            encode(x, limit)
        assert caught.value.path == path
        assert problem in caught.value.problem
        assert str(caught.value) == f"{path} {caught.value.problem}"
    with pytest.raises(CodecError) as caught:
        encode(x, name="message")
    assert caught.value.path == path.replace("value", "message", 1)


class Zone(tzinfo):
    def utcoffset(self, moment: datetime | None) -> timedelta:
        return timedelta(0)

    tzname = dst = lambda self, moment: None


def test_unknown_time_zones_are_refused() -> None:
    with pytest.raises(CodecError, match=r"value\[0\] has a tzinfo of type .*Zone"):
        encode([datetime(2024, 1, 1, tzinfo=Zone())])
    counts = struct.pack(">6l", 0, 0, 0, 0, 1, 4)
    nameless = ZoneInfo.from_file(io.BytesIO(b"TZif" + b"\0" * 16 + counts + struct.pack(">lbb", 0, 0, 0) + b"UTC\0"))
    with pytest.raises(CodecError, match="without a key"):
        encode(clock_time(1, tzinfo=nameless))


def test_errors_are_type_and_value_errors_and_can_be_pickled() -> None:
    with pytest.raises(TypeError):
        encode(len)
    with pytest.raises(ValueError, match="version"):
        decode(b"")
    for wrong in (5, "text", None):
        with pytest.raises(ArgumentTypeError, match="decode takes bytes, not"):
            decode(wrong)  # type: ignore[arg-type]
    error = CodecError("is invalid", "value[1]")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.path, again.problem) == ("value[1] is invalid", "value[1]", "is invalid")
    assert str(CodecError("alone")) == "alone"


def nested(depth: int, kind: str) -> Any:
    x: Any = () if kind == "tuple" else frozenset() if kind == "set" else [] if kind == "list" else {}
    for _ in range(depth - 1):
        x = (x,) if kind == "tuple" else frozenset({x}) if kind == "set" else [x] if kind == "list" else {"a": x}
    return x


@pytest.mark.parametrize("kind", ["list", "tuple", "dict", "set"])
def test_nesting_is_limited_to_two_hundred_levels(kind: str) -> None:
    assert encode(decode(encode(nested(200, kind)))) == encode(nested(200, kind))
    with pytest.raises(CodecError, match="more than 200 levels deep"):
        encode(nested(201, kind))
    data = encode(nested(200, kind))
    core, wrapped = (
        data[1:],
        {"list": b"\xb0\1", "tuple": b"\xaa\1", "dict": b"\xb3\1\3\xa8\1a", "set": b"\xb5\1"}[kind],
    )
    assert encode(nested(200, kind)) == b"\1" + wrapped + encode(nested(199, kind))[1:]
    with pytest.raises(CodecError, match="more than 200 levels deep"):
        decode(b"\1" + wrapped + core)


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


def test_recursive_values_are_refused() -> None:
    ring: list[Any] = [1]
    ring.append({"again": ring})
    with pytest.raises(CodecError, match="or contains itself") as caught:
        encode(ring)
    assert caught.value.path.startswith("value[1]['again'][1]['again']")
    assert len(caught.value.path) < 200


def test_stack_overflow_is_a_codec_error() -> None:
    def deeper(left: int) -> bytes:
        return encode(nested(190, "list")) if left == 0 else deeper(left - 1)

    with pytest.raises(CodecError, match="stack"):
        deeper(sys.getrecursionlimit() - 300)


# Limits


@pytest.mark.parametrize("x", VALUES, ids=lambda x: type(x).__name__)
def test_limit_is_exact(x: Any) -> None:
    size = len(encode([x]))
    assert len(encode([x], limit=size)) == size
    for limit in {size - 1, size // 2, 0}:
        with pytest.raises(CodecError, match=f"^value exceeds the limit of {limit:,} bytes"):
            encode([x], limit=limit)


def test_too_large_values_are_refused_early() -> None:
    bomb: Any = ["x" * 50] * 10
    for _ in range(40):
        bomb = [bomb, bomb]
    big = "x" * 1_000_000
    bombs = [bomb, [big] * 100_000, {"a": [big] * 100_000}, [(1, 2)] * 10_000_000, {1: {2: bomb}}, {(1, 2): bomb}]
    tuples: Any = ("x" * 50,) * 10
    for _ in range(40):
        tuples = (tuples, tuples)
    start = time.perf_counter()
    for one in [*bombs, np.broadcast_to(np.zeros(1), (2**40,))]:
        with pytest.raises(CodecError, match="exceeds the limit of 2,000,000 bytes"):
            encode(one, limit=2_000_000)
    with pytest.raises(CodecError, match="exceeds the limit of 500 bytes"):
        encode([tuples], limit=500)
    assert time.perf_counter() - start < 10


# Ids


def test_ids_are_str_int_bytes_or_tuples_of_them() -> None:
    for x in ("", "a", 0, -5, 2**200, b"", (), (1, "a", b"b"), ((1,), ((2,),))):
        check_id(x)
        assert decode(id_key(x)) == x
    refused: list[tuple[Any, str]] = [
        (True, "id is of type bool: ids are str, int, bytes or tuples of them"),
        (None, "id is of type NoneType"),
        (1.0, "id is of type float"),
        ([1], "id is of type list"),
        (np.int64(1), "id is of type numpy.int64"),
        (Subclasses.Str("a"), "id is of type .*Str"),
        ((1, (2, False)), r"id\[1\]\[1\] is of type bool"),
        ((1, len), r"id\[1\] is of type builtin_function_or_method"),
        ("\ud800", "id contains the lone surrogate"),
        ((1, "\ud800"), r"id\[1\] contains the lone surrogate"),
    ]
    for bad, problem in refused:
        with pytest.raises(CodecError, match=problem):
            check_id(bad)
        with pytest.raises(CodecError, match=problem):
            id_key(bad)
        with pytest.raises(CodecError):
            place(bad, 2)


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
            counts = collections.Counter(place(x, workers) for x in ids)
            assert sorted(counts) == list(range(workers)), (name, workers)
            assert max(counts.values()) < 1.25 * len(ids) / workers, (name, workers, counts)
    assert [place(x, 5) for x in ("a", 1, b"c", ("a", 1))] == [
        place_of_key(id_key(x), 5) for x in ("a", 1, b"c", ("a", 1))
    ]
    assert [place(x, 1000) for x in ("a", 1, b"c", ("a", 1))] == [730, 697, 523, 456]


def test_docstring_examples() -> None:
    assert doctest.testmod(codec, optionflags=doctest.ELLIPSIS).failed == 0
