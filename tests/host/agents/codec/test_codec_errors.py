"""Values that cannot be encoded are refused with the path to the invalid part."""

from __future__ import annotations

import collections
import enum
import io
import pickle
import struct
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from datetime import time as clock_time
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pytest

from gpu_pregel.errors import ArgumentTypeError, CodecError
from gpu_pregel.host.agents.codec import decode, encode, register
from gpu_pregel.host.agents.codec.piece_tree import OtherStructureError, PieceTree


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


def test_too_large_values_are_refused_early() -> None:
    bomb: Any = ["x" * 50] * 10
    for _ in range(40):
        bomb = [bomb, bomb]
    big = "x" * 1_000_000
    bombs = [bomb, [big] * 100_000, {"a": [big] * 100_000}, [(1, 2)] * 10_000_000, {1: {2: bomb}}, {(1, 2): bomb}]
    tuples: Any = ("x" * 50,) * 10
    for _ in range(40):
        tuples = (tuples, tuples)
    for one in [*bombs, np.broadcast_to(np.zeros(1), (2**40,))]:
        with pytest.raises(CodecError, match="exceeds the limit of 2,000,000 bytes"):
            encode(one, limit=2_000_000)
    with pytest.raises(CodecError, match="exceeds the limit of 500 bytes"):
        encode([tuples], limit=500)


@pytest.mark.parametrize("items", [20, 300])
@pytest.mark.parametrize("kind", ["list", "dict", "set"])
def test_a_value_that_changes_while_it_is_encoded_can_be_decoded_or_is_refused(kind: str, items: int) -> None:
    """As if another thread changed it."""

    @register
    @dataclass(eq=False)
    class Changing:
        number: int

        def __getattribute__(self, name: str) -> Any:
            if name == "number" and kind == "list":
                value.extend(("more", 1.5))
            elif name == "number":
                (value.setdefault if kind == "dict" else value.add)("more")
            return object.__getattribute__(self, name)

    value: Any = [Changing(1), *["text" * 30] * items]
    if kind == "dict":
        value = dict.fromkeys([Changing(1), *range(items)], "text" * 30)
    elif kind == "set":
        value = {Changing(1), *range(items)}
    encoders: list[Callable[[Any], bytes]] = [encode, lambda x: PieceTree([x]).encoded()]
    for encoded in encoders:
        before = len(value)
        try:
            data = encoded(value)
        except (CodecError, RuntimeError, OtherStructureError):
            assert kind != "list"
        else:
            assert len(decode(data)) == before
