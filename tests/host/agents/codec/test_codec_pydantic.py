"""Encoding of pydantic models."""

from __future__ import annotations

from datetime import datetime
from enum import Enum
from typing import Any

import pytest

from gpu_pregel.errors import ArgumentTypeError, CodecError
from gpu_pregel.host.agents.codec import decode, encode, register

pydantic: Any = pytest.importorskip("pydantic", reason="pydantic is not installed")
BaseModel: Any = pydantic.BaseModel
RootModel: Any = pydantic.RootModel


@register(name="codec test: Mood")
class Mood(Enum):
    GOOD = "good"


@register(name="codec test: Part")
class Part(BaseModel):
    name: str
    price: float = 0.0


@register(name="codec test: Order")
class Order(BaseModel):
    model_config = pydantic.ConfigDict(frozen=True)

    number: int = pydantic.Field(alias="orderNumber", gt=0)
    parts: list[Part] = pydantic.Field(default_factory=list)
    when: datetime | None = None
    mood: Mood = Mood.GOOD
    size: tuple[int, ...] = ()
    tags: set[str] = pydantic.Field(default_factory=set)


@register(name="codec test: Secretive")
class Secretive(BaseModel):
    x: int
    _seen: int = pydantic.PrivateAttr(default=0)


@register(name="codec test: Numbers")
class Numbers(RootModel[list[int]]):
    pass


@register(name="codec test: Open")
class Open(BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    x: int = 1


@register(name="codec test: Checked")
class Checked(BaseModel):
    low: int
    high: int

    @pydantic.model_validator(mode="after")  # type: ignore[untyped-decorator]
    def check(self) -> Any:
        if self.low > self.high:
            raise ValueError("low is above high")
        return self


ORDER = Order(orderNumber=3, parts=[Part(name="a", price=1.5)], when=datetime(2024, 1, 1), size=(1, 2), tags={"b", "a"})


@pytest.mark.parametrize(
    "x",
    [Part(name="a"), ORDER, Order(orderNumber=1), Numbers([1, 2]), Open(), Checked(low=1, high=2)],
    ids=lambda x: type(x).__name__,
)
def test_round_trip_of_models(x: Any) -> None:
    y = decode(encode([x]))[0]
    assert type(y) is type(x)
    assert y == x
    assert y.model_fields_set == x.model_fields_set
    assert y.model_extra == x.model_extra
    assert encode([y]) == encode([x])
    assert y.model_dump() == x.model_dump()


def test_round_trip_of_private_attributes() -> None:
    x = Secretive(x=1)
    x._seen = 5
    y = decode(encode(x))
    assert y == x
    assert y._seen == 5
    with pytest.raises(CodecError, match="unknown private attributes"):
        decode(encode(x).replace(b"_seen", b"_sean"))
    x._seen = len  # type: ignore[assignment]
    with pytest.raises(CodecError, match=r"value\.__pydantic_private__\['_seen'\] is of type"):
        encode(x)


def test_fields_are_validated_without_conversion() -> None:
    data = encode([Part(name="a", price=1.5)])
    assert decode(data) == [Part(name="a", price=1.5)]
    wrong = data.replace(encode("a")[1:], encode(5)[1:])
    with pytest.raises(CodecError, match=r"value\[0\].name is not a valid .*Part: Input should be a valid string"):
        decode(wrong)
    order = encode(ORDER)
    with pytest.raises(CodecError, match=r"value\.number is not a valid .*Order"):
        decode(order.replace(encode(3)[1:], encode(-3)[1:], 1))
    with pytest.raises(CodecError, match="low is above high"):
        decode(encode(Checked(low=1, high=2)).replace(encode(1)[1:] + encode(2)[1:], encode(2)[1:] + encode(1)[1:], 1))
    part = Part(name="a")
    part.price = "1.5"  # type: ignore[assignment]
    with pytest.raises(CodecError, match=r"value\.price is not a valid .*Part: Input should be a valid number"):
        encode(part)
    part.price = 2
    assert type(decode(encode(part)).price) is int
    with pytest.raises(CodecError, match="which of its fields were set"):
        decode(encode(Part(name="a", price=1.5)).replace(encode(3)[1:], encode(9)[1:]))


def test_fields_that_would_be_lost_are_refused() -> None:
    with pytest.raises(CodecError, match=r"has extra fields, 'y': declare them in .*Open"):
        encode(Open(x=1, y=2))
    with pytest.raises(CodecError, match="has no value for the field 'name'"):
        encode(Part.model_construct(price=1.0))

    class Other(BaseModel):
        x: int

    with pytest.raises(CodecError, match="is not registered"):
        encode(Other(x=1))

    class Sub(Part):
        pass

    with pytest.raises(CodecError, match="a subclass of Part:"):
        encode(Sub(name="a"))


def test_fields_must_match_the_encoded_ones() -> None:
    with pytest.raises(CodecError, match=r"has a field 'prize' that .*Part does not have"):
        decode(encode(Part(name="a")).replace(b"price", b"prize"))


def test_any_exception_of_a_validator_is_a_codec_error() -> None:
    @register
    class Picky(BaseModel):
        x: int

        @pydantic.field_validator("x")  # type: ignore[untyped-decorator]
        @classmethod
        def check(cls, x: int) -> int:
            if x > 5:
                raise KeyError("too large")
            return x

    data = encode([Picky(x=5)])
    with pytest.raises(CodecError, match=r"^value\[0\] is not a valid .*Picky: its validator raised KeyError"):
        decode(data.replace(encode(5)[1:], encode(6)[1:]))


def test_pydantic_dataclass_is_a_dataclass() -> None:
    @register
    @pydantic.dataclasses.dataclass
    class Point:
        x: int

    point: Any = Point
    assert decode(encode(point(x=1))) == point(x=1)


def test_old_versions_of_pydantic_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Late(BaseModel):
        x: int

    monkeypatch.setattr(pydantic, "VERSION", "2.4.1")
    with pytest.raises(ArgumentTypeError, match=r"pydantic 2.4.1 .* 2.11"):
        register(Late)
