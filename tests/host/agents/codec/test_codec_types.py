"""Encoding of registered types: dataclasses, enums and namedtuples."""

from __future__ import annotations

import abc
import collections
import enum
import functools
import subprocess
import sys
from dataclasses import InitVar, dataclass, field
from dataclasses import fields as fields_of
from typing import Any, ClassVar, NamedTuple

import pytest

from gpu_pregel.errors import ArgumentError, ArgumentTypeError, CodecError
from gpu_pregel.host.agents.codec import decode, encode, id_key, register, registered

CALLS: list[str] = []


@register
@dataclass
class Plain:
    name: str
    items: list[Any] = field(default_factory=list)
    shared: ClassVar[int] = 3


@register
@dataclass
class Derived(Plain):
    more: int = 0


@register
@dataclass(frozen=True)
class Frozen:
    x: int
    y: tuple[Any, ...] = ()


@register
@dataclass(slots=True)
class Slotted:
    x: int
    inner: Any = None


@register
@dataclass(frozen=True, slots=True, kw_only=True)
class FrozenSlotted:
    x: int
    y: Any = None


@register
@dataclass
class Computed:
    start: InitVar[int]
    value: int = field(init=False)
    fixed: int = field(init=False, default=7)

    def __post_init__(self, start: int) -> None:
        CALLS.append("__post_init__")
        self.value = 2 * start

    @functools.cached_property
    def double(self) -> int:
        return 2 * self.value


@register(name="codec test: Empty")
@dataclass(eq=False)
class Empty:
    pass


@register(name="codec test: Color")
class Color(enum.Enum):
    RED = "r"
    CRIMSON = "r"  # noqa: PIE796 - an alias
    BLUE = "b"


@register(name="codec test: Level")
class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@register(name="codec test: Word")
class Word(enum.StrEnum):
    YES = "yes"


@register(name="codec test: Right")
class Right(enum.Flag):
    READ = 1
    WRITE = 2
    BOTH = 3
    RUN = 4


@register(name="a stable name")
class Pair(NamedTuple):
    left: Any
    right: Any = 0


Old: Any = register(collections.namedtuple("Old", "a b"), "Old pair")


@dataclass
class Unregistered:
    x: int


class Unknown(enum.Enum):
    A = 1


VALUES: list[Any] = [
    Plain("a"),
    Plain("a", [1, Plain("b", [Frozen(1)])]),
    Derived("a", [], 5),
    Frozen(1, (Frozen(2), 3)),
    Slotted(1, Slotted(2)),
    FrozenSlotted(x=1, y={"a": FrozenSlotted(x=2)}),
    Computed(4),
    *Color,
    *Level,
    *Word,
    *Right,
    Right(0),
    Right.READ | Right.RUN,
    ~Right.READ,
    Pair(1, Pair(Color.RED, None)),
    Old(1, [2]),
]


@pytest.mark.parametrize("x", VALUES, ids=repr)
def test_round_trip_of_instances(x: Any) -> None:
    for outer in (x, [x], {"k": (x, x)}):
        y = decode(encode(outer))
        assert y == outer
        assert repr(y) == repr(outer)
        assert encode(y) == encode(outer)
    assert type(decode(encode(x))) is type(x)


def test_hashable_instances_as_keys_and_elements() -> None:
    x = {Frozen(1): {Color.RED, Color.BLUE}, Pair(1, 2): frozenset({FrozenSlotted(x=1)}), Level.LOW: 1}
    assert decode(encode(x)) == x
    with pytest.raises(CodecError, match=r"^value cannot be|^value contains an unhashable key or element"):
        decode(encode({Frozen(1, ()): 1}).replace(encode(())[1:], encode([])[1:]))


def test_decoding_does_not_call_init_or_keep_cached_properties() -> None:
    x = Computed(4)
    assert x.double == 16
    CALLS.clear()
    y = decode(encode(x))
    assert CALLS == []
    assert (y.value, y.fixed, y.double) == (8, 7, 16)
    assert isinstance(decode(encode(Empty())), Empty)


def test_enum_members_keep_their_identity() -> None:
    assert decode(encode(Color.CRIMSON)) is Color.RED
    assert decode(encode(Right.READ | Right.WRITE)) is Right.BOTH
    assert b"CRIMSON" not in encode(Color.CRIMSON)
    assert decode(encode(Color.RED).replace(b"RED", b"CRIMSON").replace(b"\xa8\3CRIM", b"\xa8\7CRIM")) is Color.RED


def test_enum_members_are_not_ids() -> None:
    with pytest.raises(CodecError, match="Level"):
        id_key(Level.LOW)


@pytest.mark.parametrize(
    ("x", "path", "problem"),
    [
        (
            [Unregistered(1)],
            "value[0]",
            "is not registered: put @gp.agents.register above the class, or call gp.agents.register(Unregistered)",
        ),
        ({"a": Unknown.A}, "value['a']", "is not registered"),
        (Plain("a", [1, {"k": len}]), "value.items[1]['k']", "cannot be encoded"),
        ([0, Plain("a", [1, 2, 3, Slotted(len)])], "value[1].items[3].x", "cannot be encoded"),  # type: ignore[arg-type]
        (Pair(1, len), "value.right", "cannot be encoded"),
        (Plain(1.5, [Pair(sorted, 0)]), "value.items[0].left", "cannot be encoded"),  # type: ignore[arg-type]
    ],
    ids=str,
)
def test_invalid_values_are_refused_with_their_path(x: Any, path: str, problem: str) -> None:
    with pytest.raises(CodecError) as caught:
        encode(x)
    assert caught.value.path == path
    assert problem in caught.value.problem


def test_attributes_that_would_be_lost_are_refused() -> None:
    x = Plain("a")
    x.extra = 1  # type: ignore[attr-defined]
    with pytest.raises(
        CodecError, match=r"value\[0\] has the attribute 'extra', not a field of .*Plain: it would be lost"
    ):
        encode([x])
    del x.name
    del x.extra  # type: ignore[attr-defined]
    with pytest.raises(CodecError, match=r"value has a field without a value: .*name"):
        encode(x)

    @register
    @dataclass
    class Hidden:
        __slots__ = ("__secret", "x")
        x: int

        def keep(self) -> None:
            self.__secret = 1

    hidden = Hidden(1)
    assert decode(encode(hidden)) == hidden
    hidden.keep()
    with pytest.raises(CodecError, match="attribute '_Hidden__secret'"):
        encode(hidden)

    class Loose(Pair):
        pass

    register(Loose, "Loose")
    loose = Loose(1, 2)
    assert decode(encode(loose)) == loose
    loose.extra = 1  # type: ignore[attr-defined]
    with pytest.raises(CodecError, match="attribute 'extra'"):
        encode(loose)


def test_fields_must_match_the_encoded_ones() -> None:
    def version(*names: str) -> type:
        cls = type("Versioned", (), {"__annotations__": dict.fromkeys(names, int), "__module__": __name__})
        return register(dataclass(cls))

    old = version("a", "b")
    data = encode({"k": old(1, 2)})
    for names, problem in [
        (("a",), r"value\['k'\] has a field 'b' that .*Versioned does not have"),
        (("a", "b", "c"), r"has no field 'c', which .*Versioned has"),
        (("a", "c"), "has a field 'b' that"),
    ]:
        new = version(*names)
        assert registered()["Versioned"] == (new, None)
        with pytest.raises(CodecError, match=problem):
            decode(data)
    with pytest.raises(CodecError, match="not registered"):
        encode(old(1, 2))
    for names in (("a", "b"), ("b", "a")):
        again = version(*names)
        assert decode(data) == {"k": again(a=1, b=2)}


def test_kinds_of_types_are_distinguished() -> None:
    data = encode(Pair(1, 2))

    @dataclass
    class Other:
        left: Any
        right: Any

    assert [one.name for one in fields_of(Other)] == list(Pair._fields)
    register(Other, "other kind")
    other = encode(Other(1, 2))
    assert data.replace(b"a stable name", b"other kind") != other
    with pytest.raises(CodecError, match=r"a different kind|truncated|not registered"):
        decode(other.replace(b"\xa8\1d", b"\xa8\1n"))


def test_invalid_registrations_are_refused() -> None:
    class Bare:
        pass

    class Late(Plain):
        pass

    @dataclass
    class Dict(dict[str, int]):
        x: int

    @dataclass
    class Abstract(abc.ABC):
        x: int

        @abc.abstractmethod
        def f(self) -> None: ...

    refused: list[tuple[Any, str]] = [
        (Bare, "Bare is not a dataclass, pydantic model, enum or namedtuple: make it one"),
        (Late, "Late derives from a dataclass but is not one: decorate it with @dataclass"),
        (Dict, "Dict cannot be registered"),
        (Abstract, "Abstract cannot be registered"),
        (int, "int is not a dataclass"),
        (Plain("x"), "register takes a class, not Plain"),
    ]
    for bad, problem in refused:
        with pytest.raises(ArgumentTypeError, match=problem):
            register(bad)
    for name in ("", 5, "a\nb", "\ud800"):
        with pytest.raises(ArgumentTypeError, match="name must be"):
            register(Unregistered, name)  # type: ignore[arg-type]
    with pytest.raises(
        ArgumentError, match=r"'Plain' is already the name of .*Plain: register .*Unregistered with another name="
    ):
        register(Unregistered, "Plain")
    with pytest.raises(ArgumentError, match="already registered as 'Plain': it cannot also be 'Second'"):
        register(Plain, "Second")

    class Plain2:
        __qualname__ = "Plain"

    with pytest.raises(ArgumentTypeError, match="Plain is not a dataclass"):
        register(Plain2)
    assert register(Plain) is Plain
    assert decode(encode(Plain("still known"))) == Plain("still known")
    with pytest.raises(CodecError, match="not registered"):
        encode(Unregistered(1))


def test_subclasses_are_not_registered_with_their_base() -> None:
    class Sub(Plain):
        pass

    with pytest.raises(CodecError, match="a subclass of Plain:"):
        encode(Sub("a"))


def test_flags_with_unnamed_bits_are_refused() -> None:
    @register
    class Open(enum.Flag, boundary=enum.KEEP):
        A = 1

    assert decode(encode(Open.A)) is Open.A
    with pytest.raises(CodecError, match="is an unnamed member of"):
        encode([Open(9)])


SCRIPT = """
import sys
from dataclasses import dataclass
from gpu_pregel.host.agents.codec import decode, encode, register
@register
@dataclass
class Plain:
    name: str
    items: list
if sys.argv[1] == "write":
    sys.stdout.buffer.write(encode(Plain("a", [1])))
else:
    assert decode(sys.stdin.buffer.read()) == Plain("a", [1])
"""


def test_type_of_a_script_is_decoded_in_another_module() -> None:
    done = subprocess.run([sys.executable, "-c", SCRIPT, "write"], capture_output=True, check=True)
    assert decode(done.stdout) == Plain("a", [1])
    subprocess.run([sys.executable, "-c", SCRIPT, "read"], input=encode(Plain("a", [1])), check=True)
